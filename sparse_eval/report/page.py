"""Write the report: one self-contained HTML page, to be read, printed and sent."""

from __future__ import annotations

import json
import warnings
from base64 import b64encode
from collections.abc import Mapping
from functools import partial
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..core.arguments import show_spelling
from ..core.atomic_files import as_path, make_folder_of, replacing
from ..core.exact_sums import Moments
from ..core.formatting import plain, records
from ..core.messages import printable
from ..core.threads import thread_lock
from ..errors import MissingExtraError, OutputError
from ..inputs.candidates import WARNING
from ..metrics import REGISTRY
from ..results.clusters import linear_in
from ..results.comparison import compare
from ..results.decisions import add_verdicts, parse_margins
from ..results.differences import correct
from ..results.evaluation import named_evaluations
from ..results.intervals import LEVEL, interval_of_moments
from ..results.matching import shared_metrics, shared_users
from ..results.record import plain_rows
from ..results.segments import bands_of, segmentations, segments_table
from ..results.summary import few_users
from . import plots
from .wording import (
    draw_interval,
    format_number,
    format_numbers,
    format_p,
    in_words,
    metric_title,
    short_names,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import jinja2
    import pandas as pd

    from ..core.types import Floats, PathLike
    from ..metrics import Definition
    from ..results.decisions import Size
    from ..results.evaluation import Evaluation
    from ..results.partial_results import Part
    from ..results.segments import UserSegments
    from ..results.user_values import UserValues

#: A row of a table, as JSON has it.
_Row: TypeAlias = dict[str, Any]

#: Metrics that are side by side in a table.
_MOST_COLUMNS = 8

#: Curves of so many models can be told apart.
_MOST_CURVES = 6

#: The size of a chart in inches, and the height of a line of its legend. At this width, the text is
#: as large as the page's own on a phone.
_WIDTH, _HEIGHT, _LEGEND_LINE = 4.4, 2.9, 0.19


@show_spelling
def write_report(
    evaluations: Mapping[str, Evaluation],
    path: PathLike,
    metrics: str | Iterable[str] | None = None,
    *,
    title: str = "Evaluation report",
    test: Literal["t", "wilcoxon", "permutation"] = "t",
    correction: Literal["holm", "bonferroni", "bh", "none"] = "holm",
    left_out: Mapping[str, str] | None = None,
    nights: PathLike | None = None,
    by: UserSegments | None = None,
    margin: Size | Mapping[str, Size] | None = None,
) -> Path:
    """Write an HTML page about one evaluation, or about several and how they compare.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Evaluations by name, saved ones included; the page shows the best first.
    path : str or Path
        The page (.html); its folder is created if missing. The page needs neither network access
        nor scripts.
    metrics : str or iterable of str, optional
        Metrics to show; by default those that all evaluations have. The first one is the main
        metric, which decides the headline, the charts and the segments. Its p-values are corrected
        for the number of pairs of models only; the p-values of all other metrics are corrected
        together.
    title : str
        Title of the page.
    test, correction
        As in `sparse_eval.compare`.
    left_out : mapping of str to str, optional
        Results that could not be shown, and why; the page lists them.
    nights : str or Path, optional
        A folder that ``sparse-eval night`` wrote: the page has its decisions, and a chart.
    by : mapping, Series, table or path, optional
        Segments by user, such as countries, plans or cohorts, as in `sparse_eval.compare`. The page
        shows the main metric in each segment. It also shows where the best model is better or worse
        than the others, corrected for all segments and models.
    margin : float, str or mapping, optional
        The largest difference that does not matter, as in `sparse_eval.compare`: tables of
        differences have verdicts.

    Returns
    -------
    Path
        The page.

    Raises
    ------
    InvalidDataError
        If there is no evaluation, two have the same name, or the evaluations, `by` or `margin` are
        not valid for `sparse_eval.compare`.
    InvalidFileError
        If `nights` cannot be read, or has none.
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
    named = named_evaluations(evaluations)
    names = short_names(named)
    shown = dict(zip(names, named.values(), strict=True))
    requests = {name: ev.request for name, ev in shown.items()}
    chosen, notes = shared_metrics(requests, metrics)
    main = chosen[0]
    parse_margins(margin, chosen)  # raises if a metric is not shown
    ranked = _ranked(shown, main)
    # The best first: on a phone, the first rows of a table are all that is seen at once.
    shown = {name: shown[name] for name in dict.fromkeys([*ranked, *shown])}
    best, first = next(iter(shown.items()))
    options: Any = {"test": test, "correction": correction}
    comparison = None
    pairs: list[_Row] = []
    secondary: list[_Row] = []
    if len(shown) > 1:
        comparison = compare(shown, main, margin=_of_metrics(margin, [main]), **options)
        pairs = records(comparison.table)
        if chosen[1:]:
            more = _of_metrics(margin, chosen[1:])
            rest = compare(shown, chosen[1:], margin=more, **options)
            secondary = records(rest.table)
            notes += rest.notes
        notes += comparison.notes
    segments: list[list[_Row]] = []
    if by is not None and not first._part.traits_of(main).per_user:
        notes.append(f"{main} is about all users together, so it is not shown by segment")
    elif ranked:
        more = _of_metrics(margin, [main])
        for divided in _divisions(first, main, by):
            rows, remarks = _segments(shown, main, divided, margin=more, **options)
            segments.append(rows)
            notes += remarks
    columns = _columns(shown, chosen, [*pairs, *secondary])
    rivals = [row for row in pairs if row["a"] == best]
    drawn = {name: shown[name] for name in ranked[:_MOST_CURVES]}
    has_losers = bool(rivals and rivals[0]["n_users"])
    page = template.render(
        title=title,
        style=Path(__file__).with_name("style.css").read_text(encoding="utf-8"),
        best=best,
        shown=shown,
        first=first,
        is_defined=bool(ranked),
        main_name=metric_title(first._part.shown(main)),
        higher=first._part.traits_of(main).higher_is_better,
        columns=columns,
        tables=[columns[n : n + _MOST_COLUMNS] for n in range(0, len(columns), _MOST_COLUMNS)],
        few_users=[(name, note) for name, ev in shown.items() if (note := few_users(ev._part))],
        meanings=_meanings(chosen),
        comparison=comparison,
        n_pairs=len(pairs),
        rivals=rivals,
        secondary=[row for row in secondary if row["a"] == best],
        scale=_scale([*rivals, {"difference": 0.0}], "difference"),
        better_by_others=_better_by_others(best, secondary),
        segments=segments,
        notes=list(dict.fromkeys(notes)),
        charts=_draw_charts(drawn, chosen, has_losers),
        most_curves=_MOST_CURVES,
        convention=_convention(first),
        nights=None if nights is None else _describe_nights(nights, main),
        provenance=_provenance(shown),
        left_out=left_out or {},
        full_names={a: b for a, b in zip(names, named, strict=True) if a != b},
    )
    with replacing(path) as temporary:
        temporary.write_bytes(page.encode(errors="xmlcharrefreplace"))
    return file


def _describe_nights(path: PathLike, main: str) -> _Row:
    """Return the decisions of nights, the last one first, and a chart of the main metric."""
    from ..jobs.nights import nights_with, read_nights, series

    rows = read_nights(path)
    return {
        "rows": records(series(rows[::-1])),
        "chart": _draw(partial(plots.nights, path, main), 2) if nights_with(main, rows) else None,
    }


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
        "strip": draw_interval,
    }  # fmt: skip
    warning = WARNING[0].upper() + WARNING[1:]
    environment.globals |= {"numbers": format_numbers, "candidates_warning": warning}
    return environment.get_template("page.html.jinja")


def _of_metrics(margin: Any, metrics: list[str]) -> Any:
    """Return the margins of some of the metrics, as `compare` takes them."""
    if not isinstance(margin, Mapping):
        return margin
    return {metric: size for metric, size in margin.items() if metric in metrics}


def _ranked(shown: Mapping[str, Evaluation], main: str) -> list[str]:
    """Return the names of the evaluations that a metric is defined for, the best first.

    Several are ranked by the users that all of them have, on whom they are compared.
    """
    traits = next(iter(shown.values()))._part.traits_of(main)
    means = {name: ev[main] for name, ev in shown.items()}
    if len(shown) > 1 and traits.per_user:
        users = shared_users({name: ev._part for name, ev in shown.items()})
        if any(users.left_out.values()):
            for (name, ev), rows in zip(shown.items(), users.rows, strict=True):
                means[name] = _moments(linear_in(main, ev._part, rows)).mean
    defined = [name for name, mean in means.items() if mean == mean]
    return sorted(defined, key=means.__getitem__, reverse=traits.higher_is_better)


def _moments(values: Floats) -> Moments:
    """Return the moments of the values that are defined."""
    return Moments.of(values[~np.isnan(values)])


def _divisions(ev: Evaluation, main: str, by: UserSegments | None) -> list[UserSegments]:
    """Return the caller's segments of users, and bands of users."""
    if not ev._part.traits_of(main).per_user:
        return []
    values = ev._part.values
    return [*([] if by is None else [by]), *([] if values is None else [_bands_of_users(values)])]


def _bands_of_users(values: UserValues) -> pd.DataFrame:
    """Return segments of an evaluation: bands of about equally many users, by their items."""
    import pandas as pd

    columns = {}
    n_users = int(values.counted.sum())
    for title, counts in (("training", values.n_seen), ("relevant", values.n_relevant)):
        if counts is not None:
            bands = bands_of(counts[values.counted], np.ones(n_users), 4, "items")
            names = [bands.names[code] for code in bands.codes]
            columns[f"{title} items of the user"] = pd.Categorical(names, bands.names)
    return pd.DataFrame(columns, values.evaluated_users.index)


def _segments(
    shown: Mapping[str, Evaluation], main: str, by: UserSegments, **options: Any
) -> tuple[list[_Row], list[str]]:
    """Return a row for each segment, and notes.

    The best model is compared with each other one; a single model has its means.
    """
    ev, *others = shown.values()
    if others:
        table, notes = segment_differences(shown, main, by, **options)
        return records(table), notes
    of_users = np.flatnonzero(ev._values.counted)
    ends = ev.request.range_of(ev.keys().index(main))
    columns = segmentations(by, ev._values.evaluated_users)
    rows = []
    for column in columns:
        for code, name in enumerate(column.names):
            moments = _moments(linear_in(main, ev._part, of_users[column.codes == code]))
            low, high, kind = interval_of_moments(moments, LEVEL).within(moments.mean, ends)
            found = {"mean": moments.mean, "ci_low": low, "ci_high": high}
            row = {"by": column.title, "segment": name, "n_users": moments.n, "interval": kind}
            rows.append(row | {key: plain(value) for key, value in found.items()})
    return rows, [note for column in columns if (note := column.note())]


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
    divided = segments_table(by)  # a file is read once
    comparisons = [
        compare({first: ev, name: other}, metric, by=divided, correction="none", **options)
        for name, other in others
    ]
    table = pd.concat([one.table for one in comparisons], ignore_index=True)
    table["p_corrected"] = correct(table["p"].to_numpy(), correction)
    # A correction makes no p-value smaller, so no further difference becomes significant.
    table["better"] = table["better"].where(table["p_corrected"] < 1 - LEVEL, "")
    if margins := parse_margins(options.get("margin"), [metric]):
        add_verdicts(table, margins, correction, LEVEL)
    return table, list(dict.fromkeys(note for one in comparisons for note in one.notes))


def _columns(
    shown: Mapping[str, Evaluation], metrics: list[str], differences: list[_Row]
) -> list[_Row]:
    """Return a column of the table of models for each metric.

    ``rows`` has a model or baseline each, ``best`` the names of the starred ones, ``random`` the
    means of random lists, and ``scale`` the smallest and largest end of an interval.
    """
    first = next(iter(shown.values()))._part
    numbers = {name: plain_rows(ev._summarize()) for name, ev in shown.items()}
    baselines: dict[str, Part] = {}
    for ev in shown.values():
        baselines = {name: one._part for name, one in ev.baselines.items()} | baselines
    columns = []
    for metric in metrics:
        models = {name: rows[metric] for name, rows in numbers.items()}
        simple = {name: _mean_of(part, metric) for name, part in baselines.items()}
        columns.append(
            {
                "metric": metric,
                "title": metric_title(first.shown(metric)),
                "higher": first.traits_of(metric).higher_is_better,
                "models": models,
                "baselines": simple,
                "best": _best(shown, metric, differences),
                "random": list(dict.fromkeys(row["random"] for row in models.values())),
                "scale": _scale([*models.values(), *simple.values()], "mean"),
            }
        )
    return columns


def _mean_of(baseline: Part, metric: str) -> _Row:
    """Return the mean and the interval of a baseline; an unknown number is None."""
    if metric not in baseline.request.names:
        return dict.fromkeys(("mean", "ci_low", "ci_high"))
    row = baseline.row_of(metric)
    mean, (low, high, _) = baseline.value(row), baseline.interval(row, LEVEL)
    return {
        name: plain(x)
        for name, x in zip(("mean", "ci_low", "ci_high"), (mean, low, high), strict=True)
    }


def _scale(rows: list[_Row], mean: str) -> tuple[float, float]:
    """Return the smallest and the largest number of means and their intervals."""
    ends = [row.get(end) for row in rows for end in (mean, "ci_low", "ci_high")]
    known = [end for end in ends if end is not None]
    return min(known, default=0.0), max(known, default=0.0)


def _best(shown: Mapping[str, Evaluation], metric: str, differences: list[_Row]) -> set[str]:
    """Return the evaluations that no other is significantly better than."""
    if len(shown) < 2:
        return set()
    worse = {
        name
        for row in differences
        for name in (row["a"], row["b"])
        if row["metric"] == metric and row["better"] not in ("", name)
    }
    return {name for name, ev in shown.items() if name not in worse and ev[metric] == ev[metric]}


def _better_by_others(best: str, secondary: list[_Row]) -> dict[str, list[str]]:
    """Return the models that beat the best one, with the metrics by which they do."""
    metrics: dict[str, list[str]] = {}
    for row in secondary:
        if row["a"] == best and row["better"] == row["b"]:
            metrics.setdefault(row["b"], []).append(metric_title(row["metric"]))
    return metrics


def _meanings(metrics: list[str]) -> list[Definition]:
    """Return the registered metrics, each once even with several cut-offs."""
    names = dict.fromkeys(metric.partition("@")[0].partition("(")[0] for metric in metrics)
    return [REGISTRY[name] for name in names if name in REGISTRY]


def _convention(ev: Evaluation) -> dict[str, Any]:
    """Return the convention, and what differs from the standard."""
    rules = ev.request.convention
    differences = rules.differences()
    if ev.request.seen == "allow":
        here = ("candidates", "all items, seen ones too", "items not seen in train")
        differences = [*(row for row in differences if row[0] != here[0]), here]
    return {"name": rules.name, "library": rules.library, "differences": differences}


def _provenance(shown: Mapping[str, Evaluation]) -> dict[str, dict[str, str]]:
    """Return the facts needed to reproduce the evaluations, by name.

    Facts that all of several have in common are under the name "".
    """
    facts = {name: _facts(ev) for name, ev in shown.items()}
    if len(facts) < 2:
        return facts
    common = dict(set.intersection(*(set(each.items()) for each in facts.values())))
    own = {
        name: {key: value for key, value in each.items() if key not in common}
        for name, each in facts.items()
    }
    first = next(iter(facts.values()))
    return {"": {key: value for key, value in first.items() if key in common}} | own


def _facts(ev: Evaluation) -> dict[str, str]:
    """Return how an evaluation was made. Commands save no date: a second run gives the same."""
    record, part = ev._record, ev._part
    users = [f"{ev.n_users:,} in the means", f"{part.n_users - part.n_counted:,} left out"]
    if part.n_cold is not None:
        users.append(f"{part.n_cold:,} without training data")
    facts = {key: _text(value) for key, value in record["about"].items()}
    facts["users"] = ", ".join(users)
    facts["versions"] = ", ".join(f"{k} {v}" for k, v in record["versions"].items())
    for name, matrix in record["inputs"].items():
        shape = " × ".join(f"{size:,}" for size in matrix["shape"])
        facts[name] = f"{shape}, {matrix['entries']:,} entries, SHA-256 {matrix['sha256']}"
    if part.candidates is not None:
        facts["candidates"] = _text(part.candidates.to_dict())
    if part.retrieval is not None:
        facts["retrieval"] = _text(part.retrieval._asdict())
    for name, digest in part.key["propensities"].items():
        facts[f"propensities by {name}"] = f"digest {digest}"
    return facts


def _text(value: Any) -> str:
    """Return a JSON value as text, with the entries of an object in one line."""
    if isinstance(value, dict):
        return ", ".join(f"{key} {_text(one)}" for key, one in value.items())
    if isinstance(value, list):
        return "; ".join(map(_text, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class Chart(NamedTuple):
    """A chart, as the address of an image that contains it."""

    title: str
    caption: str
    image: str


def _draw_charts(
    few: Mapping[str, Evaluation], metrics: list[str], has_losers: bool
) -> list[Chart]:
    """Draw what the tables do not show, for a few models that the first metric is defined for."""
    charts: list[Chart] = []
    if not few:
        return charts
    main, base = metrics[0], metrics[0].partition("@")[0]
    traits = next(iter(few.values()))._part.traits_of(main)
    title = metric_title(main)
    if traits.per_user and all(ev._part.values is not None for ev in few.values()):
        direction = "higher" if traits.higher_is_better else "lower"
        charts.append(
            Chart(
                f"{title} of individual users",
                f"For each value, the share of users who reach it; the {direction} a curve, the "
                "better.",
                _draw(partial(plots.distribution, few, main), len(few)),
            )
        )
        if len(few) > 1 and has_losers:
            two = dict(islice(few.items(), 2))
            charts.append(
                Chart(
                    f"Users who lose: {' against '.join(two)}",
                    "The difference of each user; the shaded users lose. The legend has their "
                    "share and its 95 % interval.",
                    _draw(partial(plots.losers, two, main)),
                )
            )
    if len(plots.cutoffs_of(metrics, base)) > 2:
        charts.append(
            Chart(
                f"{metric_title(base)} by cut-off",
                "Bands are 95 % intervals.",
                _draw(partial(plots.by_cutoff, few, base), len(few)),
            )
        )
    return charts


def _draw(plot: Callable[..., object], n_named: int = 1) -> str:
    """Return the address of an image of a chart, with room for so many names above it.

    The image is a file of its own within the page, so that nothing in it affects the page.
    """
    import matplotlib as mpl
    from matplotlib import style
    from matplotlib.figure import Figure

    height = _HEIGHT + _LEGEND_LINE * n_named * (n_named > 1)
    drawn = BytesIO()
    # The user's own settings have no effect. One chart at a time, since all threads share them.
    with (
        thread_lock("matplotlib"),
        style.context(f"{__package__}.chart", after_reset=True),
        mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": "chart", "text.parse_math": False}),
        warnings.catch_warnings(),
    ):
        # The browser's fonts show characters that matplotlib's lack.
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        figure = Figure(figsize=(_WIDTH, height))
        plot(ax=figure.subplots())
        nothing = {"Date": None, "Creator": None}
        figure.savefig(drawn, format="svg", metadata=nothing, transparent=True)
    return f"data:image/svg+xml;base64,{b64encode(drawn.getvalue()).decode()}"
