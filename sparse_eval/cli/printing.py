"""Print results to standard output, and progress and warnings to standard error."""

from __future__ import annotations

import csv
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from ..core.formatting import records, text_of_frame
from .options import Rare, option
from .terminal import LINE, echo, note

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import JSONValue
    from ..results import Evaluation

#: How text begins that a spreadsheet takes for a formula, by OWASP's page on CSV injection; also in
#: the wide forms that East Asian versions read.
_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")

#: How a result is printed.
Format: TypeAlias = Literal["table", "json", "jsonl", "csv", "markdown"]


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
    note(f"{name}: {', '.join([*notes, f'{seconds:.1f} s'])}")


@contextmanager
def warnings_in_a_line() -> Iterator[None]:
    """Print each different warning once, in a line without the place in the source code."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        echo(f"warning: {message}", err=True)


@dataclass(frozen=True)
class Printing:
    """How a result is printed.

    Parameters
    ----------
    printed
        How to print the result.
    safe_csv
        CSV for a spreadsheet: an apostrophe before text that it would take for a formula.
    """

    printed: Annotated[Format, option("--format")] = "table"
    safe_csv: Rare[bool] = False

    @property
    def for_people(self) -> bool:
        """Whether people read the result."""
        return self.printed in ("table", "markdown")

    def evaluation(self, ev: Evaluation, out: Path | None, **about: JSONValue) -> None:
        """Print the table of an evaluation, and save it in a folder.

        The command and what is given as `about` are saved with it.
        """
        with warnings_in_a_line():  # what JSON and CSV have no room for
            if out is not None:
                ev.save(out, about={"command": LINE.get(), **about})
            if self.for_people:
                echo(ev.to_markdown() if self.printed == "markdown" else str(ev))
            elif self.printed == "json":
                print_json(ev.to_dict())
            else:
                self.table(ev.summary().reset_index(), [ev.to_dict()])

    def table(self, table: pd.DataFrame, rows: Any = None) -> None:
        """Print a table in any format; `rows` are its rows for JSON."""
        if self.printed == "json":
            print_json(rows or records(table))
        elif self.printed == "jsonl":
            print_lines(rows or records(table))
        elif self.printed == "csv":
            echo(self.csv(table), nl=False, data=True)
        else:
            echo(text_of_frame(table, "simple" if self.printed == "table" else "pipe"))

    def csv(self, table: pd.DataFrame) -> str:
        """Return a table as CSV, with no formulas for a spreadsheet if that is wanted."""
        return csv_text(table, self.safe_csv)


def print_json(content: object) -> None:
    """Print JSON, indented."""
    echo(json.dumps(content, indent=2, ensure_ascii=False), data=True)


def print_lines(rows: Iterable[Mapping[str, object]]) -> None:
    """Print JSON lines, an object for each row."""
    for row in rows:
        echo(json.dumps(row, ensure_ascii=False), data=True)


def csv_text(table: pd.DataFrame, safe: bool) -> str:
    """Return a table as CSV, without its index.

    If `safe`, text is in quotes, and begins with an apostrophe where a spreadsheet would take it
    for a formula; numbers stay as they are.
    """
    if not safe:
        return table.to_csv(index=False, lineterminator="\n")
    harmless = table.map(_harmless).rename(columns=_harmless)
    return harmless.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def _harmless(cell: Any) -> Any:
    """Return a cell, or what stands for it if it is text that would run."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_SIGNS) else cell
