"""Formatting of results: numbers and tables for people, and values for JSON."""

from __future__ import annotations

import html
import math
import re
import shutil
import sys
from typing import TYPE_CHECKING

import numpy as np

from .messages import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pandas as pd

    from .types import JSONValue

#: The largest number of table rows that are shown.
MOST_ROWS = 30

#: Significant digits of a printed number, and the most digits if an interval supports more.
DIGITS, _MOST_DIGITS = 3, 9

#: Jupyter's own style has less space between cells, and other viewers have none.
_CELL_STYLE = "padding: 0.25em 0.75em; white-space: pre; font-variant-numeric: tabular-nums;"

#: Characters with a meaning in LaTeX, and how they are written.
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        # These are other signs in the fonts that LaTeX starts with, or a shorthand of babel's.
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
        '"': r"\symbol{34}",
        "\0": "{}",
        "↓": r"$\downarrow$",
        **{sign: f"\\{sign}" for sign in "&%$#_{}"},
    }
)


def numbers(*values: float, within: float | None = None) -> tuple[str, ...]:
    """Return numbers that belong together, such as a mean and the ends of its interval, as text.

    A single number has three significant digits. Several numbers have the same decimals. The
    largest number has at least two significant digits, and more if the distance between the
    smallest and the largest number supports them. An interval of the length `within` supports as
    many decimals as move its ends by an eighth at most. NaN becomes "".
    """
    finite = [float(value) for value in values if math.isfinite(value)] or [0.0]
    exponent = int(f"{max(map(abs, finite)):.{DIGITS - 1}e}".partition("e")[2])
    decimals = DIGITS - 1 - exponent
    distance = within or max(finite) - min(finite)
    if 0 < distance < math.inf:
        supported = math.ceil(math.log10(4) - math.log10(distance))
        decimals = supported if within else max(decimals - 1, supported)
    decimals = min(decimals, _MOST_DIGITS - 1 - exponent)
    if not -6 < exponent < 10:  # so many zeros are hard to read
        texts = [f"{value:.{max(decimals + exponent, DIGITS - 1)}e}" for value in values]
    else:
        decimals = max(decimals, 0)
        # Zero is added because the rounded number may be a negative zero.
        texts = [f"{round(float(value), decimals) + 0.0:.{decimals}f}" for value in values]
    return tuple("" if value != value else text for value, text in zip(values, texts, strict=True))


def number(value: float) -> str:
    """Return a number with three significant digits, and "" for NaN."""
    return numbers(value)[0]


def escaped(value: object) -> str:
    """Return a name as text that any file can hold, with characters outside UTF-8 escaped.

    Python reads file names that are not UTF-8 as lone surrogates.
    """
    return str(value).encode("utf-8", "backslashreplace").decode("utf-8")


def text_table(
    rows: Sequence[Sequence[str]], headings: Sequence[str], aligned: Sequence[str], style: str
) -> str:
    """Return a table as text, without cutting columns.

    If plain text would be wider than the terminal, the cells of each row are written below one
    another.

    Parameters
    ----------
    aligned : sequence of {"left", "right", "decimal"}
        How each column is aligned.
    style : {"simple", "pipe", "html", "latex_raw"}
        Plain text, Markdown, escaped HTML, or LaTeX of ``booktabs``, whose cells are escaped
        already.
    """
    from tabulate import tabulate  # not needed to evaluate

    align = list(aligned) if rows else None
    rows, headings = [list(map(_one_line, row)) for row in rows], list(map(_one_line, headings))
    text = tabulate(rows, headings, tablefmt=style, disable_numparse=True, colalign=align)
    if style == "html":
        text = re.sub('<(t[hd])(?: style="([^"]*)")?>', rf'<\1 style="{_CELL_STYLE} \2">', text)
    if style == "latex_raw":
        for rule in ("toprule", "midrule", "bottomrule"):
            text = text.replace(r"\hline", rf"\{rule}", 1)
    width = terminal_width() if style == "simple" else math.inf
    if max(map(len, text.splitlines())) <= width or not rows:
        return text
    pairs = [[pair for pair in zip(headings, row, strict=True) if pair[1]] for row in rows]
    return "\n\n".join(tabulate(one, tablefmt="plain", disable_numparse=True) for one in pairs)


def latex(text: str) -> str:
    """Write text in LaTeX, in one line, its hyphens side by side as they are."""
    line = printable(" ".join(text.split()))
    return line.replace("--", "-\0-").replace("--", "-\0-").translate(_LATEX)


def terminal_width() -> float:
    """Return the width of the terminal that standard output is; infinity if it is none."""
    on_terminal = sys.stdout is not None and sys.stdout.isatty()
    return shutil.get_terminal_size().columns if on_terminal else math.inf


def text_of_frame(frame: pd.DataFrame, style: str) -> str:
    """Return a table of values as text, with three significant digits for fractional numbers."""
    # By position, because two columns may have the same name.
    columns = [frame.iloc[:, column].tolist() for column in range(frame.shape[1])]
    aligned = [
        "decimal" if any(isinstance(cell, float) for cell in column) else "left"
        for column in columns
    ]
    rows = [list(map(_text, row)) for row in zip(*columns, strict=True)]
    return text_table(rows, list(map(str, frame.columns)), aligned, style)


def _text(value: object) -> str:
    if isinstance(value, float):
        return number(value)
    return "" if value is None or str(value) == "<NA>" else str(value)


def _one_line(text: str) -> str:
    """Return a cell in one line, with control characters escaped."""
    return printable(text).replace("\n", "\\n")


def as_html(heading: str, table: pd.DataFrame, where: str) -> str:
    """Return a heading and the first rows of a table of strings as escaped HTML.

    `where` is the expression that returns all rows.
    """
    more = len(table) - MOST_ROWS
    note = f"<p>… and {more:,} more rows: <code>{where}</code></p>" if more > 0 else ""
    rows = [[str(cell) for cell in row] for row in table.head(MOST_ROWS).itertuples(index=False)]
    body = text_table(rows, list(map(str, table.columns)), ["left"] * table.shape[1], "html")
    return f"<p>{html.escape(printable(heading))}</p>{body}{note}"


def records(table: pd.DataFrame) -> list[dict[str, JSONValue]]:
    """Return the rows of a table as dictionaries for JSON, without its index."""
    rows = table.to_dict(orient="records")
    return [{str(name): plain(value) for name, value in row.items()} for row in rows]


def plain(value: object) -> JSONValue:
    """Return a label or a number as a JSON value.

    NumPy's numbers become Python's; NaN, infinity and `pandas.NA` become None.
    """
    if isinstance(value, np.generic):
        value = value.item()
    is_missing = type(value).__name__ == "NAType"  # pandas may not be imported
    if is_missing or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)
