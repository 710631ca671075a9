"""The charts of a report, each with what is said below it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..metrics import REGISTRY
from ..report import plots
from .svg import HEIGHT, draw
from .words import number, share

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd
    from matplotlib.axes import Axes

    from ..results.comparison import Comparison
    from ..results.saved import SavedEvaluation

__all__ = ["Chart", "draw_charts"]

#: Charts with a row for each metric have no more of them.
_MOST_ROWS = 14


class Chart(NamedTuple):
    """A chart, what is said below it, and its numbers where they stand nowhere else."""

    title: str
    svg: str
    caption: str
    numbers: list[list[str]]


def draw_charts(
    shown: Mapping[str, SavedEvaluation],
    chosen: list[str],
    comparison: Comparison | None,
    curves: Mapping[str, pd.DataFrame],
) -> list[Chart]:
    """Draw what there is to be drawn."""
    main = chosen[0]
    legend_rows = -(-len(shown) // plots.legend_columns(list(shown))) if len(shown) > 1 else 0
    numbers = count(1)
    charts: list[Chart] = []

    def add(
        title: str,
        caption: str,
        plot: Callable[[Axes], object],
        n_rows: int | None = None,
        table: list[list[str]] | None = None,
    ) -> None:
        height = HEIGHT if n_rows is None else 0.8 + 0.26 * n_rows
        rows = 0 if n_rows is not None and n_rows == 2 * len(shown) else legend_rows
        svg = draw(plot, f"chart{next(numbers)}", title, height + 0.19 * rows)
        charts.append(Chart(title, svg, caption, table or []))

    every = shown.values()
    if len(shown) > 1:
        add(
            f"{main} of each model",
            "Points are means over users, lines their 95 % intervals. Intervals of two models may "
            "overlap though their difference is shown: the same users are compared in pairs.",
            lambda ax: plots.means(shown, main, ax=ax),
            len(shown) * 2,
        )
    if comparison is not None:
        add(
            f"The best by {main} against the others",
            "Differences and their 95 % intervals; a filled point is a difference that is shown, "
            "after correction.",
            lambda ax: plots.differences(_of_the_best(comparison), main, ax=ax),
            len(shown) * 2,
        )
    for base in dict.fromkeys(metric.partition("@")[0] for metric in chosen):
        if base not in (main.partition("@")[0], "recall"):
            continue
        if len(plots.cutoffs_of(chosen, base)) > 1:
            add(
                f"{base} by cut-off",
                "Bands are 95 % intervals.",
                partial(plots.by_cutoff, shown, base),
            )
    if all(ev.is_per_user(main) for ev in every):
        add(
            f"{main} of single users",
            "For each value, the share of users who reach it: the "
            f"{'higher' if next(iter(every)).higher_is_better(main) else 'lower'} a curve, the "
            "better.",
            lambda ax: plots.distribution(shown, main, ax=ax),
        )
    if all(ev.content["precision_recall"] for ev in every):
        add(
            "Precision and recall",
            "Means over users at every rank, the first one at the left.",
            lambda ax: plots.precision_recall(shown, ax=ax),
        )
    ways: tuple[Literal["activity", "popularity"], ...] = ("activity", "popularity")
    for way in ways:
        metric = next((m for m in chosen if all(plots.groups_of(ev, way, m) for ev in every)), None)
        if metric is not None:
            of = "user activity" if way == "activity" else "item popularity"
            add(
                f"{metric} by {of}",
                _GROUP_CAPTIONS[way],
                partial(plots.by_group, shown, way, metric),
                table=_numbers_of(shown, way, metric),
            )
    if all(ev.content["concentration"] for ev in every):
        add(
            "Concentration of the recommendations",
            "Which share of the places in the lists goes to the items that are recommended most. "
            "Dotted: all items equally often.",
            lambda ax: plots.concentration(shown, ax=ax),
            table=_concentrated(shown),
        )
    lifts = plots.metrics_with_lift({name: ev.summary()["lift"] for name, ev in shown.items()})
    lifts = [metric for metric in chosen if metric in lifts and _is_of_hits(metric)][:_MOST_ROWS]
    if lifts:
        add(
            "Lift over random lists",
            "How many times the value that random lists of the same length would have; on a log "
            "scale.",
            lambda ax: plots.lift(shown, lifts, ax=ax),
            len(lifts) + 2,
        )
    for name, table in curves.items():
        drawn = [metric for metric in chosen if metric in table.columns][:4]
        if drawn:
            add(
                f"Learning curve: {plots.shorten(name, 60)}",
                "Metrics over the iterations, or over checkpoints in the order of their table.",
                partial(plots.learning_curve, table, drawn),
            )
    return charts


_GROUP_CAPTIONS = {
    "activity": "Bands of about as many users each, by their number of training items. Lines are "
    "95 % intervals, of 10 users or more.",
    "popularity": "Bands of items with about as many training interactions each, by the number of "
    "their training users. Lines are 95 % intervals, of 10 users or more.",
}


def _of_the_best(comparison: Comparison) -> Comparison:
    """Keep the pairs of the first model, which is the best."""
    table = comparison.table
    return replace(comparison, table=table[table["a"] == comparison.names[0]])


def _numbers_of(shown: Mapping[str, SavedEvaluation], way: str, metric: str) -> list[list[str]]:
    """Return what a chart of groups shows, as a table with its head."""
    groups: dict[str, dict[str, str]] = {}
    for name, ev in shown.items():
        for row in plots.groups_of(ev, way, metric):
            cell = f"{number(row['mean'])} ({number(row['ci_low'])} to {number(row['ci_high'])})"
            groups.setdefault(row["group"], {})[name] = cell
    body = [[group, *(cells.get(name, "–") for name in shown)] for group, cells in groups.items()]
    return [["group", *shown], *body]


def _is_of_hits(metric: str) -> bool:
    """Say whether a metric counts hits: of others, random lists may have the best values."""
    entry = REGISTRY.get(metric.partition("@")[0].partition("(")[0])
    return entry is None or entry.over == "statistics"


def _concentrated(shown: Mapping[str, SavedEvaluation]) -> list[list[str]]:
    """Return what the curve shows, as a table with its head."""
    rows = [["model", "items recommended", "of the catalogue", "places of the top 1 % of items"]]
    for name, ev in shown.items():
        found = ev.content["concentration"]
        of_all = share(found["n_recommended"], found["n_items"])
        rows.append([name, f"{found['n_recommended']:,}", of_all, share(found["top_percent"], 1)])
    return rows
