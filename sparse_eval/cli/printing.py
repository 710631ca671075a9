"""Print results to standard output, and progress and warnings to standard error."""

from __future__ import annotations

import json
import warnings
from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING

import typer

from ..core.formatting import records, text_of_frame
from .csv_text import csv_text
from .echo import echo
from .options import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    import pandas as pd

    from ..core.types import JSONValue
    from ..results import Evaluation


def counted(n: int, noun: str) -> str:
    """Return a number with its noun, in the plural unless it is 1: "1 result", "2 results"."""
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


@contextmanager
def step(name: str) -> Iterator[Callable[[str], None]]:
    """Report a step of a command when it ends: the notes given, and how long it took."""
    notes: list[str] = []
    start = perf_counter()
    yield notes.append
    seconds = perf_counter() - start
    echo(f"{name}: {', '.join([*notes, f'{seconds:.1f} s'])}", err=True)


@contextmanager
def warnings_in_a_line() -> Iterator[None]:
    """Print each different warning once, in a line without the place in the source code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        echo(f"warning: {message}", err=True)


def print_evaluation(
    command: typer.Context,
    ev: Evaluation,
    format: Format,
    out: Path | None,
    **about: JSONValue,
) -> None:
    """Print the table of an evaluation, and save it in a folder.

    The command and what is given as `about` are saved with it.
    """
    with warnings_in_a_line():  # what JSON and CSV have no room for
        if out is not None:
            ev.save(out, about={"command": command.obj, **about})
        if format is Format.json:
            echo(ev.to_json(), nl=False, data=True)
        elif format is Format.jsonl:
            print_lines({"metric": name} | row for name, row in ev.to_dict()["metrics"].items())
        elif format is Format.csv:
            echo(ev.summary().to_csv(lineterminator="\n"), nl=False, data=True)
        else:
            echo(ev.to_markdown() if format is Format.markdown else str(ev))


def print_json(content: object) -> None:
    """Print JSON, indented."""
    echo(json.dumps(content, indent=2, ensure_ascii=False), data=True)


def print_lines(rows: Iterable[Mapping[str, object]]) -> None:
    """Print JSON lines, an object for each row."""
    for row in rows:
        echo(json.dumps(row, ensure_ascii=False), data=True)


def print_table(table: pd.DataFrame, format: Format, safe_csv: bool = False) -> None:
    """Print a table in any format; as CSV, with no formulas for a spreadsheet if `safe_csv`."""
    if format is Format.json:
        print_json(records(table))
    elif format is Format.jsonl:
        print_lines(records(table))
    elif format is Format.csv:
        echo(csv_text(table, safe_csv), nl=False, data=True)
    else:
        echo(text_of_frame(table, "simple" if format is Format.table else "pipe"))
