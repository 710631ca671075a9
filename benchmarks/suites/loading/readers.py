"""Read a file of events with each library, and number users and items in order of their ids.

Each returns the numbers of users and items as int32, and the times.
"""

from pathlib import Path
from typing import Any

import numpy as np

Codes = tuple[Any, Any, Any]


def load_sparse_eval(path: Path) -> Codes:
    import sparse_eval as se

    events = se.datasets.load(path)
    return events.user_codes, events.item_codes, events.timestamps


def load_polars(path: Path) -> Codes:
    import polars as pl

    frame = pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)
    codes = []
    for name in ("user", "item"):
        labels = pl.Enum(frame[name].unique().sort())
        numbers = frame.select(pl.col(name).cast(labels).to_physical().cast(pl.Int32))
        codes.append(numbers[name].to_numpy())
    return codes[0], codes[1], frame["timestamp"].to_numpy()


def load_pyarrow(path: Path) -> Codes:
    import pyarrow.compute as pc
    from pyarrow import csv, parquet

    table = parquet.read_table(path) if path.suffix == ".parquet" else csv.read_csv(path)
    codes = []
    for name in ("user", "item"):
        encoded = table[name].dictionary_encode().combine_chunks()
        order = pc.sort_indices(encoded.dictionary).to_numpy()
        numbers = np.empty(len(order), np.int32)
        numbers[order] = np.arange(len(order), dtype=np.int32)
        codes.append(numbers[encoded.indices.to_numpy()])
    return codes[0], codes[1], table["timestamp"].to_numpy()


def load_duckdb(path: Path) -> Codes:
    import duckdb

    connection = duckdb.connect()
    read = connection.read_parquet if path.suffix == ".parquet" else connection.read_csv
    read(str(path)).create("events")
    connection.execute(
        """
        CREATE TYPE user_id AS ENUM (SELECT DISTINCT "user" FROM events ORDER BY 1);
        CREATE TYPE item_id AS ENUM (SELECT DISTINCT item FROM events ORDER BY 1);
        """
    )
    found = connection.sql(
        """
        SELECT enum_code("user"::user_id)::INTEGER AS u, enum_code(item::item_id)::INTEGER AS i,
            timestamp AS t
        FROM events
        """
    ).fetchnumpy()
    return found["u"], found["i"], found["t"]


LOAD = {
    "sparse_eval": load_sparse_eval,
    "polars": load_polars,
    "pyarrow": load_pyarrow,
    "duckdb": load_duckdb,
}
