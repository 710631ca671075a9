"""The report: one page that needs nothing else, to be read, printed and sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ..comparison import Comparison, common_metrics, compare
from ..display import records
from ..errors import InvalidDataError, MissingExtraError
from ..files import make_folder, replacing
from ..metrics import REGISTRY, convention_named
from ..results import Evaluation
from . import plots
from .contrasts import Contrast, contrasts

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from matplotlib.axes import Axes

    from ..saved import SavedEvaluation

__all__ = ["write_report"]

#: Charts with a row for each metric have no more of them.
_MOST_ROWS = 14

#: Groups in which it is told who wins, by the column of the users' table.
_GROUPS: dict[Literal["seen", "relevant"], str] = {
    "seen": "training items of the user",
    "relevant": "relevant items of the user",
}


class Chart(NamedTuple):
    """A chart, what is said below it, and its numbers where they stand nowhere else."""

    title: str
    svg: str
    caption: str
    numbers: list[list[str]]


def write_report(
    evaluations: Mapping[str, Evaluation | SavedEvaluation],
    path: str | Path,
    metrics: str | Iterable[str] | None = None,
    *,
    title: str = "Evaluation report",
    test: Literal["t", "wilcoxon", "permutation"] = "t",
    correction: Literal["holm", "bh", "none"] = "holm",
    how: Literal["same", "intersection"] = "same",
    curves: Mapping[str, pd.DataFrame] | None = None,
    left_out: Mapping[str, str] | None = None,
) -> Path:
    """Write a page about one evaluation, or about several and how they compare.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        By name, in the order in which they are shown; saved ones too.
    path : str or Path
        The page (.html), in a folder that is made if missing. It needs no network and no script.
    metrics : str or iterable of str, optional
        Those to show; all by default. The first one is what the page is about: its headline, its
        charts and its users. Its p-values are corrected for its pairs of models alone, those of
        all others for each other.
    title : str
        Of the page.
    test, correction, how
        As of `sparse_eval.compare`.
    curves : mapping of str to DataFrame, optional
        Learning curves by name: ``EvaluationCallback.history``, or tables of `sweep`.
    left_out : mapping of str to str, optional
        What could not be shown, and why; the page says so.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InvalidDataError
        As from `sparse_eval.compare`, or if there is no evaluation.
    MissingExtraError
        If matplotlib or jinja2 is not installed.
    OutputError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> held_out = csr_matrix([[1, 0, 0], [1, 0, 0], [0, 1, 0]])
    >>> als = se.evaluate(se.Rankings.from_topk([[0, 1], [0, 1], [0, 1]]), held_out, "mrr@2")
    >>> bpr = se.evaluate(se.Rankings.from_topk([[0, 2], [1, 0], [2, 0]]), held_out, "mrr@2")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = se.write_report({"als": als, "bpr": bpr}, Path(folder) / "report.html")
    ...     "No difference is shown" in page.read_text(encoding="utf-8")
    True
    """
    try:
        import jinja2
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            'reports need jinja2 and matplotlib: pip install "sparse_eval[report]"'
        ) from None
    if not isinstance(evaluations, Mapping) or not evaluations:
        raise InvalidDataError('give one or more evaluations by name: {"als": ev}')
    shown = {
        str(name): ev.snapshot() if isinstance(ev, Evaluation) else ev
        for name, ev in evaluations.items()
    }
    chosen = common_metrics(shown, metrics)
    main, others = chosen[0], chosen[1:]
    # In the order of the main metric, so that in each pair the first one is ahead.
    ranked = _ranked(shown, main)
    ordered = {name: shown[name] for name in [*ranked, *shown.keys() - ranked]}
    comparison, secondary = None, []
    if len(shown) > 1:
        comparison = compare(ordered, main, test=test, correction=correction, how=how)
        if others:
            table = compare(ordered, others, test=test, correction=correction, how=how).table
            secondary = records(table)
    pairs = [] if comparison is None else records(comparison.table)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "p": p_value, "share": share}
    page = environment.get_template("page.html.jinja").render(
        title=title,
        style=Path(__file__).with_name("style.css").read_text(encoding="utf-8"),
        evaluations=shown,
        metrics=chosen,
        main=main,
        rows=_rows(shown, chosen, [*pairs, *secondary]),
        ranked=ranked,
        higher=next(iter(shown.values())).higher_is_better(main),
        comparison=comparison,
        pairs=pairs,
        secondary=secondary,
        elsewhere=_better_elsewhere(ranked, secondary),
        baselines=_baselines(shown),
        charts=_charts(shown, chosen, comparison, curves or {}),
        contrasts=_contrasts(shown, main),
        examples=_examples(shown, main),
        convention=_convention(next(iter(shown.values()))),
        provenance={name: _provenance(ev) for name, ev in shown.items()},
        left_out=left_out or {},
    )
    make_folder(Path(path).parent)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    return Path(path)


def number(value: float | None) -> str:
    """Return a number with as many digits as a reader can use."""
    if value is None or value != value:
        return "–"
    text = f"{value:.4f}" if 1e-4 <= abs(value) < 1e3 or value == 0 else f"{value:.3g}"
    return text.replace("-", "\N{MINUS SIGN}")


def p_value(p: float | None) -> str:
    """Return a p-value as it stands behind "p"."""
    if p is None:
        return "unknown"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def share(part: float, whole: float) -> str:
    """Return a share in per cent."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else f"{percent:.1g} %"


def _rows(
    shown: Mapping[str, SavedEvaluation], chosen: list[str], pairs: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a row for each metric: what it is, each evaluation's numbers, and the best."""
    tables = {name: ev.content["metrics"] for name, ev in shown.items()}
    rows = []
    for metric in chosen:
        entry = REGISTRY.get(metric.partition("@")[0].partition("(")[0])
        rows.append(
            {
                "metric": metric,
                "meaning": "" if entry is None else f"{entry.text}: {entry.description}",
                "cells": {name: table[metric] for name, table in tables.items()},
                "best": _best(shown, metric, pairs),
            }
        )
    return rows


def _best(
    shown: Mapping[str, SavedEvaluation], metric: str, pairs: list[dict[str, Any]]
) -> set[str]:
    """Return the evaluation with the best mean, and those that are not shown to be worse."""
    ranked = _ranked(shown, metric)
    best = ranked[:1] if len(shown) > 1 else []
    worse = {
        name
        for row in pairs
        for name in (row["a"], row["b"])
        if row["metric"] == metric and [row["better"]] == best and name not in best
    }
    return set(ranked) - worse if best else set()


def _better_elsewhere(ranked: list[str], pairs: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the metrics by which another model is shown to be better than the best one."""
    found: dict[str, list[str]] = {}
    for row in pairs:
        if ranked and ranked[0] in (row["a"], row["b"]) and row["better"] not in ("", ranked[0]):
            found.setdefault(row["better"], []).append(row["metric"])
    return found


def _baselines(shown: Mapping[str, SavedEvaluation]) -> dict[str, dict[str, float | None]]:
    """Return the means of the simple rankings that were evaluated beside the models."""
    usual = {"mean", "std", "ci_low", "ci_high", "interval", "random", "random_se", "lift",
             "n_users", "n_skipped"}  # fmt: skip
    found: dict[str, dict[str, float | None]] = {}
    for ev in shown.values():
        for metric, row in ev.content["metrics"].items():
            for name in row.keys() - usual:
                found.setdefault(name, {}).setdefault(metric, row[name])
    return found


def _ranked(shown: Mapping[str, SavedEvaluation], metric: str) -> list[str]:
    """Return the evaluations for which a metric is defined, the best first."""
    higher = next(iter(shown.values())).higher_is_better(metric)
    defined = [name for name, ev in shown.items() if ev[metric] == ev[metric]]
    return sorted(defined, key=lambda name: shown[name][metric] * (-1 if higher else 1))


def _charts(
    shown: Mapping[str, SavedEvaluation],
    chosen: list[str],
    comparison: Comparison | None,
    curves: Mapping[str, pd.DataFrame],
) -> list[Chart]:
    """Draw what there is to be drawn."""
    from .svg import HEIGHT, draw

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
                partial(_by_cutoff, shown, base),
            )
    if all(ev.is_per_user(main) for ev in every):
        add(
            f"{main} of single users",
            "For each value, the share of users who reach it: the higher a curve, the better.",
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
                partial(_by_group, shown, way, metric),
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
                partial(_learning_curve, table, drawn),
            )
    return charts


_GROUP_CAPTIONS = {
    "activity": "Bands of about as many users each, by their number of training items. Lines are "
    "95 % intervals, of 10 users or more.",
    "popularity": "Bands of items with about as many training interactions each, by the number of "
    "their training users. Lines are 95 % intervals, of 10 users or more.",
}


def _by_cutoff(shown: plots.Evaluations, base: str, ax: Axes) -> None:
    plots.by_cutoff(shown, base, ax=ax)


def _by_group(
    shown: plots.Evaluations, way: Literal["activity", "popularity"], metric: str, ax: Axes
) -> None:
    plots.by_group(shown, way, metric, ax=ax)


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


def _learning_curve(table: pd.DataFrame, drawn: list[str], ax: Axes) -> None:
    plots.learning_curve(table, drawn, ax=ax)


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


def _contrasts(
    shown: Mapping[str, SavedEvaluation], main: str
) -> list[tuple[str, str, list[tuple[str, list[Contrast]]]]]:
    """Compare the best model with each other one, the next best first, group by group."""
    order = _ranked(shown, main)
    if len(order) < 2 or not shown[order[0]].is_per_user(main):
        return []
    best = order[0]
    found = []
    for other in order[1:]:
        tables = [
            (title, contrasts(shown[best], shown[other], main, by)) for by, title in _GROUPS.items()
        ]
        found.append((best, other, [table for table in tables if table[1]]))
    return found


def _examples(shown: Mapping[str, SavedEvaluation], main: str) -> list[dict[str, Any]]:
    """Gather the users that are shown in depth, each with the list of every model that has it.

    First those whose values of the main metric differ most between the models.
    """
    cutoff = main.partition("@")[2]
    users: dict[Any, dict[str, Any]] = {}
    for name, ev in shown.items():
        for example in ev.content["examples"]:
            user = example["user"]
            entry = users.setdefault(user, {"user": user, "why": "", "n_relevant": None})
            values = _values_of(ev, user)
            listed = [r for r in example["listed"] if not cutoff or r["rank"] <= int(cutoff)]
            lists = entry.setdefault("lists", {})
            lists[name] = example | {"value": values.get(main), "listed": listed}
            entry["why"] = entry["why"] or example["why"]
            entry["n_relevant"] = values.get("relevant")
    return sorted(users.values(), key=lambda entry: (bool(entry["why"]), -_spread(entry["lists"])))


def _spread(lists: dict[str, dict[str, Any]]) -> float:
    values = [own["value"] for own in lists.values() if own["value"] == own["value"]]
    values = [value for value in values if value is not None]
    return max(values) - min(values) if values else 0.0


def _values_of(ev: SavedEvaluation, user: Any) -> dict[str, Any]:
    """Return what the table says of a user."""
    if user not in ev.table.index:
        return {}
    return {str(key): value for key, value in ev.table.loc[user].items()}


def _convention(ev: SavedEvaluation) -> dict[str, Any]:
    rules = convention_named(None if ev.convention == "standard" else ev.convention)
    return {"name": rules.name, "library": rules.library, "differences": rules.differences()}


def _provenance(ev: SavedEvaluation) -> list[tuple[str, str]]:
    """Return what is needed to get the same numbers again."""
    content = ev.content
    facts = [
        (key, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for key, value in content["about"].items()
    ]
    facts.append(("versions", ", ".join(f"{k} {v}" for k, v in content["versions"].items())))
    for name, one in content["inputs"].items():
        shape = " × ".join(f"{size:,}" for size in one["shape"])
        facts.append((name, f"{shape}, {one['entries']:,} entries, SHA-256 {one['sha256']}"))
    if content["retrieval"]:
        told = (f"{key} {value}" for key, value in content["retrieval"].items())
        facts.append(("retrieval", ", ".join(told)))
    return facts
