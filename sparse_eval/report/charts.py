"""Which charts a report has, and their captions; `plots` draws them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..core.formatting import records
from ..errors import InvalidDataError, InvalidFileError
from ..jobs.history import History
from ..metrics import REGISTRY
from ..report import plots
from .plots import groups_of
from .style import (
    HEIGHT,
    draw_svg,
    format_number,
    format_numbers,
    format_share,
    legend_columns,
    shorten,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pandas as pd

    from ..core.types import PathLike
    from ..results.comparison import Comparison
    from .plots import GroupMean

    Evaluations = Mapping[str, Any]  # Scores, of which some charts need an Evaluation

#: A chart with a row for each metric shows the first so many.
_MAX_ROWS = 14

#: Curves and groups are drawn of the first so many models; more cannot be told apart.
MAX_CURVES = 6

_GROUP_CAPTIONS: dict[Literal["activity", "popularity"], str] = {
    "activity": "Bands of about equally many users, by their number of training items. Lines are "
    "95 % intervals, for 10 users or more.",
    "popularity": "Bands of items with about equally many training interactions, by their number "
    "of training users. Lines are 95 % intervals, for 10 users or more.",
}


class Chart(NamedTuple):
    """A chart to draw, and its numbers unless they are elsewhere on the page.

    With `n_rows` it is as high as so many rows of text need.
    """

    title: str
    caption: str
    plot: Callable[..., object]
    n_rows: int | None = None
    numbers: Sequence[list[str]] = ()
    has_legend: bool = True


def draw_charts(
    shown: Evaluations,
    metrics: list[str],
    comparison: Comparison | None,
    curves: Mapping[str, pd.DataFrame],
    by: pd.DataFrame | None = None,
) -> list[tuple[Chart, str]]:
    """Draw the charts that the evaluations have data for; the first metric is the main one.

    Evaluations are in order, the best first: a chart of curves has the best `MAX_CURVES`.
    """
    few = dict(islice(shown.items(), MAX_CURVES))
    panels = [
        *_overview(shown, metrics[0], comparison),
        *_accuracy(few, metrics),
        *_groups(few, metrics),
        *_own_groups(few, metrics[0], by),
        *_against_chance(few, metrics),
        *_learning_curves(curves, [next(iter(shown.values())).shown(name) for name in metrics]),
    ]
    legend_rows = -(-len(few) // legend_columns(list(few))) if len(few) > 1 else 0
    charts = []
    for number, panel in enumerate(panels, start=1):
        height = HEIGHT if panel.n_rows is None else 0.8 + 0.26 * panel.n_rows
        height += 0.19 * legend_rows * panel.has_legend
        svg = draw_svg(panel.plot, f"chart{number}", panel.title, height)
        charts.append((panel, svg))
    return charts


def _overview(shown: Evaluations, main: str, comparison: Comparison | None) -> Iterator[Chart]:
    if len(shown) > 1:
        yield Chart(
            f"{main} of each model",
            "Points are means over users, lines their 95 % intervals. The intervals of two models "
            "may overlap although their difference is significant, since models are compared on "
            "the same users.",
            lambda ax: plots.means(shown, main, ax=ax),
            len(shown) * 2,
            has_legend=False,
        )
    if comparison is not None:
        table = comparison.table
        of_best = replace(comparison, table=table[table["a"] == comparison.names[0]])
        yield Chart(
            f"The best by {main} against the others",
            "Differences and their 95 % intervals; filled points are significant differences, "
            "after correction.",
            lambda ax: plots.differences(of_best, main, ax=ax),
            len(shown) * 2,
            has_legend=False,
        )


def _accuracy(shown: Evaluations, metrics: list[str]) -> Iterator[Chart]:
    main = metrics[0]
    first = next(iter(shown.values()))
    for base in dict.fromkeys(metric.partition("@")[0] for metric in metrics):
        is_drawn = base in (main.partition("@")[0], "recall")
        if is_drawn and len(plots.cutoffs_of(metrics, base)) > 1:
            yield Chart(
                f"{base} by cut-off",
                "Bands are 95 % intervals.",
                partial(plots.by_cutoff, shown, base),
            )
    if first.is_per_user(main) and all(ev.has_values for ev in shown.values()):
        direction = "higher" if first.higher_is_better(main) else "lower"
        yield Chart(
            f"{main} of individual users",
            f"For each value, the share of users who reach it; the {direction} a curve, the "
            "better.",
            lambda ax: plots.distribution(shown, main, ax=ax),
        )
    if all(ev.record["precision_recall"] for ev in shown.values()):
        yield Chart(
            "Precision and recall",
            "Means over users at every rank, starting with rank 1 on the left.",
            lambda ax: plots.precision_recall(shown, ax=ax),
        )


def _groups(shown: Evaluations, metrics: list[str]) -> Iterator[Chart]:
    for groups, caption in _GROUP_CAPTIONS.items():
        for metric in metrics:
            means = {name: groups_of(ev, groups, metric).means for name, ev in shown.items()}
            if all(means.values()):
                of = "user activity" if groups == "activity" else "item popularity"
                yield Chart(
                    f"{metric} by {of}",
                    caption,
                    partial(plots.by_group, shown, groups, metric),
                    numbers=_numbers_of(means),
                )
                break
    if all(ev.record["concentration"] for ev in shown.values()):
        yield Chart(
            "Concentration of the recommendations",
            "The share of all recommendations that goes to the most recommended items. Dotted: "
            "all items equally often.",
            lambda ax: plots.concentration(shown, ax=ax),
            numbers=_concentration_numbers(shown),
        )


def _own_groups(shown: Evaluations, metric: str, by: pd.DataFrame | None) -> Iterator[Chart]:
    if by is None or not next(iter(shown.values())).is_per_user(metric):
        return
    for title, column in by.items():
        means = {name: groups_of(ev, column, metric).means for name, ev in shown.items()}
        yield Chart(
            f"{metric} by {shorten(str(title), 60)}",
            "Lines are 95 % intervals, for 10 users or more.",
            partial(plots.by_group, shown, column, metric),
            numbers=_numbers_of(means),
        )


def _against_chance(shown: Evaluations, metrics: list[str]) -> Iterator[Chart]:
    with_lift = plots.metrics_with_lift([ev._summarize()["lift"] for ev in shown.values()])
    names = [metric for metric in metrics if metric in with_lift and counts_hits(metric)]
    names = names[:_MAX_ROWS]
    if names:
        yield Chart(
            "Lift over random lists",
            "How many times as good as random lists of the same length, on a log scale. Where "
            "lower is better, the value of random lists is divided by the model's.",
            lambda ax: plots.lift(shown, names, ax=ax),
            len(names) + 2,
        )


def _learning_curves(curves: Mapping[str, pd.DataFrame], metrics: list[str]) -> Iterator[Chart]:
    for name, table in curves.items():
        columns = [metric for metric in metrics if metric in table.columns][:4]
        if columns:
            yield Chart(
                f"Learning curve: {shorten(name, 60)}",
                "Metrics over the iterations, or over checkpoints in the order of their table.",
                partial(plots.learning_curve, table, columns),
            )


def counts_hits(metric: str) -> bool:
    """Return whether a metric counts hits; random lists may have the best values of others."""
    entry = REGISTRY.get(metric.partition("@")[0].partition("(")[0])
    return entry is None or entry.over == "statistics"


def _numbers_of(means: Mapping[str, Sequence[GroupMean]]) -> list[list[str]]:
    """Return the numbers of a chart of groups, by model, with a heading row."""
    cells: dict[str, dict[str, str]] = {}
    for name, rows in means.items():
        for row in rows:
            ends = " to ".join(format_numbers(row.low, row.high))
            cells.setdefault(row.group, {})[name] = f"{format_number(row.mean)} ({ends})"
    body = [[group, *(row.get(name, "–") for name in means)] for group, row in cells.items()]
    return [["group", *means], *body]


def _concentration_numbers(shown: Evaluations) -> list[list[str]]:
    """Return the numbers of the chart of concentration, with a heading row."""
    rows = [["model", "items recommended", "of the catalogue", "share of the top 1 % of items"]]
    for name, ev in shown.items():
        curve = ev.record["concentration"]
        of_all = format_share(curve["n_recommended"], curve["n_items"])
        top = format_share(curve["top_percent"], 1)
        rows.append([name, f"{curve['n_recommended']:,}", of_all, top])
    return rows


#: Charts of so many metrics, the main one first.
_MAX_CHARTS = 4


class Trend(NamedTuple):
    """What a page shows of a history.

    Attributes
    ----------
    n_nights : int
    main : str
        The main metric.
    charts : list of tuple of str
        Titles of the charts, and the charts drawn as SVG.
    last : dict or None
        How the last night differs from the one before by the main metric: one test, so that it
        does not become duller with every night. None with one night.
    changes : list of dict
        How nights differ from the one before, the last one first: every night by the main metric,
        and those that have changed by another one.
    notes : list of str
        What is to be known about the comparisons.
    """

    n_nights: int
    main: str
    charts: list[tuple[str, str]]
    last: dict[str, Any] | None
    changes: list[dict[str, Any]]
    notes: list[str]


def describe_trend(
    history: History | PathLike, metrics: Sequence[str], correction: Any = "holm"
) -> Trend:
    """Draw the trend of the metrics that a history has, and compare its nights.

    As on the page, the p-values of the first metric are corrected apart from those of the others.

    Raises
    ------
    InvalidDataError
        If the history has none of the metrics.
    InvalidFileError
        If it has no nights, or cannot be read.
    """
    opened = history if isinstance(history, History) else History(history)
    if not opened.nights:
        raise InvalidFileError(
            "has no nights; sparse-eval score --history, or History.append, adds one", opened.path
        )
    known = {metric for night in opened.nights for metric in night.metrics}
    chosen = [metric for metric in metrics if metric in known]
    if not chosen:
        raise InvalidDataError(
            f"{opened.path} has none of {', '.join(metrics)}, but {', '.join(sorted(known))}; "
            "choose metrics that the history has"
        )
    main, *others = chosen
    nights = opened.nights
    charts = []
    for number, metric in enumerate(chosen[:_MAX_CHARTS]):
        title = f"{nights[-1].shown(metric)} over the nights"
        drawn = draw_svg(partial(plots.trend, opened, metric), f"trend{number}", title)
        charts.append((title, drawn))
    of_others = opened.changes(others, correction=correction)
    rows = records(opened.changes(main, correction=correction))
    rows += records(of_others[of_others["change"] != ""])
    rows.sort(key=lambda row: str(row["time"]), reverse=True)
    by_main = opened.changes(main, correction="none")
    last = records(by_main[by_main["time"] == nights[-1].time])
    return Trend(
        len(nights),
        nights[-1].shown(main),
        charts,
        last[-1] if last else None,
        rows,
        opened.notes(),
    )
