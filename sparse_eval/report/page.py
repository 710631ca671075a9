"""Write the report: one self-contained HTML page, to be read, printed and sent."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ..core.files import make_folder_of, replacing
from ..core.formatting import records
from ..errors import InvalidDataError, MissingExtraError
from ..inputs.candidates import WARNING
from ..jobs.cross_validation import CrossValidation, PooledModel
from ..metrics import REGISTRY, convention_named
from ..results.comparison import compare
from ..results.details import plain_rows
from ..results.differences import correct
from ..results.evaluation import Evaluation
from ..results.scores import COLUMNS, few_users
from ..results.segments import bands_of, check_known, item_table, segmentations, segments_table
from ..results.shared import named_evaluations, shared_metrics
from .plots import MIN_USERS
from .style import format_number, format_numbers, format_p, format_share, pieces

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import jinja2
    import pandas as pd

    from ..core.types import PathLike
    from ..jobs.history import History
    from ..metrics import Definition
    from ..results.comparison import Comparison
    from ..results.scores import Scores
    from ..results.segments import ItemNames, UserSegments

    Evaluations = Mapping[str, Any]  # Scores, of which some charts need an Evaluation

#: A row of a table, as JSON has it.
_Row: TypeAlias = dict[str, Any]

#: The rows of the summary of each evaluation, by name and metric.
_Numbers: TypeAlias = "dict[str, dict[str, dict[str, Any]]]"

#: A table has a column for each of so many models or metrics at most.
_MOST_COLUMNS = 6


def write_report(
    evaluations: Mapping[str, Evaluation] | CrossValidation,
    path: PathLike,
    metrics: str | Iterable[str] | None = None,
    *,
    title: str = "Evaluation report",
    test: Literal["t", "wilcoxon", "permutation"] = "t",
    correction: Literal["holm", "bonferroni", "bh", "none"] = "holm",
    how: Literal["intersection", "same"] = "intersection",
    curves: Mapping[str, pd.DataFrame] | None = None,
    left_out: Mapping[str, str] | None = None,
    item_names: ItemNames | None = None,
    history: History | PathLike | None = None,
    by: UserSegments | None = None,
) -> Path:
    """Write an HTML page about one evaluation, or about several and how they compare.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation, or CrossValidation
        Evaluations by name, saved ones included; the page shows the best first. Or what
        `cross_validate` returned, whose models are shown by values pooled over folds and seeds.
    path : str or Path
        The page (.html); its folder is created if missing. The page needs neither network access
        nor scripts.
    metrics : str or iterable of str, optional
        Metrics to show; by default those that all evaluations have. The first one is the main
        metric, which decides the headline, the charts and the users shown. Its p-values are
        corrected for the number of pairs of models only; those of all other metrics are corrected
        together.
    title : str
        Title of the page.
    test, correction, how
        As in `sparse_eval.compare`.
    curves : mapping of str to DataFrame, optional
        Learning curves by name: ``EvaluationCallback.history``, or tables of `sweep`.
    left_out : mapping of str to str, optional
        Results that could not be shown, and why; the page lists them.
    item_names : mapping, Series, table or path, optional
        What to show beside the items of single users, as in `Evaluation.explain`. Labels match if
        they are the same as text.
    history : History, str or Path, optional
        Nights whose trend is shown, in the metrics of the page, with what has changed from night to
        night.
    by : mapping, Series, table or path, optional
        Segments by user, such as countries, plans or cohorts, as in `sparse_eval.compare`: the main
        metric in each of them, and for whom the best model is better or worse than the others,
        corrected for all segments and models.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InvalidDataError
        If there is no evaluation, two have the same name, `sparse_eval.compare` refuses them or
        `by`, or `item_names` is something else or has none of the items that are shown.
    InvalidFileError
        If `history` cannot be read, or has no nights.
    MissingExtraError
        If matplotlib or jinja2 is not installed.
    OutputError
        If the file cannot be written.

    See Also
    --------
    sparse_eval.compare : The comparison as a table.
    sparse_eval.plots : The charts one by one.

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
    ...     "No significant difference" in page.read_text(encoding="utf-8")
    True
    """
    try:
        from .charts import MAX_CURVES, counts_hits, describe_trend, draw_charts

        template = _template()
    except ImportError:
        raise MissingExtraError(
            'reports need jinja2 and matplotlib: pip install "sparse_eval[report]"'
        ) from None
    file = make_folder_of(path)
    cv = evaluations if isinstance(evaluations, CrossValidation) else None
    if isinstance(evaluations, CrossValidation):
        shown: dict[str, Any] = {
            name: PooledModel(evaluations, name) for name in evaluations.models
        }
    else:
        shown = named_evaluations(evaluations)
    divided = None if by is None else _divided(by, shown, cv)
    titles = None if item_names is None else item_table(item_names).rename(index=str)
    chosen, notes = shared_metrics(shown, metrics)
    main = chosen[0]
    ranked = _ranked(shown, main) if cv else _ranked_for_comparison(shown, main, how)
    # The best first: on a phone, the first columns of a table are all that is seen at once.
    shown = {name: shown[name] for name in dict.fromkeys([*ranked, *shown])}
    first = next(iter(shown.values()))
    options: Any = {"test": test, "correction": correction, "how": how}
    comparison: Comparison | None = None
    pairs: list[_Row] = []
    secondary: list[_Row] = []
    if len(shown) > 1:
        # The better model of each pair comes first.
        ordered = cv.select(list(shown)) if cv else shown
        comparison = compare(ordered, main, **options)
        pairs = records(comparison.table)
        if len(chosen) > 1:
            secondary = records(compare(ordered, chosen[1:], **options).table)
        notes += comparison.notes
    segments: list[_Row] = []
    if divided is not None:
        segments, more = _segments(shown, main, divided, **options)
        notes += more
    examples = _examples(shown, main)
    numbers = {name: plain_rows(ev._summarize()) for name, ev in shown.items()}
    rows = _metric_rows(shown, numbers, chosen, [*pairs, *secondary])
    width = _MOST_COLUMNS if len(shown) > _MOST_COLUMNS else len(rows)  # metrics in a table
    baselines, same_as = _baselines(numbers)
    page = template.render(
        title=title,
        style=Path(__file__).with_name("style.css").read_text(encoding="utf-8"),
        evaluations=shown,
        few_users=[(name, note) for name, ev in shown.items() if (note := few_users(ev))],
        main=main,
        main_name=first.shown(main),
        among=first.candidates,
        rows=rows,
        turned=len(shown) > _MOST_COLUMNS,
        tables=[rows[start : start + width] for start in range(0, len(rows), width)],
        meanings=_meanings(chosen),
        is_lift_telling=counts_hits(main),
        ranked=ranked,
        higher=first.higher_is_better(main),
        comparison=comparison,
        notes=notes,
        pairs=pairs,
        secondary=secondary,
        better_by_others=_better_by_others(ranked, secondary),
        baselines=baselines,
        same_as=same_as,
        segments=segments,
        charts=draw_charts(shown, chosen, comparison, curves or {}, divided),
        most_curves=MAX_CURVES,
        subgroups=[] if cv else _subgroups(shown, main, ranked, how),
        pooled=cv is not None,
        examples=examples,
        name_columns=[] if titles is None else list(titles),
        names_of={} if titles is None else _names_of(titles, examples),
        convention=_convention(first),
        trend=None if history is None else describe_trend(history, chosen, correction),
        users_counted=_users_counted(shown),
        provenance=_provenance(shown),
        left_out=left_out or {},
    )
    with replacing(path) as temporary:
        temporary.write_text(page, encoding="utf-8", errors="xmlcharrefreplace")
    return file


def _template() -> jinja2.Template:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    filters = {"number": format_number, "p": format_p, "share": format_share, "pieces": pieces}
    environment.filters |= filters
    warning = WARNING[0].upper() + WARNING[1:]
    environment.globals |= {"numbers": format_numbers, "candidates_warning": warning}
    return environment.get_template("page.html.jinja")


def _ranked_for_comparison(
    shown: Evaluations, main: str, how: Literal["intersection", "same"]
) -> list[str]:
    """Return the names of the evaluations, the best first, on the users that are compared."""
    ranked = _ranked(shown, main)
    compared = compare(shown, main, how=how) if len(shown) > 1 else None
    if compared is not None and any(compared.left_out.values()):
        means: dict[str, Any] = {}
        for row in records(compared.table):
            means |= {str(row["a"]): row["mean_a"], str(row["b"]): row["mean_b"]}
        if None not in means.values():
            higher = next(iter(shown.values())).higher_is_better(main)
            ranked.sort(key=lambda name: means[name], reverse=higher)
    return ranked


def _ranked(shown: Evaluations, metric: str) -> list[str]:
    """Return the names of the evaluations that a metric is defined for, the best first."""
    higher = next(iter(shown.values())).higher_is_better(metric)
    defined = [name for name, ev in shown.items() if ev[metric] == ev[metric]]
    return sorted(defined, key=lambda name: shown[name][metric] * (-1 if higher else 1))


def _metric_rows(
    shown: Evaluations, numbers: _Numbers, metrics: list[str], pairs: list[_Row]
) -> list[_Row]:
    """Return the numbers of each metric; ``best`` has the names of the starred evaluations."""
    higher = next(iter(shown.values())).higher_is_better
    return [
        {
            "metric": metric,
            "higher": higher(metric),
            "cells": {name: numbers[name][metric] for name in shown},
            "best": _best(shown, metric, pairs),
        }
        for metric in metrics
    ]


def _meanings(metrics: list[str]) -> list[Definition]:
    """Return the metrics that are registered here, each once whatever its cut-offs."""
    names = dict.fromkeys(metric.partition("@")[0].partition("(")[0] for metric in metrics)
    return [REGISTRY[name] for name in names if name in REGISTRY]


def _best(shown: Evaluations, metric: str, pairs: list[_Row]) -> set[str]:
    """Return the evaluations that no other is significantly better than."""
    if len(shown) < 2:
        return set()
    worse = {
        name
        for row in pairs
        for name in (row["a"], row["b"])
        if row["metric"] == metric and row["better"] not in ("", name)
    }
    ranked = _ranked(shown, metric)
    return {name for name in ranked if name not in worse} or set(ranked[:1])


def _better_by_others(ranked: list[str], secondary: list[_Row]) -> dict[str, list[str]]:
    """Return the models that beat the best one by other metrics, by these metrics in words."""
    metrics: dict[str, list[str]] = {}
    for row in secondary:
        if ranked and ranked[0] in (row["a"], row["b"]) and row["better"] not in ("", ranked[0]):
            metrics.setdefault(row["better"], []).append(row["metric"])
    models: dict[str, list[str]] = {}
    for model, names in metrics.items():
        rest = f" and {len(names) - 6:,} more metrics" if len(names) > 6 else ""
        models.setdefault(", ".join(names[:6]) + rest, []).append(model)
    return models


def _baselines(numbers: _Numbers) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Return the means of the baselines that were evaluated with the models.

    Apart from those that are one of the models, under another name: they are returned with the
    model's name instead.
    """
    means: dict[str, dict[str, Any]] = {}
    for every in numbers.values():
        for metric, row in every.items():
            for name in row:
                if name not in COLUMNS:  # any other one is a baseline
                    means.setdefault(name, {}).setdefault(metric, row[name])
    of_models = {
        model: {metric: row["mean"] for metric, row in every.items()}
        for model, every in numbers.items()
    }
    same_as = {
        name: model
        for name, values in means.items()
        for model, own in of_models.items()
        if values == {metric: own[metric] for metric in values if metric in own}
    }
    return {name: values for name, values in means.items() if name not in same_as}, same_as


def _subgroups(
    shown: Evaluations, main: str, ranked: list[str], how: Literal["intersection", "same"]
) -> list[Any]:
    """Compare the best model with each other one, the next best first."""
    chosen = {name: shown[name] for name in ranked}
    if len(ranked) < 2 or not all(ev.is_per_user(main) and ev.has_values for ev in chosen.values()):
        return []
    best, *others = ranked
    bands = bands_of_users(chosen[best])
    table, _ = segment_differences(chosen, main, bands, correction="none", how=how)
    few = table["n_users"] < MIN_USERS
    table.loc[few, ["ci_low", "ci_high"]] = math.nan
    table.loc[few, "interval"] = "none"
    results = []
    for other in others:
        parts = table[table["b"] == other].groupby("by", sort=False)
        results.append((best, other, [(title, rows.to_dict("records")) for title, rows in parts]))
    return results


def bands_of_users(ev: Evaluation) -> pd.DataFrame:
    """Return segments of an evaluation: bands of about equally many users, by their items."""
    import pandas as pd

    columns = {}
    for title, counts in (("training", ev.n_seen), ("relevant", ev.n_relevant)):
        if counts is not None:
            bands = bands_of(counts[ev.counted], np.ones(ev.n_users), 4, "items")
            names = [bands.names[code] for code in bands.codes]
            columns[f"{title} items of the user"] = pd.Categorical(names, bands.names)
    return pd.DataFrame(columns, ev.evaluated_users.index)


def _divided(by: UserSegments, shown: Evaluations, cv: CrossValidation | None) -> pd.DataFrame:
    """Return segments as a table, or raise if these evaluations cannot be divided by them."""
    if cv is not None:
        raise InvalidDataError("by divides the users of evaluations, not of a cross-validation")
    table = segments_table(by)
    for ev in shown.values():
        segmentations(table, ev.evaluated_users)
    return table


def _segments(
    shown: Evaluations, main: str, divided: pd.DataFrame, **options: Any
) -> tuple[list[_Row], list[str]]:
    """Return how the best model differs from the others by segment, and what is to be known."""
    first = next(iter(shown.values()))
    if not first.is_per_user(main):
        return [], [f"{main} is about all users together, and not shown by segment"]
    if len(shown) < 2:
        columns = segmentations(divided, first.evaluated_users)
        return [], [note for column in columns if (note := column.note())]
    table, notes = segment_differences(shown, main, divided, **options)
    return records(table), notes


def segment_differences(
    evaluations: Mapping[str, Evaluation], metric: str, by: UserSegments, **options: Any
) -> tuple[pd.DataFrame, list[str]]:
    """Compare the first evaluation with each other one by segment of the users.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two or more.
    metric : str
        A metric with a value for each user.
    by : mapping, Series, DataFrame, other table or path
        As in `sparse_eval.compare`.
    options
        Of `sparse_eval.compare`. The correction is over all rows of the table.

    Returns
    -------
    table : pandas.DataFrame
        As that of a `Comparison`.
    notes : list of str
        How many users are in no segment.
    """
    import pandas as pd

    (first, ev), *others = evaluations.items()
    correction = options.pop("correction")
    comparisons = [
        compare({first: ev, name: other}, metric, by=by, correction="none", **options)
        for name, other in others
    ]
    table = pd.concat([one.table for one in comparisons], ignore_index=True)
    table["p_corrected"] = correct(table["p"].to_numpy(), correction)
    # A correction makes no p-value smaller: what was not significant before is not so now.
    table["better"] = table["better"].where(table["p_corrected"] < 0.05, "")
    return table, list(dict.fromkeys(note for one in comparisons for note in one.notes))


def _examples(shown: Evaluations, main: str) -> list[_Row]:
    """Return the users shown in depth, each with the list of every model that has it.

    Users on whom the models differ most come first.
    """
    cutoff = main.partition("@")[2]
    users: dict[Any, _Row] = {}
    for name, ev in shown.items():
        for example in ev.record["examples"]:
            user = example["user"]
            entry = users.setdefault(
                user, {"user": user, "why": "", "n_relevant": None, "lists": {}}
            )
            row = int(ev.all_users.locate([user])[0]) if ev.has_values else -1
            is_known = row >= 0 and ev.is_per_user(main)
            value = float(ev.values(main)[row]) if is_known else None
            listed = [r for r in example["listed"] if not cutoff or r["rank"] <= int(cutoff)]
            entry["lists"][name] = example | {"value": value, "listed": listed}
            entry["why"] = entry["why"] or example["why"]
            entry["n_relevant"] = int(ev.n_relevant[row]) if row >= 0 else None
    return sorted(users.values(), key=lambda entry: (bool(entry["why"]), -_spread(entry["lists"])))


def _names_of(names: pd.DataFrame, examples: list[_Row]) -> dict[str, list[str]]:
    """Return the names of the items that are shown, by label, "" for a missing one."""
    lists = [own for example in examples for own in example["lists"].values()]
    rows = [row for own in lists for row in (*own["listed"], *own["missed"])]
    labels = list(dict.fromkeys(str(row["item"]) for row in rows))
    check_known(labels, names)
    found = names[names.index.isin(labels)]
    texts = found.astype(str).where(found.notna(), "")
    return dict(zip(texts.index, texts.to_numpy().tolist(), strict=True))


def _spread(lists: dict[str, _Row]) -> float:
    found = [own["value"] for own in lists.values()]
    values = [value for value in found if value is not None and value == value]
    return max(values) - min(values) if values else 0.0


def _users_counted(shown: Evaluations) -> dict[tuple[int, int, int | None], list[str]]:
    """Return how many users count, are left out and are cold, with the models of which it is so."""
    models: dict[tuple[int, int, int | None], list[str]] = {}
    for name, ev in shown.items():
        models.setdefault((ev.n_users, ev.n_skipped, ev.n_cold), []).append(name)
    return models


def _convention(ev: Evaluation) -> dict[str, str | list[tuple[str, str, str]]]:
    rules = convention_named(None if ev.convention == "standard" else ev.convention)
    differences = rules.differences()
    if ev.request.seen == "allow":
        here = ("candidates", "all items, seen ones too", "items not seen in train")
        differences = [*(row for row in differences if row[0] != here[0]), here]
    return {"name": rules.name, "library": rules.library, "differences": differences}


def _provenance(shown: Evaluations) -> dict[str, dict[str, str]]:
    """Return what is needed to reproduce the evaluations, by heading, by name.

    What all of several have in common is under the name "".
    """
    facts = {name: _facts(ev) for name, ev in shown.items()}
    if len(facts) < 2:
        return facts
    first, *others = facts.values()
    common = {
        key: value for key, value in first.items() if all(own.get(key) == value for own in others)
    }
    own = {
        name: {key: value for key, value in every.items() if key not in common}
        for name, every in facts.items()
    }
    return {"": common} | own


def _facts(ev: Scores) -> dict[str, str]:
    record = ev.record
    facts = {
        key: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for key, value in record["about"].items()
    }
    facts["versions"] = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    for name, matrix in record["inputs"].items():
        shape = " × ".join(f"{size:,}" for size in matrix["shape"])
        facts[name] = f"{shape}, {matrix['entries']:,} entries, SHA-256 {matrix['sha256']}"
    if ev.candidates is not None:
        facts["candidates"] = _pairs(ev.candidates.to_dict())
    if isinstance(ev, Evaluation):
        if ev.retrieval is not None:
            facts["retrieval"] = _pairs(ev.retrieval._asdict())
        for name, digest in ev.propensities.items():
            facts[f"propensities by {name}"] = f"digest {digest}"
    return facts


def _pairs(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())
