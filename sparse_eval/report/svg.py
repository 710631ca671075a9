"""Charts as SVG for a page: real text, the page's colours, no ids that meet those of others."""

from __future__ import annotations

import io
import re
import warnings
from threading import Lock
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import matplotlib as mpl
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable

    from matplotlib.axes import Axes

__all__ = ["HEIGHT", "draw"]

#: Drawn in these and replaced by the page's own colours, which are others in the dark.
_INK, _GRID = "#010203", "#040506"

_STYLE: dict[Any, Any] = {
    "axes.edgecolor": _INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": _INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.family": "sans-serif",
    "font.size": 9,
    "grid.color": _GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "text.color": _INK,
    "xtick.color": _INK,
    "ytick.color": _INK,
}

_DRAWING = Lock()

#: In inches. So wide that its text is as large as the page's on a telephone.
_WIDTH, HEIGHT = 4.4, 2.9


def draw(plot: Callable[[Axes], object], name: str, title: str, height: float = HEIGHT) -> str:
    """Draw a chart.

    Parameters
    ----------
    plot : callable
        Draws into the Axes that it is given.
    name : str
        Of letters and digits, no other chart's of the page: its ids begin with it.
    title : str
        What it is called by a screen reader.
    height : float
        In inches; it is 4.4 wide.

    Returns
    -------
    str
        An ``<svg>`` element.
    """
    # "default" first, so that a matplotlibrc of the user's makes no other page; one chart at a
    # time, since the settings are the whole process's while it is drawn.
    with _DRAWING, mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | {"svg.hashsalt": name})
        # A character that matplotlib's fonts lack is still shown by the browser's.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        plot(figure.subplots())
        file = io.StringIO()
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    return _adapt(file.getvalue(), name, title)


def _adapt(text: str, name: str, title: str) -> str:
    root = ET.fromstring(text)  # noqa: S314 - written by matplotlib a moment ago
    for parent in list(root.iter()):
        for child in list(parent):
            # Its style would be that of everything on the page.
            if child.tag.endswith(("}metadata", "}style")):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.partition("}")[2]
        for key, value in list(element.attrib.items()):
            del element.attrib[key]
            element.set(key.rpartition("}")[2], _own(key, value, name))
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("class", "chart")
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title")
    heading = ET.Element("title", {"id": f"{name}-title"})
    heading.text = title
    root.insert(0, heading)
    return ET.tostring(root, encoding="unicode")


def _own(key: str, value: str, name: str) -> str:
    """Return the value of an attribute with ids and colours of the page."""
    if key == "id":
        return f"{name}-{value}"
    if key.endswith("href"):
        return value.replace("#", f"#{name}-", 1)
    value = re.sub(r"url\(#", f"url(#{name}-", value)
    if key == "style":
        value = value.replace(_INK, "currentColor").replace(_GRID, "var(--line)")
        value = re.sub(r"font: [^;]*?(\d+(\.\d+)?)px[^;]*", r"font-size: \1px", value)
    return value
