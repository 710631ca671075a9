"""Commands that use saved results: compare, report."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..core.arguments import check_number
from ..errors import InvalidDataError, InvalidFileError, SparseEvalError, shown
from .csv_text import check_safe_csv
from .echo import echo
from .judging import FailIfWorse, Tolerance, fail_if_worse, parse_bounds
from .loading import check_inputs_are_kept
from .options import Correction, Format, Printed, SafeCSV, Test, Users
from .printing import counted, print_json, print_table, step, warnings_in_a_line

if TYPE_CHECKING:
    import pandas as pd

    from ..jobs.cross_validation import CrossValidation
    from ..results import Evaluation

Results = Annotated[
    list[str],
    typer.Argument(
        help="Folders written by --out or `Evaluation.save`, or folders of such folders. Each is "
        "named after its folder unless given as NAME=FOLDER. Or the one folder of a "
        "cross-validation, whose models are compared."
    ),
]
Chosen = Annotated[
    list[str],
    typer.Option(
        "--metric",
        "-m",
        help="Metrics to use; repeatable. The first is the main one of a page.",
        show_default="all",
    ),
]
Paired = Annotated[Test, typer.Option(help="The paired test.")]
Corrected = Annotated[
    Correction,
    typer.Option(help="The correction for multiple comparisons: Holm, Benjamini–Hochberg."),
]
By = Annotated[
    Path | None,
    typer.Option(
        "--by",
        metavar="FILE",
        help="A table of users (.csv, .tsv, .parquet) with a column `user`; its other columns, "
        "such as country or plan, divide the users into segments that are compared one by one.",
    ),
]
How = Annotated[
    Users,
    typer.Option(
        "--users",
        help="Compare the users that all have, with a note, or refuse different ones.",
    ),
]


class SavedResults(NamedTuple):
    """Evaluations and sweeps by name, and folders that could not be read, with the reason.

    Or, in place of evaluations, a cross-validation.
    """

    evaluations: dict[str, Evaluation] | CrossValidation
    sweeps: dict[str, pd.DataFrame]
    left_out: dict[str, str]

    @property
    def first(self) -> Evaluation | CrossValidation:
        """The first evaluation, or the cross-validation."""
        results = self.evaluations
        return next(iter(results.values())) if isinstance(results, dict) else results

    @property
    def n_results(self) -> int:
        """The number of evaluations, or of the models of the cross-validation."""
        results = self.evaluations
        return len(results) if isinstance(results, dict) else len(results.models)


def compare(
    results: Results,
    metric: Chosen = [],
    test: Paired = Test.t,
    correction: Corrected = Correction.holm,
    users: How = Users.intersection,
    by: By = None,
    level: Annotated[float, typer.Option(help="Confidence level of the intervals.")] = 0.95,
    worse: FailIfWorse = False,
    tolerance: Tolerance = [],
    format: Printed = Format.table,
    safe_csv: SafeCSV = False,
) -> None:
    """Compare models: which is better, how certain that is, and for how many users."""
    from ..results.comparison import compare as compare_evaluations

    check_safe_csv(safe_csv, format)
    if tolerance and not worse:
        raise InvalidDataError("--tolerance is for --fail-if-worse; give both, or neither")
    saved = _load(results)
    if saved.n_results < 2:
        raise InvalidDataError("there is only one result; name two or more to compare")
    convention = saved.first.request.convention.name
    losses = parse_bounds(tolerance, metric or saved.first.names, convention, "--tolerance")
    tolerances = {
        str(metric): check_number(f"--tolerance {metric}", loss, 0) for metric, loss in losses
    }
    compared = compare_evaluations(
        saved.evaluations,
        metric or None,
        **_paired(test, correction, users),
        by=by,
        level=level,
    )
    if format is Format.json:
        print_json(compared.to_dict())
    elif format in (Format.csv, Format.jsonl):
        print_table(compared.table, format, safe_csv)
    else:
        print_table(compared.shown(), format)
        echo(f"\n{compared.how_found()}")
        echo(
            "wins: users for whom a is better; detectable: the difference that would be detected "
            "in 80 of 100 cases, if it were the only one tested"
        )
        for note in compared.notes:
            echo(f"note: {note}")
    if worse and not _lacks_last(results, saved):
        fail_if_worse(compared, tolerances)
    _fail_if_left_out(saved)


def report(
    results: Results,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    metric: Chosen = [],
    title: Annotated[str, typer.Option(help="Title of the page.")] = "Evaluation report",
    item_names: Annotated[
        Path | None,
        typer.Option(
            help="A table of items (.csv, .tsv, .parquet) with a column `item`; its other columns "
            "are shown beside the items of single users."
        ),
    ] = None,
    history: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="A file that --history of `score` or `evaluate` wrote; the page shows the trend.",
        ),
    ] = None,
    test: Paired = Test.t,
    correction: Corrected = Correction.holm,
    users: How = Users.intersection,
    by: By = None,
) -> None:
    """Write an HTML page about results, with comparisons, charts and individual users.

    A table.csv in a folder of results becomes a learning curve.
    """
    from ..report import write_report

    paths = [_parse_argument(word)[1] for word in results]
    check_inputs_are_kept([item_names, history, *paths], [out])
    saved = _load(results)
    with step("report") as note, warnings_in_a_line():
        page = write_report(
            saved.evaluations,
            out,
            metric or None,
            title=title,
            **_paired(test, correction, users),
            curves=saved.sweeps,
            left_out=saved.left_out,
            item_names=item_names,
            history=history,
            by=by,
        )
        note(counted(saved.n_results, "result"))
    echo(shown(page))
    _fail_if_left_out(saved)


def _paired(test: Test, correction: Correction, users: Users) -> dict[str, Any]:
    """Return the options of a comparison."""
    return {"test": test.value, "correction": correction.value, "how": users.value}


def _load(words: list[str]) -> SavedResults:
    """Load results; those in a folder that cannot be read are reported and left out."""
    from ..jobs.cross_validation import JOB, CrossValidation
    from ..jobs.sweep_table import TABLE
    from ..results import Evaluation
    from ..results.saving import SUMMARY

    evaluations: dict[str, Evaluation] = {}
    saved = SavedResults(evaluations, {}, {})

    def add(name: str, evaluation: Evaluation) -> None:
        if name in evaluations:
            raise InvalidDataError(
                f"two results have the name {name!r}; give one another name: NAME=FOLDER"
            )
        evaluations[name] = evaluation

    with step("read") as note:
        for word in words:
            name, path = _parse_argument(word)
            if (path / f"{JOB}.jsonl").exists():
                if len(words) > 1 or name:
                    raise InvalidDataError(
                        f"{word} is a cross-validation; give it alone, and without a name"
                    )
                cv = CrossValidation.load(path)
                note(counted(len(cv.models), "model"))
                return SavedResults(cv, {}, {})
            if not path.is_dir() or (path / SUMMARY).exists():
                folder = path if path.is_dir() else path.parent
                add(name or folder.resolve().name, Evaluation.load(path))
                continue
            inside = sorted(path.glob(f"*/{SUMMARY}"))
            if not inside:
                raise InvalidFileError(
                    f"contains no results: neither {SUMMARY} nor folders with one; --out writes it",
                    path,
                )
            if name:
                raise InvalidDataError(
                    f"{word} names {counted(len(inside), 'result')} at once; name them one by one"
                )
            for summary in inside:
                try:
                    add(summary.parent.name, Evaluation.load(summary))
                except InvalidFileError as error:
                    saved.left_out[str(summary.parent)] = str(error)
                    echo(f"left out: {error}", err=True)
            if (path / TABLE).exists():
                saved.sweeps[path.resolve().name] = _read_sweep(path / TABLE)
        note(counted(len(evaluations), "result"))
    if not evaluations:
        raise SparseEvalError("none of the results could be read; see above")
    return saved


def _lacks_last(words: list[str], saved: SavedResults) -> bool:
    """Return whether the last result could not be read, so that there is none to judge."""
    from ..results.saving import SUMMARY

    inside = sorted(_parse_argument(words[-1])[1].glob(f"*/{SUMMARY}"))
    return bool(inside) and str(inside[-1].parent) in saved.left_out


def _parse_argument(word: str) -> tuple[str, Path]:
    """Split NAME=FOLDER, unless the whole of it is the name of a folder."""
    name, sign, folder = word.partition("=")
    if word and (not sign or Path(word).exists()):
        return "", Path(word)
    if not folder:
        raise InvalidDataError(f"{word!r} names no folder; expected FOLDER or NAME=FOLDER")
    return name, Path(folder)


def _read_sweep(path: Path) -> pd.DataFrame:
    """Read the scored checkpoints of a sweep, in their order."""
    import pandas as pd

    try:
        text = path.read_text(encoding="utf-8")
        if not text.endswith("\n"):
            raise ValueError("its last line is cut off")
        table = pd.read_csv(StringIO(text))
        return table[table["status"] == "ok"]
    except (ValueError, KeyError) as error:
        raise InvalidFileError(f"is not the table of a sweep ({error})", path) from None


def _fail_if_left_out(saved: SavedResults) -> None:
    if saved.left_out:
        total = counted(saved.n_results + len(saved.left_out), "result")
        echo(f"{len(saved.left_out):,} of {total} could not be read", err=True)
        raise typer.Exit(1)
