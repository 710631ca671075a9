"""Draw charts as inline SVG: text stays text, colours follow the page, ids are unique on it."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.figure import Figure

from .style import RC_LOCK, rc_params

if TYPE_CHECKING:
    from collections.abc import Callable


#: Placeholders, replaced by colours of the page, which has others in dark mode.
_INK, _GRID, _PAPER = "#010203", "#040506", "#070809"

_STYLE = rc_params(_INK, _GRID, _PAPER, size=9) | {
    "figure.facecolor": "none",
    "svg.fonttype": "none",
}

#: In inches; at this width, text is as large as the page's own on a phone.
_WIDTH, HEIGHT = 4.4, 2.9


def draw_svg(plot: Callable[..., object], name: str, title: str, height: float = HEIGHT) -> str:
    """Draw a chart as SVG.

    Parameters
    ----------
    plot : callable
        Draws into the Axes that it is given as `ax`.
    name : str
        Prefix of all ids, unique on the page, of letters and digits.
    title : str
        The accessible name of the chart, for screen readers.
    height : float
        In inches; the width is 4.4.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    # Start from matplotlib's defaults, so that the user's matplotlibrc has no effect; one chart at
    # a time, since rcParams are shared by all threads.
    with RC_LOCK.current(), mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | {"svg.hashsalt": name})
        # The browser's fonts show characters that matplotlib's lack.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        plot(ax=figure.subplots())
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _adapt(file.getvalue(), name, title)


def _adapt(text: str, name: str, title: str) -> str:
    """Make matplotlib's SVG fit for embedding in the page."""
    root = ET.fromstring(text)  # noqa: S314 - written by matplotlib a moment ago
    for parent in list(root.iter()):
        for child in list(parent):
            # A style element would apply to the whole page.
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.partition("}")[2]
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            element.set(key.rpartition("}")[2], _adapt_attribute(key, value, name))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("class", "chart")
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title")
    heading = ET.Element("title", {"id": f"{name}-title"})
    heading.text = title
    root.insert(0, heading)
    return ET.tostring(root, encoding="unicode")


def _adapt_attribute(key: str, value: str, name: str) -> str:
    """Prefix ids and references to them, and use the colours and font of the page."""
    if key == "id":
        return f"{name}-{value}"
    if key.endswith("href"):
        return value.replace("#", f"#{name}-", 1)
    value = re.sub(r"url\(#", f"url(#{name}-", value)
    if key == "style":
        value = value.replace(_INK, "currentColor").replace(_GRID, "var(--line)")
        value = value.replace(_PAPER, "var(--paper)")
        value = re.sub(r"font: [^;]*?(\d+(\.\d+)?)px[^;]*", r"font-size: \1px", value)
    return value
