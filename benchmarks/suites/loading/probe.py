"""Measure loading and splitting of event files, and scoring of frames. Imports are not timed."""

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
    users, items = (
        pa.array([f"{kind}{number:08x}" for number in rng.permutation(10 * size)[:size].tolist()])
        for kind, size in (("user", n_users), ("item", n_items))
    )
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


def divide(folder: str, name: str) -> dict[str, Any]:
    """Time a split, the matrix, or NumPy's argsort."""
    events = se.datasets.load(Path(folder, "events.parquet"))
    keys = events.user_codes.astype(np.int64) * events.n_items + events.item_codes
    calls = {
        "argsort": lambda: np.argsort(keys),
        "matrix": events.matrix,
        "random": lambda: se.split.random(events),
        "temporal": lambda: se.split.temporal(events),
        "last_n": lambda: se.split.last_n(events),
    }
    return {"seconds": timed(calls[name])[0]}


def frames(kind: str, library: str) -> dict[str, Any]:
    """Score lists of 50,000 users; the polars code reads pandas frames with `from_pandas`."""
    lists, relevant = make_frames()
    score = score_by_polars if library == "polars" else score_by_sparse_eval
    if kind == "polars":
        sides: list[Any] = [lists, relevant]
    else:
        dtypes: dict[str, Any] = dict.fromkeys(("user", "item"), kind)
        sides = [side.to_pandas().astype(dtypes) for side in (lists, relevant)]
    if library == "polars" and kind != "polars":
        seconds, value = timed(lambda: score(*map(pl.from_pandas, sides)))
    else:
        seconds, value = timed(lambda: score(*sides))
    return {"seconds": seconds, "values": value}


def make_frames() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Draw lists, and five relevant items per user, with at least two of them in the list."""
    rng = np.random.default_rng(0)
    users, items = (
        np.array([f"{kind}{number:08x}" for number in rng.permutation(10 * n)[:n].tolist()])
        for kind, n in (("user", USERS), ("item", ITEMS))
    )
    first = rng.integers(0, ITEMS, (USERS, 1))
    listed = (first + 7 * np.arange(K)) % ITEMS  # distinct items
    held = (first + np.array([7, 21, 1, 2, 3])) % ITEMS
    relevant = pl.DataFrame(
        {"user": np.repeat(users, held.shape[1]), "item": items[held.reshape(-1)]}
    )
    lists = pl.DataFrame(
        {
            "user": np.repeat(users, K),
            "item": items[listed.reshape(-1)],
            "rank": np.tile(np.arange(1, K + 1), USERS),
        }
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


def score_by_sparse_eval(lists: Any, relevant: Any) -> float:
    return se.evaluate(lists, relevant, f"ndcg@{K}")[f"ndcg@{K}"]


def model(inputs: str) -> dict[str, Any]:
    holdout = se.split.random(se.datasets.synthetic(seed=0), seed=0)
    als = se.train_als(holdout.train, factors=32, iterations=2, progress=False)
    factors: Any = als
    sides: list[Any] = [holdout]
    if inputs == "matrices":
        factors = (np.array(als.user_factors), np.array(als.item_factors))
        sides = [holdout.train.csr, holdout.validation.csr]
    seconds, evaluation = timed(lambda: se.evaluate_model(factors, *sides, "ndcg@10"))
    return {"seconds": seconds, "values": evaluation["ndcg@10"]}


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the median seconds of some calls, and the result of the last one."""
    result = call()
    seconds = []
    for _ in range(CALLS):
        start = time.perf_counter()
        result = call()
        seconds.append(time.perf_counter() - start)
    return median(seconds), result
