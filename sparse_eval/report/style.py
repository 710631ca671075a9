"""Colours and markers of charts, their names and numbers, and charts as inline SVG and files.

In inline SVG text stays text, colours follow the page, and ids are unique on it.
"""

from __future__ import annotations

import math
import re
import warnings
from contextlib import contextmanager
from io import BytesIO, StringIO
from itertools import count
from os.path import commonprefix
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from ..core.arguments import check_number
from ..core.arrays import describe
from ..core.files import as_path, make_folder_of, replacing
from ..core.formatting import numbers
from ..core.messages import printable
from ..core.threads import thread_lock
from ..errors import InvalidDataError, MissingExtraError
from ..results.shared import named_evaluations

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..core.types import PathLike
    from ..results.scores import Scores

    Evaluations = Mapping[str, Any]

_LACKING = 'charts need matplotlib: pip install "sparse_eval[report]"'

#: The fields of each format with the time of writing or a version; they stay empty.
_UNDATED: dict[str, dict[str, None]] = {
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}

#: Fonts are in the file: in PDF as TrueType, which publishers ask for, in SVG as paths.
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

    A context manager: create, draw and save figures in it; afterwards matplotlib's settings are
    restored. Inside, the settings are matplotlib's defaults with this style, not your own settings.

    Parameters
    ----------
    width : float
        Of new figures, in inches; by default one column of a two-column paper (ACM's; 7 is both
        columns).
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
        raise MissingExtraError(_LACKING) from None
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

    The same chart, made anew with the same settings of matplotlib, gives the same bytes. Save a
    chart in the style of the page within `style` too. matplotlib makes some text, such as the
    numbers of an axis, only when it writes.

    Parameters
    ----------
    chart : matplotlib Axes or Figure
        The result of a function of `sparse_eval.plots`, or any other; the file has the size of the
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
            f"cannot write a chart to {str(path)!r}; the extension must be .pdf, .svg or .png"
        )
    import matplotlib as mpl

    file = make_folder_of(path)
    # If the disk is full, matplotlib fails to end a PDF, with its own errors.
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


#: Colours that can be told apart on white and on black and with most colour blindness; markers and
#: line styles differ too.
COLOURS = ("#3a7ebf", "#d9661f", "#2a9d6f", "#b5589c", "#a8871c", "#7d8794", "#d0475a", "#3fa7b5")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")

#: Labels of groups fit side by side below a chart if they have so many characters together.
_MAX_TICKS = 56

#: A chart with more rows has its scale above them too.
_FAR = 5

#: Longest names in a legend, in characters.
MAX_NAME = 32

#: Where a line may end: after a separator, and in runs without one.
_PIECES = re.compile(r"[^_/,;:|=\-\s]{1,16}[_/,;:|=\-\s]*|[_/,;:|=\-\s]+")

_SEPARATORS = re.compile(r"[_/,;:|=\-\s]+")


def axes_of(ax: Axes | None) -> Axes:
    """Return the Axes given, or the Axes of a new figure."""
    if ax is not None:
        if not hasattr(ax, "plot") or not hasattr(ax, "set_xlabel"):
            raise InvalidDataError(f"ax is {describe(ax)}; expected the Axes of a figure")
        return ax
    try:
        import matplotlib.pyplot as plt  # selects a backend, so only if a figure is needed
    except ImportError:
        raise MissingExtraError(_LACKING) from None
    return plt.subplots(layout="constrained")[1]


def styles() -> Iterator[dict[str, Any]]:
    """Yield a style of lines and markers for each model, without end."""
    for number in count():
        shift = number + number // len(COLOURS)  # so that the ninth differs from the first
        yield {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[shift % len(MARKERS)],
            "linestyle": LINES[shift % len(LINES)],
            "markersize": 4,
        }


def styled(evaluations: Evaluations) -> Iterator[tuple[str, Any, dict[str, Any]]]:
    """Yield the evaluations with a style each, the same in every chart."""
    named = named_evaluations(evaluations)
    for (name, ev), label, style in zip(named.items(), short_names(named), styles(), strict=False):
        yield name, ev, style | {"label": escape_mathematics(label)}


def error_bar(value: float, low: float, high: float) -> list[list[float]]:
    """Return the lengths of an error bar; rounding may put a value just outside its interval."""
    return [[max(value - low, 0.0)], [max(high - value, 0.0)]]


def label_rows_inside(ax: Axes, names: list[str]) -> None:
    """Write the name of each row above it inside the chart; long names do not fit next to it."""
    ax.set_yticks(range(len(names)), [])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.5, -0.7)
    if len(names) > _FAR:
        ax.tick_params(axis="x", top=True, labeltop=True)
    # With a background, so no line of the chart crosses a name.
    ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1}
    for row, name in enumerate(names):
        ax.text(
            0.01, row - 0.2, escape_mathematics(name), transform=ax.get_yaxis_transform(),
            va="bottom", bbox=ground,
        )  # fmt: skip


def with_direction(ev: Scores, metric: str) -> str:
    """Return the name of a metric for an axis, and that lower is better if so."""
    return metric_title(ev._shown(metric)) + (
        "" if ev._higher_is_better(metric) else " (lower is better)"
    )


def label_axes(ax: Axes, evaluations: Evaluations, xlabel: str, ylabel: str = "") -> Axes:
    """Label the axes, and add a legend above the chart if there are several evaluations."""
    ax.set_xlabel(escape_mathematics(one_line(xlabel)))
    if ylabel:
        ax.set_ylabel(escape_mathematics(ylabel))
    if len(evaluations) > 1:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=legend_columns(list(map(str, evaluations)), _points(ax)),
            borderaxespad=0.2,
        )
    return ax


def _points(ax: Axes) -> float:
    """Return the width of a chart with its labels; a figure may have several charts."""
    figure, grid = ax.get_figure(root=True), ax.get_gridspec()
    whole = 6.4 if figure is None else figure.get_figwidth()
    return 72 * whole / (1 if grid is None else grid.ncols)


def ink() -> str:
    """Return the colour of axes, for lines that belong to them."""
    import matplotlib as mpl

    return str(mpl.rcParams["axes.edgecolor"])


def label_groups(ax: Axes, names: list[str]) -> None:
    """Write the names of groups below their places, turned if they are too long side by side."""
    short = [shorten(name, 20) for name in names]
    if sum(max(map(len, name.split(" ", 1))) + 2 for name in short) <= _MAX_TICKS:
        ax.set_xticks(range(len(names)), [name.replace(" ", "\n", 1) for name in short])
    else:
        ax.set_xticks(range(len(names)), short, rotation=45, ha="right", rotation_mode="anchor")


def one_line(name: str) -> str:
    """Return a name in one line, with control characters escaped."""
    line = printable(" ".join(str(name).split())) or "(no name)"
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )


def shorten(name: str, longest: int = MAX_NAME, head: int | None = None) -> str:
    """Return a name in one line, without its middle if it is too long for a chart.

    Names of models mostly differ at their end, so the end has more room unless `head` sets the
    length of the start.
    """
    line = one_line(name)
    if len(line) <= longest:
        return line
    head = longest // 3 if head is None else head
    return f"{line[:head]}…{line[len(line) - (longest - head - 1) :]}"


def short_names(names: Iterable[str], longest: int = MAX_NAME) -> list[str]:
    """Shorten names so that different names stay different."""
    lines = [one_line(name) for name in names]
    for share in (1 / 3, 1 / 2, 2 / 3, 5 / 6, 1 / 6):
        short = [shorten(line, longest, int(longest * share)) for line in lines]
        if len(set(short)) == len(set(lines)):
            return short
    return [f"{number}: {shorten(line, longest - 4)}" for number, line in enumerate(lines, start=1)]


def distinct_names(names: Iterable[str], longest: int = MAX_NAME) -> list[str]:
    """Shorten long names of models for a whole page, first by their common beginning and end.

    Names are kept if none is too long, or if two of them would be the same.
    """
    given = list(names)
    short = [one_line(name) for name in given]
    if len(given) < 2 or max(map(len, short)) <= longest:
        return given
    for kept in (2, 1):  # the beginning but for a word, and then the end, backwards
        common = commonprefix(short)  # noqa: RUF071 - names need not be paths
        places = [0, *(place.end() for place in _SEPARATORS.finditer(common))]
        start = places[max(len(places) - kept, 0)]
        short = [name[start:][::-1] for name in short]
    short = short_names(short, longest)
    return short if len(set(short)) == len(given) else given


def legend_columns(names: Sequence[str], points: float = 317) -> int:
    """Return the number of names that fit side by side in a legend of a given width."""
    longest = max(map(len, short_names(names)))
    # In points: the margin of the axis, the width of a character, and the gap between two names.
    return min(len(names), max(int((points - 57) // (5.2 * longest + 48)), 1))


def escape_mathematics(text: str) -> str:
    r"""Escape "$", which starts mathematics in matplotlib, and "_", which hides a label."""
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def pieces(text: str) -> list[str]:
    """Cut a name where a line may end: behind separators, and in runs of many letters."""
    return _PIECES.findall(text)


def format_number(value: float | None) -> str:
    """Return a number with three significant digits."""
    return format_numbers(value)[0]


def format_numbers(*values: float | None) -> list[str]:
    """Return numbers that belong together, such as the ends of an interval, with equal decimals."""
    texts = numbers(*(math.nan if value is None else value for value in values))
    return [text.replace("-", "\N{MINUS SIGN}") or "–" for text in texts]


def format_p(p: float | None) -> str:
    """Return the text that follows "p" in a sentence: "= 0.012" or "< 0.001"."""
    if p is None:
        return "unknown"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def format_share(part: float, whole: float) -> str:
    """Return a share in per cent."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else f"{percent:.1g} %"


def format_shares(*parts: float) -> list[str]:
    """Return parts as percentages of their sum that add up to 100."""
    whole = sum(parts)
    if not whole:
        return ["–"] * len(parts)
    percents = [int(100 * part // whole) for part in parts]
    # Round up the parts that lose most by rounding down.
    by_loss = sorted(range(len(parts)), key=lambda n: percents[n] - 100 * parts[n] / whole)
    for n in by_loss[: 100 - sum(percents)]:
        percents[n] += 1
    return [
        "< 1 %" if part and not percent else f"{percent} %"
        for part, percent in zip(parts, percents, strict=True)
    ]


#: Words in the names of metrics that are written differently in text.
_CAPITALS = (
    "aclt aplt arhr auc cg dcg efd epc err f1 fcp gauc ia idcg map mar mrr psp r rbp reo rsp"
)
_WRITTEN = {word: word.upper() for word in _CAPITALS.split()} | {
    "infap": "infAP",
    "ndcg": "nDCG",
    "psndcg": "PSnDCG",
    "psrecall": "PSrecall",
}


def metric_title(name: str) -> str:
    """Return the name of a metric as it is written in text: nDCG@10 for ndcg@10.

    Examples
    --------
    >>> metric_title("ndcg(gain=exp)@10"), metric_title("hit_rate@5 (1+99)")
    ('nDCG(gain=exp)@10', 'hit rate@5 (1+99)')
    """
    head = re.split("[@( ]", name)[0]
    return " ".join(_WRITTEN.get(word, word) for word in head.split("_")) + name[len(head) :]


#: The size of the interval in a cell of a table, and the margin for its point, in pixels.
_STRIP_WIDTH, _STRIP_HEIGHT, _STRIP_MARGIN = 112, 12, 5


def draw_interval(row: Mapping[str, float | None], scale: tuple[float, float]) -> str:
    """Draw a mean and its interval as a small SVG, on the scale of its metric."""
    start, end = scale
    mean, low, high = row["mean"], row["ci_low"], row["ci_high"]
    if mean is None:
        return ""

    def place(value: float) -> str:
        # Halved, as the difference of two large numbers may be infinite.
        length = end / 2 - start / 2
        share = (value / 2 - start / 2) / length if length else 0.5
        return f"{_STRIP_MARGIN + share * (_STRIP_WIDTH - 2 * _STRIP_MARGIN):.1f}"

    middle = _STRIP_HEIGHT // 2
    line, title = "", "no interval"
    if low is not None and high is not None:
        line = f'<path d="M{place(low)} {middle}H{place(high)}" stroke-width="3"/>'
        title = f"95 % interval {' to '.join(format_numbers(mean, low, high)[1:])}"
    return (
        f'<svg class="strip" viewBox="0 0 {_STRIP_WIDTH} {_STRIP_HEIGHT}" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<path class="scale" d="M0 {middle}H{_STRIP_WIDTH}"/>{line}'
        f'<circle cx="{place(mean)}" cy="{middle}" r="3.5"/></svg>'
    )
