"""How results show themselves in a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["MOST_ROWS", "as_html", "number"]

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
