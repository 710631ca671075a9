"""Print results to standard output, and progress and warnings to standard error."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Sequence
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

Row: TypeAlias = dict[str, Any]
Rows: TypeAlias = Sequence[Row] | None

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

    def evaluation(
        self, ev: Evaluation, out: Path | None, row: Row | None = None, **about: JSONValue
    ) -> None:
        """Print the table of an evaluation, and save it in a folder.

        The command and what is given as `about` are saved with it. As JSON, what is given as `row`
        is printed with it, as the only one of several.
        """
        if out is not None:
            ev.save(out, about={"command": LINE.get(), **about})
        if self.for_people:
            echo(ev.to_markdown() if self.printed == "markdown" else str(ev))
        else:
            content = ev.to_dict()
            rows = [(row or {}) | content]
            self.table(ev.summary().reset_index(), rows, rows if row else content)

    def table(self, table: pd.DataFrame, rows: Rows = None, content: Any = None) -> None:
        """Print a table in any format.

        `rows` are its rows for JSON lines, and `content` is all of it for JSON.
        """
        rows = records(table) if rows is None and self.printed.startswith("json") else rows or []
        if self.printed == "json":
            text = json.dumps(content or rows, indent=2, ensure_ascii=False)
        elif self.printed == "jsonl":
            text = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
        elif self.printed == "csv":
            text = self.csv(table)
        else:
            text = text_of_frame(table, "simple" if self.printed == "table" else "pipe")
        echo(text, nl=not text.endswith("\n"), data=not self.for_people)

    def csv(self, table: pd.DataFrame) -> str:
        """Return a table as CSV, with no formulas for a spreadsheet if that is wanted."""
        return csv_text(table, self.safe_csv)


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
