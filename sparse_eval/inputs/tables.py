"""Read anything with columns in batches: frames of any library, files, folders of files."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from glob import glob
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, cast, get_args
from urllib.parse import unquote

import numpy as np

from ..core.files import as_input
from ..errors import InvalidDataError, InvalidFileError
from .cells import as_numbers, is_number, numbers_of
from .columns import USUAL, choose_columns
from .text import (
    BadLines,
    Field,
    MalformedLineError,
    Reader,
    TextFile,
    naming,
    open_file,
    opened,
    parse_number,
    separator_of,
    split_fields,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    import pandas as pd
    import pyarrow as pa

    from ..core.types import PathLike
    from .columns import Columns


class ArrowStream(Protocol):
    """A table of any library, such as polars, Arrow, DuckDB or pandas."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows by the Arrow PyCapsule interface."""


#: The frames that functions accept.
Frame: TypeAlias = "pd.DataFrame | ArrowStream | Sequence[Mapping[str, Any]]"

#: Columns of a batch by role: Arrow arrays, or arrays of objects if Arrow has no type for them.
Batch: TypeAlias = "dict[str, Any]"

#: The suffixes of files of tables in folders, by format.
_FORMATS = {
    "csv": "csv", "tsv": "csv", "parquet": "parquet", "json": "json", "jsonl": "json",
    "ndjson": "json", "arrow": "arrow", "ipc": "arrow", "feather": "arrow",
}  # fmt: skip
_HEAD = 1 << 16

#: The first bytes of a file and of a stream of Arrow IPC.
_ARROW = (b"ARROW1", b"\xff\xff\xff\xff")
_WILD = re.compile(r"[*?[]")

#: Hive's text for a missing value in the name of a folder.
_NO_KEY = "__HIVE_DEFAULT_PARTITION__"

#: Bytes of JSON that are read at once.
_BLOCK = 1 << 24


class Table:
    """A table with named columns, read in batches.

    Attributes
    ----------
    names : list of hashable
    keys : mapping of str to str
        The columns in the path of the file (``year=2024/a.csv``), and the value of each.
    where : Path or None
        The file, as messages name it.
    is_text : bool
        Whether the cells are text, so that ids may be whole numbers if all look like it.
    empty : str
        The error if there are no rows.
    doubt : str
        A text that errors about the names of the columns add.
    tables : sequence of Table
        The tables of a folder; empty if this table has rows itself.
    n_skipped : int
        The number of lines that were skipped, once all batches are read.
    """

    names: Sequence[Hashable]
    keys: Mapping[str, str] = MappingProxyType({})
    where: Path | None = None
    is_text = False
    empty = "there are no interactions: the table has no rows"
    doubt = ""
    tables: Sequence[Table] = ()
    n_skipped = 0

    @property
    def parts(self) -> Sequence[Table]:
        """The tables that this one consists of, in order; only itself if it has rows."""
        return self.tables or [self]

    def is_number(self, name: Hashable) -> bool:
        """Return whether a column has numbers or booleans."""
        raise NotImplementedError

    def batches(self, fields: Sequence[Field]) -> Iterator[Batch]:
        """Yield the rows of some columns, without empty batches."""
        import pyarrow as pa

        for field in fields:
            n = list(self.names).count(field.column)
            if n > 1 or (n == 0 and field.column not in self.keys):
                raise InvalidDataError(
                    f"has {n} columns {field.column!r}, expected one; the columns are "
                    f"{', '.join(map(repr, self.names))}",
                    column=field.column,
                )
        stored = [field for field in fields if field.column in self.names]
        for batch in self._batches(stored):
            columns = {field.role: batch[field.role] for field in stored}
            for field in set(fields).difference(stored):
                text = self.keys[str(field.column)]
                value = pa.scalar(None if text == _NO_KEY else text, pa.string())
                columns[field.role] = pa.repeat(value, len(next(iter(columns.values()))))
            yield columns

    def _batches(self, fields: Sequence[Field]) -> Iterator[Batch]:
        raise NotImplementedError

    def choose(
        self,
        given: Mapping[str, Hashable],
        event: Hashable = None,
        *,
        content: str = "",
        hint: str = "",
    ) -> Columns:
        """Return the column of each role; arguments and errors as of `choose_columns`.

        Errors begin with the content of the table, and end with a hint.
        """
        with naming(self.where):
            try:
                return choose_columns(self.names, given, self.is_number, event)
            except InvalidDataError as error:
                raise InvalidDataError(
                    f"{content}{error}{self.doubt}{hint}",
                    argument=error.argument,
                    column=error.column,
                ) from None


def open_table(source: Any, **options: Any) -> Table:
    """Return a table of any kind.

    Parameters
    ----------
    source : frame, list of dict, str or Path
        A frame is one of pandas or polars (also lazy), a table, batch or reader of pyarrow, a
        relation of DuckDB, or anything else with ``__arrow_c_stream__`` or ``__dataframe__``. A
        reader can be taken once. A path is a file, a folder of files, or a pattern such as
        ``"logs/*.csv"``.
    **options
        Of a `TextTable`, for files of text.

    Raises
    ------
    InvalidDataError
        If it is something else, or cannot be read.
    InvalidFileError
        If a file or folder cannot be read, or holds no table.
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, str | Path):
        return _open_path(source, options)
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        return PandasTable(source)
    if isinstance(source, list | tuple) and all(isinstance(row, Mapping) for row in source):
        import pandas as pd

        frame = pd.DataFrame(list(source))
        for name, column in frame.select_dtypes("float").items():
            if column.abs().max() >= 2**53:  # whole numbers next to others were rounded
                frame[name] = pd.Series([row.get(name) for row in source], dtype=object)
        return PandasTable(frame)
    name = type(source).__name__
    if type(source).__module__.startswith("polars") and hasattr(source, "collect"):
        source = source.collect()
    if not exports_rows(source) and not hasattr(source, "__dataframe__"):
        raise InvalidDataError(
            "expected a frame (of pandas, polars, pyarrow, DuckDB or anything else that has "
            f"__arrow_c_stream__) or a list of dicts, found a {name}"
        )
    import pyarrow as pa

    try:
        if not exports_rows(source):
            from pyarrow.interchange import from_dataframe

            source = from_dataframe(source)
        reader = pa.RecordBatchReader.from_stream(source)
    except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:  # Dask lacks parts
        raise InvalidDataError(f"the {name} cannot be read: {error}") from error
    table = ArrowTable(reader.schema, lambda _: reader)
    if not hasattr(type(source), "__len__"):
        table.empty = (
            f"the {name} has no rows. A reader can be read only once: create it again, or "
            "read it into a table first"
        )
    return table


def exports_rows(table: object) -> bool:
    """Return whether a value is a table with an Arrow stream; a single column is not."""
    kind = type(table)
    return hasattr(kind, "__arrow_c_stream__") and (
        hasattr(kind, "columns") or hasattr(kind, "schema")
    )


class PandasTable(Table):
    """A frame of pandas."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame
        self.names = list(frame.columns)

    def is_number(self, name: Hashable) -> bool:
        """Return whether a column has numbers or booleans."""
        column = self.frame.iloc[:, self.names.index(name)]
        return is_number(_of_pandas(column, "number").type)

    def _batches(self, fields: Sequence[Field]) -> Iterator[Batch]:
        if len(self.frame):
            yield {field.role: _of_pandas(self.frame[field.column], field.kind) for field in fields}


def _of_pandas(series: pd.Series[Any], kind: str) -> Any:
    """Return a column as one of Arrow; or as objects if ids have types that Arrow does not mix."""
    import pandas as pd
    import pyarrow as pa

    found = "" if series.dtype != np.dtype(object) else pd.api.types.infer_dtype(series)
    # Errors of pandas and Arrow about values of several types, and of types that they lack.
    with suppress(pa.ArrowException, OverflowError, TypeError, UnicodeEncodeError, ValueError):
        if found == "string":
            return pa.array(series, pa.large_string())
        if not found or found == "integer" or (kind not in ("id", "text") and "date" not in found):
            column = pa.array(series)
            if not isinstance(column.type, pa.BaseExtensionType):
                return column
    if kind in ("id", "text"):
        return series.to_numpy(dtype=object)
    return pa.array(series.astype(object).map(str, na_action="ignore"), pa.large_string())


class ArrowTable(Table):
    """A stream of Arrow: a frame of another library, a file of JSON lines or Arrow IPC.

    Parameters
    ----------
    schema : pyarrow.Schema
    read : callable
        Takes the fields and returns batches with at least their columns.
    where : Path, optional
    """

    def __init__(
        self,
        schema: pa.Schema,
        read: Callable[[Sequence[Field]], Any] = iter,
        where: Path | None = None,
    ) -> None:
        self.schema, self.read, self.where = schema, read, where
        self.names = schema.names

    def is_number(self, name: Hashable) -> bool:
        """Return whether a column has numbers or booleans."""
        return is_number(self.schema.field(name).type)

    def _batches(self, fields: Sequence[Field]) -> Iterator[Batch]:
        with naming(self.where):
            for batch in self.read(fields):
                if len(batch):
                    yield {field.role: batch.column(field.column) for field in fields}


class ParquetTable(ArrowTable):
    """A file of Parquet, whose text is read as the codes that the file has for it."""

    where: Path

    def __init__(self, path: Path) -> None:
        with naming(path):
            file = open_parquet(path)
        self.metadata = file.metadata
        super().__init__(file.schema_arrow, self._read, path)

    def _read(self, fields: Sequence[Field]) -> Iterator[Any]:
        names = dict.fromkeys(str(field.column) for field in fields)
        return read_parquet_rows(self.where, list(names))


def open_parquet(path: Path, coded: Collection[Hashable] = ()) -> Any:
    """Open a file as a `pyarrow.parquet.ParquetFile` that verifies checksums.

    Parameters
    ----------
    path : Path
    coded : collection of str, optional
        Text columns that are read as codes, with each distinct text stored once.

    Raises
    ------
    OSError, pyarrow.ArrowException
        If it is not a Parquet file.
    """
    from pyarrow import parquet

    # As an open file: a path like year=2024/x.parquet must not add a column.
    file = parquet.ParquetFile(open_file(path), page_checksum_verification=True)
    paths = [file.schema.column(number).path for number in range(len(file.schema))]
    return parquet.ParquetFile(
        open_file(path),
        metadata=file.metadata,
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


def read_parquet_rows(path: Path, names: list[str], n_rows: int = 2**20) -> Iterator[Any]:
    """Yield batches of at most `n_rows` rows of a file of Parquet, text as codes."""
    import pyarrow as pa

    n_read = 0
    with open_parquet(path, names) as file:
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(n_rows, row_groups=[group], columns=names):
                check_columns(batch)
                n_read += len(batch)
                yield batch
        n_told = file.metadata.num_rows
    if n_read != n_told:
        raise InvalidDataError(
            f"has {n_read} rows, but its metadata state {n_told}; write the file again"
        )
    pa.default_memory_pool().release_unused()


class TextTable(Table):
    """A file of delimited text.

    Parameters
    ----------
    path : str or Path
        The file: plain, ``.gz``, ``.bz2`` or ``.zst``.
    sep : str, optional
        The separator, taken literally; by default a tab in ``.tsv`` and ``.txt`` files, otherwise
        the most frequent of ``::``, tab, ``,``, ``;``, ``|`` in the first line. If it has one
        character, fields may be quoted with ``"``, but not across lines.
    encoding : str, optional
        Any encoding of Python. By default UTF-8, or Latin-1 with a `GuessWarning`, as in
        `TextFile`.
    header : bool
        Whether the first line that is not blank has the names of the columns.
    on_bad_lines : {"error", "skip"}
        Whether a malformed line raises an error or is skipped.

    Attributes
    ----------
    where : Path
        The file.
    sep : str
    names : list of str, or range
        The fields of the first line; or numbers, without a header.
    header : bool
    n_skipped : int
        The malformed lines that were skipped, once all batches are read.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, or has no separator in its first line.
    InvalidDataError
        If an option is invalid.
    """

    is_text = True

    def __init__(
        self,
        path: PathLike,
        *,
        sep: str | None = None,
        encoding: str | None = None,
        header: bool = True,
        on_bad_lines: str = "error",
    ) -> None:
        self.where = path = as_input(path)
        self.header, self._on_bad_lines, self.n_skipped = header, on_bad_lines, 0
        BadLines(path, on_bad_lines)
        if sep is not None and (not sep or set(sep) & set('"\r\n\0')):
            raise InvalidDataError(
                f"sep: expected text without quotes and line ends, found {sep!r}", argument="sep"
            )
        self._file = TextFile(path, encoding, guess=True)
        self._first, line = self._file.first_line()
        try:
            self.sep = separator_of(path, line) if sep is None else sep
            fields = split_fields(line, self.sep)
        except MalformedLineError as error:
            raise InvalidFileError(str(error), path, self._first) from None
        self.names: Sequence[Hashable] = fields if header else range(len(fields))
        if header and any(np.isfinite(parse_number(name)) for name in fields):
            self.doubt = ", or give header=False if the first line is not a header"

    def is_number(self, name: Hashable) -> bool:
        """Return whether all cells of the first batch are numbers, true, false or blank."""
        text = copy(self)
        text._on_bad_lines = "skip"
        for batch in text.batches([Field("event", name, "text")]):
            cells = set(batch["event"].dictionary.to_pylist()) - {""}
            numbers = {cell for cell in cells if not np.isnan(parse_number(cell))}
            return bool(cells) and {cell.lower() for cell in cells - numbers} <= {"true", "false"}
        return False

    def _batches(self, fields: Sequence[Field]) -> Iterator[Batch]:
        numbers = [self.names.index(field.column) for field in fields]
        bad = BadLines(self._file.path, self._on_bad_lines)
        reader = Reader(fields, numbers, self.sep, len(self.names), bad)
        yield from reader.batches(self._file, self._first if self.header else 0)
        self.n_skipped = bad.report()


class FolderTable(Table):
    """Several files with the same columns, and the columns in their paths (``year=2024/a.csv``)."""

    def __init__(self, files: Sequence[Path], base: Path, options: Mapping[str, Any]) -> None:
        self.where = base
        self.tables = [_open_file(file, options) for file in files]
        self.is_text = self.tables[0].is_text
        for table, file in zip(self.tables, files, strict=True):
            folders = (folder.partition("=") for folder in file.relative_to(base).parts[:-1])
            table.keys = {key: unquote(value) for key, equals, value in folders if equals}
        first = self.tables[0]
        self.names = [*first.names, *(key for key in first.keys if key not in first.names)]

    def is_number(self, name: Hashable) -> bool:
        """Return whether a column has numbers in the first file; a column of the path has not."""
        return name in self.tables[0].names and self.tables[0].is_number(name)


def _open_path(source: str | Path, options: Mapping[str, Any]) -> Table:
    path, files = Path(source), files_at(source)
    if files == [path]:
        return _open_file(path, options)
    if not path.is_dir():
        path = Path(*takewhile(lambda part: not _WILD.search(part), path.parts))
    return FolderTable(files, path, options)


def files_at(path: PathLike) -> list[Path]:
    """Return a file, or the files of the table in a folder or that match a pattern, in order.

    Names that begin with ``.`` or ``_`` are left out, as every writer of such folders expects.
    """
    if _WILD.search(str(path)) and not Path(path).exists():
        paths = map(Path, sorted(glob(str(path), recursive=True)))  # noqa: PTH207 - of any folder
        files = [one for one in paths if not one.is_dir()]  # a broken link is an error
        if not files:
            raise InvalidFileError("no file matches this pattern", path)
        return files
    folder = as_input(path)
    if not folder.is_dir():
        return [folder]
    files = [
        file
        for file in sorted(folder.rglob("*"))
        if not any(part[0] in "._" for part in file.relative_to(folder).parts)
        and format_of_name(file) is not None
        and not file.is_dir()  # a broken link is an error
    ]
    if not files:
        raise InvalidFileError("contains no table (.csv, .parquet, .jsonl, …)", folder)
    return files


def format_of_name(path: Path) -> str | None:
    """Return the format of a table by the name of its file: "csv", "parquet", "json", "arrow"."""
    suffix = re.search(r"\.(\w+)(\.gz|\.bz2|\.zst)?$", path.name.lower())
    return _FORMATS.get(suffix[1]) if suffix else None


def _open_file(path: Path, options: Mapping[str, Any]) -> Table:
    found = format_of(read_head(path))
    if found == "parquet":
        return ParquetTable(path)
    if found == "arrow":
        return ipc_table(path)
    if found == "json" or format_of_name(path) == "json":
        return json_table(path)
    return TextTable(path, **options)


def format_of(head: bytes) -> str | None:
    """Return the format of a file that begins so: "parquet", "arrow", "json", None for others."""
    if head.startswith(b"PAR1"):
        return "parquet"
    if head.startswith(_ARROW):
        return "arrow"
    return "json" if head.lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"{") else None


def read_head(path: Path) -> bytes:
    """Return the first bytes of a file, decompressed."""
    with naming(path), opened(path) as file:
        return bytes(file.read(_HEAD))


def ipc_table(path: Path) -> ArrowTable:
    """Return the table in a file of Arrow IPC (Feather), a file or a stream."""
    from pyarrow import ipc

    def batches(_: Sequence[Field] = ()) -> Iterator[Any]:
        for batch in map(source.get_batch, range(source.num_record_batches)) if is_file else source:
            batch.validate(full=True)
            yield batch

    with naming(path):
        with opened(path) as file:
            data = file.read()
        is_file = data.startswith(_ARROW[0])
        source = ipc.open_file(data) if is_file else ipc.open_stream(data)
        return ArrowTable(source.schema, batches, path)


def json_table(path: Path) -> ArrowTable:
    """Return the table in a file of JSON lines, one object in each; keys are the columns."""
    import pyarrow as pa
    from pyarrow import json

    def batches(fields: Sequence[Field]) -> Iterator[Any]:
        for _, block in TextFile(path).blocks(_BLOCK):
            for whole in (pa.int64(), pa.uint64(), pa.float64()):
                types = {
                    field.column: _json_type(schema.field(field.column).type, field.kind, whole)
                    for field in fields
                }
                options = json.ParseOptions(
                    explicit_schema=pa.schema(types.items()), unexpected_field_behavior="ignore"
                )
                with suppress(*[pa.ArrowInvalid] * (whole != pa.float64())):
                    table = json.read_json(pa.BufferReader(block), parse_options=options)
                    break
            for field in fields:
                if whole == pa.float64() and field.kind not in ("gain", "number"):
                    _check_whole(table[field.column], field.column)
            yield table

    with naming(path):
        _, first = next(TextFile(path).blocks(_BLOCK), (0, b""))
        if format_of(first) != "json":
            raise InvalidFileError("expected JSON lines, an object in each line", path)
        schema = json.read_json(pa.BufferReader(first)).schema
    return ArrowTable(schema, batches, path)


def _json_type(found: Any, kind: str, whole: Any) -> Any:
    """Return the type to read a column with, given its type in the first lines."""
    import pyarrow as pa
    from pyarrow import types

    if types.is_timestamp(found) or types.is_null(found):
        return pa.string()  # ids that look like dates stay what they are
    if types.is_integer(found) or types.is_floating(found):
        return pa.float64() if kind in ("gain", "number") else whole
    return found


def _check_whole(column: Any, name: Hashable) -> None:
    """Raise if numbers that were read as fractions are too large to be exact."""
    from pyarrow import types

    largest = 0.0
    if types.is_floating(column.type):
        largest = np.abs(column.drop_null().to_numpy()).max(initial=0.0)
    if largest > 2**53:
        raise InvalidDataError(
            f"column {name!r} contains {largest:g}, which is beyond 64 bits; write it as text",
            column=name,
        )


Engine = Literal["pandas", "polars", "pyarrow", "dask", "pyspark", "arrow"]


class FrameLike(Protocol):
    """A frame of pandas, polars, Arrow, Dask or Spark."""

    @property
    def columns(self) -> Any:
        """The columns, or their names."""


@dataclass(frozen=True)
class _Scan:
    """A table with a row for each item of a user.

    Attributes
    ----------
    table : str, Path or frame
        A file, folder or pattern of tables, or a frame (anything with ``__arrow_c_stream__`` is
        one).
    given : mapping of str to hashable
        The column of each role; None for no column, or `USUAL`.
    """

    table: PathLike | FrameLike | ArrowStream
    given: Mapping[str, Hashable]

    content: ClassVar[str]
    call: ClassVar[str]

    def choose(self, table: Table) -> Columns:
        """Return the columns to read, or raise an error as `choose_columns` does."""
        hint = f"; name the columns with {self.call}"
        return table.choose(self.given, content=f"{self.content}: ", hint=hint)


class RankingsScan(_Scan):
    """A table with a row for each recommended item; made by `Rankings.scan`."""

    content = "the recommendations"
    call = "Rankings.scan(…, user=…, item=…, rank=…)"


class RelevanceScan(_Scan):
    """A table with a row for each relevant item; made by `Relevance.scan`."""

    content = "the relevant items"
    call = "Relevance.scan(…, user=…, item=…, gain=…)"


def named(user: Hashable, item: Hashable, **values: Hashable) -> dict[str, Hashable]:
    """Return the column of each role.

    A default of users and items is `USUAL`, and so are ranks and scores if neither is named.
    """
    given = {"user": user, "item": item, **values}
    usual = [role for role in ("user", "item") if isinstance(given[role], str)]
    usual = [role for role in usual if given[role] == role]
    if "rank" in given and given["rank"] is None and given["score"] is None:
        usual += ["rank", "score"]
    return {**given, **dict.fromkeys(usual, USUAL)}


def engine_of(table: object) -> Engine | None:
    """Return the library that a frame belongs to, "arrow" for any other, None if it is no frame.

    A list of rows, each of them a dict, is a frame too.
    """
    # Of the type: the columns of a lazy frame of polars take a computation.
    if hasattr(type(table), "columns"):
        library = type(table).__module__.partition(".")[0]
        if library in get_args(Engine):
            return cast("Engine", library)
    are_rows = isinstance(table, list | tuple) and len(table) and isinstance(table[0], Mapping)
    return "arrow" if are_rows or exports_rows(table) or hasattr(table, "__dataframe__") else None


def to_pandas(source: Any, *, text: bool = False) -> pd.DataFrame:
    """Return a table as a frame of pandas.

    Parameters
    ----------
    source
        As of `open_table`.
    text : bool
        Whether the cells of text files stay text, even if a column has only numbers.

    Raises
    ------
    InvalidDataError, InvalidFileError
        As from `open_table`; or if a row cannot be read, or two columns have the same name.
    """
    table = open_table(source)
    if isinstance(table, PandasTable):
        return table.frame
    import pandas as pd
    import pyarrow as pa

    with naming(table.where):
        names = [str(name) for name in table.names]
        fields = [Field(str(number), name, "text") for number, name in enumerate(table.names)]
        tables = [
            pa.table({field.role: batch[field.role] for field in fields})
            for part in table.parts
            for batch in part.batches(fields)
        ]
        if not tables:
            return pd.DataFrame(columns=names)
        columns = [
            _decoded(column, typed=table.is_text and not text)
            for column in pa.concat_tables(tables).columns
        ]
        metadata = table.schema.metadata if isinstance(table, ParquetTable) else None
        try:
            frame: pd.DataFrame = (  # with the index that pandas has stored
                pa.table(columns, names).replace_schema_metadata(metadata).to_pandas()
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise InvalidDataError(f"cannot be read ({error})") from None
        return frame


def _decoded(column: Any, *, typed: bool) -> Any:
    """Return a column of codes as its values: if `typed`, as numbers if all are."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    chunks = as_numbers(column.chunks) if typed else column.chunks
    column = pa.chunked_array(chunks)
    column = column.cast(column.type.value_type)
    if typed and not pa.types.is_integer(column.type):
        numbers = numbers_of(column, "", "")
        if not np.isnan(numbers).any():
            return pa.array(numbers)
    return column
