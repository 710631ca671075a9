"""Charts of evaluations, comparisons and learning curves.

Each function draws into the matplotlib Axes `ax`, by default into a new figure, and returns the
Axes. Evaluations are given by name, as in ``{"als": als, "bpr": bpr}``; they may have been loaded
from a folder. All functions raise `InvalidDataError` if evaluations are not given so, and
`MissingExtraError` if matplotlib is not installed. For papers, `style` draws in the style of the
page and in a given size, and `save` writes PDF, SVG or PNG.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..core.arrays import describe
from ..core.exact_sums import Moments
from ..errors import InvalidDataError
from ..jobs.history import clock
from ..results.distribution import paired
from ..results.intervals import LEVEL, NO_INTERVAL, Interval, interval_of_moments, student
from ..results.segments import segmentations
from .style import (
    COLOURS,
    axes_of,
    error_bar,
    escape_mathematics,
    ink,
    label_axes,
    label_groups,
    label_rows_inside,
    metric_title,
    save,
    short_names,
    shorten,
    style,
    styled,
    styles,
    with_direction,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from ..jobs.history import History
    from ..results import Evaluation
    from ..results.comparison import Comparison
    from ..results.segments import UserSegments

    Evaluations = Mapping[str, Evaluation]

__all__ = [
    "by_cutoff",
    "by_group",
    "concentration",
    "differences",
    "distribution",
    "learning_curve",
    "lift",
    "losers",
    "means",
    "precision_recall",
    "save",
    "style",
    "trend",
]

#: Longest names in characters: above the rows of a chart; of one of two models, or next to a row;
#: after a segment.
_MAX_ROW_NAME, _MAX_SIDE_NAME, _MAX_PART_NAME = 48, 24, 16

#: A learning curve of more checkpoints numbers them instead of naming them.
_MAX_NAMED_CHECKPOINTS = 12

_DISTRIBUTION_POINTS = 300


#: The label of the axis of known groups.
UNITS = {"activity": "training items of the user", "popularity": "training users of the item"}

#: An interval over fewer users would be too wide to be of use.
MIN_USERS = 10


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
    'MRR@2'
    """
    ax = axes_of(ax)
    for row, (_, ev, look) in enumerate(styled(evaluations)):
        ev._is_per_user(metric)  # raises if there is no such metric
        summary = dict(ev._summarize().loc[metric])
        mean, low, high = (float(summary[name]) for name in ("mean", "ci_low", "ci_high"))
        ax.errorbar(
            [mean], [row], xerr=error_bar(mean, low, high), capsize=3,
            **look | {"label": None, "linestyle": "none"},
        )  # fmt: skip
    label_rows_inside(ax, short_names(map(str, evaluations), _MAX_ROW_NAME))
    ax.set_xlabel(with_direction(next(iter(evaluations.values())), metric))
    return ax


def differences(comparison: Comparison, metric: str, *, ax: Axes | None = None) -> Axes:
    """Draw the differences of a metric between all pairs of evaluations, with their intervals.

    Markers of significant differences are filled. A comparison by segments has a row for each of
    them. With a margin, a band behind each row shows the differences that do not matter.

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
        If it does not have the metric.
    """
    ax = axes_of(ax)
    from matplotlib.ticker import MaxNLocator

    if not hasattr(comparison, "table"):
        raise InvalidDataError("comparison is no Comparison; pass se.compare(evaluations)")
    pairs = comparison.table[comparison.table["metric"] == str(metric)]
    if pairs.empty:
        raise InvalidDataError(f"{metric!r} was not compared")
    rows = pairs.to_dict("records")
    for row, pair in enumerate(rows):
        ax.errorbar(
            [pair["difference"]],
            [row],
            xerr=error_bar(pair["difference"], pair["ci_low"], pair["ci_high"]),
            fmt="o",
            capsize=3,
            color=COLOURS[0],
            markerfacecolor=COLOURS[0] if pair["better"] else "none",
        )
        if (margin := pair.get("margin", math.nan)) > 0:
            ax.fill_betweenx(
                (row - 0.4, row + 0.4), -margin, margin, color=ink(), alpha=0.12, linewidth=0
            )
    ax.axvline(0, color=ink(), linewidth=0.8)
    first, models = pairs["a"].iloc[0], pairs[["a", "b"]].drop_duplicates()
    title = metric_title(str(metric))
    best = escape_mathematics(shorten(first, _MAX_SIDE_NAME))
    direction = "" if comparison.higher_is_better.get(str(metric), True) else " (lower is better)"
    if comparison.by:
        names = [f"{pair['by']} {pair['segment']}" for pair in rows]
        if len(models) > 1:
            names = [
                f"{name}: {shorten(pair['a'], _MAX_PART_NAME)} − "
                f"{shorten(pair['b'], _MAX_PART_NAME)}"
                for name, pair in zip(names, rows, strict=True)
            ]
            ax.set_xlabel(f"difference of {title}{direction}")
        else:
            other = escape_mathematics(shorten(pairs["b"].iloc[0], _MAX_SIDE_NAME))
            ax.set_xlabel(f"{title}{direction}: {best} − {other}")
    elif len(models) > 1 and (pairs["a"] == first).all():
        names = [f"− {short}" for short in short_names(pairs["b"], _MAX_ROW_NAME)]
        ax.set_xlabel(f"{title}{direction}: {best} minus the others")
    else:
        shortened = short_names(comparison.names, _MAX_SIDE_NAME)
        short = dict(zip(comparison.names, shortened, strict=True))
        names = [f"{short[pair['a']]} − {short[pair['b']]}" for pair in rows]
        ax.set_xlabel(f"difference of {title}{direction}")
    label_rows_inside(ax, names)
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
    ax = axes_of(ax)
    ticks: set[int] = set()
    for title, ev, look in styled(evaluations):
        cutoffs = cutoffs_of(ev.names, name)
        if not cutoffs:
            raise InvalidDataError(
                f"{title} has no {name!r} with a cut-off; pass the metric without one: "
                f"{', '.join(dict.fromkeys(n.partition('@')[0] for n in ev.names if '@' in n))}"
            )
        rows = ev._summarize().loc[[f"{name}@{k}" for k in cutoffs]]
        ax.plot(cutoffs, rows["mean"], **look)
        ax.fill_between(
            cutoffs, rows["ci_low"].astype(float), rows["ci_high"].astype(float),
            color=look["color"], alpha=0.25, linewidth=0,
        )  # fmt: skip
        ticks.update(cutoffs)
    ax.set_xticks(sorted(ticks))
    return label_axes(ax, evaluations, "k", metric_title(f"{name}@k"))


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
    ax = axes_of(ax)
    for _, ev, look in styled(evaluations):
        values = np.sort(ev.values(metric))
        values = values[~np.isnan(values)]
        # A step at every value of 50,000 users would take megabytes; a few hundred show the shape.
        points = np.linspace(0, max(len(values) - 1, 0), _DISTRIBUTION_POINTS).astype(int)
        points = np.unique(points)[: len(values)]
        shares = [1 - np.searchsorted(values, value) / len(values) for value in values[points]]
        ax.step(values[points], shares, where="pre", **look | {"marker": None})
    ax.set_ylim(0, 1.02)
    name = with_direction(next(iter(evaluations.values())), metric)
    return label_axes(ax, evaluations, name, "share of users with at least this value")


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
    ax = axes_of(ax)
    for title, ev, look in styled(evaluations):
        curve = ev._record["precision_recall"]
        if curve is None:
            raise InvalidDataError(f"the lists of {title} have no certain positions")
        ax.plot(curve["recall"], curve["precision"], markevery=0.2, **look)
    ax.set_ylim(bottom=0)
    return label_axes(ax, evaluations, "recall", "precision")


def by_group(
    evaluations: Evaluations,
    groups: Literal["activity", "popularity"] | UserSegments,
    metric: str,
    *,
    ax: Axes | None = None,
) -> Axes:
    """Draw a metric by user activity, by item popularity or by your own segments.

    Means over 10 users or more have 95 % intervals.

    Parameters
    ----------
    evaluations, ax
        As in `means`.
    groups : {"activity", "popularity"}, or mapping, Series, table or path
        "activity" and "popularity" are as in `Evaluation.by`; the evaluations need training data.
        Otherwise segments by user in one column, as in `sparse_eval.compare`; the axis counts
        evaluated users without a segment.
    metric : str
        For "popularity", a metric that can be divided by items, such as recall; for your own
        segments, one with a value for each user.

    Raises
    ------
    InvalidDataError
        If an evaluation does not have the metric by these groups, or the segments are not valid for
        `sparse_eval.compare`.
    InvalidMetricError
        If an evaluation has no values of the metric for each user, for your own segments.
    """
    ax = axes_of(ax)
    drawn = list(styled(evaluations))
    found = [groups_of(ev, groups, metric) for _, ev, _ in drawn]
    for (title, ev, _), one in zip(drawn, found, strict=True):
        if not one.means and isinstance(groups, str):
            metrics = dict.fromkeys(row["metric"] for row in ev._record["by"].get(groups, []))
            why = f"but {', '.join(metrics)}" if metrics else "as it was evaluated without train="
            raise InvalidDataError(f"{title} has no {metric} by {groups}, {why}")
    tables, label = [one.means for one in found], found[-1].label
    if any(one.n_without for one in found):
        counts = sorted({one.n_without for one in found})
        label += f" ({' or '.join(f'{n:,}' for n in counts)} users in no segment)"
    names = list(dict.fromkeys(row.group for table in tables for row in table))
    offsets = np.linspace(-0.2, 0.2, len(tables)) if len(tables) > 1 else np.zeros(1)
    for (_, _, look), table, offset in zip(drawn, tables, offsets, strict=True):
        ax.errorbar(
            np.array([names.index(row.group) for row in table]) + offset,
            [row.mean for row in table],
            yerr=[row.high - row.mean for row in table],
            capsize=3,
            **look | {"linestyle": "none"},
        )
    label_groups(ax, names)
    ax.set_ylim(bottom=min(0.0, ax.get_ylim()[0]))
    return label_axes(ax, evaluations, label, with_direction(drawn[0][1], metric))


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
    ax = axes_of(ax)
    for title, ev, look in styled(evaluations):
        curve = ev._record["concentration"]
        if curve is None:
            raise InvalidDataError(
                f'{title} was evaluated by ranks only; evaluate it with keep="lists"'
            )
        items, shares = (1 - np.array(curve[key])[::-1] for key in ("items", "recommendations"))
        ax.plot(items[1:], shares[1:], **look | {"marker": None})
    equal = np.geomspace(1e-4, 1, 50)
    ax.plot(equal, equal, color=ink(), linewidth=0.8, linestyle=":")
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda share, _: f"{100 * share:g} %")
    ax.set_ylim(0, 1.02)
    xlabel = "share of the items, most recommended first"
    return label_axes(ax, evaluations, xlabel, "share of recommendations")


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
    ax = axes_of(ax)
    from matplotlib.ticker import LogFormatter

    drawn = list(styled(evaluations))
    lifts = [ev._summarize()["lift"] for _, ev, _ in drawn]
    names = metrics_with_lift(lifts) if metrics is None else metrics
    if not names:
        raise InvalidDataError("no metric has a lift above 0 in each evaluation")
    for (_, _, look), column in zip(drawn, lifts, strict=True):
        values = column.loc[names].astype(float)
        ax.plot(values, range(len(names)), **look | {"linestyle": "none"})
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_formatter(LogFormatter(labelOnlyBase=True))
    ax.axvline(1, color=ink(), linewidth=0.8)
    rows = [escape_mathematics(shorten(metric_title(name), _MAX_SIDE_NAME)) for name in names]
    ax.set_yticks(range(len(names)), rows)
    ax.set_ylim(len(names) - 0.5, -0.5)
    return label_axes(ax, evaluations, "times as good as random lists")


def losers(
    evaluations: Evaluations, metric: str, margin: float = 0.0, *, ax: Axes | None = None
) -> Axes:
    """Draw each user's gain by a new model, from the largest loss on, with the losers shaded.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two by name: the new model, and the model to compare it with.
    metric : str
        A metric with a value for each user.
    margin : float
        The losers are users who lose more than this, as in `Evaluation.losers`.
    ax : matplotlib Axes, optional

    Raises
    ------
    InvalidDataError
        If there are not two evaluations, or as from `Evaluation.losers`.
    InvalidMetricError
        As from `Evaluation.losers`.
    """
    ax = axes_of(ax)
    names = short_names(map(str, evaluations), _MAX_SIDE_NAME)
    if len(names) != 2:
        raise InvalidDataError(f"losers of {len(names)} evaluations; give a new and an old one")
    (_, new, look), (_, old, _) = styled(evaluations)
    counts = new.losers(old, metric, margin).iloc[0]
    gains = np.sort(paired(new, old, metric)[0])
    if not new._higher_is_better(metric):
        gains, names = -gains[::-1], names[::-1]
    n, n_losers = len(gains), int(counts["losers"])
    points = np.linspace(0, n - 1, _DISTRIBUTION_POINTS).astype(int)
    points = np.unique([*points, max(n_losers - 1, 0), min(n_losers, n - 1)])
    shares = 100 * (points + 0.5) / n
    ax.plot(shares, gains[points], color=look["color"])
    low, share, high = (f"{100 * counts[name]:.1f}" for name in ("ci_low", "share", "ci_high"))
    ax.fill_between(
        shares, gains[points], where=points < n_losers, color=COLOURS[1], alpha=0.5, linewidth=0,
        label=f"{share} % of users lose" + f" more than {margin:g}" * bool(margin)
        + f" ({low} to {high} %)",
    )  # fmt: skip
    ax.axhline(0, color=ink(), linewidth=0.8)
    ax.set_xlim(0, 100)
    ax.set_xlabel("users, from the largest loss on (%)")
    ax.set_ylabel(escape_mathematics(f"{metric_title(metric)}: {' − '.join(names)}"))
    ax.legend()
    return ax


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
    ('iteration', 'nDCG@10')
    """
    if not hasattr(table, "columns"):
        raise InvalidDataError(
            f"table is {describe(table)}; expected a pandas.DataFrame, such as callback.history"
        )
    names = [metrics] if isinstance(metrics, str) else metrics
    of_text = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    if not (of_text and metrics):
        raise InvalidDataError(f"metrics is {metrics!r}; expected names of columns of the table")
    ax = axes_of(ax)
    from matplotlib.ticker import MaxNLocator

    missing = [name for name in names if name not in table.columns]
    if missing:
        raise InvalidDataError(f"the table has no {', '.join(missing)}, but {list(table.columns)}")
    has_files = "file" in table.columns
    steps = np.arange(1, len(table) + 1) if has_files else table.index.to_numpy()
    for name, look in zip(names, styles(), strict=False):
        ax.plot(steps, table[name].astype(float), label=metric_title(name), **look)
    ax.set_xlabel("checkpoint, in the order of the table" if has_files else "iteration")
    if has_files and len(table) <= _MAX_NAMED_CHECKPOINTS:
        files = [escape_mathematics(shorten(Path(str(file)).stem, 16)) for file in table["file"]]
        ax.set_xticks(steps, files, rotation=45, ha="right")
    else:
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    if len(names) > 1:
        ax.legend()
    else:
        ax.set_ylabel(metric_title(names[0]))
    return ax


def trend(history: History, metric: str, *, ax: Axes | None = None) -> Axes:
    """Draw a metric over the nights of a history, with its 95 % intervals.

    Nights that differ significantly from the one before, by `History.changes`, have another marker.

    Parameters
    ----------
    history : History
    metric : str
        Name of the metric in the evaluations, such as "ndcg@10".
    ax : matplotlib Axes, optional

    Raises
    ------
    InvalidDataError
        If no night has the metric.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> from matplotlib.figure import Figure
    >>> from scipy.sparse import csr_matrix
    >>> ev = se.evaluate(se.Rankings.from_topk([[0], [1]]), csr_matrix([[1, 0], [1, 0]]), "mrr@1")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     history = se.History(Path(folder) / "nights.jsonl")
    ...     history.append(ev, "als", time="2026-11-22T03:00Z")
    ...     history.append(ev, "als", time="2026-11-23T03:00Z")
    ...     ax = se.plots.trend(history, "mrr@1", ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('night (UTC)', 'MRR@1')
    """
    table = history.changes(metric)
    ax = axes_of(ax)
    from matplotlib import dates

    nights = [night for night in history.nights if metric in night.metrics]
    dates_of = np.array([clock(night.night) for night in nights], "datetime64[s]")
    means = np.array([night.metrics[metric].mean for night in nights])
    low = np.array([night.metrics[metric].ci_low for night in nights])
    high = np.array([night.metrics[metric].ci_high for night in nights])
    bars = np.clip(np.nan_to_num([means - low, high - means]), 0, None)
    ax.errorbar(dates_of, means, bars, color=COLOURS[0], marker="o", markersize=4, linewidth=1)
    times = set(table[table["change"] != ""]["time"])
    changed = np.array([night.time in times for night in nights])
    if changed.any():
        look: Any = {"color": COLOURS[1], "markersize": 7, "zorder": 3}
        ax.plot(dates_of[changed], means[changed], "D", label="changed", **look)
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.2)
    locator = dates.AutoDateLocator(minticks=2, maxticks=6)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(
        dates.ConciseDateFormatter(locator)  # type: ignore[no-untyped-call]
    )
    ax.set_xlabel("night (UTC)")
    higher = nights[-1].metrics[metric].higher_is_better
    ax.set_ylabel(metric_title(nights[-1].shown(metric)) + ("" if higher else " (lower is better)"))
    return ax


class GroupMean(NamedTuple):
    """The mean of a metric in a group of users or items, and its 95 % interval, NaN if unknown."""

    group: str
    mean: float
    low: float
    high: float


class Groups(NamedTuple):
    """The means of a metric by group, what divides them, and how many users are in no group."""

    label: str
    means: list[GroupMean]
    n_without: int = 0


def groups_of(ev: Evaluation, groups: Any, metric: str) -> Groups:
    """Return the means of a metric by group, with 95 % intervals for 10 users or more.

    `groups` is as in `sparse_eval.plots.by_group`. Groups without a value are left out.
    """
    ends = ev.request.range_of(ev._row_of(metric))
    if isinstance(groups, str) and groups in UNITS:
        rows = ev._record["by"].get(groups, [])
        own = [row for row in rows if row["metric"] == metric and row["mean"] is not None]
        return Groups(UNITS[groups], [_group_mean(row, ends) for row in own])
    column, *more = segmentations(groups, ev._evaluated_users)
    if more:
        titles = ", ".join(each.title for each in (column, *more))
        raise InvalidDataError(f"groups have the columns {titles}; give one of them")
    values = ev.values(metric)[ev._values.counted]
    means = []
    for code, name in enumerate(column.names):
        inside = values[column.codes == code]
        moments = Moments.of(inside[~np.isnan(inside)])
        if moments.n:
            enough = moments.n >= MIN_USERS
            interval = interval_of_moments(moments, LEVEL) if enough else NO_INTERVAL
            low, high, _ = interval.within(moments.mean, ends)
            means.append(GroupMean(name, moments.mean, low, high))
    return Groups(column.title, means, int((column.codes < 0).sum()))


def _group_mean(row: dict[str, Any], ends: tuple[float, float]) -> GroupMean:
    mean, half = row["mean"], math.nan
    if row["std"] is not None and row["n_users"] >= MIN_USERS:
        error = row["std"] / math.sqrt(row["n_users"])
        half = float(student(LEVEL, row["n_users"] - 1)[1]) * error
    low, high, _ = Interval(mean - half, mean + half, "t").within(mean, ends)
    return GroupMean(row["group"], mean, low, high)


def cutoffs_of(metrics: list[str], name: str) -> list[int]:
    """Return the cut-offs that a metric was evaluated with, ascending."""
    name = str(name)
    parts = (metric.partition("@") for metric in metrics)
    return sorted(int(cutoff) for base, _, cutoff in parts if base == name and cutoff)


def metrics_with_lift(lifts: list[pd.Series[float]]) -> list[str]:
    """Return the metrics of the first evaluation that have a lift above 0 in all of them."""
    return [
        str(name)
        for name in lifts[0].index
        if all(name in lift.index and lift[name] > 0 for lift in lifts)
    ]
