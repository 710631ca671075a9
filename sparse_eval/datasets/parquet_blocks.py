"""Reading Parquet batch by batch, ids as the codes that the file has for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..core.parquet import open_parquet
from ..errors import InvalidDataError
from .blocks import BlockTable, UnusualError
from .columns import times_of, values_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from pathlib import Path

    import pandas as pd

    from .labels import Column

#: Rows of a batch.
_ROWS = 2**20


def read_batches(path: Path, columns: Mapping[str, Hashable]) -> BlockTable:
    """Read the column of each role, or raise `UnusualError` if one is not plain.

    Plain are ids of text or integers, values of numbers, times of integers or dates, and none
    missing.
    """
    import pyarrow as pa

    schema = open_parquet(path).schema_arrow
    if any(schema.names.count(name) > 1 or "." in str(name) for name in columns.values()):
        raise UnusualError  # as part of a path a name may stand for several columns
    types = {role: schema.field(name).type for role, name in columns.items()}
    if not all(_is_plain(role, kind) for role, kind in types.items()):
        raise UnusualError
    table = BlockTable(events="event" in columns)
    texts = [columns[role] for role in table.ids if not pa.types.is_integer(types[role])]
    names = list(dict.fromkeys(columns.values()))
    with open_parquet(path, texts) as file:
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(_ROWS, row_groups=[group], columns=names):
                fields = {role: batch.column(name) for role, name in columns.items()}
                _add_batch(table, fields, columns)
        if not table.n_rows or table.n_rows != file.metadata.num_rows:
            raise UnusualError
    pa.default_memory_pool().release_unused()
    return table


def _add_batch(table: BlockTable, fields: Mapping[str, Any], names: Mapping[str, Hashable]) -> None:
    if any(field.null_count for field in fields.values()):
        raise UnusualError
    table.add_ids({role: fields[role] for role in table.ids})
    try:
        if "value" in fields:
            table.add_values(values_of(column_of(names["value"], fields["value"])))
        if "timestamp" in fields:
            times = column_of(names["timestamp"], fields["timestamp"])
            table.add_times(*times_of(times, undated=False))
    except InvalidDataError as error:  # whose rows are those of the batch
        raise UnusualError from error


def column_of(name: Hashable, values: Any) -> Column:
    """Return a column of Arrow as one of pandas, as frames become frames of pandas."""
    import pyarrow as pa

    frame: pd.DataFrame = pa.table({name: values}).to_pandas(ignore_metadata=True)
    return frame[name]


def _is_plain(role: str, kind: Any) -> bool:
    """Return whether batches of a type give what the column as a whole gives."""
    from pyarrow import types

    whole = types.is_integer(kind) and not types.is_uint64(kind)
    if role == "value":
        return bool(whole or types.is_float32(kind) or types.is_float64(kind))
    if role == "timestamp":
        return bool(whole or types.is_timestamp(kind))
    return bool(whole or types.is_string(kind) or types.is_large_string(kind))
