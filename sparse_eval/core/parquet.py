"""Parquet files, opened and written in one place for all who read tables."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from ..errors import InvalidDataError, InvalidFileError
from .saved_arrays import most_unpacked

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    import pandas as pd
    import pyarrow as pa


def open_parquet(source: Path | BinaryIO, coded: Iterable[Hashable] = ()) -> Any:
    """Return a file as a `pyarrow.parquet.ParquetFile`, which compares checksums.

    Parameters
    ----------
    source : Path or binary stream
    coded : iterable of str, optional
        Columns that are read as codes if they are text: each distinct text once. See `uncoded`.

    Raises
    ------
    OSError, pyarrow.ArrowException
        If it is not one.
    """
    from pyarrow import parquet, types

    # As a single file: a path like year=2024/x.parquet must not add a column.
    file = parquet.ParquetFile(place(source), page_checksum_verification=True)
    counts = Counter(file.schema_arrow.names)
    texts = {
        field.name
        for field in file.schema_arrow
        if (types.is_string(field.type) or types.is_large_string(field.type))
        and counts[field.name] == 1
    }
    coded = [name for name in coded if name in texts]
    if not coded:
        return file
    return parquet.ParquetFile(
        place(source),
        metadata=file.metadata,
        read_dictionary=coded,
        page_checksum_verification=True,
    )


def place(source: Path | BinaryIO) -> Any:
    """Return what pyarrow opens a file by: it takes no path that is not UTF-8."""
    import pyarrow as pa

    if not isinstance(source, Path):
        return source
    place = source.absolute()  # pyarrow takes ~ for another place
    try:
        str(place).encode()
    except UnicodeEncodeError:
        return pa.BufferReader(place.read_bytes())
    return place


def check_columns(rows: pa.Table | pa.RecordBatch, path: Path) -> None:
    """Raise `InvalidFileError` if text is not UTF-8, or a code has no text."""
    from pyarrow import ArrowException

    for name, column in zip(rows.schema.names, rows.columns, strict=True):
        try:
            column.validate(full=True)
        except ArrowException as error:
            raise InvalidFileError(
                f"column {name!r} is damaged, or its text is not UTF-8 ({error})", path, column=name
            ) from None


def uncoded(rows: pa.Table, schema: pa.Schema, path: Path) -> pa.Table:
    """Return rows with the types of a schema, so with text where codes were read.

    Raises
    ------
    InvalidFileError
        If text is not UTF-8, a code has no text, or the rows would take far more memory than the
        file, see `most_unpacked`: a long text that it has once may stand in each of millions.
    pyarrow.ArrowException
        If a column cannot have the type of the schema.
    """
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import types

    check_columns(rows, path)
    for field, column in zip(schema, rows.columns, strict=True):
        if not types.is_dictionary(column.type) or types.is_dictionary(field.type):
            continue
        n_bytes = sum(
            pc.sum(pc.binary_length(part.dictionary).cast(pa.int64()).take(part.indices)).as_py()
            or 0
            for part in column.chunks
        )
        kept = path.stat().st_size
        if n_bytes > most_unpacked(kept):
            raise InvalidFileError(
                f"text of column {field.name!r} would take {n_bytes / 1e9:,.1f} GB of memory, "
                f"{n_bytes // kept:,} times as much as the file; expected shorter text",
                path,
                column=field.name,
            )
    return rows.cast(schema)


def read_table(source: Path | BinaryIO) -> pa.Table:
    """Read a file.

    Raises
    ------
    InvalidDataError
        If there are more or fewer rows than the file says.
    InvalidFileError, OSError, pyarrow.ArrowException
        As `open_parquet` and `uncoded`.
    """
    file = open_parquet(source)
    rows = file.read()
    if rows.num_rows != file.metadata.num_rows:
        raise InvalidDataError(
            f"has {rows.num_rows} rows, and says that there are {file.metadata.num_rows}; "
            "write it again"
        )
    check_columns(rows, source if isinstance(source, Path) else Path(source.name))
    return rows


def read_parquet(source: Path | BinaryIO) -> pd.DataFrame:
    """Read a file as a frame, or raise OSError or ValueError."""
    from pyarrow import ArrowException

    try:
        table = read_table(source)
    except ArrowException as error:  # not every one is a ValueError
        raise ValueError(str(error)) from None
    try:
        frame: pd.DataFrame = table.to_pandas()
    except (ArrowException, AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"the metadata that pandas has written is damaged: {error}") from None
    return frame


def write_parquet(table: pd.DataFrame, path: Path, index: bool) -> None:
    """Write a table of users as Parquet, with or without its index.

    Raises
    ------
    InvalidDataError
        If the users' labels have no common Parquet type.
    """
    from pyarrow import ArrowException

    try:
        # pyarrow takes no path that is not UTF-8, and pandas 2 tells it the name of a file.
        with os.fdopen(os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o666), "wb") as file:
            table.to_parquet(file, index=index)
    except ArrowException as error:
        raise InvalidDataError(
            f"the labels of the users do not fit into one Parquet column ({error}); write CSV"
        ) from error
