"""Delimited text (CSV, TSV, any separator) as Arrow batches.

The columns of a batch have the roles of the fields as names, and these types:

=========  =======================================================================================
kind       type of the column; never null
=========  =======================================================================================
"id"       dictionary<int32, string>, each batch with its own dictionary; never blank
"text"     dictionary<int32, string>; may be blank
"gain"     float64, finite and not negative
"number"   float64, finite
"time"     int64; or timestamp[ns] without a zone (UTC) if the first line has an ISO 8601 date
=========  =======================================================================================

Text is verbatim. A line that breaks a rule is malformed: it raises `InvalidFileError` with its
number, or is skipped and counted.
"""

from __future__ import annotations

import codecs
import csv
import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast

import numpy as np

from ..core.threads import for_each, thread_count
from ..kernels.quotes import has_closed_quotes
from .lines import (
    BadLines,
    MalformedLineError,
    OpenQuoteError,
    TextFile,
    count_lines,
    in_arrow,
    nanoseconds,
    numbered_lines,
    parse_number,
    parser_of,
    whole,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

#: Bytes that a thread of Arrow reads at once, whose distinct ids fit the caches; a block has some
#: for each thread. The system gives new pages to larger blocks again and again, which took longer
#: than to read them.
_CHUNK = 2**22

#: The size of a block that is read line by line.
_PIECE = 2**16

SEPARATORS = ("::", "\t", ",", ";", "|")  # the first wins among equally frequent ones

#: Bytes that may stand for a separator that Arrow does not know.
_STAND_INS = b"\t\x1f\x1e\x1d\x1c\x01\x02\x03"

#: The years of which int64 has every nanosecond.
_YEARS = ("1678", "2261")

#: How the text of a column is read.
Kind: TypeAlias = Literal["id", "text", "gain", "number", "time"]


class Field(NamedTuple):
    """A column to read.

    Attributes
    ----------
    role : str
        The name of the column in the batches, and in messages: "the user id is missing".
    column : str or int
        Its name, or its number without a header. Several fields may have the same column.
    kind : Kind
    way_out : str
        What a message about an invalid value adds, such as "; name another column with time=".
    """

    role: str
    column: Any  # text or a number; frames have columns of any hashable name
    kind: Kind
    way_out: str = ""


def _read_ahead(
    blocks: Generator[tuple[int, bytes], None, None],
) -> Generator[tuple[int, bytes], None, None]:
    """Yield blocks while a thread reads the next one."""
    with closing(blocks), ThreadPoolExecutor(1) as thread:
        following = thread.submit(next, blocks, None)
        while (block := following.result()) is not None:
            following = thread.submit(next, blocks, None)
            yield block


class _UnlikeError(ValueError):
    """Arrow could read a block in another way than line by line."""


class Reader:
    """Reads blocks of lines, the first of which decides how times are written.

    `numbers` are the places of the fields among the `n_fields` of a line.
    """

    def __init__(
        self, fields: Sequence[Field], numbers: list[int], sep: str, n_fields: int, bad: BadLines
    ) -> None:
        self.fields, self.numbers, self.sep = fields, numbers, sep
        self.n_fields, self.bad = n_fields, bad
        self.parsers: dict[str, Callable[[str], float] | Callable[[str], int]] = {}
        for field in fields:
            if field.kind in ("gain", "number"):
                self.parsers[field.role] = _gain if field.kind == "gain" else _number

    def batches(self, file: TextFile, n_header: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file in the order of its lines, without the first lines."""
        n_threads = thread_count(None)
        blocks = file.blocks(_CHUNK * min(max(n_threads, 2), 16))
        if n_threads > 1:
            blocks = _read_ahead(blocks)
        with closing(blocks):
            for n_before, block in blocks:
                file.warn_of_guess()
                n_cut, lines = max(n_header - n_before, 0), block
                if n_cut:
                    lines = block.split(b"\n", n_cut)[-1]
                del block  # before the next one is read
                yield from self._read(lines, n_before + n_cut)

    def _read(self, lines: bytes, n_before: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of lines, in halves as long as Arrow does not read them exactly."""
        import pyarrow as pa

        if not lines or lines.isspace():
            return
        try:
            batches = self._parse(lines)
        except (pa.ArrowInvalid, MalformedLineError, _UnlikeError):
            middle = lines.find(b"\n", len(lines) // 2) + 1
            if len(lines) <= _PIECE or middle == len(lines):
                yield from self._parse_lines(lines, n_before)
                return
            first = lines[:middle]
            yield from self._read(first, n_before)
            yield from self._read(lines[middle:], n_before + count_lines(first))
        else:
            yield from batches

    def _parse(self, lines: bytes) -> list[pa.RecordBatch]:
        """Return the rows of lines that Arrow reads exactly, or raise an error."""
        import pyarrow as pa
        from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

        wanted = dict(zip(self.numbers, self.fields, strict=True))
        kinds = [wanted[number].kind for number in self.numbers]
        # Where a line of nothing but separators may be blank, a missing id shows it.
        may_hide_blank = "id" not in kinds and (self.n_fields == 1 or self.sep.isspace())
        if may_hide_blank or kinds != [field.kind for field in self.fields]:
            raise _UnlikeError
        parsers = self._time_parsers(lines)
        lines, sep = _with_short_separator(lines, self.sep)
        is_quoted = len(self.sep) == 1 and b'"' in lines
        if is_quoted and not _has_closed_quotes(lines, sep):
            raise _UnlikeError
        if lines.startswith(codecs.BOM_UTF8):  # part of a field, which Arrow would drop
            lines = b"\n" + lines
        text = pa.dictionary(pa.int32(), pa.string())
        types = {"id": text, "text": text, "gain": pa.float64(), "number": pa.float64()}
        # Arrow takes hexadecimal text for a number as well.
        whole_type = pa.string() if b"x" in lines or b"X" in lines else pa.int64()
        names = list(map(str, range(self.n_fields)))
        column_types = {
            names[number]: types.get(field.kind)
            or (whole_type if parsers[field.role] is whole else pa.string())
            for number, field in wanted.items()
        }
        table = read_csv(
            in_arrow(lines),
            read_options=ReadOptions(
                column_names=names, block_size=_CHUNK, use_threads=thread_count(None) > 1
            ),
            parse_options=ParseOptions(delimiter=chr(sep), quote_char='"' if is_quoted else False),
            convert_options=ConvertOptions(
                column_types=column_types,
                include_columns=list(column_types),
                null_values=[],
                check_utf8=False,
            ),
        )
        columns = {}
        for field, number in zip(self.fields, self.numbers, strict=True):
            column = table[names[number]]
            if field.kind == "time":
                column = _whole(column) if parsers[field.role] is whole else _dates(column)
            elif field.kind == "id":
                for chunk in column.chunks:
                    _check_ids(chunk.dictionary)
            elif field.kind != "text":
                numbers = column.to_numpy()
                is_negative = field.kind == "gain" and numbers.min(initial=0) < 0
                if is_negative or not np.isfinite(numbers).all():
                    raise _UnlikeError
            columns[field.role] = column
        self.parsers |= parsers
        return list(pa.table(columns).to_batches())

    def _time_parsers(self, lines: bytes) -> dict[str, Callable[[str], int]]:
        """Return what reads the times of each role, as the first line has them."""
        parsers = {}
        for field, number in zip(self.fields, self.numbers, strict=True):
            if field.kind == "time" and field.role not in self.parsers:
                _, line = next(numbered_lines(lines), (0, ""))
                first = split_fields(line, self.sep)
                if len(first) != self.n_fields:
                    raise _UnlikeError
                parsers[field.role] = parser_of(first[number])
            elif field.kind == "time":
                parsers[field.role] = cast("Callable[[str], int]", self.parsers[field.role])
        return parsers

    def _parse_lines(self, lines: bytes, n_before: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of any lines, except for those that are malformed."""
        import pyarrow as pa

        rows = []
        for number, line in numbered_lines(lines, n_before):
            try:
                rows.append(self._row(line))
            except MalformedLineError as error:
                self.bad.add(number, line, error)
        if not rows:
            return
        columns = {}
        for field, cells in zip(self.fields, zip(*rows, strict=True), strict=True):
            if field.kind in ("id", "text"):
                columns[field.role] = pa.array(cells, pa.string()).dictionary_encode()
            elif field.kind == "time":
                times = pa.array(cells, pa.int64())
                is_dated = self.parsers[field.role] is nanoseconds
                columns[field.role] = times.cast(pa.timestamp("ns")) if is_dated else times
            else:
                columns[field.role] = pa.array(cells, pa.float64())
        yield pa.record_batch(columns)

    def _row(self, line: str) -> list[str | float]:
        """Return the cells of a line, or say what is wrong with it."""
        texts = split_fields(line, self.sep)
        if len(texts) != self.n_fields:
            raise MalformedLineError(
                f"expected {self.n_fields} fields separated by {self.sep!r}, found {len(texts)}"
            )
        row: list[str | float] = [texts[number] for number in self.numbers]
        for field, text in zip(self.fields, row, strict=True):
            if field.kind == "id" and not str(text).strip():
                raise MalformedLineError(f"the {field.role} id is missing")
        decided = {}
        for place, field in enumerate(self.fields):
            if field.kind in ("id", "text"):
                continue
            text = str(row[place])
            parse = self.parsers.get(field.role) or parser_of(text)
            try:
                row[place] = parse(text)
            except MalformedLineError as error:
                raise MalformedLineError(f"{error}{field.way_out}") from None
            decided[field.role] = parse
        self.parsers |= decided  # the first line decides how times are written
        return row


def split_fields(line: str, sep: str) -> list[str]:
    """Split one line into fields, respecting quotes if the separator has one character.

    Each line is parsed by itself, so that a stray quote does not affect the lines after it.
    """
    if len(sep) > 1 or '"' not in line:
        return line.split(sep)
    try:
        return next(csv.reader([line], delimiter=sep, strict=True))
    except csv.Error as error:
        kind = OpenQuoteError if "end of data" in str(error) else MalformedLineError
        raise kind(
            f"expected quotes in pairs ({error}); a quoted field ends in the line where it begins, "
            "and a quote in it is doubled"
        ) from None


def separator_of(path: Path, line: str) -> str:
    """Return the separator of a file, given its first line."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    if suffixes[-1:] in ([".gz"], [".bz2"], [".zst"]):
        suffixes.pop()
    if suffixes[-1:] in ([".tsv"], [".txt"]) and "\t" in line:
        return "\t"
    best = max(SEPARATORS, key=line.count)
    if best not in line:
        raise MalformedLineError(
            "expected fields separated by a tab, ',', ';', '|' or '::'; give sep="
        )
    return best


def _with_short_separator(lines: bytes, sep: str) -> tuple[bytes, int]:
    """Return lines with a separator of one byte, and that."""
    if len(sep) == 1 and sep.isascii():
        return lines, ord(sep)
    for stand_in in _STAND_INS:
        if stand_in not in lines:
            return lines.replace(sep.encode(), bytes([stand_in])), stand_in
    raise _UnlikeError


def _has_closed_quotes(lines: bytes, sep: int) -> bool:
    """Return what the kernel does, of halves that threads share."""
    middle = lines.find(b"\n", len(lines) // 2) + 1
    text = np.frombuffer(lines, np.uint8)
    return all(for_each(lambda half: has_closed_quotes(half, sep), [text[:middle], text[middle:]]))


def _check_ids(ids: Any) -> None:
    """Raise an error if one of distinct ids is blank."""
    from pyarrow import compute

    blank = compute.or_(compute.equal(ids, ""), compute.utf8_is_space(ids))
    if compute.any(blank).as_py():
        raise _UnlikeError


def _whole(column: Any) -> Any:
    """Return whole numbers as int64, also if they are text that might be hexadecimal."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_string(column.type):
        if any(compute.any(compute.match_substring(column, mark)).as_py() for mark in ("x", "X")):
            raise _UnlikeError
        column = column.cast(pa.int64())
    return column


def _dates(column: Any) -> Any:
    """Return dates as nanoseconds since 1970."""
    import pyarrow as pa
    from pyarrow import compute

    limits = compute.min_max(column)
    if _YEARS[0] <= limits["min"].as_py() and limits["max"].as_py()[:4] <= _YEARS[1]:
        for zone in (None, "UTC"):
            try:
                dates = column.cast(pa.timestamp("ns", zone))
            except pa.ArrowInvalid:  # some have a zone and should not, or the other way round
                continue
            return dates.cast(pa.int64()).cast(pa.timestamp("ns"))
    raise _UnlikeError


def _number(text: str) -> float:
    if not math.isfinite(value := parse_number(text)):
        raise MalformedLineError(f"expected a finite number, found {text!r}")
    return value


def _gain(text: str) -> float:
    if (value := _number(text)) < 0:
        raise MalformedLineError(f"expected a value that is not negative, found {text!r}")
    return value
