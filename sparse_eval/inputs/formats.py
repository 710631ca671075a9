"""Rows of one file or frame, which Arrow reads: a class for each format.

A new format is a class here, a line in `tables._open_path`, and its suffix in
`input_files.SUFFIXES`.
"""

from __future__ import annotations

from codecs import lookup
from collections.abc import Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from ..core.arguments import check_choice
from ..core.messages import warn
from ..errors import InvalidDataError, shown
from .column_values import is_list
from .input_files import in_arrow, naming

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable, Iterator, Mapping
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa

    from .input_files import File

#: Rows of Arrow.
ArrowRows: TypeAlias = "pa.RecordBatch | pa.Table"

#: Arrow arrays by role, all of one length.
Batch: TypeAlias = "dict[str, Any]"

#: What a column holds: ids, other text, gains or ranks or scores, times.
ColumnKind: TypeAlias = Literal["id", "text", "number", "time"]

#: Hive's text for a missing value in the name of a folder.
_NO_KEY = "__HIVE_DEFAULT_PARTITION__"

#: A separator of one byte that no text contains, in place of longer ones.
_UNIT = b"\x1f"

#: Bytes of text that a thread of Arrow reads at once; no line may be longer.
_BLOCK = 1 << 21


class SkippedLinesWarning(UserWarning):
    """Malformed lines were skipped, because ``on_bad_lines="skip"`` was given."""


class Field(NamedTuple):
    """A column to read: the role that it has in batches, its name, and what it holds."""

    role: str
    column: Any
    kind: ColumnKind


class TablePart:
    """Rows with named columns: a file, or a frame.

    Attributes
    ----------
    names : sequence of hashable
    schema : pyarrow.Schema
        The columns and their types; not of frames of pandas.
    file : File or None
        None for a frame.
    keys : mapping of str to str
        The columns in the path of the file (``year=2024/a.csv``), and the value of each.
    is_text : bool
        Whether ids are text that may stand for whole numbers, as in CSV.
    n_skipped : int
        The number of lines that were skipped, once all batches are read.
    levels : sequence of hashable
        The names in the index of a frame of pandas, which are no columns.
    hint : str
        What errors about the names of columns add.
    """

    names: Sequence[Hashable]
    schema: Any
    is_text = False
    n_skipped = 0
    levels: Sequence[Hashable] = ()
    hint = ""

    def __init__(self, file: File | None = None) -> None:
        self.file: Any = file
        self.keys: dict[str, str] = {}

    @property
    def where(self) -> Path | str | None:
        """The file, as messages name it."""
        return None if self.file is None else self.file.where

    def type_of(self, name: Hashable) -> Any:
        """Return the Arrow type of the only column of a name, None if there is no single one."""
        number = self.schema.get_field_index(name)
        return None if number < 0 else self.schema.field(number).type

    def read(self, fields: Sequence[Field]) -> Iterator[ArrowRows]:
        """Yield all rows, with the columns of the fields in their order."""
        raise NotImplementedError

    def batches(self, fields: Sequence[Field]) -> Iterator[Batch]:
        """Yield the rows of some columns, without empty batches."""
        import pyarrow as pa

        stored = [field for field in fields if field.column in self.names]
        # If all columns are in the path, any column of the file has the number of rows.
        counted = stored or [Field("", name, "text") for name in self.names[:1]]
        with naming(self.where):
            for rows in self.read(counted):
                if not len(rows):
                    continue
                batch = dict(zip((field.role for field in stored), rows.columns, strict=False))
                for field in set(fields).difference(stored):
                    text = self.keys[str(field.column)]
                    value = pa.scalar(None if text == _NO_KEY else text, pa.string())
                    batch[field.role] = pa.repeat(value, len(rows))
                yield batch


class ArrowPart(TablePart):
    """A frame of a library with an Arrow stream."""

    def __init__(self, reader: pa.RecordBatchReader, *, is_once: bool = False) -> None:
        super().__init__()
        self.schema, self.reader, self.is_once = reader.schema, reader, is_once
        self.names = self.schema.names

    def read(self, fields: Sequence[Field]) -> Iterator[ArrowRows]:
        """Yield the batches of the stream."""
        n_rows = 0
        for rows in self.reader:
            n_rows += len(rows)
            yield rows.select(_names(fields))
        if not n_rows and self.is_once:
            raise InvalidDataError(
                "the reader has no rows. A reader can be read only once: create it again, or read "
                "it into a table first"
            )


class PandasPart(TablePart):
    """A frame of pandas, of which only the needed columns are converted."""

    def __init__(self, frame: pd.DataFrame) -> None:
        super().__init__()
        self.frame, self.names = frame, list(frame.columns)
        self.levels = [name for name in frame.index.names if name is not None]
        if self.levels:
            listed = ", ".join(map(repr, self.levels))
            self.hint = f"; the index has {listed}, so pass frame.reset_index()"

    def type_of(self, name: Hashable) -> Any:
        """Return the type of a column, None if its values have several."""
        with suppress(InvalidDataError):
            return self._column(self.names.index(name)).type
        return None

    def read(self, fields: Sequence[Field]) -> Iterator[ArrowRows]:
        """Yield all rows."""
        import pyarrow as pa

        columns = [self._column(self.names.index(field.column)) for field in fields]
        yield pa.table(columns, [field.role for field in fields])

    def _column(self, number: int) -> Any:
        import pyarrow as pa

        series = self.frame.iloc[:, number]
        try:
            series = series.infer_objects()  # Arrow cuts Timestamps to µs
            column = pa.array(series, from_pandas=True)
            if is_list(column.type) and any(isinstance(row, tuple | Set) for row in series):
                raise TypeError("tuples or sets in place of lists")  # which Arrow takes for lists
            if series.dtype == object and pa.types.is_timestamp(column.type):
                raise TypeError("times with and without a time zone")
        except (pa.ArrowException, OverflowError, TypeError, ValueError) as error:
            name = self.names[number]
            raise InvalidDataError(
                f"column {name!r} has no single type ({error}); convert it, for example with "
                f"frame[{name!r}].astype(str)",
                column=name,
            ) from None
        return column


class ParquetPart(TablePart):
    """A file of Parquet, whose text is read as the codes that the file has for it."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        with naming(file.where):
            opened = open_parquet(file)
        self.metadata, self.schema = opened.metadata, opened.schema_arrow
        self.names = self.schema.names

    def read(self, fields: Sequence[Field]) -> Iterator[ArrowRows]:
        """Yield batches of the row groups."""
        names = _names(fields)
        return (rows.select(names) for rows in read_parquet_rows(self.file, names))


def _names(fields: Sequence[Field]) -> list[str]:
    """Return the columns of some fields."""
    return [str(field.column) for field in fields]


def open_parquet(file: File, coded: Collection[Hashable] = ()) -> Any:
    """Open a file as a `pyarrow.parquet.ParquetFile` that verifies checksums.

    Raises `OSError, pyarrow.ArrowException` if it is not a Parquet file.

    Parameters
    ----------
    coded : collection of str, optional
        Text columns that are read as codes, with each distinct text stored once.
    """
    from pyarrow import parquet

    opened = parquet.ParquetFile(file.open(), page_checksum_verification=True)
    if not coded:
        return opened
    paths = [opened.schema.column(number).path for number in range(len(opened.schema))]
    return parquet.ParquetFile(
        file.open(),
        metadata=opened.metadata,
        read_dictionary=[name for name in coded if paths.count(name) == 1],
        page_checksum_verification=True,
    )


def check_columns(rows: pa.Table | pa.RecordBatch) -> None:
    """Raise `InvalidDataError` if text is not UTF-8, or a code has no text."""
    from pyarrow import ArrowException

    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except ArrowException as error:
            message = f"column {name!r} is damaged, or its text is not UTF-8 ({error})"
            raise InvalidDataError(message, column=name) from None


def read_parquet_rows(file: File, names: list[str], n_rows: int = 2**20) -> Iterator[Any]:
    """Yield batches of at most `n_rows` rows of a file of Parquet, text as codes."""
    import pyarrow as pa

    n_read = 0
    with open_parquet(file, names) as opened:
        for group in range(opened.num_row_groups):
            for batch in opened.iter_batches(n_rows, row_groups=[group], columns=names):
                check_columns(batch)
                n_read += len(batch)
                yield batch
        n_told = opened.metadata.num_rows
    if n_read != n_told:
        raise InvalidDataError(
            f"has {n_read} rows, but its metadata state {n_told}; write the file again"
        )
    pa.default_memory_pool().release_unused()


class IpcPart(TablePart):
    """A file of Arrow IPC (Feather)."""

    def __init__(self, file: File) -> None:
        super().__init__(file)
        with naming(file.where):
            self.schema = self._open().schema
        self.names = self.schema.names

    def _open(self) -> Any:
        from pyarrow import ipc

        stream = self.file.stream()
        return ipc.open_file(stream if self.file.compression is None else in_arrow(stream.read()))

    def read(self, fields: Sequence[Field]) -> Iterator[ArrowRows]:
        """Yield the batches of the file."""
        opened = self._open()
        for number in range(opened.num_record_batches):
            rows = opened.get_batch(number)
            check_columns(rows)
            yield rows.select(_names(fields))


class JsonPart(TablePart):
    """A file of JSON lines, one object in each. It is read twice: keys may first appear late."""

    def __init__(self, file: File) -> None:
        from pyarrow import ArrowInvalid

        super().__init__(file)
        with naming(file.where):
            try:
                self.schema = self._read({}, "infer").schema
            except ArrowInvalid as error:
                message = f"cannot be read as JSON lines, one object in each line ({error})"
                raise InvalidDataError(message) from None
        self.names = self.schema.names

    def _read(self, types: Mapping[str, Any], others: str) -> Any:
        import pyarrow as pa
        from pyarrow import json

        return json.read_json(
            self.file.stream(),
            json.ReadOptions(block_size=8 * _BLOCK),
            json.ParseOptions(
                explicit_schema=pa.schema(types.items()), unexpected_field_behavior=others
            ),
        )

    def type_of(self, name: Hashable) -> Any:
        """Return the type of a column, text also where all of it looks like times."""
        import pyarrow as pa

        found = self.schema.field(name).type
        if is_list(found) and pa.types.is_timestamp(found.value_type):
            return pa.list_(pa.string())
        return pa.string() if pa.types.is_timestamp(found) else found

    def read(self, fields: Sequence[Field]) -> Iterator[ArrowRows]:
        """Yield the rows of the file."""
        rows = self._read({field.column: self.type_of(field.column) for field in fields}, "ignore")
        check_columns(rows)
        yield from rows.to_batches()


@dataclass(frozen=True)
class CsvOptions:
    """How delimited text is read.

    Raises `InvalidDataError` if an option is not valid.

    Attributes
    ----------
    sep : str or None
        The separator, one character; None for a tab in "tsv" and a comma otherwise.
    encoding : str or None
        Any encoding of Python; None for UTF-8.
    header : bool
        Whether the first line has the names of the columns.
    on_bad_lines : {"error", "skip"}
        Whether a line with another number of fields raises an error or is skipped.
    quoted : bool
        Whether quotes enclose fields. If not, `sep` may have two characters.
    """

    sep: str | None = None
    encoding: str | None = None
    header: bool = True
    on_bad_lines: str = "error"
    quoted: bool = True

    def __post_init__(self) -> None:
        sep, encoding = self.sep, self.encoding
        is_one = sep is None or (len(sep) == 1 and sep.isascii() and sep not in '"\r\n\0')
        if self.quoted and not is_one:
            raise InvalidDataError(
                f"sep: expected one character, found {sep!r}. If fields are separated by several, "
                "read the file with pandas.read_csv, and pass the frame",
                argument="sep",
            )
        check_choice("on_bad_lines", self.on_bad_lines, ("error", "skip"))
        try:
            TextIOWrapper(BytesIO(), encoding or "utf-8")
        except (LookupError, TypeError, ValueError):
            raise InvalidDataError(
                "encoding: expected an encoding of Python, such as 'utf-8', 'latin-1', 'cp1252' or "
                f"'utf-16', found {encoding!r}",
                argument="encoding",
            ) from None


class CsvPart(TablePart):
    """A file of text, with fields separated by `sep`."""

    is_text = True

    def __init__(self, file: File, options: CsvOptions, sep: str) -> None:
        from pyarrow import csv

        super().__init__(file)
        self.options, self.sep = options, sep
        self.encoding = lookup(options.encoding or "utf-8").name
        with naming(file.where), self._explained(), csv.open_csv(*self._arguments()) as opened:
            self.schema = opened.schema
            if "\0" in "".join(self.schema.names):
                raise UnicodeError("it contains null characters")
            names = self.schema.names
            self.names = names if options.header else range(len(names))
        if len(self.names) == 1:
            self.hint = (
                f"; if fields are not separated by {self.sep!r}, pass sep=, or read the file with "
                "pandas.read_csv and pass the frame"
            )
        elif any(name.isdigit() for name in self.schema.names):
            self.hint = "; if the first line has no names, pass header=False (--no-header)"

    def _stream(self) -> Any:
        """Return a stream of UTF-8."""
        stream = self.file.stream()
        if len(self.sep) > 1:
            return in_arrow(stream.read().replace(self.sep.encode(), _UNIT))
        if self.encoding == "utf-8":
            return stream
        # Arrow decodes in threads that call Python, and that can end or block the whole process.
        return in_arrow(stream.read().decode(self.encoding).encode())

    def _arguments(
        self, types: Mapping[str, Any] | None = None, *, threads: bool = False, n_before: int = 0
    ) -> Any:
        """Return the stream of the file, and Arrow's options to read it after `n_before` rows."""
        from pyarrow import csv

        def skip(row: Any) -> str:
            if "\n" in row.text:  # an open quote, so that the next lines may be rows
                return "error"
            self.n_skipped += 1
            return "skip"

        self.n_skipped = 0
        return (
            self._stream(),
            csv.ReadOptions(
                use_threads=threads,
                block_size=_BLOCK,
                autogenerate_column_names=not self.options.header,
                skip_rows_after_names=n_before,
            ),
            csv.ParseOptions(
                delimiter=self.sep if len(self.sep) == 1 else _UNIT.decode(),
                quote_char='"' if self.options.quoted else False,
                newlines_in_values=True,  # or an open quote hides the rest of each block
                invalid_row_handler=skip if self.options.on_bad_lines == "skip" else None,
            ),
            csv.ConvertOptions(
                column_types=types,
                include_columns=None if types is None else list(types),
                null_values=[],
                strings_can_be_null=False,
            ),
        )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Add the remedy to errors of Arrow about the encoding and about long lines."""
        from pyarrow import ArrowInvalid

        try:
            yield
        except (ArrowInvalid, UnicodeError) as error:
            if "straddl" in str(error):
                raise InvalidDataError(
                    f"a line is longer than {_BLOCK >> 20} MiB; is a quote not closed?"
                ) from None
            if isinstance(error, ArrowInvalid) and "UTF8" not in str(error):
                raise
            raise InvalidDataError(
                f"cannot be read as {self.encoding} ({error}); pass encoding=, such as 'latin-1' "
                "or 'utf-16'",
                argument="encoding",
            ) from None

    def type_of(self, name: Hashable) -> Any:
        """Return the type that the first rows of a column have."""
        return self.schema.field(self.names.index(name)).type

    def read(self, fields: Sequence[Field]) -> Iterator[ArrowRows]:
        """Yield the rows of the file."""
        from pyarrow import ArrowInvalid, csv

        stored = [self.schema.field(self.names.index(field.column)) for field in fields]
        types = {
            column.name: _csv_type(column.type, field.kind)
            for column, field in zip(stored, fields, strict=True)
        }
        try:
            rows = csv.read_csv(*self._arguments(types, threads=True))
        except ArrowInvalid:
            # Only one thread knows the number of the row. It reads until the same error.
            with self._explained():
                rows = csv.read_csv(*self._arguments(types))
        n_skipped = self.n_skipped
        with self._explained():
            self._check_end(len(rows))
        self.n_skipped = n_skipped
        if n_skipped:
            lines = "line" if n_skipped == 1 else "lines"
            message = f"skipped {n_skipped} malformed {lines} of {shown(self.where)}"
            warn(message, SkippedLinesWarning)
        yield rows  # in one piece, so that threads start once

    def _check_end(self, n_rows: int) -> None:
        """Raise if the last field has an open quote, because Arrow reads all that follows as text.

        Arrow itself raises if the quote is in another column, or more than a block before the end.
        """
        import pyarrow as pa
        from pyarrow import csv

        tail = b""
        stream = self._stream()
        if stream.seekable():
            stream.seek(max(stream.size() - 2 * _BLOCK, 0))
        while block := stream.read(_BLOCK):
            tail = (tail + block)[-2 * _BLOCK :]
        text = tail.decode("utf-8", "replace").rstrip("\r\n")
        is_closed = (len(text) - len(text.rstrip('"'))) % 2
        if is_closed or '"' not in text or not n_rows or not self.options.quoted:
            return
        last = self.schema.names[-1]
        rows = csv.read_csv(*self._arguments({last: pa.large_string()}, n_before=n_rows - 1))
        if {"\n", "\r"} & set(rows[last][-1].as_py()):
            raise InvalidDataError(
                "a quote in the last column is not closed, so that the lines after it are part of "
                "the field; correct the file"
            )


def _csv_type(found: Any, kind: ColumnKind) -> Any:
    """Return the type to read a column of text with, given the type of its first rows."""
    import pyarrow as pa
    from pyarrow import types

    if kind in ("id", "text"):
        return pa.dictionary(pa.int32(), pa.string())
    if kind == "number":
        return found if types.is_boolean(found) else pa.float64()
    if types.is_timestamp(found) or types.is_date(found):
        return pa.timestamp("ns", getattr(found, "tz", None))
    return found if types.is_integer(found) or types.is_floating(found) else pa.string()
