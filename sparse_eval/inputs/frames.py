"""Whole tables as frames of pandas, with all of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.parquet import read_parquet
from ..errors import InvalidDataError, InvalidFileError
from .cells import numbers_of
from .rows import as_numbers
from .tables import PandasTable, ParquetTable, naming, open_table
from .text import Field

if TYPE_CHECKING:
    import pandas as pd


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
        if isinstance(table, ParquetTable) and table.where is not None:
            try:
                return read_parquet(table.where)  # with the index that pandas has stored
            except ValueError as error:
                raise InvalidFileError(f"cannot be read ({error})", table.where) from None
        names = list(table.names)
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InvalidDataError(f"there are several columns {twice!r}; rename one", column=twice)
        fields = [Field(f"{number}", name, "text") for number, name in enumerate(names)]
        tables = [
            pa.table({field.role: batch[field.role] for field in fields})
            for part in table.parts()
            for batch in part.batches(fields)
        ]
        if not tables:
            return pd.DataFrame(columns=names)
        whole = pa.concat_tables(tables)
        columns = [_decoded(column, typed=table.is_text and not text) for column in whole.columns]
        frame: pd.DataFrame = pa.table(columns, whole.column_names).to_pandas(ignore_metadata=True)
        return frame.set_axis(names, axis=1)


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
