"""Tables as CSV, whose text a spreadsheet can be kept from running as formulas."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError
from .options import Format

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

#: How text begins that a spreadsheet takes for a formula, by OWASP's page on CSV injection; also in
#: the wide forms that East Asian versions read.
_SIGNS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


def csv_text(table: pd.DataFrame, safe: bool) -> str:
    """Return a table as CSV, without its index.

    If `safe`, text is in quotes, and begins with an apostrophe where a spreadsheet would take it
    for a formula; numbers stay as they are.
    """
    if not safe:
        return table.to_csv(index=False, lineterminator="\n")
    harmless = _without_formulas(table)
    return harmless.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)


def check_safe_csv(safe: bool, format: Format, out: Path | None = None) -> None:
    """Raise if `--safe-csv` is given for what is no CSV: the file `out` or what is printed."""
    if safe and (format is not Format.csv if out is None else out.suffix != ".csv"):
        instead = "--format csv" if out is None else f"an --out that ends in .csv, not {out.name!r}"
        raise InvalidDataError(f"--safe-csv is about CSV; give {instead}")


def _without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    columns = {}
    for place in range(table.shape[1]):  # by number, as two columns may have the same name
        column = table.iloc[:, place]
        if not pd.api.types.is_numeric_dtype(column):
            column = pd.Series([_harmless(cell) for cell in column.tolist()], dtype=object)
        columns[place] = column.reset_index(drop=True)
    harmless = pd.DataFrame(columns)
    return harmless.set_axis([_harmless(name) for name in table.columns], axis="columns")


def _harmless(cell: Any) -> Any:
    """Return a cell, or what stands for it if it is text that would run."""
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(_SIGNS) else cell
