"""Reading plain delimited text block by block, with Arrow's reader.

Blocks that could be read otherwise than line by line are, by `text_table`: Arrow does not say where
a fault is, and takes some text for numbers that Python does not.
"""

from __future__ import annotations

import codecs
import gzip
import io
import zlib
from contextlib import closing
from functools import cached_property
from typing import IO, TYPE_CHECKING, Any, cast

import numpy as np

from ..core.files import as_input
from ..errors import InvalidFileError
from ..inputs.lines import MalformedLineError, numbered_lines, read_text
from ..inputs.written_times import nanoseconds, parser_of, whole
from .blocks import BlockTable, UnusualError
from .text_table import read_lines

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

    from ..core.types import Integers, PathLike
    from ..inputs.lines import BadLines
    from .text_table import Layout, Parsers

#: Bytes of a block: a few hundred thousand lines, so that most ids come more than once.
_BLOCK = 2**24

#: Bytes of the block in which the first line is looked for.
_HEAD = 2**16

#: The years of which int64 has every nanosecond.
_YEARS = ("1678", "2261")


class TextFile:
    """A text file that is in memory as a whole only if it has to be.

    Parameters
    ----------
    path, encoding, guess
        As of `read_text`.

    Raises
    ------
    InvalidFileError
        If it can be read only once, as a pipe can.
    """

    def __init__(self, path: PathLike, encoding: str | None = None, *, guess: bool = False) -> None:
        self.path = as_input(path)
        self._encoding, self._guess = encoding, guess

    @cached_property
    def data(self) -> bytes:
        """What `read_text` returns."""
        return read_text(self.path, self._encoding, guess=self._guess)

    @cached_property
    def first(self) -> tuple[int, str]:
        """The number and the text of the first line that is not blank."""
        try:
            with closing(self._blocks(_HEAD)) as blocks:
                return next(numbered_lines(next(blocks)))
        except (UnusualError, StopIteration):
            return next(numbered_lines(self.data))

    def check(self) -> None:
        """Raise what `read_text` raises: a file that is no text has no wrong columns."""
        len(self.data)

    def table(self, layout: Layout, bad: BadLines) -> BlockTable:
        """Read the table that the file is, block by block, or raise `UnusualError`."""
        with closing(self._blocks(_BLOCK)) as blocks:
            return read_blocks(blocks, layout, bad)

    def _blocks(self, size: int) -> Generator[bytes, None, None]:
        return blocks_of(self.path if self._encoding is None else self.data, size)


def blocks_of(source: Path | bytes, size: int) -> Generator[bytes, None, None]:
    r"""Yield a text file, or text in memory, in blocks of whole lines that end in ``\n``.

    Blocks are about `size` bytes of UTF-8 without a byte order mark and without NUL characters.

    Raises
    ------
    UnusualError
        If the file is anything else, or cannot be read.
    """
    try:
        with _opened(source) as file:
            read = file.read(size).removeprefix(codecs.BOM_UTF8)
            rest = b""
            while read:
                end = read.rfind(b"\n") + 1
                if end:
                    lines, rest = b"".join((rest, memoryview(read)[:end])), read[end:]
                    del read
                    yield _plain(lines)
                    del lines  # before the next ones are read
                elif len(rest) > size:  # a line that is longer than a block
                    raise UnusualError
                else:
                    rest += read
                read = file.read(size)
            if rest:
                yield _plain(rest)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise UnusualError from error


def _opened(source: Path | bytes) -> IO[bytes]:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    return cast(
        "IO[bytes]", gzip.open(source) if source.suffix.lower() == ".gz" else source.open("rb")
    )


def _plain(block: bytes) -> bytes:
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    if b"\0" in block:
        raise UnusualError
    if not block.isascii():
        block.decode()
    return block if block.endswith(b"\n") else block + b"\n"


def read_blocks(blocks: Iterable[bytes], layout: Layout, bad: BadLines) -> BlockTable:
    """Read a table of text, or raise `UnusualError` if only the whole tells what is at fault.

    Blocks in which anything is not plain are read line by line.
    """
    from pyarrow import ArrowException, default_memory_pool

    columns = layout.columns
    if layout.n_fields < 2 or len(set(columns.values())) < len(columns):
        raise UnusualError
    table = BlockTable(events="event" in columns)
    reader = _Reader(layout)
    n_before = 0
    for block in blocks:
        begin = 0
        while n_before < layout.n_header and begin < len(block):
            begin = block.index(b"\n", begin) + 1
            n_before += 1
        lines = block[begin:] if begin else block
        if lines.startswith(codecs.BOM_UTF8):  # part of an id, which readers of a block would drop
            raise UnusualError
        if lines and not lines.isspace():
            try:
                reader.add(lines, table)
            except (ArrowException, MalformedLineError, OverflowError, UnusualError):
                reader.add_lines(lines, n_before, bad, table)
        n_before += lines.count(b"\n")
    if not table.n_rows:
        raise UnusualError
    default_memory_pool().release_unused()
    return table


class _Reader:
    """Reads blocks of lines, the first of which decides how times are written."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.parsers: Parsers = {}

    def add_lines(self, lines: bytes, n_before: int, bad: BadLines, table: BlockTable) -> None:
        """Add the fields of any lines to a table; `n_before` is the number of lines before them."""
        import pyarrow as pa

        try:
            frame = read_lines(lines, self.layout, bad, n_before, self.parsers)
        except InvalidFileError as error:
            raise UnusualError from error
        if not len(frame):
            return
        if "value" in frame:
            table.add_values(frame["value"].to_numpy())
        if "timestamp" in frame:
            dated = self.parsers["timestamp"] is nanoseconds
            times = frame["timestamp"].to_numpy().astype(np.int64)
            table.add_times(times, "ns" if dated else None)
        of_roles = {role: frame[role].cat for role in table.ids}
        table.add_ids(
            {
                role: pa.DictionaryArray.from_arrays(
                    pa.array(ids.codes.to_numpy().astype(np.int32)),
                    pa.array(ids.categories.tolist(), pa.string()),
                )
                for role, ids in of_roles.items()
            }
        )

    def add(self, lines: bytes, table: BlockTable) -> None:
        """Add the fields of plain lines to a table, or raise an error and add nothing."""
        import pyarrow as pa
        from pyarrow import BufferReader, compute, csv

        lines, sep = _separated(lines, self.layout.sep)
        names = list(map(str, range(self.layout.n_fields)))
        column_of = {role: names[number] for role, number in self.layout.columns.items()}
        dated = self._dated(lines, sep)
        # Arrow takes hexadecimal text for a number as well.
        as_text = dated or b"x" in lines or b"X" in lines
        kinds = {"value": pa.float64(), "timestamp": pa.string() if as_text else pa.int64()}
        types = {role: kinds.get(role, pa.string()) for role in self.layout.columns}
        fields = csv.read_csv(
            BufferReader(lines),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter=sep, quote_char=False),
            convert_options=csv.ConvertOptions(
                column_types={column_of[role]: kind for role, kind in types.items()},
                include_columns=list(column_of.values()),
                null_values=[],
            ),
        )
        values = times = None
        if "value" in types:
            values = fields[column_of["value"]].to_numpy()
            if not (values.min() >= 0 and values.max() < np.inf):
                raise UnusualError
        if "timestamp" in types:
            column = fields[column_of["timestamp"]]
            times = _nanoseconds(column) if dated else _whole(column)
        ids = {role: fields[column_of[role]] for role in table.ids}
        # What is blank is before all other text, but for exotic spaces, which labels may not be.
        lowest = [compute.min_max(ids[role])["min"].as_py() for role in ("user", "item")]
        if any(text <= " " or text[0] <= " " for text in lowest):
            raise UnusualError
        table.add_ids(ids)
        if values is not None:
            table.add_values(values)
        if times is not None:
            table.add_times(times, "ns" if dated else None)
            self.parsers["timestamp"] = nanoseconds if dated else whole

    def _dated(self, lines: bytes, sep: str) -> bool:
        """Return whether times are dates."""
        place = self.layout.columns.get("timestamp")
        if place is None:
            return False
        if "timestamp" in self.parsers:
            return self.parsers["timestamp"] is nanoseconds
        fields = next(numbered_lines(lines))[1].split(sep)
        if len(fields) != self.layout.n_fields:
            raise UnusualError
        return parser_of(fields[place]) is nanoseconds


def _separated(lines: bytes, sep: str) -> tuple[bytes, str]:
    """Return lines without quotes and with a separator of one byte, and that."""
    if sep == "::" and b"\t" not in lines:
        return lines.replace(b"::", b"\t"), "\t"
    if len(sep) > 1 or not sep.isascii():
        raise UnusualError
    return (_unquoted(lines, sep) if b'"' in lines else lines), sep


def _unquoted(lines: bytes, sep: str) -> bytes:
    """Return lines without quotes, if these are around whole fields and hide nothing in them."""
    text = np.frombuffer(lines, np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 2:
        raise UnusualError
    begins, ends = quotes[::2], quotes[1::2]
    edges = np.flatnonzero((text == ord(sep)) | (text == ord("\n")))
    n_edges = np.searchsorted(edges, begins)
    n_before = np.where(n_edges, edges[n_edges - 1], -1)  # of the edge before each quoted field
    whole = (n_before == begins - 1) & (edges[n_edges] == ends + 1) & (ends > begins + 1)
    if not whole.all():
        raise UnusualError
    return lines.replace(b'"', b"")


def _whole(column: Any) -> Integers:
    """Return whole numbers, or text of nothing but their digits, as int64."""
    import pyarrow as pa
    from pyarrow import compute

    if pa.types.is_string(column.type):
        if not compute.all(compute.match_substring_regex(column, "^-?[0-9]+$")).as_py():
            raise UnusualError
        column = column.cast(pa.int64())
    return np.asarray(column.to_numpy())


def _nanoseconds(column: Any) -> Integers:
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
            return np.asarray(dates.cast(pa.int64()).to_numpy())
    encoded = column.dictionary_encode().combine_chunks()
    parsed = np.array([nanoseconds(text) for text in encoded.dictionary.to_pylist()], np.int64)
    return np.asarray(parsed[encoded.indices.to_numpy()])
