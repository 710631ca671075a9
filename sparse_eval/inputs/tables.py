"""Open anything with columns: files, folders, patterns and URIs, and frames of any library.

A table consists of parts, which are files or frames. Their schemas are compared before a row is
read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypeAlias, cast, get_args
from urllib.parse import unquote

from ..core.arguments import check_choice
from ..core.arrays import describe
from ..errors import InvalidDataError
from .column_values import as_numbers, decoded, is_text, kind_of_type, plain_type
from .columns import USUAL, choose_columns, role_of
from .formats import (
    ArrowPart,
    CsvOptions,
    CsvPart,
    Field,
    IpcPart,
    JsonPart,
    PandasPart,
    ParquetPart,
)
from .input_files import find_files, naming, one_format

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable

    import pandas as pd
    import pyarrow as pa

    from ..core.types import PathLike
    from .columns import TableColumns
    from .formats import TablePart


class ArrowStream(Protocol):
    """A table of any library, such as polars, Arrow, DuckDB or pandas."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows by the Arrow PyCapsule interface."""


#: The frames that functions accept.
Frame: TypeAlias = "pd.DataFrame | ArrowStream | Sequence[Mapping[str, Any]]"


@dataclass(frozen=True)
class InputTable:
    """One or more parts with the same columns.

    Attributes
    ----------
    parts : sequence of TablePart
    where : Path, str or None
        The file, folder, pattern or URI, as messages name it.
    empty : str
        The error if there are no rows.
    """

    parts: Sequence[TablePart]
    where: Any = None
    empty: str = "the table has no rows"

    @property
    def names(self) -> list[Hashable]:
        """The columns of all parts."""
        first = self.parts[0]
        return [
            *first.names,
            *dict.fromkeys(
                name
                for part in self.parts
                for name in chain(part.names, part.keys)
                if name not in first.names
            ),
        ]

    @property
    def is_text(self) -> bool:
        """Whether the first part is text."""
        return self.parts[0].is_text

    def type_of(self, name: Hashable) -> Any:
        """Return the type of a column in the first part that has it."""
        for part in self.parts:
            if name in part.names:
                return part.type_of(name)
        return None

    def choose(
        self,
        given: Mapping[str, Hashable],
        event: Hashable = None,
        *,
        content: str = "",
        hint: str = "",
    ) -> TableColumns:
        """Return the column of each role; arguments and errors as of `choose_columns`.

        Errors begin with the content of the table, and end with a hint.
        """
        with naming(self.where):
            try:
                columns = choose_columns(self.names, given, self.type_of, event)
                for level in self.parts[0].levels:
                    role = role_of(level)
                    if role not in columns.names and given.get(str(role)) is USUAL:
                        raise InvalidDataError(f"{level!r} is no column")
            except InvalidDataError as error:
                message = f"{content}{error}{self.parts[0].hint}{hint}"
                raise InvalidDataError(
                    message, argument=error.argument, column=error.column
                ) from None
        self.check_same(columns.names.values())
        return columns

    def check_same(self, names: Collection[Hashable]) -> None:
        """Raise if a part lacks a column, or has it with another type than the parts before."""
        for name in names:
            known: str | None = None
            for part in self.parts:
                with naming(part.where):
                    n = list(part.names).count(name)
                    if n > 1 or (n == 0 and name not in part.keys):
                        message = f"there are {n} columns named {name!r}; rename one"
                        if len(self.parts) > 1:
                            message = (
                                f"expected one column {name!r}, as in the other files, found {n}. "
                                "Write all files with the same columns, or read them separately"
                            )
                        raise InvalidDataError(message, column=name)
                    if part.is_text or name in part.keys or len(self.parts) == 1:
                        continue
                    kind = kind_of_type(part.type_of(name))
                    if known is not None and kind != known:
                        raise InvalidDataError(
                            f"column {name!r} holds {kind} here and {known} in tables before; "
                            "write all of them with the same types",
                            column=name,
                        )
                known = kind


def open_table(
    source: Any,
    format: str | None = None,  # noqa: A002
    options: CsvOptions | None = None,
) -> InputTable:
    """Return a table of any kind.

    Parameters
    ----------
    source : frame, list of dict, path, URI, or list of frames, paths and URIs
        A frame is one of pandas or polars (also lazy), a table, batch or reader of pyarrow, a
        relation of DuckDB, or anything else with ``__arrow_c_stream__`` or ``__dataframe__``. A
        reader can be taken once. A path is a file, a folder of files, or a pattern such as
        ``"logs/*.csv"``. A URI is one of ``file://``, ``s3://``, ``gs://`` or ``abfs://``.
    format : {"csv", "tsv", "parquet", "json", "arrow"}, optional
        Of files; by default as their suffixes say.
    options : CsvOptions, optional
        Of files of text.

    Raises
    ------
    InvalidDataError
        If it is something else, or cannot be read, or `format` is not valid.
    InvalidFileError
        If a file or folder cannot be read, or holds no table.
    """
    if isinstance(source, InputTable):
        return source
    if format is not None:
        check_choice("format", format, ("csv", "tsv", "parquet", "json", "arrow"))
    options = options or CsvOptions()
    if isinstance(source, str | Path):
        parts = _open_path(source, format, options)
        return InputTable(parts, Path(source) if isinstance(source, Path) else source)
    if isinstance(source, list | tuple) and not source:
        raise InvalidDataError("the list is empty; pass at least one file, frame or row")
    if isinstance(source, list | tuple) and not isinstance(source[0], Mapping):
        tables = [open_table(one, format, options) for one in source]
        return InputTable([part for table in tables for part in table.parts])
    return InputTable([_open_frame(source)])


def _open_path(source: PathLike, given: str | None, options: CsvOptions) -> list[TablePart]:
    files, base = find_files(source)
    kind = one_format(files, given)
    sep = options.sep or ("\t" if "tsv" in (kind, files[0].format) else ",")
    makers = {"parquet": ParquetPart, "json": JsonPart, "arrow": IpcPart}
    make: Any = makers.get(kind, partial(CsvPart, options=options, sep=sep))
    parts: list[TablePart] = [make(file) for file in files]
    for part, file in zip(parts, files, strict=True):
        if len(files) > 1 or file.path != str(source):
            folders = Path(file.path).relative_to(base).parts[:-1]
            pairs = (folder.partition("=") for folder in folders)
            part.keys = {key: unquote(value) for key, equals, value in pairs if equals}
    return parts


def _open_frame(source: Any) -> TablePart:
    """Return a frame as a part."""
    import pyarrow as pa

    engine = engine_of(source)
    if engine == "pandas":
        return PandasPart(source)
    if isinstance(source, list | tuple) and all(isinstance(row, Mapping) for row in source):
        import pandas as pd

        return PandasPart(pd.DataFrame(list(source), dtype=object))
    name = type(source).__name__
    try:
        if engine == "polars" and hasattr(source, "collect"):
            source = source.collect()
        if exports_rows(source):
            reader = pa.RecordBatchReader.from_stream(source)
        elif hasattr(source, "__dataframe__"):
            from pyarrow.interchange import from_dataframe

            reader = from_dataframe(source).to_reader()
        else:
            raise InvalidDataError(
                "expected a frame (of pandas, polars, pyarrow, DuckDB or anything else that has "
                f"__arrow_c_stream__), a list of dicts, or a path, found {describe(source)}; "
                "pandas.DataFrame makes a frame of other data"
            )
    except (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError) as error:
        if isinstance(error, InvalidDataError):
            raise
        raise InvalidDataError(f"the {name} cannot be read: {error}") from error
    return ArrowPart(reader, is_once=not hasattr(type(source), "__len__"))


def table_of(schema: pa.Schema) -> InputTable:
    """Return a table of some columns without rows."""
    return InputTable([ArrowPart(schema.empty_table().to_reader())])


def exports_rows(table: object) -> bool:
    """Return whether a value is a table with an Arrow stream; a single column is not."""
    kind = type(table)
    return hasattr(kind, "__arrow_c_stream__") and (
        hasattr(kind, "columns") or hasattr(kind, "schema")
    )


Engine = Literal["pandas", "polars", "pyarrow", "pyspark", "arrow"]


class FrameLike(Protocol):
    """A frame of pandas, polars, Arrow or Spark."""

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

    def choose(self, table: InputTable) -> TableColumns:
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

    A list of rows, each of them a dict, is a frame too. A frame of Dask raises `InvalidDataError`.
    """
    # Of the type: the columns of a lazy frame of polars take a computation.
    if hasattr(type(table), "columns"):
        library = type(table).__module__.partition(".")[0]
        if library == "dask":
            raise InvalidDataError(
                "Dask DataFrames are not accepted; write one with df.to_parquet(path), and pass "
                "the path"
            )
        if library in get_args(Engine):
            return cast("Engine", library)
    are_rows = isinstance(table, list | tuple) and len(table) and isinstance(table[0], Mapping)
    return "arrow" if are_rows or exports_rows(table) or hasattr(table, "__dataframe__") else None


def to_pandas(source: Any, *, text: bool = False) -> pd.DataFrame:
    """Return a table as a frame of pandas.

    Raises `InvalidDataError, InvalidFileError` as from `open_table`; or if a row cannot be read, or
    two columns have the same name.

    Parameters
    ----------
    source
        As of `open_table`.
    text : bool
        Whether the cells of text files stay text, even if a column has only numbers.
    """
    table = open_table(source)
    if isinstance(table.parts[0], PandasPart):
        return table.parts[0].frame
    import pandas as pd
    import pyarrow as pa

    names = [str(name) for name in table.names]
    rows = read_whole(table, dict(enumerate(table.names)))
    if rows is None:
        return pd.DataFrame(columns=names)
    with naming(table.where):
        columns = [_typed(column, table.is_text and not text) for column in rows.columns]
        metadata = getattr(getattr(table.parts[0], "schema", None), "metadata", None)
        try:
            frame: pd.DataFrame = (  # with the index that pandas has stored
                pa.table(columns, names).replace_schema_metadata(metadata).to_pandas()
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise InvalidDataError(f"cannot be read ({error})") from None
        return frame


def read_whole(table: InputTable, columns: Mapping[Any, Hashable]) -> pa.Table | None:
    """Return columns of a table by other names, None if it has no rows."""
    import pyarrow as pa

    table.check_same(columns.values())
    fields = [Field(str(name), column, "text") for name, column in columns.items()]
    with naming(table.where):
        batches = [
            pa.table({field.role: batch[field.role] for field in fields})
            for part in table.parts
            for batch in part.batches(fields)
        ]
        return pa.concat_tables(batches, promote_options="permissive") if batches else None


def _typed(column: Any, from_text: bool) -> Any:
    """Return a column without codes; text from CSV as numbers, if all of it is such."""
    import pyarrow as pa

    if from_text and pa.types.is_dictionary(column.type):
        column = pa.chunked_array(as_numbers(column.chunks))
        if is_text(plain_type(column.type)):
            with suppress(pa.ArrowInvalid):
                return decoded(column).cast(pa.float64())
    return decoded(column)
