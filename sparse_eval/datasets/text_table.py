"""Reading tables of delimited text: fast where they are plain, otherwise line by line."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pandas as pd

from .labels import vocabulary
from .lines import (
    BadLines,
    MalformedLineError,
    OpenQuoteError,
    numbered_lines,
    parse_number,
)
from .written_times import nanoseconds, parse_times, parser_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import AnyArray

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


def read_table(data: bytes, layout: Layout, bad: BadLines) -> pd.DataFrame:
    """Return the columns of a table, called by their roles; ids and events are categories of text.

    Malformed lines raise an error or are skipped, as `bad` says.
    """
    frame = read_fast(data, layout)
    return read_lines(data, layout, bad) if frame is None else frame


def read_fast(data: bytes, layout: Layout) -> pd.DataFrame | None:
    """Read a table with `pandas.read_csv`, or return None if anything about it is unusual.

    `pandas.read_csv` does not say where a fault is, and ignores some (it truncates a line with
    too many fields). So the fields are counted first, and whatever is not plain is left to
    `read_lines`, which gives the same result on plain files.
    """
    sep = layout.sep
    if sep == "::" and b"\t" not in data:
        data, sep = data.replace(b"::", b"\t"), "\t"
    if len(sep) > 1 or not sep.isascii() or b'"' in data:
        return None
    if not data.endswith(b"\n"):
        data += b"\n"
    buffer = np.frombuffer(data, dtype=np.uint8)
    ends = np.flatnonzero(buffer == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    separators = np.add.reduceat(buffer == ord(sep), starts, dtype=np.int64)
    separators = separators[layout.n_header :][(ends > starts)[layout.n_header :]]
    if not len(separators) or (separators != layout.n_fields - 1).any():
        return None
    # Ids and values are read as text: no id becomes a number or a missing value, and each
    # distinct value is parsed once, by the same function as in `read_lines`.
    dtypes = {column: "str" for role, column in layout.columns.items() if role != "timestamp"}
    usecols = sorted(set(layout.columns.values()))
    if len(usecols) < len(layout.columns):
        return None
    try:
        table = pd.read_csv(
            io.BytesIO(data),
            sep=sep,
            header=None,
            index_col=False,
            skiprows=layout.n_header,
            usecols=usecols,
            dtype=dtypes,
            na_filter=False,
            quoting=csv.QUOTE_NONE,
            engine="c",
            low_memory=False,
        )
        columns: dict[str, AnyArray | pd.Categorical] = {}
        for role, column in layout.columns.items():
            if role == "timestamp" and table[column].dtype == np.int64:
                columns[role] = table[column].to_numpy()
                continue
            codes, distinct = pd.factorize(table[column])
            texts = distinct.tolist()
            if role == "timestamp":
                if not isinstance(texts[0], str):  # floats, for example, which lose digits
                    return None
                times = np.array(parse_times(texts), dtype=np.int64)[codes]
                # So that the unit is known of what was written as a date.
                dates = parser_of(texts[0]) is nanoseconds
                columns[role] = times.astype("datetime64[ns]") if dates else times
            elif role == "value":
                columns[role] = np.array([_value(text) for text in texts])[codes]
            elif role == "event" or all(map(str.strip, texts)):
                columns[role] = pd.Categorical.from_codes(codes, pd.Index(texts))
            else:
                return None
    except (ValueError, OverflowError):
        return None
    return pd.DataFrame(columns)


def read_lines(
    data: bytes,
    layout: Layout,
    bad: BadLines,
    n_before: int = 0,
    parsers: Parsers | None = None,
) -> pd.DataFrame:
    """Read a table line by line, and raise or skip malformed lines.

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
            _check_fields(fields, layout)
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


def _check_fields(fields: list[str], layout: Layout) -> None:
    """Raise if a line has too few or too many fields, or an empty id."""
    if len(fields) != layout.n_fields:
        raise MalformedLineError(
            f"expected {layout.n_fields} fields separated by {layout.sep!r}, found {len(fields)}"
        )
    for role, article in (("user", "a"), ("item", "an")):
        if not fields[layout.columns[role]].strip():
            raise MalformedLineError(f"expected {article} {role} id, found an empty field")


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
