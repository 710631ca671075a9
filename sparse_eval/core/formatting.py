"""Formatting of results: tables in notebooks, and values for JSON."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from .types import JSONValue

#: The number of rows of a table that are shown.
MOST_ROWS = 30


def as_html(heading: str, table: pd.DataFrame, index: bool, where: str) -> str:
    """Return a heading and the first rows of a table as escaped HTML.

    `where` is the expression that gives all rows.
    """
    more = len(table) - MOST_ROWS
    note = f"<p>… and {more:,} more rows: <code>{where}</code></p>" if more > 0 else ""
    body = table.head(MOST_ROWS).to_html(index=index, escape=True, border=0)
    return f"<p>{html.escape(heading)}</p>{body}{note}"


def number(value: float) -> str:
    """Return a number with four decimals, and nothing for NaN."""
    return f"{value:.4f}" if value == value else ""


def records(table: pd.DataFrame) -> list[dict[str, JSONValue]]:
    """Return the rows of a table as dictionaries for JSON, without its index."""
    rows = table.to_dict(orient="records")
    return [{str(name): plain(value) for name, value in row.items()} for row in rows]


def plain(value: object) -> JSONValue:
    """Return a label or a number as JSON can hold it.

    NumPy's numbers become Python's; NaN, infinity and `pandas.NA` become None.
    """
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
