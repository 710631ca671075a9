"""Charts of evaluations, comparisons and learning curves.

Each function draws into the matplotlib Axes that it is given as `ax`, by default those of a new
figure, and returns them. Evaluations are given by name, as in ``{"als": als, "bpr": bpr}``; they
may have been loaded from a folder. All functions raise `InvalidDataError` if evaluations are not
given so, and `MissingExtraError` if matplotlib is not installed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..core.formatting import escaped
from ..core.mistaken import describe
from ..errors import InvalidDataError, MissingExtraError
from ..results import Evaluation
from ..results.comparison import Comparison
from ..results.intervals import student
from .names import escape_mathematics, legend_columns, short_names, shorten
from .subgroups import MIN_USERS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd
    from matplotlib.axes import Axes

    Evaluations = Mapping[str, Evaluation]

__all__ = [
    "by_cutoff",
    "by_group",
    "concentration",
    "differences",
    "distribution",
    "learning_curve",
    "lift",
    "means",
    "precision_recall",
]

#: Colours that can be told apart on white and on black and with most colour blindness; markers and
#: line styles differ too.
COLOURS = ("#3a7ebf", "#d9661f", "#2a9d6f", "#b5589c", "#a8871c", "#7d8794", "#d0475a", "#3fa7b5")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
LINES = ("-", "--", "-.", ":")

#: Longest names above the rows of a chart, and of one of two models or beside a row, in characters.
_MAX_ROW_NAME, _MAX_SIDE_NAME = 48, 24

#: A learning curve of more checkpoints numbers them instead of naming them.
_MAX_NAMED_CHECKPOINTS = 12

_DISTRIBUTION_POINTS = 300


class GroupMean(NamedTuple):
    """The mean of a metric in a group of users or items, and its 95 % interval, NaN if unknown."""

    group: str
    mean: float
    low: float
    high: float


def means(evaluations: Evaluations, metric: str, *, ax: Axes | None = None) -> Axes:
    """Draw the mean of a metric and its 95 % interval for each evaluation.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Evaluations by name.
    metric : str
        Name of the metric in the evaluations, such as "ndcg@10".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes

    Raises
    ------
    InvalidMetricError
        If an evaluation does not have the metric.

    Examples
    --------
    >>> import sparse_eval as se
    >>> from matplotlib.figure import Figure
    >>> from scipy.sparse import csr_matrix
    >>> ev = se.evaluate(se.Rankings.from_topk([[0, 1], [1, 0]]), csr_matrix([[1, 0], [1, 0]]),
    ...                  "mrr@2")
    >>> ax = se.plots.means({"als": ev}, "mrr@2", ax=Figure().subplots())
    >>> ax.get_xlabel()
    'mrr@2'
    """
    ax = _axes(ax)
    for row, (_, ev, style) in enumerate(_styled(evaluations)):
        ev.is_per_user(metric)  # raises if there is no such metric
        summary = dict(ev.summary().loc[metric])
        mean, low, high = (float(summary[name]) for name in ("mean", "ci_low", "ci_high"))
        ax.errorbar(
            [mean], [row], xerr=_bar(mean, low, high), capsize=3,
            **style | {"label": None, "linestyle": "none"},
        )  # fmt: skip
    _label_rows_inside(ax, short_names(map(str, evaluations), _MAX_ROW_NAME))
    ax.set_xlabel(_with_direction(next(iter(evaluations.values())), metric))
    return ax


def differences(comparison: Comparison, metric: str, *, ax: Axes | None = None) -> Axes:
    """Draw the differences of a metric between all pairs of evaluations, with their intervals.

    Markers of significant differences are filled.

    Parameters
    ----------
    comparison : Comparison
        The result of `sparse_eval.compare`.
    metric : str
        A metric that was compared.
    ax : matplotlib Axes, optional

    Raises
    ------
    InvalidDataError
        If `comparison` is no Comparison, or does not have the metric.
    """
    ax = _axes(ax)
    from matplotlib.ticker import MaxNLocator

    if not isinstance(comparison, Comparison):
        raise InvalidDataError(
            f"expected a Comparison, as se.compare returns it, found {type(comparison).__name__}"
        )
    pairs = comparison.table[comparison.table["metric"] == str(metric)]
    if pairs.empty:
        raise InvalidDataError(f"{metric!r} was not compared")
    for row, pair in enumerate(pairs.to_dict("records")):
        ax.errorbar(
            [pair["difference"]],
            [row],
            xerr=_bar(pair["difference"], pair["ci_low"], pair["ci_high"]),
            fmt="o",
            capsize=3,
            color=COLOURS[0],
            markerfacecolor=COLOURS[0] if pair["better"] else "none",
        )
    ax.axvline(0, color=_ink(), linewidth=0.8)
    first = pairs["a"].iloc[0]
    direction = "" if comparison.higher_is_better.get(str(metric), True) else " (lower is better)"
    if len(pairs) > 1 and (pairs["a"] == first).all():
        names = [f"− {short}" for short in short_names(pairs["b"], _MAX_ROW_NAME)]
        ax.set_xlabel(f"{metric}{direction}: {shorten(first, _MAX_SIDE_NAME)} minus the others")
    else:
        short = dict(
            zip(comparison.names, short_names(comparison.names, _MAX_SIDE_NAME), strict=True)
        )
        names = [f"{short[a]} − {short[b]}" for a, b in zip(pairs["a"], pairs["b"], strict=True)]
        ax.set_xlabel(f"difference of {metric}{direction}")
    _label_rows_inside(ax, names)
    ax.xaxis.set_major_locator(MaxNLocator(5))
    return ax


def by_cutoff(evaluations: Evaluations, name: str, *, ax: Axes | None = None) -> Axes:
    """Draw a metric against its cut-off, with 95 % bands.

    Parameters
    ----------
    evaluations, ax
        As in `means`.
    name : str
        A metric without its cut-off, such as "ndcg" or "ndcg(gain=exp)".

    Raises
    ------
    InvalidDataError
        If an evaluation has no such metric with a cut-off.
    """
    ax = _axes(ax)
    ticks: set[int] = set()
    for title, ev, style in _styled(evaluations):
        cutoffs = cutoffs_of(ev.names, name)
        if not cutoffs:
            raise InvalidDataError(
                f"{title} has no {name!r} with a cut-off; name the metric alone, one of "
                f"{', '.join(dict.fromkeys(n.partition('@')[0] for n in ev.names if '@' in n))}"
            )
        rows = ev.summary().loc[[f"{name}@{k}" for k in cutoffs]]
        ax.plot(cutoffs, rows["mean"], **style)
        ax.fill_between(
            cutoffs, rows["ci_low"].astype(float), rows["ci_high"].astype(float),
            color=style["color"], alpha=0.25, linewidth=0,
        )  # fmt: skip
        ticks.update(cutoffs)
    ax.set_xticks(sorted(ticks))
    return _label_axes(ax, evaluations, "k", f"{name}@k")


def distribution(evaluations: Evaluations, metric: str, *, ax: Axes | None = None) -> Axes:
    """Draw the share of users who reach each value of a metric.

    Parameters
    ----------
    evaluations, ax
        As in `means`.
    metric : str
        A metric with a value for each user.

    Raises
    ------
    InvalidMetricError
        If an evaluation does not have the metric, or has no values of it for each user.
    """
    ax = _axes(ax)
    for _, ev, style in _styled(evaluations):
        values = np.sort(ev.values(metric))
        values = values[~np.isnan(values)]
        # A step at every value of 50,000 users would take megabytes; a few hundred show the shape.
        points = np.linspace(0, max(len(values) - 1, 0), _DISTRIBUTION_POINTS).astype(int)
        points = np.unique(points)[: len(values)]
        shares = [1 - np.searchsorted(values, value) / len(values) for value in values[points]]
        ax.step(values[points], shares, where="pre", **style | {"marker": None})
    ax.set_ylim(0, 1.02)
    name = _with_direction(next(iter(evaluations.values())), metric)
    return _label_axes(ax, evaluations, name, "share of users with at least this value")


def precision_recall(evaluations: Evaluations, *, ax: Axes | None = None) -> Axes:
    """Draw mean precision against mean recall at every rank down to the end of the lists.

    Parameters
    ----------
    evaluations, ax
        As in `means`.

    Raises
    ------
    InvalidDataError
        If the lists of an evaluation have uncertain positions.
    """
    ax = _axes(ax)
    for title, ev, style in _styled(evaluations):
        curve = ev.record.content["precision_recall"]
        if curve is None:
            raise InvalidDataError(f"the lists of {title} have no certain positions")
        ax.plot(curve["recall"], curve["precision"], markevery=0.2, **style)
    ax.set_ylim(bottom=0)
    return _label_axes(ax, evaluations, "recall", "precision")


def by_group(
    evaluations: Evaluations,
    groups: Literal["activity", "popularity"],
    metric: str,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw a metric by user activity or by item popularity.

    Means over 10 users or more have 95 % intervals.

    Parameters
    ----------
    evaluations, ax
        As in `means`; the evaluations need training data.
    groups : {"activity", "popularity"}
        See `Evaluation.by`.
    metric : str
        For "popularity", a metric that can be divided by items, such as recall.

    Raises
    ------
    InvalidDataError
        If an evaluation does not have the metric by these groups.
    """
    if groups not in ("activity", "popularity"):
        raise InvalidDataError(f"groups is {groups!r}; expected 'activity' or 'popularity'")
    ax = _axes(ax)
    styled = list(_styled(evaluations))
    tables = [group_means(ev, groups, metric) for _, ev, _ in styled]
    for (title, ev, _), table in zip(styled, tables, strict=True):
        if not table:
            metrics = dict.fromkeys(
                row["metric"] for row in ev.record.content["by"].get(groups, [])
            )
            why = f"but {', '.join(metrics)}" if metrics else "as it was evaluated without train="
            raise InvalidDataError(f"{title} has no {metric} by {groups}, {why}")
    names = list(dict.fromkeys(row.group for table in tables for row in table))
    offsets = np.linspace(-0.2, 0.2, len(tables)) if len(tables) > 1 else np.zeros(1)
    for (_, _, style), table, offset in zip(styled, tables, offsets, strict=True):
        ax.errorbar(
            np.array([names.index(row.group) for row in table]) + offset,
            [row.mean for row in table],
            yerr=[row.high - row.mean for row in table],
            capsize=3,
            **style | {"linestyle": "none"},
        )
    ax.set_xticks(range(len(names)), [shorten(name).replace(" ", "\n", 1) for name in names])
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    units = "training items of the user" if groups == "activity" else "training users of the item"
    name = _with_direction(styled[0][1], metric)
    return _label_axes(ax, evaluations, units, name)


def concentration(evaluations: Evaluations, *, ax: Axes | None = None) -> Axes:
    """Draw the Lorenz curve: the share of recommendations that goes to the top share of items.

    The axis of items, most recommended first, is logarithmic: in large catalogues a few per cent
    of the items get nearly all recommendations.

    Parameters
    ----------
    evaluations, ax
        As in `means`; the evaluations need whole lists.

    Raises
    ------
    InvalidDataError
        If an evaluation has the ranks of relevant items only.
    """
    ax = _axes(ax)
    for title, ev, style in _styled(evaluations):
        curve = ev.record.content["concentration"]
        if curve is None:
            raise InvalidDataError(
                f'{title} was evaluated by ranks only; evaluate it with via="top_k"'
            )
        items, shares = (1 - np.array(curve[key])[::-1] for key in ("items", "recommendations"))
        ax.plot(items[1:], shares[1:], **style | {"marker": None})
    equal = np.geomspace(1e-4, 1, 50)
    ax.plot(equal, equal, color=_ink(), linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    ax.set_ylim(0, 1.02)
    xlabel = "share of the items, most recommended first"
    return _label_axes(ax, evaluations, xlabel, "share of recommendations")


def lift(
    evaluations: Evaluations, metrics: list[str] | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw how many times as good as random lists each metric is, on a log scale.

    Parameters
    ----------
    evaluations, ax
        As in `means`.
    metrics : list of str, optional
        By default all metrics with a lift above 0 in every evaluation.

    Raises
    ------
    InvalidDataError
        If there is no metric to draw.
    """
    ax = _axes(ax)
    from matplotlib.ticker import LogFormatter

    styled = list(_styled(evaluations))
    lifts = [ev.summary()["lift"] for _, ev, _ in styled]
    names = metrics_with_lift(lifts) if metrics is None else metrics
    if not names:
        raise InvalidDataError("no metric has a lift above 0 in each evaluation")
    for (_, _, style), column in zip(styled, lifts, strict=True):
        values = column.loc[names].astype(float)
        ax.plot(values, range(len(names)), **style | {"linestyle": "none"})
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=True))
    ax.axvline(1, color=_ink(), linewidth=0.8)
    rows = [escape_mathematics(shorten(name, _MAX_SIDE_NAME)) for name in names]
    ax.set_yticks(range(len(names)), rows)
    ax.set_ylim(len(names) - 0.5, -0.5)
    return _label_axes(ax, evaluations, "times as good as random lists")


def learning_curve(
    table: pd.DataFrame, metrics: str | list[str], *, ax: Axes | None = None
) -> Axes:
    """Draw metrics over the iterations of a training, or over the checkpoints of a sweep.

    Parameters
    ----------
    table : pandas.DataFrame
        ``EvaluationCallback.history``, or the table of a `sweep`, in its order.
    metrics : str or list of str
        Columns of the table.
    ax : matplotlib Axes, optional

    Raises
    ------
    InvalidDataError
        If the table has no such column.

    Examples
    --------
    >>> import pandas as pd
    >>> import sparse_eval as se
    >>> from matplotlib.figure import Figure
    >>> history = pd.DataFrame({"ndcg@10": [0.1, 0.15]}, index=[1, 2])
    >>> ax = se.plots.learning_curve(history, "ndcg@10", ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('iteration', 'ndcg@10')
    """
    if not hasattr(table, "columns"):
        raise InvalidDataError(
            f"table is {describe(table)}; expected a pandas.DataFrame, such as callback.history"
        )
    if not (isinstance(metrics, str | list | tuple) and metrics and all(map(_is_text, metrics))):
        raise InvalidDataError(f"metrics is {metrics!r}; expected names of columns of the table")
    ax = _axes(ax)
    from matplotlib.ticker import MaxNLocator

    names = [metrics] if isinstance(metrics, str) else list(metrics)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InvalidDataError(f"the table has no {', '.join(missing)}, but {list(table.columns)}")
    has_files = "file" in table.columns
    steps = np.arange(1, len(table) + 1) if has_files else table.index.to_numpy()
    for name, style in zip(names, _styles(), strict=False):
        ax.plot(steps, table[name].astype(float), label=name, **style)
    ax.set_xlabel("checkpoint, in the order of the table" if has_files else "iteration")
    if has_files and len(table) <= _MAX_NAMED_CHECKPOINTS:
        files = [escape_mathematics(shorten(Path(str(file)).stem, 16)) for file in table["file"]]
        ax.set_xticks(steps, files, rotation=45, ha="right")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(names) > 1:
        ax.legend()
    else:
        ax.set_ylabel(names[0])
    return ax


def named_evaluations(evaluations: Evaluations) -> list[tuple[str, Evaluation]]:
    """Return evaluations with their names as text, or raise if there are none."""
    if not isinstance(evaluations, Mapping) or not evaluations:
        raise InvalidDataError('give one or more evaluations by name: {"als": ev}')
    for name, ev in evaluations.items():
        if not isinstance(ev, Evaluation):
            raise InvalidDataError(f"{name!r} is {describe(ev)}; expected an Evaluation")
    return [(escaped(name), ev) for name, ev in evaluations.items()]


def cutoffs_of(metrics: list[str], name: str) -> list[int]:
    """Return the cut-offs that a metric was evaluated with, ascending."""
    name = str(name)
    parts = (metric.partition("@") for metric in metrics)
    return sorted(int(cutoff) for base, _, cutoff in parts if base == name and cutoff)


def group_means(ev: Evaluation, groups: str, metric: str) -> list[GroupMean]:
    """Return a metric by activity or popularity, with Student's 95 % intervals."""
    rows = []
    for row in ev.record.content["by"].get(groups, []):
        if row["metric"] != metric or row["mean"] is None:
            continue
        half = math.nan
        if row["std"] is not None and row["n_users"] >= MIN_USERS:
            error = row["std"] / math.sqrt(row["n_users"])
            half = float(student(0.95, row["n_users"] - 1)[1]) * error
        rows.append(GroupMean(row["group"], row["mean"], row["mean"] - half, row["mean"] + half))
    return rows


def metrics_with_lift(lifts: list[pd.Series[float]]) -> list[str]:
    """Return the metrics of the first evaluation that have a lift above 0 in all of them."""
    return [
        str(name)
        for name in lifts[0].index
        if all(name in lift.index and lift[name] > 0 for lift in lifts)
    ]


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _axes(ax: Axes | None) -> Axes:
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


def _styles() -> Iterator[dict[str, Any]]:
    for number in count():
        shift = number + number // len(COLOURS)  # so that the ninth differs from the first
        yield {
            "color": COLOURS[number % len(COLOURS)],
            "marker": MARKERS[shift % len(MARKERS)],
            "linestyle": LINES[shift % len(LINES)],
            "markersize": 4,
        }


def _styled(evaluations: Evaluations) -> Iterator[tuple[str, Evaluation, dict[str, Any]]]:
    """Yield the evaluations with a style each, the same in every chart."""
    named = named_evaluations(evaluations)
    labels = short_names(name for name, _ in named)
    for (name, ev), label, style in zip(named, labels, _styles(), strict=False):
        yield name, ev, style | {"label": escape_mathematics(label)}


def _bar(value: float, low: float, high: float) -> list[list[float]]:
    """Return the lengths of an error bar; rounding may put a value just outside its interval."""
    return [[max(value - low, 0.0)], [max(high - value, 0.0)]]


def _label_rows_inside(ax: Axes, names: list[str]) -> None:
    """Write the name of each row above it inside the chart; long names have no room beside it."""
    ax.set_yticks(range(len(names)), [])
    ax.set_ylim(len(names) - 0.5, -0.7)
    # On a ground of its own, so that no line of the chart strikes a name through.
    ground = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1}
    for row, name in enumerate(names):
        ax.text(
            0.01, row - 0.2, escape_mathematics(name), transform=ax.get_yaxis_transform(),
            va="bottom", bbox=ground,
        )  # fmt: skip


def _with_direction(ev: Evaluation, metric: str) -> str:
    """Return the name of a metric for an axis, and that lower is better if so."""
    return ev.shown(metric) + ("" if ev.higher_is_better(metric) else " (lower is better)")


def _label_axes(ax: Axes, evaluations: Evaluations, xlabel: str, ylabel: str = "") -> Axes:
    """Label the axes, and add a legend above the chart if there are several evaluations."""
    ax.set_xlabel(xlabel)
    if ylabel:
        ax.set_ylabel(ylabel)
    if len(evaluations) > 1:
        ax.legend(
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=legend_columns(list(map(str, evaluations))),
            borderaxespad=0.2,
        )
    return ax


def _ink() -> str:
    import matplotlib as mpl

    return str(mpl.rcParams["axes.edgecolor"])
