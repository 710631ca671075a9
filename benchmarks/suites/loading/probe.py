"""Loading files of events and dividing them, measured from within one process.

    python -P probe.py make FOLDER N_EVENTS       writes events.csv and events.parquet
    python -P probe.py sparse_eval FOLDER FORMAT  loads one with this library
    python -P probe.py pandas FOLDER FORMAT       reads it with pandas, and numbers users and items
    python -P probe.py divide FOLDER CALL         seconds of a split, of the matrix, or of argsort

Each prints what it found as JSON. Imports are not timed.
"""

import json
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import sparse_eval as se

sys.path.append(str(Path(__file__).parents[2]))  # last: libraries come before our modules
from harness.peak import peak_above_start

#: Rows that are drawn and written at once.
ROWS = 5_000_000

#: Calls of `divide` after one that is not timed, which may compile kernels.
CALLS = 3


def make(folder: Path, n_events: str) -> dict[str, int]:
    """Write files of text ids and times in seconds; popular items have more events."""
    folder.mkdir(parents=True, exist_ok=True)
    n = int(n_events)
    n_users, n_items = max(n // 50, 1), max(n // 250, 1)
    rng = np.random.default_rng(0)
    users, items = (
        pa.array([f"{kind}{number:08x}" for number in rng.permutation(10 * size)[:size].tolist()])
        for kind, size in (("user", n_users), ("item", n_items))
    )
    names = {"user": pa.string(), "item": pa.string(), "timestamp": pa.int64()}
    schema = pa.schema(names.items())
    plain = pyarrow.csv.WriteOptions(quoting_style="none")
    with (
        pyarrow.csv.CSVWriter(folder / "events.csv", schema, write_options=plain) as text,
        pyarrow.parquet.ParquetWriter(folder / "events.parquet", schema) as typed,
    ):
        for start in range(0, n, ROWS):
            size = min(ROWS, n - start)
            columns = (
                users.take(pa.array(rng.integers(0, n_users, size))),
                items.take(pa.array((rng.random(size) ** 2 * n_items).astype(np.int64))),
                pa.array(1_500_000_000 + np.sort(rng.integers(start, start + size, size))),
            )
            table = pa.table(list(columns), schema=schema)
            text.write_table(table)
            typed.write_table(table)
    return {"n_events": n, "n_users": n_users, "n_items": n_items}


def load_ours(folder: Path, suffix: str) -> dict[str, Any]:
    load = se.datasets.load  # imports what it needs, which is not loading
    start = time.perf_counter()
    with peak_above_start() as peak:
        events = load(folder / f"events.{suffix}")
    seconds = time.perf_counter() - start
    arrays = (events.user_codes, events.item_codes, events.values, events.timestamps)
    return {
        "seconds": seconds,
        "bytes": peak[0],
        "result_bytes": sum(array.nbytes for array in arrays),
        "found": [len(events), *events.shape, int(events.timestamps.sum())],
    }


def load_pandas(folder: Path, suffix: str) -> dict[str, Any]:
    path = folder / f"events.{suffix}"
    start = time.perf_counter()
    with peak_above_start() as peak:
        frame = pd.read_csv(path, engine="pyarrow") if suffix == "csv" else pd.read_parquet(path)
        labels = [pd.factorize(frame[name])[1] for name in ("user", "item")]
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "bytes": peak[0],
        "found": [len(frame), *map(len, labels), int(frame["timestamp"].sum())],
    }


def divide(folder: Path, name: str) -> dict[str, Any]:
    events = se.datasets.load(folder / "events.parquet")
    keys = events.user_codes.astype(np.int64) * events.n_items + events.item_codes
    calls = {
        "argsort": lambda: np.argsort(keys),
        "matrix": events.matrix,
        "random": lambda: se.split.random(events),
        "temporal": lambda: se.split.temporal(events),
        "last_n": lambda: se.split.last_n(events),
    }
    calls[name]()
    seconds = []
    for _ in range(CALLS):
        start = time.perf_counter()
        calls[name]()
        seconds.append(time.perf_counter() - start)
    return {"seconds": median(seconds)}


if __name__ == "__main__":
    tasks = {"make": make, "sparse_eval": load_ours, "pandas": load_pandas, "divide": divide}
    print(json.dumps(tasks[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
