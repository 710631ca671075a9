"""Results as notebooks show them, and as JSON has them."""

from __future__ import annotations

import html
import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOST_ROWS", "as_html", "number", "plain", "records"]

#: Rows of a table that are shown; a result itself has all.
MOST_ROWS = 30


def as_html(heading: str, table: pd.DataFrame, index: bool, where: str) -> str:
    """Return a heading and the first rows of a table, escaped; `where` says where all rows are."""
    more = len(table) - MOST_ROWS
    left = f"<p>… and {more:,} more rows: <code>{where}</code></p>" if more > 0 else ""
    body = table.head(MOST_ROWS).to_html(index=index, escape=True, border=0)
    return f"<p>{html.escape(heading)}</p>{body}{left}"


def number(value: float) -> str:
    """Return a number as it stands in such a table."""
    return f"{value:.4f}" if value == value else ""


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Return the rows of a table for JSON, without its index."""
    rows = table.to_dict(orient="records")
    return [{str(name): plain(value) for name, value in row.items()} for row in rows]


def plain(value: Any) -> Any:
    """Return a label or a number as JSON has it, which has no NaN and no numbers of NumPy."""
    import pandas as pd

    if isinstance(value, np.generic):
        value = value.item()
    if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
