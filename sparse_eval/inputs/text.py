"""Text files: lines in any encoding, and delimited text (CSV, TSV, any separator) in Arrow batches.

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
import io
import math
import os
import re
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ..core.arguments import check_choice
from ..core.messages import warn
from ..core.threads import read_ahead, thread_count
from ..errors import InvalidDataError, InvalidFileError
from ..kernels.text import strip_quotes
from .axes import Axis
from .columns import GuessWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

_UTF8 = "utf-8-sig"
_BEYOND_ASCII = re.compile("[^\0-\x7f]")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Digits of a second that `datetime` would drop.
_NANOSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})(\d*)", re.ASCII)

#: How compressed files begin, by Arrow's names of compressions.
_COMPRESSED = re.compile(
    rb"(?P<gzip>\x1f\x8b)|(?P<bz2>BZh[1-9](1AY&|\x17rE8))|(?P<zstd>\x28\xb5\x2f\xfd)"
)

#: Bytes searched for the first line, and bytes of each part of a file that is read whole.
_HEAD, _PART = 2**16, 2**24

#: Bytes that a thread of Arrow reads at once, whose distinct ids fit the caches; a block has some
#: for each thread. Larger blocks get new pages from the system each time, which took longer than
#: reading them.
_CHUNK = 2**22

#: The size of a block that is read line by line.
_PIECE = 2**16

SEPARATORS = ("::", "\t", ",", ";", "|")  # the first wins among equally frequent ones

#: The stand-in for a separator that Arrow does not support.
_STAND_IN = b"\x1f"

#: The years whose nanoseconds all fit int64.
_YEARS = ("1678", "2261")

#: How the text of a column is read.
Kind: TypeAlias = Literal["id", "text", "gain", "number", "time"]


class SkippedLinesWarning(UserWarning):
    """Malformed lines were skipped, because ``on_bad_lines="skip"`` was given."""


class MalformedLineError(ValueError):
    """A line that does not follow the format; `BadLines` adds its place in the file."""


def shorten(text: str, width: int = 80) -> str:
    """Return the repr of a text, truncated to about `width` characters."""
    return repr(text) if len(text) <= width else f"{text[:width]!r}..."


def parse_number(text: str) -> float:
    """Return a text as a float, or NaN if it is not a number; Python alone would read 1_000."""
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def parser_of(text: str) -> Callable[[str], int]:
    """Return the function that reads times written like this one."""
    return nanoseconds if math.isnan(parse_number(text)) else whole


def whole(text: str) -> int:
    """Return a whole number, also one that is written as 1e9 or 1.0."""
    try:
        result = 2**63 if "_" in text else int(text)
    except ValueError:  # 1e9 and 1.0 are whole numbers too
        number = parse_number(text)
        result = int(number) if number.is_integer() else 2**63
    if -(2**63) <= result < 2**63:
        return result
    raise MalformedLineError(f"expected a whole number as timestamp, found {text!r}")


def nanoseconds(text: str) -> int:
    """Return an ISO 8601 date as nanoseconds since 1970."""
    try:
        date = datetime.fromisoformat(text.strip())
        date = date.replace(tzinfo=date.tzinfo or UTC)
        result = (date - _EPOCH) // timedelta(microseconds=1) * 1000
        if digits := _NANOSECONDS.search(text):
            result = 2**63 if digits[2].strip("0") else result + int(digits[1].ljust(3, "0"))
    except (ValueError, OverflowError):
        result = 2**63
    if not -(2**63) <= result < 2**63:
        raise MalformedLineError(f"expected a whole number or an ISO 8601 date, found {text!r}")
    return result


class OpenQuoteError(MalformedLineError):
    """A quoted field that does not end in its line; the next lines may belong to it."""


class BadLines:
    """Malformed lines of one file: the first raises an error, or all are skipped and counted."""

    def __init__(self, path: Path, on_bad_lines: str) -> None:
        check_choice("on_bad_lines", on_bad_lines, ("error", "skip"))
        self.path = path
        self.skip = on_bad_lines == "skip"
        self.count = 0
        self.first = 0

    def add(self, number: int, line: str, fault: MalformedLineError | str) -> None:
        """Raise `InvalidFileError` for the line, or count it.

        An `OpenQuoteError` is always raised, because the next lines may not be rows.
        """
        if isinstance(fault, OpenQuoteError):
            remedy = (
                "Correct it, or read a table with line breaks in its fields with pandas.read_csv, "
                "and load the frame"
            )
        elif not self.skip:
            remedy = (
                "Correct the line, or skip such lines with se.datasets.load(…, on_bad_lines='skip')"
            )
        else:
            self.first = self.first or number
            self.count += 1
            return
        raise InvalidFileError(f"in {shorten(line)}: {fault}. {remedy}", self.path, number)

    def report(self) -> int:
        """Return the number of skipped lines, and warn once if there are any."""
        if self.count:
            lines = "line" if self.count == 1 else "lines"
            warn(
                f"skipped {self.count} malformed {lines} of {self.path} (first: line {self.first})",
                SkippedLinesWarning,
            )
        return self.count


@contextmanager
def naming(where: Path | None) -> Iterator[None]:
    """Name the file in errors about its content."""
    try:
        yield
    except (InvalidFileError, MemoryError):
        raise
    except InvalidDataError as error:
        if where is None:
            raise
        about = {name: getattr(error, name) for name in ("argument", "row", "column", "user")}
        raise InvalidFileError(str(error), where, **about) from error
    except FileNotFoundError as error:
        raise InvalidFileError("there is no such file", where) from error
    except Exception as error:
        from pyarrow import ArrowException  # only now, as many files are read without Arrow

        # IndexError: damaged codes may point past the last text.
        damaged = (ArrowException, EOFError, IndexError, OSError, UnicodeDecodeError)
        if not isinstance(error, damaged):
            raise
        message = f"cannot be read ({error})"
        if where is None:
            raise InvalidDataError(f"the table {message}") from error
        raise InvalidFileError(message, where) from error


class TextFile:
    r"""A text file as blocks of whole lines.

    Blocks are UTF-8 without a byte order mark at the start of the file, and without NUL characters.
    Lines end in ``\n``, so that they are numbered as an editor numbers them.

    Parameters
    ----------
    path : Path
        The file; ``.gz``, ``.bz2`` and ``.zst`` are decompressed.
    encoding : str, optional
        Its encoding; UTF-8 by default.
    guess : bool
        Whether a file is read as Latin-1 if `encoding` is not given, and its first character that
        is not ASCII is not UTF-8 either. Latin-1 has a character for every byte, so that different
        ids stay different.

    Raises
    ------
    InvalidDataError
        If there is no such encoding.
    """

    def __init__(self, path: Path, encoding: str | None = None, *, guess: bool = False) -> None:
        self.path, self._can_name = path, guess
        self._encoding, self._guess = _checked(encoding), guess and encoding is None
        self._latin = 0  # the first line that is not UTF-8, if the file is read as Latin-1
        self._has_warned = False

    def blocks(self, size: int) -> Generator[tuple[int, bytes], None, None]:
        """Yield blocks of about `size` bytes, each after the number of lines before it.

        Raises
        ------
        InvalidFileError
            If the file cannot be read, or is no text.
        """
        n_lines, is_ascii = 0, True
        escape = "surrogateescape" if self._encoding == _UTF8 else "strict"
        with (
            naming(self.path),
            opened(self.path) as file,
            io.TextIOWrapper(file, self._encoding, escape) as lines,
        ):
            try:
                while text := lines.read(size) + lines.readline():
                    if self._guess and is_ascii and not text.isascii():
                        is_ascii = False
                        first = next(_BEYOND_ASCII.finditer(text))
                        if "\udc80" <= first[0] <= "\udcff":  # a byte that is not UTF-8
                            self._latin = n_lines + 1 + text.count("\n", 0, first.start())
                    if self._latin:
                        text = text.encode("utf-8", escape).decode("latin-1")
                    at = text.find("\0")
                    try:
                        block = text.encode()
                    except UnicodeEncodeError as error:
                        at = error.start
                    if at >= 0:
                        hint = ", or pass its encoding as encoding=" if self._can_name else ""
                        raise InvalidFileError(
                            f"expected UTF-8 text, found the byte {ord(text[at]) & 0xFF:#04x}; "
                            f"convert or unpack the file{hint}",
                            self.path,
                            n_lines + 1 + text.count("\n", 0, at),
                        )
                    block += b"\n" * (text[-1] != "\n")
                    del text  # before the next one is read
                    yield n_lines, block
                    n_lines += count_lines(block)
            except UnicodeError as error:
                message = f"expected text in {self._encoding} ({error}); try another encoding="
                raise InvalidFileError(message, self.path) from None

    def warn_of_guess(self) -> None:
        """Warn once if the file is read as Latin-1."""
        if self._latin and not self._has_warned:
            self._has_warned = True
            warn(
                f"{self.path}: line {self._latin} is not UTF-8, so the file was read as Latin-1. "
                "To be sure, set encoding='latin-1', 'cp1252', …",
                GuessWarning,
            )

    def first_line(self) -> tuple[int, str]:
        """Return the number and the text of the first line that is not blank."""
        with closing(self.blocks(_HEAD)) as blocks:
            for n_before, block in blocks:
                for line in numbered_lines(block, n_before):
                    return line
        raise InvalidFileError("the file is empty", self.path)


def _checked(encoding: str | None) -> str:
    """Return a valid encoding; UTF-8 drops a byte order mark."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding or "utf-8")
    except (LookupError, TypeError, ValueError):
        raise InvalidDataError(
            "encoding: expected an encoding of Python, such as 'utf-8', 'latin-1', 'cp1252' "
            f"or 'utf-16', found {encoding!r}"
        ) from None
    return _UTF8 if codecs.lookup(encoding or "utf-8").name == "utf-8" else str(encoding)


def in_arrow(data: bytes) -> Any:
    """Return a stream of a copy of `data` in the memory of Arrow.

    A thread of Arrow that frees a Python object at the end of the process aborts the process.
    """
    import pyarrow as pa

    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def open_file(path: Path) -> Any:
    """Open a file for Arrow, whose own functions misread ``~`` and names that are not UTF-8."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path), "rb")


def opened(path: Path) -> Any:
    """Open a file that may be compressed, as its first bytes show."""
    import pyarrow as pa

    with path.open("rb") as file:
        match = _COMPRESSED.match(file.read(8))
    return pa.input_stream(open_file(path), compression=match and match.lastgroup)


def read_text(path: Path, encoding: str | None = None, *, guess: bool = False) -> bytes:
    """Return a whole file as `TextFile` reads it, or raise `InvalidFileError` if it is blank."""
    file = TextFile(path, encoding, guess=guess)
    data = b"".join(block for _, block in file.blocks(_PART))
    file.warn_of_guess()
    if not data or data.isspace():
        raise InvalidFileError("the file is empty", path)
    return data


def count_lines(data: bytes) -> int:
    """Return the number of line ends, faster than ``data.count``."""
    return int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))


def numbered_lines(data: bytes, n_before: int = 0) -> Iterator[tuple[int, str]]:
    """Yield the number, counted from 1, and the text of every line that is not blank."""
    text = io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", newline="\n")
    for number, line in enumerate(text, start=n_before + 1):
        if not line.isspace():
            yield number, line.rstrip("\n")


class Field(NamedTuple):
    """A column to read.

    Attributes
    ----------
    role : str
        The name of the column in the batches, and in messages: "the user id is missing".
    column : str or int
        Its name, or its number without a header. Several fields may have the same column.
    kind : Kind
    remedy : str
        What a message about an invalid value adds, such as "; name another column with time=".
    """

    role: str
    column: Any  # text or a number; frames have columns of any hashable name
    kind: Kind
    remedy: str = ""


class _UnlikeError(ValueError):
    """Arrow and the line-by-line reader could differ on a block."""


class Reader:
    """Reads blocks of lines; the first line decides the format of times.

    `numbers` are the positions of the fields in a line of `n_fields`.
    """

    def __init__(
        self, fields: Sequence[Field], numbers: list[int], sep: str, n_fields: int, bad: BadLines
    ) -> None:
        self.fields, self.numbers, self.sep = fields, numbers, sep
        self.n_fields, self.bad = n_fields, bad
        known: dict[str, Any] = {"id": str, "text": str, "gain": _gain, "number": _number}
        self.parsers = {field.role: known[field.kind] for field in fields if field.kind in known}

    def batches(self, file: TextFile, n_header: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a file in the order of its lines, without the first lines."""
        n_threads = thread_count(None)
        blocks = file.blocks(_CHUNK * min(max(n_threads, 2), 16))
        if n_threads > 1:
            blocks = read_ahead(blocks)
        with closing(blocks):
            for n_before, block in blocks:
                file.warn_of_guess()
                n_cut, lines = max(n_header - n_before, 0), block
                if n_cut:
                    lines = block.split(b"\n", n_cut)[-1]
                del block  # before the next one is read
                yield from self._read(lines, n_before + n_cut)

    def _read(self, lines: bytes, n_before: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of lines; halve them until Arrow reads them exactly."""
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
        # A line of only separators may be blank, which a missing id shows.
        may_hide_blank = "id" not in kinds and (self.n_fields == 1 or self.sep.isspace())
        if may_hide_blank or kinds != [field.kind for field in self.fields]:
            raise _UnlikeError
        _, line = next(numbered_lines(lines), (0, ""))
        first = split_fields(line, self.sep)
        if len(first) != self.n_fields:
            raise _UnlikeError
        parsers = self._parsers_of(first)
        sep = self.sep.encode()
        if len(sep) > 1:
            if _STAND_IN in lines:
                raise _UnlikeError
            lines, sep = lines.replace(sep, _STAND_IN), _STAND_IN
        is_quoted = len(self.sep) == 1 and b'"' in lines
        if is_quoted:
            plain = _without_quotes(lines, ord(sep))
            if self.n_fields > 1:  # an empty field alone would become a blank line
                lines, is_quoted = plain, b'"' in plain
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
        # Older versions of Arrow may wait forever for the end of a line longer than a block.
        starts = range(0, len(lines) - _CHUNK, _CHUNK)
        if any(lines.find(b"\n", start, start + _CHUNK) < 0 for start in starts):
            raise _UnlikeError
        table = read_csv(
            in_arrow(lines),
            read_options=ReadOptions(
                column_names=names, block_size=_CHUNK, use_threads=thread_count(None) > 1
            ),
            parse_options=ParseOptions(
                delimiter=sep.decode(), quote_char='"' if is_quoted else False
            ),
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
                if any(Axis(chunk.dictionary).blank.any() for chunk in column.chunks):
                    raise _UnlikeError
            elif field.kind != "text":
                numbers = column.to_numpy()
                is_negative = field.kind == "gain" and numbers.min(initial=0) < 0
                if is_negative or not np.isfinite(numbers).all():
                    raise _UnlikeError
            columns[field.role] = column
        self.parsers = parsers
        return list(pa.table(columns).to_batches())

    def _parsers_of(self, texts: list[str]) -> dict[str, Any]:
        """Return a parser for each role; the first line decides the format of times."""
        return {
            field.role: self.parsers.get(field.role) or parser_of(texts[number])
            for field, number in zip(self.fields, self.numbers, strict=True)
        }

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
            column = pa.array(cells, pa.int64() if field.kind == "time" else None)
            if field.kind in ("id", "text"):
                column = column.dictionary_encode()
            elif self.parsers[field.role] is nanoseconds:
                column = column.cast(pa.timestamp("ns"))
            columns[field.role] = column
        yield pa.record_batch(columns)

    def _row(self, line: str) -> list[str | float]:
        """Return the cells of a line; raise if it is malformed."""
        texts = split_fields(line, self.sep)
        if len(texts) != self.n_fields:
            raise MalformedLineError(
                f"expected {self.n_fields} fields separated by {self.sep!r}, found {len(texts)}"
            )
        row: list[str | float] = []
        parsers = self._parsers_of(texts)
        for field, number in zip(self.fields, self.numbers, strict=True):
            if field.kind == "id" and not texts[number].strip():
                raise MalformedLineError(f"the {field.role} id is missing")
            try:
                row.append(parsers[field.role](texts[number]))
            except MalformedLineError as error:
                raise MalformedLineError(f"{error}{field.remedy}") from None
        self.parsers = parsers
        return row


def split_fields(line: str, sep: str) -> list[str]:
    """Split one line into fields, respecting quotes if the separator has one character.

    Each line is parsed by itself, so that a stray quote does not affect the lines after it.
    """
    if len(sep) > 1 or '"' not in line:
        return line.split(sep)
    limit = csv.field_size_limit(max(csv.field_size_limit(), len(line)))
    try:
        return next(csv.reader([line], delimiter=sep, strict=True))
    except csv.Error as error:
        kind = OpenQuoteError if "end of data" in str(error) else MalformedLineError
        raise kind(
            f"expected quotes in pairs ({error}); a quoted field ends in the line where it begins, "
            "and a quote in it is doubled"
        ) from None
    finally:
        csv.field_size_limit(limit)


def separator_of(path: Path, line: str) -> str:
    """Return the separator of a file, given its first line."""
    if "\t" in line and re.search(r"\.(tsv|txt)(\.gz|\.bz2|\.zst)?$", path.name.lower()):
        return "\t"
    best = max(SEPARATORS, key=line.count)
    if best not in line:
        raise MalformedLineError(
            "expected fields separated by a tab, ',', ';', '|' or '::'; set sep="
        )
    return best


def _without_quotes(lines: bytes, sep: int) -> bytes:
    """Return lines without the quotes around their fields, or as they are if some are needed.

    Raises
    ------
    _UnlikeError
        If other readers might not agree: a quote does not enclose a whole field within a line.
    """
    text = np.frombuffer(lines, np.uint8)
    out = np.empty_like(text)
    size = strip_quotes(text, sep, out)
    if size < 0:
        raise _UnlikeError
    return out[:size].tobytes() if size else lines


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
        raise MalformedLineError(f"expected a value of at least 0, found {text!r}")
    return value
