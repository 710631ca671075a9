"""Whole tables as frames of pandas, with all of their columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidDataError
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
