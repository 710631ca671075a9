"""Frames of any library as frames of pandas, in one place for all that read tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ..errors import InvalidDataError, InvalidFileError

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd


class Usual(Enum):
    """The default for the name of a column: what such a column is usually called."""

    NAME = "the usual name"

    def __repr__(self) -> str:
        return "USUAL"


USUAL = Usual.NAME


class ArrowStream(Protocol):
    """A table that any library can read: one of polars, Arrow, DuckDB, pandas, …."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows by the Arrow PyCapsule interface."""


#: What functions accept that take a frame.
Frame: TypeAlias = "pd.DataFrame | ArrowStream | Sequence[Mapping[str, Any]]"


def check_header(table: pd.DataFrame, path: Path) -> None:
    """Raise `InvalidFileError` if lines have more fields than the header of a CSV file.

    pandas takes the first ones for an index then, and calls each column by the name of another.
    """
    import pandas as pd

    if len(table) and not isinstance(table.index, pd.RangeIndex):
        n_names = len(table.columns)
        raise InvalidFileError(
            f"its header names {n_names} columns, and its lines have "
            f"{n_names + table.index.nlevels} fields; name every column",
            path,
        )


def exports_rows(table: object) -> bool:
    """Return whether a value is a table with an Arrow stream; that of one column is not."""
    kind = type(table)
    return hasattr(kind, "__arrow_c_stream__") and (
        hasattr(kind, "columns") or hasattr(kind, "schema")
    )


def as_pandas(table: Any) -> pd.DataFrame:
    """Return a frame of any library as one of pandas; frames of pandas as they are.

    Parameters
    ----------
    table : pandas.DataFrame, table or list of dict
        A table is whatever has ``__arrow_c_stream__`` (a frame of polars, a table, batch or reader
        of pyarrow, a relation of DuckDB) or is a lazy frame of polars. A dict is a row. A reader
        can be taken once.

    Raises
    ------
    InvalidDataError
        If it is something else, its columns have no counterpart in pandas, or it is a reader
        without rows.

    Examples
    --------
    >>> as_pandas([{"user": "anna", "item": 7}])
       user  item
    0  anna     7
    """
    import pandas as pd

    if isinstance(table, pd.DataFrame):
        return table
    if isinstance(table, list) and all(isinstance(row, Mapping) for row in table):
        return pd.DataFrame(table)
    library, name = type(table).__module__.partition(".")[0], type(table).__name__
    if library == "polars" and hasattr(table, "collect"):
        table = table.collect()
    elif not exports_rows(table):
        raise InvalidDataError(
            "expected a frame (of pandas, polars, pyarrow, DuckDB or anything else that has "
            f"__arrow_c_stream__) or a list of dicts, found a {name}"
        )
    # An Arrow stream of polars has views of text, which older versions of pyarrow do not read.
    frame: pd.DataFrame = table.to_pandas() if library == "polars" else _of_arrow(table)
    if frame.empty and not hasattr(type(table), "__len__"):
        raise InvalidDataError(
            f"the {name} has no rows; one that was read before has none left: make "
            "it again, or read it into a table first"
        )
    return frame


def _of_arrow(table: Any) -> pd.DataFrame:
    import pyarrow as pa

    try:
        # Columns that were the index of a frame of pandas are columns like the others.
        frame: pd.DataFrame = pa.table(table).to_pandas(ignore_metadata=True)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InvalidDataError(f"the {type(table).__name__} cannot be read: {error}") from error
    return frame
