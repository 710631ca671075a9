"""Commands that use saved results: compare, gate, report."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias

import typer

from ..core.formatting import terminal_width
from ..errors import (
    InvalidDataError,
    InvalidFileError,
    InvalidMetricError,
    SparseEvalError,
    shown,
)
from ..results.intervals import LEVEL
from .loading import check_inputs_are_kept
from .options import (
    Metrics,
    Output,
    Printing,
    Progress,
    Running,
    counted,
    option,
    step,
)
from .terminal import echo, tell

if TYPE_CHECKING:
    import pandas as pd

    from ..results import Evaluation
    from ..results.gate import Decision

Results: TypeAlias = Annotated[
    list[str],
    option(
        help="Folders written by --out or `Evaluation.save`, or folders of such folders. Each is "
        "named after its folder unless given as NAME=FOLDER."
    ),
]


@dataclass(frozen=True)
class Pairing:
    """How results are compared.

    Parameters
    ----------
    metrics
        Metrics to use; repeatable. The first is the main one of a page. [all]
    test
        The paired test.
    correction
        The correction for multiple comparisons: Holm, Benjamini–Hochberg.
    by
        A table of users (.csv, .tsv, .parquet) with a column `user`; its other columns, such as
        country or plan, divide the users into segments that are compared one by one.
    margin
        The largest difference that does not matter: 0.002, or 1% of the second model's mean. For
        one metric: ndcg@10=1%; repeatable. Adds a verdict: better, worse, equivalent or not shown.
    """

    metrics: Metrics = None
    test: Literal["t", "wilcoxon", "permutation"] = "t"
    correction: Literal["holm", "bonferroni", "bh", "none"] = "holm"
    by: Annotated[Path | None, option(metavar="FILE")] = None
    margin: Annotated[list[str] | None, option(metavar="[METRIC=]SIZE")] = None

    def arguments(self, first: Evaluation) -> dict[str, Any]:
        """Return the arguments of `compare`, given one of the results."""
        margin: Any = self.margin
        if margin and len(margin) == 1 and "=" not in margin[0]:
            margin = margin[0]
        elif margin:
            margin = _parse_sizes(margin, self.metrics, first, "--margin")
        return asdict(self) | {"margin": margin if self.margin else None}


def _parse_sizes(
    words: list[str], metrics: list[str] | None, first: Evaluation, option: str
) -> dict[str, str]:
    """Parse ``METRIC=SIZE`` for `metrics`, by default the metrics of a result."""
    from ..metrics import parse_metrics

    defaults = first.request.convention.options
    computed = parse_metrics(list(metrics or first.keys()), defaults)
    found = {}
    for word in words:
        name, _, size = word.rpartition("=")
        if not name:
            raise InvalidMetricError(
                f"{option} is {word!r}; expected a metric and a number, such as ndcg@10=1%"
            )
        for metric in parse_metrics(name, defaults):
            if metric not in computed:
                raise InvalidMetricError(
                    f"{option} is about {metric}, which is not computed; ask for it: -m '{metric}'"
                )
            found[str(metric)] = size
    return found


class SavedResults(NamedTuple):
    """Evaluations by name, and why folders could not be read."""

    evaluations: dict[str, Evaluation]
    first: Evaluation
    left_out: dict[str, str] = {}  # noqa: RUF012 - never changed

    def fail_if_left_out(self) -> None:
        """End the command if results could not be read."""
        if self.left_out:
            total = counted(len(self.evaluations) + len(self.left_out), "result")
            tell(f"{len(self.left_out):,} of {total} could not be read", "error")
            raise typer.Exit(1)


def compare(
    results: Results,
    *,
    pairing: Pairing,
    level: float = LEVEL,
    execution: Progress,
    printing: Printing,
) -> None:
    """Compare models: which is better, how certain that is, and for how many users.

    Example: sparse-eval compare results/new results/old

    Parameters
    ----------
    level
        Confidence level of the intervals.
    """
    from ..results.comparison import compare as compare_evaluations

    saved = _load(results)
    if len(saved.evaluations) < 2:
        raise InvalidDataError("there is only one result; name two or more to compare")
    compared = compare_evaluations(
        saved.evaluations, **pairing.arguments(saved.first), level=level, progress=execution.bars
    )
    printing.table(
        compared.shown() if printing.for_people else compared.table, content=compared.to_dict()
    )
    if printing.for_people:
        echo()
        for line in (
            compared.how_found(),
            "a − b: the difference of the means; wins: users for whom a is better",
            "detectable: the difference that would be detected in 80 of 100 cases,",
            "if it were the only one tested",
            *["verdict: a against b, by the margin; not shown: the data do not decide"]
            * bool(pairing.margin),
            *compared.remarks("--format csv"),
        ):
            width: Any = terminal_width()  # may be infinite
            echo(fill(line, width, break_long_words=False, break_on_hyphens=False))
    saved.fail_if_left_out()


#: The exit status of a gate, by verdict.
STATUS = {"passed": 0, "failed": 3, "undecided": 4}

#: How a decision is printed.
DecisionFormat: TypeAlias = Annotated[
    Literal["table", "json", "junit", "markdown"],
    option("--format", help="How to print; JUnit is XML for continuous integration."),
]


def gate(
    rules: Path | None = None,
    *,
    candidate: Path | None = None,
    champion: Path | None = None,
    reference: Path | None = None,
    plan: list[str] | None = None,
    log: Path | None = None,
    example: bool = False,
    printed: DecisionFormat = "table",
) -> None:
    """Decide by the rules in a file whether a model may replace another.

    Exit status: 0 passed, 3 failed, 4 undecided, 2 invalid rules or data.

    Example: sparse-eval gate rules.toml --candidate results/new --champion results/old

    Parameters
    ----------
    rules
        A file of TOML; --example prints one.
    candidate
        The folder with the result of the model to judge.
    champion
        The folder with the result of the model in production, on the same held-out data.
    reference
        The folder with a third result; rules with not_worse_by are also checked against it.
    plan
        Print the chance of each rule to pass, from two or more past results (such as one model
        trained with several seeds), or a folder of results; repeatable.
    log
        Print the decisions in a folder written by `sparse-eval night`.
    example
        Print a commented file of rules, and exit.
    """
    from ..results.gate import gate as decide
    from ..results.gate_plan import plan_gate
    from ..results.gate_rules import EXAMPLE

    if example:
        echo(EXAMPLE, nl=False)
        return
    if log is not None:
        from ..jobs.nights import read_nights, series

        _print_frame(series(read_nights(log)), printed)
        return
    missing = [] if rules is not None else ["RULES.toml"]
    if plan and rules is not None:
        _print_frame(plan_gate(rules, _load(plan).evaluations), printed)
        return
    if not plan:
        given = {"--candidate": candidate, "--champion": champion}
        missing += [name for name, value in given.items() if value is None]
    if missing:
        raise InvalidDataError(f"{' and '.join(missing)}: missing; see sparse-eval gate --help")
    paths: Any = (rules, candidate, champion, reference)
    end_with(decide(*paths), printed)


def end_with(decision: Decision, printed: str) -> None:
    """Print a decision, and end the command with its status."""
    if printed == "json":
        echo(json.dumps(decision.to_dict(), indent=2, ensure_ascii=False), data=True)
    elif printed == "junit":
        echo(decision.to_junit(), nl=False, data=True)
    else:
        echo(decision.to_markdown() if printed == "markdown" else str(decision))
    if not decision:
        raise typer.Exit(STATUS[decision.verdict])


def _print_frame(table: pd.DataFrame, printed: str) -> None:
    if printed == "junit":
        raise InvalidDataError("--format junit is for decisions; choose table, markdown or json")
    forms: Any = printed
    Printing(forms).table(table)


def report(
    results: Results,
    *,
    out: Output[Annotated[Path, option("--out", "-o")]] = Path("report.html"),
    title: str = "Evaluation report",
    nights: Annotated[Path | None, option(metavar="FOLDER")] = None,
    pairing: Pairing,
    execution: Running,
) -> None:
    """Write an HTML page about results, with comparisons, segments of users and charts.

    Example: sparse-eval report results --out page.html

    Parameters
    ----------
    out
        The page to write.
    title
        Title of the page.
    nights
        A folder written by `sparse-eval night`; the page shows its decisions.
    """
    from ..report import write_report

    paths = [_parse_argument(word)[1] for word in results]
    check_inputs_are_kept(paths, [out])
    saved = _load(results)
    with step("report") as done:
        page = write_report(
            saved.evaluations,
            out,
            title=title,
            **pairing.arguments(saved.first),
            left_out=saved.left_out,
            nights=nights,
        )
        done(counted(len(saved.evaluations), "result"))
    echo(shown(page))
    saved.fail_if_left_out()


def _load(words: list[str]) -> SavedResults:
    """Load results; those in a folder that cannot be read are reported and left out."""
    from ..results import Evaluation

    named = [_parse_argument(word) for word in words]
    evaluations: dict[str, Evaluation] = {}
    left_out: dict[str, str] = {}
    with step("read") as done:
        for name, path in named:
            found = _results_in(path)
            is_one = found == [path]
            if name and not is_one:
                raise InvalidDataError(
                    f"{path} has {counted(len(found), 'result')}; name them one by one"
                )
            for place in found:
                folder = place if place.is_dir() else place.parent
                called = name or folder.resolve().name
                if called in evaluations:
                    raise InvalidDataError(
                        f"two results have the name {called!r}; give one another name: NAME=FOLDER"
                    )
                try:
                    evaluations[called] = Evaluation.load(place)
                except InvalidFileError as error:
                    if is_one:
                        raise
                    left_out[str(folder)] = str(error)
                    tell(f"left out: {error}", "warning", model=called)
        done(counted(len(evaluations), "result"))
    if not evaluations:
        raise SparseEvalError("none of the results could be read; see above")
    first = next(iter(evaluations.values()))
    return SavedResults(evaluations, first, left_out)


def _results_in(path: Path) -> list[Path]:
    """Return a saved evaluation, or the summaries of all in a folder, without removed ones."""
    from ..jobs.cross_validate import JOB
    from ..jobs.sweep import saved_evaluations
    from ..results.saving import SUMMARY, summaries_in

    if (path / f"{JOB}.jsonl").exists():
        raise InvalidFileError(
            "is the folder of a cross-validation: call sparse_eval.cross_validate with the "
            "same arguments, and use its compare() and table",
            path,
        )
    if not path.is_dir() or (path / SUMMARY).exists():
        return [path]
    gone = saved_evaluations(path, "gone").values()
    found = [place for place in summaries_in(path) if place.parent not in gone]
    if not found:
        raise InvalidFileError(
            f"contains no results: neither {SUMMARY} nor folders with one; --out writes it", path
        )
    return found


def _parse_argument(word: str) -> tuple[str, Path]:
    """Split NAME=FOLDER, unless the whole of it is the name of a folder."""
    name, sign, folder = word.partition("=")
    if word and (not sign or Path(word).exists()):
        return "", Path(word)
    if not folder:
        raise InvalidDataError(f"{word!r} names no folder; expected FOLDER or NAME=FOLDER")
    return name, Path(folder)
