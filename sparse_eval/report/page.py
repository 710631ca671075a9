"""The report: one page that needs nothing else, to be read, printed and sent."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..core.files import make_folder, replacing
from ..core.formatting import records
from ..errors import InvalidDataError, MissingExtraError
from ..metrics import REGISTRY, convention_named
from ..results import Evaluation
from ..results.comparison import common_metrics, compare
from .contrasts import Contrast, contrasts
from .words import number, p_value, share

if TYPE_CHECKING:
    import pandas as pd

    from ..results.saved import SavedEvaluation

__all__ = ["write_report"]

#: Groups in which it is told who wins, by the column of the users' table.
_GROUPS: dict[Literal["seen", "relevant"], str] = {
    "seen": "training items of the user",
    "relevant": "relevant items of the user",
}


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

        from .charts import draw_charts
    except ImportError:
        raise MissingExtraError(
            'reports need jinja2 and matplotlib: pip install "sparse_eval[report]"'
        ) from None
    if not isinstance(evaluations, Mapping) or not evaluations:
        raise InvalidDataError('give one or more evaluations by name: {"als": ev}')
    if len(set(map(str, evaluations))) < len(evaluations):
        raise InvalidDataError(
            f"two evaluations are called the same: {', '.join(map(str, evaluations))}"
        )
    shown = {
        str(name): ev.snapshot() if isinstance(ev, Evaluation) else ev
        for name, ev in evaluations.items()
    }
    chosen = common_metrics(shown, metrics)
    main, others = chosen[0], chosen[1:]
    # In the order of the main metric, so that in each pair the first one is ahead.
    ranked = _ranked(shown, main)
    if len(shown) > 1 and how == "intersection":  # by what is compared, not by everybody's users
        means = _means_of(records(compare(shown, main, how=how).table))
        if None not in means.values():
            up = next(iter(shown.values())).higher_is_better(main)
            ranked.sort(key=lambda name: means[name], reverse=up)
    ordered = {name: shown[name] for name in dict.fromkeys([*ranked, *shown])}
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
        charts=draw_charts(shown, chosen, comparison, curves or {}),
        contrasts=_contrasts(shown, main, ranked),
        examples=_examples(shown, main),
        convention=_convention(next(iter(shown.values()))),
        provenance={name: _provenance(ev) for name, ev in shown.items()},
        left_out=left_out or {},
    )
    make_folder(Path(path).parent)
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    return Path(path)


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
    if len(shown) < 2:
        return set()
    beaten = {
        name
        for row in pairs
        for name in (row["a"], row["b"])
        if row["metric"] == metric and row["better"] not in ("", name)
    }
    return {name for name in ranked if name not in beaten} or set(ranked[:1])


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
            for name in (key for key in row if key not in usual):
                found.setdefault(name, {}).setdefault(metric, row[name])
    return found


def _means_of(pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the mean of each evaluation in the pairs of a metric."""
    return {row[one]: row[f"mean_{one}"] for row in pairs for one in ("a", "b")}


def _ranked(shown: Mapping[str, SavedEvaluation], metric: str) -> list[str]:
    """Return the evaluations for which a metric is defined, the best first."""
    higher = next(iter(shown.values())).higher_is_better(metric)
    defined = [name for name, ev in shown.items() if ev[metric] == ev[metric]]
    return sorted(defined, key=lambda name: shown[name][metric] * (-1 if higher else 1))


def _contrasts(
    shown: Mapping[str, SavedEvaluation], main: str, ranked: list[str]
) -> list[tuple[str, str, list[tuple[str, list[Contrast]]]]]:
    """Compare the best model with each other one, the next best first, group by group."""
    if len(ranked) < 2 or not shown[ranked[0]].is_per_user(main):
        return []
    best, *others = ranked
    found = []
    for other in others:
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
