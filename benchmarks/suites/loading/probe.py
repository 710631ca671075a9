"""Measure loading of event files, and scoring of frames. Imports are not timed."""

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from harness.peak import peak_above_start

import sparse_eval as se

from .readers import LOAD

#: The number of rows that are drawn and written at once.
ROWS = 5_000_000

#: The number of timed calls in a process, after a first one, which may compile kernels.
CALLS = 3

#: The numbers of users and items in the frames, and the length of the lists.
USERS, ITEMS, K = 50_000, 20_000, 10


def make(place: str, n: int) -> dict[str, int]:
    """Write files of text ids and times in seconds; popular items have more events."""
    folder = Path(place)
    folder.mkdir(parents=True, exist_ok=True)
    n_users, n_items = max(n // 50, 1), max(n // 250, 1)
    rng = np.random.default_rng(0)
    users, items = map(pa.array, make_ids(rng, n_users, n_items))
    names = {"user": pa.string(), "item": pa.string(), "timestamp": pa.int64()}
    schema = pa.schema(names.items())
    plain, quoted = (pyarrow.csv.WriteOptions(quoting_style=how) for how in ("none", "all_valid"))
    with (
        pa.CompressedOutputStream(folder / "events.csv.gz", "gzip") as packed,
        pyarrow.csv.CSVWriter(folder / "events.csv", schema, write_options=plain) as text,
        pyarrow.csv.CSVWriter(packed, schema, write_options=plain) as gzip,
        pyarrow.csv.CSVWriter(folder / "quoted.csv", schema, write_options=quoted) as in_quotes,
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
            for writer in (text, gzip, in_quotes, typed):
                writer.write_table(table)
    return {"n_events": n, "n_users": n_users, "n_items": n_items}


def make_ids(rng: np.random.Generator, n_users: int, n_items: int) -> list[list[str]]:
    """Draw distinct text ids of users and of items."""
    return [
        [f"{kind}{number:08x}" for number in rng.permutation(10 * size)[:size].tolist()]
        for kind, size in (("user", n_users), ("item", n_items))
    ]


def load(folder: str, file: str, library: str) -> dict[str, Any]:
    """Read a file with a library, and number its ids."""
    load_events = LOAD[library]
    one = Path(folder, "one.csv")
    one.write_text('user,item,timestamp\n"a",b,1\n', encoding="ascii")
    load_events(one)  # imports are not part of loading
    start = time.perf_counter()
    with peak_above_start() as peak:
        columns = load_events(Path(folder, file))
    seconds = time.perf_counter() - start
    digest = hashlib.blake2b()
    for column in columns:
        digest.update(np.ascontiguousarray(column))
    return {"seconds": seconds, "bytes": peak[0], "values": digest.hexdigest()}


def frames(kind: str, library: str) -> dict[str, Any]:
    """Score lists of 50,000 users; the polars code reads pandas frames with `from_pandas`."""
    sides: list[Any] = list(make_frames())
    if kind != "polars":
        dtypes: dict[str, Any] = dict.fromkeys(("user", "item"), kind)
        sides = [side.to_pandas().astype(dtypes) for side in sides]

    def score() -> float:
        if library == "sparse_eval":
            return se.evaluate(*sides, f"ndcg@{K}")[f"ndcg@{K}"]
        return score_by_polars(*(sides if kind == "polars" else map(pl.from_pandas, sides)))

    seconds, value = timed(score)
    return {"seconds": seconds, "values": value}


def make_frames() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draw lists, and five relevant items per user, with at least two of them in the list."""
    rng = np.random.default_rng(0)
    users, items = map(np.array, make_ids(rng, USERS, ITEMS))
    first = rng.integers(0, ITEMS, (USERS, 1))
    listed = (first + 7 * np.arange(K)) % ITEMS  # distinct items
    held = (first + np.array([7, 21, 1, 2, 3])) % ITEMS
    ranks = np.tile(np.arange(1, K + 1), USERS)
    lists = pl.DataFrame(
        {"user": np.repeat(users, K), "item": items[listed.reshape(-1)], "rank": ranks}
    )
    relevant = pl.DataFrame(
        {"user": np.repeat(users, held.shape[1]), "item": items[held.reshape(-1)]}
    )
    return lists, relevant.sample(fraction=1, shuffle=True, seed=0)


def score_by_polars(lists: pl.DataFrame, relevant: pl.DataFrame) -> float:
    """Return nDCG@10 by a join and a group-by."""
    rank = pl.col("rank")
    discounts = 1 / np.log2(np.arange(2, K + 2))
    ideal = pl.DataFrame({"n": np.arange(1, K + 1), "idcg": np.cumsum(discounts)})
    hits = (
        lists.filter(rank <= K)
        .join(relevant, on=["user", "item"])
        .group_by("user")
        .agg((1 / (rank + 1).log(2)).sum().alias("dcg"))
    )
    size = pl.len().clip(upper_bound=K).cast(pl.Int64).alias("n")
    users = relevant.group_by("user").agg(size).join(ideal, on="n")
    scored = users.join(hits, on="user", how="left")
    value: float = scored.select((pl.col("dcg").fill_null(0) / pl.col("idcg")).mean()).item()
    return value


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the median seconds of some calls, and the result of the last one."""
    result = call()
    seconds = []
    for _ in range(CALLS):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return median(seconds), result
