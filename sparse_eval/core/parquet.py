"""Opening and writing of Parquet files, shared by all readers of tables."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import InvalidDataError, InvalidFileError

if TYPE_CHECKING:
    from collections.abc import Collection, Hashable
    from pathlib import Path

    import pandas as pd
    import pyarrow as pa


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


def open_file(path: Path) -> Any:
    """Open a file for Arrow, whose own functions misread ``~`` and names that are not UTF-8."""
    import pyarrow as pa

    return pa.OSFile(os.fsencode(path), "rb")


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


def write_parquet(table: pd.DataFrame, path: Path, index: bool) -> None:
    """Write a table of users as Parquet, with or without its index.

    Raises
    ------
    InvalidDataError
        If the users' labels have no common Parquet type.
    """
    from pyarrow import ArrowException

    try:
        path.write_bytes(table.to_parquet(index=index))
    except ArrowException as error:
        raise InvalidDataError(
            f"the labels of the users do not fit into one Parquet column ({error}); write CSV"
        ) from error
