"""Axes and styles that the charts share, and names, which have little room in them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from ..core.formatting import escaped, numbers
from ..core.mistaken import describe
from ..errors import InvalidDataError, MissingExtraError
from ..results.scores import Scores

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from matplotlib.axes import Axes

    Evaluations = Mapping[str, Any]

#: Colours that can be told apart on white and on black and with most colour blindness; markers and
#: line styles differ too.
COLOURS = ("#3a7ebf", "#d9661f", "#2a9d6f", "#b5589c", "#a8871c", "#7d8794", "#d0475a", "#3fa7b5")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")

#: Labels of groups fit side by side below a chart if they have so many characters together.
_MAX_TICKS = 56

#: Longest names in a legend, in characters.
MAX_NAME = 32

#: Where a line may end: after a separator, and in runs without one.
_PIECES = re.compile(r"[^_/,;:|=\-\s]{1,16}[_/,;:|=\-\s]*|[_/,;:|=\-\s]+")


def named_evaluations(evaluations: Evaluations) -> list[tuple[str, Any]]:
    """Return evaluations with their names as text, or raise if there are none."""
    if not isinstance(evaluations, Mapping) or not evaluations:
        raise InvalidDataError('give one or more evaluations by name: {"als": ev}')
    for name, ev in evaluations.items():
        if not isinstance(ev, Scores):
            raise InvalidDataError(f"{name!r} is {describe(ev)}; expected an Evaluation")
    return [(escaped(name), ev) for name, ev in evaluations.items()]


def axes_of(ax: Axes | None) -> Axes:
    """Return the Axes given, or those of a new figure."""
    if ax is not None:
        if not hasattr(ax, "plot") or not hasattr(ax, "set_xlabel"):
            raise InvalidDataError(f"ax is {describe(ax)}; expected the Axes of a figure")
        return ax
    try:
        import matplotlib.pyplot as plt  # selects a backend, so only if a figure is needed
    except ImportError:
        raise MissingExtraError(
            'charts need matplotlib: pip install "sparse_eval[report]"'
        ) from None
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
    labels = short_names(name for name, _ in named)
    for (name, ev), label, style in zip(named, labels, styles(), strict=False):
        yield name, ev, style | {"label": escape_mathematics(label)}


def error_bar(value: float, low: float, high: float) -> list[list[float]]:
    """Return the lengths of an error bar; rounding may put a value just outside its interval."""
    return [[max(value - low, 0.0)], [max(high - value, 0.0)]]


def label_rows_inside(ax: Axes, names: list[str]) -> None:
    """Write the name of each row above it inside the chart; long names have no room beside it."""
    ax.set_yticks(range(len(names)), [])
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(names) - 0.5, -0.7)
    # On a ground of its own, so that no line of the chart strikes a name through.
    ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1}
    for row, name in enumerate(names):
        ax.text(
            0.01, row - 0.2, escape_mathematics(name), transform=ax.get_yaxis_transform(),
            va="bottom", bbox=ground,
        )  # fmt: skip


def with_direction(ev: Scores, metric: str) -> str:
    """Return the name of a metric for an axis, and that lower is better if so."""
    return ev.shown(metric) + ("" if ev.higher_is_better(metric) else " (lower is better)")


def label_axes(ax: Axes, evaluations: Evaluations, xlabel: str, ylabel: str = "") -> Axes:
    """Label the axes, and add a legend above the chart if there are several evaluations."""
    ax.set_xlabel(xlabel)
    if ylabel:
        ax.set_ylabel(ylabel)
    if len(evaluations) > 1:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=legend_columns(list(map(str, evaluations)), _points(ax)),
            borderaxespad=0.2,
        )
    return ax


def _points(ax: Axes) -> float:
    """Return the width of a chart with its labels, of which there may be several in a figure."""
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
    """Return a name in one line of characters that can be printed."""
    line = " ".join(str(name).split()) or "(no name)"
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )


def shorten(name: str, longest: int = MAX_NAME, head: int | None = None) -> str:
    """Return a name in one line, without its middle if it is too long for a chart.

    Names of models mostly differ at their end, so that has more room unless `head` says how much
    is kept of the start.
    """
    line = one_line(name)
    if len(line) <= longest:
        return line
    head = longest // 3 if head is None else head
    return f"{line[:head]}…{line[len(line) - (longest - head - 1) :]}"


def short_names(names: Iterable[str], longest: int = MAX_NAME) -> list[str]:
    """Shorten names so that those that differ are still told apart."""
    lines = [one_line(name) for name in names]
    for share in (1 / 3, 1 / 2, 2 / 3, 5 / 6, 1 / 6):
        short = [shorten(line, longest, int(longest * share)) for line in lines]
        if len(set(short)) == len(set(lines)):
            return short
    return [f"{number}: {shorten(line, longest - 4)}" for number, line in enumerate(lines, start=1)]


def legend_columns(names: Sequence[str], points: float = 317) -> int:
    """Return how many names fit beside each other in a legend of a chart of so many points."""
    longest = max(map(len, short_names(names)))
    # In points: what is left of the axis, the width of a character, and the gap between two names.
    return min(len(names), max(int((points - 57) // (5.2 * longest + 48)), 1))


def escape_mathematics(text: str) -> str:
    r"""Escape "$", which starts mathematics in matplotlib, and "_", which hides a label."""
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def pieces(text: str) -> list[str]:
    """Cut a name where a line may end: behind separators, and in runs of many letters."""
    return _PIECES.findall(text)


def format_number(value: float | None) -> str:
    """Return a number with five significant digits."""
    return format_numbers(value)[0]


def format_numbers(*values: float | None) -> list[str]:
    """Return numbers that belong together, such as the ends of an interval, with equal decimals."""
    texts = numbers(*(math.nan if value is None else value for value in values))
    return [text.replace("-", "\N{MINUS SIGN}") or "–" for text in texts]


def format_p(p: float | None) -> str:
    """Return what follows "p" in a sentence: "= 0.012" or "< 0.001"."""
    if p is None:
        return "unknown"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def format_share(part: float, whole: float) -> str:
    """Return a share in per cent."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else f"{percent:.1g} %"
