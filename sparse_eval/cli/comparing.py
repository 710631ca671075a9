"""The commands about saved results: compare, report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ..errors import InvalidDataError, InvalidFileError, SparseEvalError
from .options import Correction, Format, Printed, Test, Users
from .printing import counted, print_table, step

if TYPE_CHECKING:
    import pandas as pd

    from ..results.comparison import Comparison
    from ..results.saved import SavedEvaluation

__all__ = ["compare", "report"]

Results = Annotated[
    list[str],
    typer.Argument(
        help="Folders that --out or `Evaluation.save` wrote, or folders of such folders. Each is "
        "called by its folder's name, or as said: NAME=FOLDER."
    ),
]
Chosen = Annotated[
    list[str],
    typer.Option("--metric", "-m", help="Only these; may be given again.", show_default="all"),
]
Paired = Annotated[Test, typer.Option(help="The paired test.")]
Corrected = Annotated[
    Correction, typer.Option(help="For looking at many differences: Holm, Benjamini–Hochberg.")
]
How = Annotated[
    Users,
    typer.Option(
        "--users", help="Evaluations of other users are an error, or what all have is compared."
    ),
]


class Found(NamedTuple):
    """What there is in the folders that were named."""

    evaluations: dict[str, SavedEvaluation]
    sweeps: dict[str, pd.DataFrame]
    left_out: dict[str, str]


def compare(
    results: Results,
    metric: Chosen = [],  # noqa: B006 - typer copies it
    test: Paired = Test.t,
    correction: Corrected = Correction.holm,
    users: How = Users.same,
    level: Annotated[float, typer.Option(help="Of the intervals.")] = 0.95,
    format: Printed = Format.table,  # noqa: A002
) -> None:
    """Say which of several models is better, how sure that is, and for how many users."""
    from ..results.comparison import compare as compare_evaluations

    found = _find(results)
    if len(found.evaluations) < 2:
        raise InvalidDataError("there is one result; name two or more to compare")
    compared = compare_evaluations(
        found.evaluations,
        _metrics(metric, found),
        test=test.value,
        correction=correction.value,
        how=users.value,
        level=level,
    )
    _print_comparison(compared, format)
    _fail_if_left_out(found)


def report(
    results: Results,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page to write.")] = Path(
        "report.html"
    ),
    metric: Annotated[
        list[str],
        typer.Option(
            "--metric",
            "-m",
            help="Only these; may be given again. The first is what the page is about.",
            show_default="all",
        ),
    ] = [],  # noqa: B006
    title: Annotated[str, typer.Option(help="Of the page.")] = "Evaluation report",
    test: Paired = Test.t,
    correction: Corrected = Correction.holm,
    users: How = Users.same,
) -> None:
    """Write a page about results: who is better, charts, single users, and how to get it again.

    A sweep.csv in a folder of results becomes a learning curve.
    """
    from ..report import write_report

    found = _find(results)
    with step("report") as note:
        page = write_report(
            found.evaluations,
            out,
            _metrics(metric, found),
            title=title,
            test=test.value,
            correction=correction.value,
            how=users.value,
            curves=found.sweeps,
            left_out=found.left_out,
        )
        note(counted(len(found.evaluations), "result"))
    typer.echo(str(page))
    _fail_if_left_out(found)


def _metrics(words: list[str], found: Found) -> list[str] | None:
    """Return the names that metrics have in the results; None for all."""
    from ..metrics import convention_named, parse_metrics

    first = next(iter(found.evaluations.values()))
    rules = convention_named(None if first.convention == "standard" else first.convention)
    names: list[str] = []
    for word in words:
        if word in first.names:  # of a metric, too, that is not registered here
            names.append(word)
        else:
            names += map(str, parse_metrics(word, rules.options))
    return names or None


def _find(words: list[str]) -> Found:
    """Load what was named; what is broken in a folder of results is told and left out."""
    from ..results.saved import SUMMARY, load_evaluation

    found = Found({}, {}, {})

    def add(name: str, evaluation: SavedEvaluation) -> None:
        if name in found.evaluations:
            raise InvalidDataError(
                f"two results are called {name!r}; name them otherwise: NAME=FOLDER"
            )
        found.evaluations[name] = evaluation

    with step("read") as note:
        for word in words:
            name, path = _named(word)
            if not path.is_dir() or (path / SUMMARY).exists():
                folder = path if path.is_dir() else path.parent
                add(name or folder.resolve().name, load_evaluation(path))
                continue
            inside = sorted(path.glob(f"*/{SUMMARY}"))
            if not inside:
                raise InvalidFileError(
                    f"holds no results: neither {SUMMARY} nor folders with one; score each model "
                    "with an --out of its own, or save it with Evaluation.save",
                    path,
                )
            if name:
                raise InvalidDataError(
                    f"{word} names {len(inside)} results at once; name them one by one"
                )
            for summary in inside:
                try:
                    add(summary.parent.name, load_evaluation(summary))
                except InvalidFileError as error:
                    found.left_out[str(summary.parent)] = str(error)
                    typer.echo(f"left out: {error}", err=True)
            if (path / "sweep.csv").exists():
                found.sweeps[path.resolve().name] = _read_sweep(path / "sweep.csv")
        note(counted(len(found.evaluations), "result"))
    if not found.evaluations:
        raise SparseEvalError("none of the results could be read; see above")
    return found


def _named(word: str) -> tuple[str, Path]:
    """Divide NAME=FOLDER, unless there is a folder of that whole name."""
    name, sign, rest = word.partition("=")
    if word and (not sign or Path(word).exists()):
        return "", Path(word)
    if not rest:
        raise InvalidDataError(f"{word!r} names no folder; expected FOLDER or NAME=FOLDER")
    return name, Path(rest)


def _read_sweep(path: Path) -> pd.DataFrame:
    """Read the table of a sweep: its scored checkpoints in their order."""
    import pandas as pd

    try:
        table = pd.read_csv(path)
        return table[table["status"] == "ok"]
    except (ValueError, KeyError) as error:
        raise InvalidFileError(f"is no table of a sweep ({error})", path) from None


def _print_comparison(compared: Comparison, format: Format) -> None:  # noqa: A002
    if format is Format.json:
        typer.echo(json.dumps(compared.to_dict(), indent=2, ensure_ascii=False))
    elif format is Format.csv:
        print_table(compared.table, format)
    else:
        print_table(compared.shown(), format)
        typer.echo(f"\n{compared.describe()}")
        typer.echo(
            "wins: users for whom a is better; detectable: the difference that so many users show "
            "in 80 of 100 cases, if it is the only one that is looked at"
        )


def _fail_if_left_out(found: Found) -> None:
    if found.left_out:
        total = len(found.evaluations) + len(found.left_out)
        typer.echo(f"{len(found.left_out)} of {total} results could not be read", err=True)
        raise typer.Exit(1)
