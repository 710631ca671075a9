"""Charts as inline SVG for the page, and as files for papers and slides, and their style.

In inline SVG text stays text, colours follow the page, and ids are unique on it.
"""

from __future__ import annotations

import re
import warnings
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from ..core.arguments import check_number
from ..core.files import as_path, make_folder_of, replacing
from ..core.locks import thread_lock
from ..core.mistaken import describe
from ..errors import InvalidDataError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..core.types import PathLike

#: What would be the time of writing, or the version that wrote, in each kind of file.
_UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}

#: Fonts are in the file: those of PDF as TrueType, which publishers ask for, those of SVG as paths.
_FILES: dict[Any, Any] = {
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "sparse_eval",
    "savefig.bbox": None,
    "savefig.facecolor": "auto",
}


def rc_params(ink: str, grid: str, paper: str, size: float) -> dict[Any, Any]:
    """Return the settings of matplotlib for charts of these colours, and text of so many points."""
    return {
        "axes.edgecolor": ink,
        "axes.facecolor": paper,
        "axes.grid": True,
        "axes.labelcolor": ink,
        "axes.spines.right": False,
        "axes.spines.top": False,
        "font.family": "sans-serif",
        "font.size": size,
        "grid.color": grid,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "text.color": ink,
        "xtick.color": ink,
        "ytick.color": ink,
    }


#: Placeholders, replaced by colours of the page, which has others in dark mode.
_INK, _GRID, _PAPER = "#010203", "#040506", "#070809"

_STYLE = rc_params(_INK, _GRID, _PAPER, size=9) | {
    "figure.facecolor": "none",
    "svg.fonttype": "none",
}

#: In inches; at this width, text is as large as the page's own on a phone.
_WIDTH, HEIGHT = 4.4, 2.9


@contextmanager
def style(width: float = 3.33, height: float | None = None) -> Iterator[None]:
    """Draw charts in the style of the page, in a size for a paper.

    As a context, in which figures are made, drawn into and saved; afterwards matplotlib's settings
    are what they were before. Within, they are matplotlib's defaults but for the style, whatever
    your own are.

    Parameters
    ----------
    width : float
        Of new figures, in inches; by default that of a column of a paper in two columns (ACM's;
        7 is that of both columns).
    height : float, optional
        In inches; by default seven tenths of the width.

    Raises
    ------
    InvalidDataError
        If a size is not a number above 0.
    MissingExtraError
        If matplotlib is not installed.

    See Also
    --------
    save : Write the chart.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> ev = se.evaluate(se.Rankings.from_topk([[0, 1], [1, 0]]), csr_matrix([[1, 0], [1, 0]]),
    ...                  "ndcg@{1,2}")
    >>> with se.plots.style(width=3.33, height=2.2), tempfile.TemporaryDirectory() as folder:
    ...     ax = se.plots.by_cutoff({"als": ev}, "ndcg")
    ...     se.plots.save(ax, Path(folder) / "ndcg.pdf").stat().st_size > 1000
    True
    """
    width = check_number("width", width, 0, open_end=True)
    height = check_number("height", 0.7 * width if height is None else height, 0, open_end=True)
    try:
        import matplotlib as mpl
    except ImportError:
        raise MissingExtraError(
            'charts need matplotlib: pip install "sparse_eval[report]"'
        ) from None
    own = rc_params(ink="#1c2430", grid="#d9dee5", paper="white", size=8) | {
        "figure.figsize": (width, height),
        "figure.constrained_layout.use": True,
        "lines.linewidth": 1.2,
    }
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(own)
        yield


def save(chart: Axes | Figure, path: PathLike) -> Path:
    """Write a chart as PDF, SVG or PNG, with its fonts in the file and without the time.

    The same chart, made anew with the same settings of matplotlib, gives the same bytes. Save where
    you draw: a chart in the style of the page within `style`, as matplotlib makes some text, such
    as the numbers of an axis, only when it writes.

    Parameters
    ----------
    chart : matplotlib Axes or Figure
        What a function of `sparse_eval.plots` returned, or any other; the file has the size of the
        figure.
    path : str or Path
        .pdf, .svg or .png, of 300 dots per inch; its folder is made if missing.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InvalidDataError
        If `chart` is something else, or the path ends otherwise.
    OutputError
        If the file cannot be written.

    See Also
    --------
    style : The style of the page, and sizes for papers.
    """
    figure = chart.get_figure(root=True) if hasattr(chart, "get_figure") else None
    if figure is None or not hasattr(figure, "savefig"):
        raise InvalidDataError(
            f"chart is {describe(chart)}; expected Axes, as the functions of se.plots return them, "
            "or a figure"
        )
    kind = Path(as_path(path)).suffix.lower().removeprefix(".")
    if kind not in _UNDATED:
        raise InvalidDataError(
            f"{str(path)!r} is no chart by its name; expected .pdf, .svg or .png"
        )
    import matplotlib as mpl

    file = make_folder_of(path)
    # Where the disk is full, matplotlib fails to end a PDF, with errors of its own.
    drawn = BytesIO()
    with thread_lock("matplotlib"), mpl.rc_context(_FILES):
        figure.draw_without_rendering()  # what has been laid out once fits better the second time
        figure.savefig(drawn, format=kind, metadata=_UNDATED[kind], dpi=300)
    with replacing(path) as temporary:
        temporary.write_bytes(drawn.getvalue())
    return file


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
    import matplotlib as mpl
    from matplotlib.figure import Figure

    # Start from matplotlib's defaults, so that the user's matplotlibrc has no effect; one chart at
    # a time, since rcParams are shared by all threads.
    with thread_lock("matplotlib"), mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE | {"svg.hashsalt": name})
        # The browser's fonts show characters that matplotlib's lack.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        plot(ax=figure.subplots())
        file = StringIO()
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
