"""Write the report: one self-contained HTML page, to be read, printed and sent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..core.arguments import show_spelling
from ..core.files import as_path, make_folder_of, replacing
from ..core.formatting import numbers, records
from ..core.messages import printable
from ..core.versions import installed_version
from ..errors import InvalidDataError, InvalidFileError, MissingExtraError, OutputError
from ..inputs.candidates import WARNING
from ..jobs.cross_validate import CrossValidation, PooledModel
from ..jobs.history import History
from ..metrics import REGISTRY
from ..metrics.random_baseline import DRAWS
from ..report import plots
from ..results.comparison import compare
from ..results.decisions import add_verdicts, parse_margins
from ..results.details import plain_rows
from ..results.differences import correct
from ..results.evaluation import Evaluation
from ..results.intervals import LEVEL, interval_around
from ..results.scores import few_users
from ..results.segments import bands_of, check_known, item_table, segmentations, segments_table
from ..results.shared import named_evaluations, shared_metrics
from .plots import MIN_USERS, groups_of
from .style import (
    HEIGHT,
    distinct_names,
    draw_interval,
    draw_svg,
    format_number,
    format_numbers,
    format_p,
    format_share,
    format_shares,
    legend_columns,
    metric_title,
    pieces,
    shorten,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import jinja2
    import pandas as pd

    from ..core.types import PathLike
    from ..metrics import Definition
    from ..results.comparison import Comparison
    from ..results.decisions import Size
    from ..results.scores import Scores
    from ..results.segments import ItemNames, UserSegments
    from .plots import GroupMean

    Evaluations = Mapping[str, Any]  # Scores; some charts need an Evaluation

#: A row of a table, as JSON has it.
_Row: TypeAlias = dict[str, Any]

#: The rows of the summary of each evaluation, by name and metric.
_Numbers: TypeAlias = "dict[str, dict[str, dict[str, Any]]]"

#: A table has a column for each of so many models or metrics at most.
_MOST_COLUMNS = 6

#: A chart with a row for each metric shows the first so many.
_MAX_ROWS = 14

#: Models in a chart or table with a row for each of them; the others are shown on demand.
_MOST_MODELS = 10

#: Curves and groups are drawn of the first so many models; more cannot be told apart.
MAX_CURVES = 6

#: A trend is drawn of so many metrics, the main one first.
_MAX_TRENDS = 4


@show_spelling
def write_report(
    evaluations: Mapping[str, Evaluation] | CrossValidation,
    path: PathLike,
    metrics: str | Iterable[str] | None = None,
    *,
    title: str = "Evaluation report",
    test: Literal["t", "wilcoxon", "permutation"] = "t",
    correction: Literal["holm", "bonferroni", "bh", "none"] = "holm",
    curves: Mapping[str, pd.DataFrame] | None = None,
    left_out: Mapping[str, str] | None = None,
    item_names: ItemNames | None = None,
    history: History | PathLike | None = None,
    by: UserSegments | None = None,
    margin: Size | Mapping[str, Size] | None = None,
) -> Path:
    """Write an HTML page about one evaluation, or about several and how they compare.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation, or CrossValidation
        Evaluations by name, saved ones included; the page shows the best first. Or the result of
        `cross_validate`, whose models are shown by values pooled over folds and seeds.
    path : str or Path
        The page (.html); its folder is created if missing. The page needs neither network access
        nor scripts.
    metrics : str or iterable of str, optional
        Metrics to show; by default those that all evaluations have. The first one is the main
        metric, which decides the headline, the charts and the users shown. Its p-values are
        corrected for the number of pairs of models only; the p-values of all other metrics are
        corrected together.
    title : str
        Title of the page.
    test, correction
        As in `sparse_eval.compare`.
    curves : mapping of str to DataFrame, optional
        Learning curves by name: ``EvaluationCallback.history``, or tables of `sweep`.
    left_out : mapping of str to str, optional
        Results that could not be shown, and why; the page lists them.
    item_names : mapping, Series, table or path, optional
        Names to show next to the items of single users, as in `Evaluation.explain`. Labels match if
        they are the same as text.
    history : History, str or Path, optional
        The nights of a trend, in the metrics of the page, with changes from night to night.
    by : mapping, Series, table or path, optional
        Segments by user, such as countries, plans or cohorts, as in `sparse_eval.compare`. The page
        shows the main metric in each segment. It also shows where the best model is better or worse
        than the others, corrected for all segments and models.
    margin : float, str or mapping, optional
        The largest difference that does not matter, as in `sparse_eval.compare`: tables of
        differences have verdicts, and the chart of differences shows the margin as a band.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InvalidDataError
        If there is no evaluation, two have the same name, or the evaluations, `by` or `margin` are
        not valid for `sparse_eval.compare`. If `item_names` has an unsupported type or none of the
        shown items.
    InvalidFileError
        If `history` cannot be read, or has no nights.
    MissingExtraError
        If matplotlib or jinja2 is not installed.
    OutputError
        If the file has the suffix of another format, or cannot be written.

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
    if Path(as_path(path)).suffix.lower() not in ("", ".html", ".htm"):
        raise OutputError(f"{path}: the page is HTML; give it a name that ends in .html")
    template = _template()
    file = make_folder_of(path)
    cv = evaluations if isinstance(evaluations, CrossValidation) else None
    shown: dict[str, Any] = (
        named_evaluations(evaluations)
        if cv is None
        else {name: PooledModel(cv, name) for name in cv.models}
    )
    full_names: dict[str, str] = {}
    if cv is None:
        short = distinct_names(shown)
        full_names = {a: b for a, b in zip(short, shown, strict=True) if a != b}
        shown = dict(zip(short, shown.values(), strict=True))
    divided = None if by is None else _divided(by, shown, cv)
    titles = None if item_names is None else item_table(item_names).rename(index=str)
    chosen, notes = shared_metrics(shown, metrics)
    main = chosen[0]
    parse_margins(margin, chosen)
    ranked = _ranked(shown, main) if cv else _ranked_for_comparison(shown, main)
    # The best first: on a phone, the first columns of a table are all that is seen at once.
    shown = {name: shown[name] for name in dict.fromkeys([*ranked, *shown])}
    first = next(iter(shown.values()))
    options: Any = {"test": test, "correction": correction}
    comparison: Comparison | None = None
    pairs: list[_Row] = []
    secondary: list[_Row] = []
    if len(shown) > 1:
        # The better model of each pair comes first.
        ordered = cv.select(list(shown)) if cv else shown
        comparison = compare(ordered, main, margin=_of_metrics(margin, [main]), **options)
        pairs = records(comparison.table)
        if len(chosen) > 1:
            more = _of_metrics(margin, chosen[1:])
            rest = compare(ordered, chosen[1:], margin=more, **options)
            secondary = records(rest.table)
            notes += rest.notes
        notes += comparison.notes
    segments: list[_Row] = []
    if divided is not None:
        more = _of_metrics(margin, [main])
        segments, remarks = _segments(shown, main, divided, margin=more, **options)
        notes += remarks
    examples = _examples(shown, main)
    numbers = {name: plain_rows(ev._summarize()) for name, ev in shown.items()}
    baselines, same_as = _baselines(shown)
    rows = _metric_rows(shown, numbers, chosen, [*pairs, *secondary], baselines)
    width = _MOST_COLUMNS if len(shown) > _MOST_COLUMNS else len(rows)  # metrics in a table
    page = template.render(
        title=title,
        style=Path(__file__).with_name("style.css").read_text(encoding="utf-8"),
        evaluations=shown,
        few_users=[(name, note) for name, ev in shown.items() if (note := few_users(ev))],
        main=main,
        main_name=metric_title(first._shown(main)),
        among=first._candidates,
        rows=rows,
        turned=len(shown) > _MOST_COLUMNS,
        tables=[rows[start : start + width] for start in range(0, len(rows), width)],
        groups=_first_and_rest(list(shown)),
        meanings=_meanings(chosen),
        is_lift_telling=counts_hits(main),
        ranked=ranked,
        higher=first._higher_is_better(main),
        comparison=comparison,
        notes=list(dict.fromkeys(notes)),
        pairs=pairs,
        secondary=secondary,
        better_by_others=_better_by_others(ranked, secondary),
        baselines=baselines,
        beaten_by=_beaten_by_baselines(rows[0]),
        same_as=same_as,
        made=_made(shown, ranked),
        segments=segments,
        charts=draw_charts(shown, chosen, comparison, curves or {}, divided),
        most_curves=MAX_CURVES,
        subgroups=[] if cv else _subgroups(shown, main, ranked),
        pooled=cv is not None,
        examples=examples,
        name_columns=[] if titles is None else list(titles),
        names_of={} if titles is None else _names_of(titles, examples),
        convention=_convention(first),
        trend=None if history is None else describe_trend(history, chosen, correction),
        users_counted=_users_counted(shown),
        provenance=_provenance(shown),
        left_out=left_out or {},
        full_names=full_names,
    )
    with replacing(path) as temporary:
        temporary.write_bytes(page.encode(errors="xmlcharrefreplace"))
    return file


def _template() -> jinja2.Template:
    try:
        import jinja2
        import matplotlib as mpl  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            'reports need jinja2 and matplotlib: pip install "sparse_eval[report]"'
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "in_words": in_words, "metric": metric_title, "number": format_number, "p": format_p,
        "pieces": pieces, "strip": draw_interval,
    }  # fmt: skip
    warning = WARNING[0].upper() + WARNING[1:]
    environment.globals |= {
        "numbers": format_numbers, "shares": format_shares, "candidates_warning": warning,
    }  # fmt: skip
    return environment.get_template("page.html.jinja")


def in_words(row: Mapping[str, Any]) -> str:
    """Return a difference as for a headline: relative, with both means and its interval.

    Numbers are rounded to what the interval supports.
    """
    means = row["mean_a"], row["mean_b"]
    low, high = row["ci_low"], row["ci_high"]
    if low is None or not high > low:
        a, b = format_numbers(*means)
        return f"{a} against {b}"
    a, b, *ends = numbers(*means, low, high, within=high - low)
    low, high = (end if end.startswith("-") else f"+{end}" for end in ends)
    interval = f"95 % interval of the difference {low} to {high}"
    text = f"{a} against {b}; {interval}; {row['n_users']:,} users"
    if abs(row["difference"]) < 1e4 * row["mean_b"]:
        share = 100 * row["difference"] / row["mean_b"]
        digits = 0 if abs(share) >= 10 else 1
        text = f"{share:+,.{digits}f} % ({text})"
    else:
        text = f"({text})"
    return text.replace("-", "\N{MINUS SIGN}")


def _of_metrics(margin: Any, metrics: list[str]) -> Any:
    """Return the margins of some of the metrics, as `compare` takes them."""
    if not isinstance(margin, Mapping):
        return margin
    return {metric: size for metric, size in margin.items() if metric in metrics}


def _ranked_for_comparison(shown: Evaluations, main: str) -> list[str]:
    """Return the names of the evaluations, the best first, on the users that are compared."""
    ranked = _ranked(shown, main)
    compared = compare(shown, main) if len(shown) > 1 else None
    if compared is not None and any(compared.left_out.values()):
        means: dict[str, Any] = {}
        for row in records(compared.table):
            means |= {str(row["a"]): row["mean_a"], str(row["b"]): row["mean_b"]}
        if None not in means.values():
            higher = next(iter(shown.values()))._higher_is_better(main)
            ranked.sort(key=lambda name: means[name], reverse=higher)
    return ranked


def _ranked(shown: Evaluations, metric: str) -> list[str]:
    """Return the names of the evaluations that a metric is defined for, the best first."""
    higher = next(iter(shown.values()))._higher_is_better(metric)
    defined = [name for name, ev in shown.items() if ev[metric] == ev[metric]]
    return sorted(defined, key=lambda name: shown[name][metric] * (-1 if higher else 1))


def _metric_rows(
    shown: Evaluations,
    numbers: _Numbers,
    metrics: list[str],
    pairs: list[_Row],
    baselines: Mapping[str, Scores],
) -> list[_Row]:
    """Return the numbers of each metric.

    ``best`` has the names of the starred evaluations, ``scale`` the smallest and largest end.
    """
    first = next(iter(shown.values()))
    rows: list[_Row] = []
    for metric in metrics:
        cells = {name: numbers[name][metric] for name in shown}
        ends = first.request.range_of(first.names.index(metric))
        random = [_random_cell(cell, ends) for cell in cells.values()]
        row = {
            "metric": metric,
            "higher": first._higher_is_better(metric),
            "cells": cells,
            "best": _best(shown, metric, pairs),
            "baselines": {name: _cell(ev, metric) for name, ev in baselines.items()},
            "random": list({str(one): one for one in random}.values()),
        }
        drawn = [*cells.values(), *row["baselines"].values(), *row["random"]]
        ends = [cell[end] for cell in drawn for end in ("mean", "ci_low", "ci_high")]
        known = [end for end in ends if end is not None]
        row["scale"] = (min(known), max(known)) if known else None
        rows.append(row)
    return rows


def _cell(ev: Scores, metric: str) -> dict[str, float | None]:
    """Return the mean and the interval of a baseline; an unknown number is None."""
    if metric not in ev.names:
        return dict.fromkeys(("mean", "ci_low", "ci_high"))
    row, mean = ev.names.index(metric), ev[metric]
    interval = ev._interval(row, mean, LEVEL)
    ends = {"mean": mean, "ci_low": interval.low, "ci_high": interval.high}
    return {end: value if math.isfinite(value) else None for end, value in ends.items()}


def _random_cell(cell: Mapping[str, Any], ends: tuple[float, float]) -> dict[str, float | None]:
    """Return the mean of random lists, with an interval if it was estimated from draws."""
    mean, error = cell["random"], cell["random_se"]
    low, high = None, None
    if mean is not None and error:
        low, high, _ = interval_around(mean, error, DRAWS - 1, LEVEL, "t").within(mean, ends)
    return {"mean": mean, "ci_low": low, "ci_high": high}


def _meanings(metrics: list[str]) -> list[Definition]:
    """Return the registered metrics, each once even with several cut-offs."""
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
            metrics.setdefault(row["better"], []).append(metric_title(row["metric"]))
    models: dict[str, list[str]] = {}
    for model, names in metrics.items():
        rest = f" and {len(names) - 6:,} more metrics" if len(names) > 6 else ""
        models.setdefault(", ".join(names[:6]) + rest, []).append(model)
    return models


def _baselines(shown: Evaluations) -> tuple[dict[str, Scores], dict[str, str]]:
    """Return the baselines that were evaluated with the models.

    A baseline with the values of a model is left out, and returned with the model's name instead.
    """
    found: dict[str, Scores] = {}
    for ev in shown.values():
        found = dict(ev.baselines) | found
    same_as = {
        name: model
        for name, baseline in found.items()
        for model, ev in shown.items()
        if all(baseline[metric] == ev[metric] for metric in baseline.names if metric in ev.names)
    }
    return {name: ev for name, ev in found.items() if name not in same_as}, same_as


def _beaten_by_baselines(row: _Row) -> dict[str, list[str]]:
    """Return, for each baseline, the models whose intervals are entirely worse than its interval.

    Saved baselines have no values of users, so a paired test is not possible.
    """
    near, far = ("ci_low", "ci_high") if row["higher"] else ("ci_high", "ci_low")
    sign = 1 if row["higher"] else -1

    def is_beaten(cell: _Row, baseline: _Row) -> bool:
        ends = cell[far], baseline[near]
        return None not in ends and sign * ends[0] < sign * ends[1]

    return {
        name: [model for model, cell in row["cells"].items() if is_beaten(cell, baseline)]
        for name, baseline in row["baselines"].items()
    }


def _subgroups(shown: Evaluations, main: str, ranked: list[str]) -> list[_Row]:
    """Compare the best model with the others, the next best first, by band of users."""
    chosen = {name: shown[name] for name in ranked}
    if len(ranked) < 2 or not all(
        ev._is_per_user(main) and ev._has_values for ev in chosen.values()
    ):
        return []
    bands = bands_of_users(chosen[ranked[0]])
    table, _ = segment_differences(chosen, main, bands, correction="none")
    few = table["n_users"] < MIN_USERS
    table.loc[few, ["ci_low", "ci_high"]] = math.nan
    table.loc[few, "interval"] = "none"
    return records(table)


def bands_of_users(ev: Evaluation) -> pd.DataFrame:
    """Return segments of an evaluation: bands of about equally many users, by their items."""
    import pandas as pd

    columns = {}
    for title, counts in (("training", ev._values.n_seen), ("relevant", ev._values.n_relevant)):
        if counts is not None:
            bands = bands_of(counts[ev._values.counted], np.ones(ev.n_users), 4, "items")
            names = [bands.names[code] for code in bands.codes]
            columns[f"{title} items of the user"] = pd.Categorical(names, bands.names)
    return pd.DataFrame(columns, ev._evaluated_users.index)


def _divided(by: UserSegments, shown: Evaluations, cv: CrossValidation | None) -> pd.DataFrame:
    """Return segments as a table, or raise if these evaluations cannot be divided by them."""
    if cv is not None:
        raise InvalidDataError("by divides the users of evaluations, not of a cross-validation")
    table = segments_table(by)
    for ev in shown.values():
        segmentations(table, ev._evaluated_users)
    return table


def _segments(
    shown: Evaluations, main: str, divided: pd.DataFrame, **options: Any
) -> tuple[list[_Row], list[str]]:
    """Compare the best model with the others by segment; return rows and notes."""
    first = next(iter(shown.values()))
    if not first._is_per_user(main):
        return [], [f"{main} is about all users together, so it is not shown by segment"]
    if len(shown) < 2:
        columns = segmentations(divided, first._evaluated_users)
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
        As the table of a `Comparison`.
    notes : list of str
        The number of users in no segment.
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
    # A correction makes no p-value smaller, so no further difference becomes significant.
    table["better"] = table["better"].where(table["p_corrected"] < 0.05, "")
    if margins := parse_margins(options.get("margin"), [metric]):
        add_verdicts(table, margins, correction, LEVEL)
    return table, list(dict.fromkeys(note for one in comparisons for note in one.notes))


def _examples(shown: Evaluations, main: str) -> list[_Row]:
    """Return the users shown in depth, each with the list of every model that has it.

    Users with the largest differences between models come first.
    """
    cutoff = main.partition("@")[2]
    users: dict[Any, _Row] = {}
    for name, ev in shown.items():
        for example in ev._record["examples"]:
            user = example["user"]
            new = {"user": user, "why": "", "n_relevant": None, "lists": {}}
            entry = users.setdefault(user, new)
            row = int(ev._all_users.locate([user])[0]) if ev._has_values else -1
            is_known = row >= 0 and ev._is_per_user(main)
            value = float(ev.values(main)[row]) if is_known else None
            listed = [r for r in example["listed"] if not cutoff or r["rank"] <= int(cutoff)]
            entry["lists"][name] = example | {"value": value, "listed": listed}
            entry["why"] = entry["why"] or example["why"]
            entry["n_relevant"] = int(ev._values.n_relevant[row]) if row >= 0 else None

    def spread(entry: _Row) -> float:
        found = [own["value"] for own in entry["lists"].values()]
        values = [value for value in found if value is not None and value == value]
        return max(values) - min(values) if values else 0.0

    return sorted(users.values(), key=lambda entry: (bool(entry["why"]), -spread(entry)))


def _names_of(names: pd.DataFrame, examples: list[_Row]) -> dict[str, list[str]]:
    """Return the names of the items that are shown, by label, "" for a missing one."""
    lists = [own for example in examples for own in example["lists"].values()]
    rows = [row for own in lists for row in (*own["listed"], *own["missed"])]
    labels = list(dict.fromkeys(str(row["item"]) for row in rows))
    check_known(labels, names)
    found = names[names.index.isin(labels)]
    texts = found.astype(str).where(found.notna(), "")
    return dict(zip(texts.index, texts.to_numpy().tolist(), strict=True))


def _users_counted(shown: Evaluations) -> dict[tuple[int, int, int | None], list[str]]:
    """Return the numbers of counted, left-out and cold users, each with its models."""
    models: dict[tuple[int, int, int | None], list[str]] = {}
    for name, ev in shown.items():
        models.setdefault((ev.n_users, ev.n_skipped, ev._n_cold), []).append(name)
    return models


def _convention(ev: Evaluation) -> dict[str, str | list[tuple[str, str, str]]]:
    rules = ev.request.convention
    differences = rules.differences()
    if ev.request.seen == "allow":
        here = ("candidates", "all items, seen ones too", "items not seen in train")
        differences = [*(row for row in differences if row[0] != here[0]), here]
    return {"name": rules.name, "library": rules.library, "differences": differences}


def _provenance(shown: Evaluations) -> dict[str, dict[str, str]]:
    """Return the facts needed to reproduce the evaluations, by heading, by name.

    Facts that all of several have in common are under the name "".
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
    record = ev._record
    facts = {key: _text(value) for key, value in record["about"].items()}
    facts["versions"] = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    for name, matrix in record["inputs"].items():
        shape = " × ".join(f"{size:,}" for size in matrix["shape"])
        facts[name] = f"{shape}, {matrix['entries']:,} entries, SHA-256 {matrix['sha256']}"
    if ev._candidates is not None:
        facts["candidates"] = _text(ev._candidates.to_dict())
    if isinstance(ev, Evaluation):
        if ev.retrieval is not None:
            facts["retrieval"] = _text(ev.retrieval._asdict())
        for name, digest in ev._propensities.items():
            facts[f"propensities by {name}"] = f"digest {digest}"
    return facts


def _made(shown: Evaluations, ranked: list[str]) -> dict[str, str]:
    """Summarize the data and the split, and the date, parameters and command of the best model.

    Commands save no date, so that a second run writes the same bytes.
    """
    best = ranked[0] if ranked else next(iter(shown))
    record = shown[best]._record
    about, inputs = record["about"], record["inputs"]
    data = list(dict.fromkeys(_text(ev._record["about"].get("data", "")) for ev in shown.values()))
    if relevance := inputs.get("relevance"):
        users, items = relevance["shape"]
        data += [f"{users:,} users × {items:,} items", f"{relevance['entries']:,} relevant pairs"]
    if train := inputs.get("train"):
        data.append(f"{train['entries']:,} training pairs")
    folds = about.get("folds")
    split = f"{len(folds):,} folds" if isinstance(folds, list) else about.get("split", "")
    of_best = f" of {best}" * (len(shown) > 1)
    made = about.get("model") or about.get("checkpoint") or about.get("parameters") or ""
    if isinstance(made, dict):
        made = {key: value for key, value in made.items() if key not in ("sha256", "num_threads")}
    seeds = [f"{key} {_text(about[key])}" for key in ("seed", "seeds") if key in about]
    version = f"sparse_eval {record['versions'].get('sparse_eval', installed_version())}"
    facts = {
        "Data": data,
        "Split": [_text(split)],
        "Evaluated": [_text(about.get("time", "")), f"with {version}"],
        "Parameters" + of_best: [_text(made), *seeds],
        "Command" + of_best: [_text(about.get("command", ""))],
    }
    texts = {title: ", ".join(filter(None, parts)) for title, parts in facts.items()}
    return {title: text for title, text in texts.items() if text}


def _text(value: Any) -> str:
    """Return a JSON value as text, with the entries of an object in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items())
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Chart(NamedTuple):
    """A chart to draw, and its numbers unless they are elsewhere on the page.

    `n_rows` is the number of text rows that set its height. A folded chart is shown on demand.
    """

    title: str
    caption: str
    plot: Callable[..., object]
    n_rows: int | None = None
    numbers: Sequence[list[str]] = ()
    has_legend: bool = True
    is_folded: bool = False


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
        *_groups(few, metrics, by),
        *_against_chance(few, metrics),
        *_learning_curves(curves, [next(iter(shown.values()))._shown(name) for name in metrics]),
    ]
    panels.sort(key=lambda panel: panel.is_folded)
    legend_rows = -(-len(few) // legend_columns(list(few))) if len(few) > 1 else 0
    charts = []
    for number, panel in enumerate(panels, start=1):
        height = HEIGHT if panel.n_rows is None else 0.8 + 0.26 * panel.n_rows
        height += 0.19 * legend_rows * panel.has_legend
        svg = draw_svg(panel.plot, f"chart{number}", panel.title, height)
        charts.append((panel, svg))
    return charts


def _overview(shown: Evaluations, main: str, comparison: Comparison | None) -> Iterator[Chart]:
    if comparison is None:
        return
    metric = metric_title(main)
    for names in filter(None, _first_and_rest(list(shown))):
        some = {name: shown[name] for name in names}
        yield Chart(
            f"{metric} of each model" if names[0] == next(iter(shown)) else f"{metric} of the rest",
            "Points are means over users, lines their 95 % intervals. The intervals of two models "
            "may overlap although their difference is significant, since models are compared on "
            "the same users.",
            partial(plots.means, some, main),
            len(names) * 2,
            has_legend=False,
            is_folded=names[0] != next(iter(shown)),
        )
    best = comparison.table[comparison.table["a"] == comparison.names[0]]
    for number, rows in enumerate(filter(None, _first_and_rest(list(range(len(best)))))):
        others = " other" if number == 0 else " remaining"
        yield Chart(
            f"{metric} of the best minus the{others} models",
            "Differences and their 95 % intervals; filled points are significant differences, "
            "after correction." + " Within the grey band they do not matter." * ("margin" in best),
            partial(plots.differences, replace(comparison, table=best.iloc[rows]), main),
            len(rows) * 2,
            has_legend=False,
            is_folded=number > 0,
        )


def _first_and_rest(models: list[Any]) -> list[list[Any]]:
    """Return the models that are shown at once, and the rest, which is shown on demand."""
    return [models[:_MOST_MODELS], models[_MOST_MODELS:]]


def _accuracy(shown: Evaluations, metrics: list[str]) -> Iterator[Chart]:
    main = metrics[0]
    first = next(iter(shown.values()))
    for base in dict.fromkeys(metric.partition("@")[0] for metric in metrics):
        is_drawn = base in (main.partition("@")[0], "recall")
        if is_drawn and len(plots.cutoffs_of(metrics, base)) > 1:
            yield Chart(
                f"{metric_title(base)} by cut-off",
                "Bands are 95 % intervals.",
                partial(plots.by_cutoff, shown, base),
                is_folded=len(plots.cutoffs_of(metrics, base)) == 2,
            )
    if first._is_per_user(main) and all(ev._has_values for ev in shown.values()):
        direction = "higher" if first._higher_is_better(main) else "lower"
        yield Chart(
            f"{metric_title(main)} of individual users",
            f"For each value, the share of users who reach it; the {direction} a curve, the "
            "better.",
            lambda ax: plots.distribution(shown, main, ax=ax),
        )
    if all(ev._record["precision_recall"] for ev in shown.values()):
        yield Chart(
            "Precision and recall",
            "Means over users at every rank, starting with rank 1 on the left.",
            lambda ax: plots.precision_recall(shown, ax=ax),
        )


def _groups(shown: Evaluations, metrics: list[str], by: pd.DataFrame | None) -> Iterator[Chart]:
    of_users = "Bands of about equally many users, by their number of training items. "
    of_items = (
        "Bands of items with about equally many training interactions, by their number of training "
        "users. "
    )
    divisions: list[tuple[Any, str, str]] = [
        ("activity", "user activity", of_users),
        ("popularity", "item popularity", of_items),
    ]
    if by is not None and next(iter(shown.values()))._is_per_user(metrics[0]):
        divisions += [(column, shorten(str(title), 60), "") for title, column in by.items()]
    for groups, of, caption in divisions:
        for metric in metrics:  # the first one that can be divided, or the main one
            means = {name: groups_of(ev, groups, metric).means for name, ev in shown.items()}
            if all(means.values()) or not caption:
                yield Chart(
                    f"{metric_title(metric)} by {of}",
                    f"{caption}Lines are 95 % intervals, for 10 users or more.",
                    partial(plots.by_group, shown, groups, metric),
                    numbers=_numbers_of(means),
                )
                break
    if all(ev._record["concentration"] for ev in shown.values()):
        yield Chart(
            "Concentration of the recommendations",
            "The share of all recommendations that goes to the most recommended items. Dotted: "
            "all items equally often.",
            lambda ax: plots.concentration(shown, ax=ax),
            numbers=_concentration_numbers(shown),
            is_folded=True,
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
            is_folded=True,
        )


def _learning_curves(curves: Mapping[str, pd.DataFrame], metrics: list[str]) -> Iterator[Chart]:
    for name, table in curves.items():
        columns = [metric for metric in metrics if metric in table.columns][:4]
        if columns:
            yield Chart(
                f"Learning curve: {shorten(name, 60)}",
                "Metrics over the iterations, or over checkpoints in the order of their table.",
                partial(plots.learning_curve, table, columns),
                is_folded=len(table) <= 2,
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
            mean, *ends = format_numbers(row.mean, row.low, row.high)
            cells.setdefault(row.group, {})[name] = f"{mean} ({' to '.join(ends)})"
    body = [[group, *(row.get(name, "–") for name in means)] for group, row in cells.items()]
    return [["group", *means], *body]


def _concentration_numbers(shown: Evaluations) -> list[list[str]]:
    """Return the numbers of the chart of concentration, with a heading row."""
    rows = [["model", "items recommended", "of the catalogue", "share of the top 1 % of items"]]
    for name, ev in shown.items():
        curve = ev._record["concentration"]
        of_all = format_share(curve["n_recommended"], curve["n_items"])
        top = format_share(curve["top_percent"], 1)
        rows.append([name, f"{curve['n_recommended']:,}", of_all, top])
    return rows


def describe_trend(
    history: History | PathLike, metrics: Sequence[str], correction: Any = "holm"
) -> _Row:
    """Draw the trend of the metrics that a history has, and compare its nights.

    As on the page, the p-values of the first metric are corrected separately from the others.

    Returns
    -------
    dict
        The content of the page. ``last``, the difference between the last two nights by the main
        metric, is one test, so it does not lose power with every night. ``changes`` has every night
        by the main metric, the last one first, and those that have changed by another.

    Raises
    ------
    InvalidDataError
        If the history has none of the metrics.
    InvalidFileError
        If it has no nights, or cannot be read.
    """
    opened = history if isinstance(history, History) else History(history)
    nights = opened.nights
    if not nights:
        raise InvalidFileError(
            "has no nights; sparse-eval score --history, or History.append, adds one", opened.path
        )
    known = {metric for night in nights for metric in night.metrics}
    chosen = [metric for metric in metrics if metric in known]
    if not chosen:
        raise InvalidDataError(
            f"{opened.path} has none of {', '.join(metrics)}, but {', '.join(sorted(known))}; "
            "choose metrics that the history has"
        )
    main, *others = chosen
    charts = []
    for number, metric in enumerate(chosen[:_MAX_TRENDS]):
        title = f"{metric_title(nights[-1].shown(metric))} over the nights"
        drawn = draw_svg(partial(plots.trend, opened, metric), f"trend{number}", title)
        charts.append((title, drawn))
    of_others = opened.changes(others, correction=correction)
    rows = records(opened.changes(main, correction=correction))
    rows += records(of_others[of_others["change"] != ""])
    rows.sort(key=lambda row: str(row["time"]), reverse=True)
    by_main = opened.changes(main, correction="none")
    last = records(by_main[by_main["time"] == nights[-1].time])
    return {
        "n_nights": len(nights),
        "main": metric_title(nights[-1].shown(main)),
        "charts": charts,
        "last": last[-1] if last else None,
        "changes": rows,
        "notes": opened.notes(),
    }
