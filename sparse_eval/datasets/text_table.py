"""Reading tables of delimited text line by line."""

from __future__ import annotations

import csv
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from ..inputs.lines import (
    BadLines,
    MalformedLineError,
    OpenQuoteError,
    numbered_lines,
    parse_number,
)
from ..inputs.written_times import nanoseconds, parser_of
from .labels import vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable

    #: What reads the text of a role's fields.
    Parsers: TypeAlias = dict[str, Callable[[str], float] | Callable[[str], int]]


@dataclass(frozen=True)
class Layout:
    """The layout of a text table.

    Attributes
    ----------
    sep : str
        What separates fields.
    n_fields : int
        How many fields each line has.
    columns : dict of str to int
        The number of the column of each role: user, item and, if any, value, timestamp, event.
    n_header : int
        Lines up to and including the header.
    way_out : dict of str to str
        What an error about the column of a role adds.
    """

    sep: str
    n_fields: int
    columns: dict[str, int]
    n_header: int
    way_out: dict[str, str] = field(default_factory=dict)


def read_lines(
    data: bytes,
    layout: Layout,
    bad: BadLines,
    n_before: int = 0,
    parsers: Parsers | None = None,
) -> pd.DataFrame:
    """Return the columns of a table, called by their roles; ids and events are categories of text.

    Malformed lines raise an error or are skipped, as `bad` says.
    Of a part of a table, `n_before` is the number of lines before it, and `parsers` has what lines
    before it decided, and then those of this part.
    """
    columns = layout.columns
    texts = [role for role in columns if role not in ("value", "timestamp")]
    ids = {role: vocabulary() for role in texts}
    codes: dict[str, list[int]] = {role: [] for role in texts}
    cells: dict[str, list[float]] = {role: [] for role in columns if role not in texts}
    parsers = {} if parsers is None else parsers
    parsers["value"] = _value
    for place, line in numbered_lines(data):
        number = n_before + place
        if number <= layout.n_header:
            continue
        try:
            fields = split_fields(line, layout.sep)
            if len(fields) != layout.n_fields:
                raise MalformedLineError(
                    f"expected {layout.n_fields} fields separated by {layout.sep!r}, found "
                    f"{len(fields)}"
                )
            for role in ("user", "item"):
                if not fields[columns[role]].strip():
                    raise MalformedLineError(f"the {role} id is missing")
            row = {}
            for role in cells:
                text = fields[columns[role]]
                parse = parsers.get(role) or parser_of(text)
                try:
                    row[role] = parse(text)
                except MalformedLineError as error:
                    raise MalformedLineError(f"{error}{layout.way_out.get(role, '')}") from None
                parsers[role] = parse  # the first line decides how times are written
        except MalformedLineError as error:
            bad.add(number, line, error)
            continue
        for role, role_codes in codes.items():
            role_codes.append(ids[role][fields[columns[role]]])
        for role, cell in row.items():
            cells[role].append(cell)
    frame = pd.DataFrame(
        {
            role: pd.Categorical.from_codes(codes[role], pd.Index(list(ids[role]), dtype=str))
            for role in texts
        }
    )
    for role, column in cells.items():
        frame[role] = np.array(column, dtype=np.float64 if role == "value" else np.int64)
    if parsers.get("timestamp") is nanoseconds:
        frame["timestamp"] = frame["timestamp"].astype("datetime64[ns]")
    return frame[list(columns)]


def split_fields(line: str, sep: str) -> list[str]:
    """Split one line into fields, respecting quotes if the separator has one character.

    Each line is parsed by itself, so that a stray quote does not affect the lines after it.
    """
    if len(sep) > 1 or '"' not in line:
        return line.split(sep)
    try:
        return next(csv.reader([line], delimiter=sep, strict=True))
    except csv.Error as error:
        is_open = "unexpected end of data" in str(error)
        raise (OpenQuoteError if is_open else MalformedLineError)(
            f"expected quotes in pairs, found a stray one ({error}); a quoted field ends in the "
            "line where it begins, and a quote in it is doubled"
        ) from None


def _value(text: str) -> float:
    value = parse_number(text)
    if not 0 <= value < float("inf"):
        raise MalformedLineError(f"expected a finite value that is not negative, found {text!r}")
    return value
