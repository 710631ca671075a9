"""Measure evaluations beyond memory or one machine, each in its own process."""

import resource
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from harness.files import once
from suites.retrieval.inputs import draw

import sparse_eval as se

warnings.simplefilter("ignore")  # warnings of a cluster about its workers

SEED = 0
N_ITEMS = 51_000
LISTED = 10
AT_ONCE = 500_000
WARM_USERS = 10_000

OF_TABLES = "ndcg@{5,10},precision@10,recall@10,map@10,mrr@10"
OF_USERS = "ndcg@{10,20},recall@{10,20},map@20,mrr@20"


def base(folder: str, n_users: int, n_items: int) -> dict[str, Any]:
    """Draw the data of models."""
    return draw(Path(folder), n_users, n_items)


def tables(folder: str, n_users: int) -> dict[str, Any]:
    """Write 10 items for each user, and one relevant item, which is listed for 3 of 10 users."""
    import pyarrow as pa
    from pyarrow import parquet

    def write(unfinished: Path) -> None:
        rng = np.random.default_rng(SEED)
        writers: dict[str, Any] = {}
        for first in range(0, n_users, AT_ONCE):
            n = min(AT_ONCE, n_users - first)
            users = np.arange(first, first + n)
            least = (N_ITEMS * rng.random(n) ** 3).astype(np.int32)
            items = least[:, None] + np.cumsum(rng.integers(1, 300, (n, LISTED)), 1, np.int32)
            one_of_them = items[np.arange(n), rng.integers(0, LISTED, n)]
            any_item = rng.integers(0, N_ITEMS, n).astype(np.int32)
            ranks = np.tile(np.arange(1, LISTED + 1, dtype=np.int32), n)
            relevant = np.where(rng.random(n) < 0.3, one_of_them, any_item)
            listed = {"user": np.repeat(users, LISTED), "item": items.ravel(), "rank": ranks}
            for name, columns in (("recs", listed), ("truth", {"user": users, "item": relevant})):
                table = pa.table(columns)
                if name not in writers:
                    path = unfinished / f"{name}.parquet"
                    writers[name] = parquet.ParquetWriter(path, table.schema)
                writers[name].write_table(table)
        for writer in writers.values():
            writer.close()

    once(Path(folder), write)
    return {"bytes": bytes_in(folder)}


def model(folder: str, n_users: int) -> dict[str, Any]:
    """Write factors, history and held-out items of the drawn users, repeated as needed."""
    drawn = Path(folder).with_name("drawn")
    n_items = len(np.load(drawn / "items.npy", mmap_mode="r"))

    def write(unfinished: Path) -> None:
        users = np.load(drawn / "users.npy", mmap_mode="r")
        starts, seen = (np.load(drawn / f"seen_{name}.npy") for name in ("indptr", "indices"))
        held = np.load(drawn / "held_out.npy")
        parts = [min(len(users), n_users - first) for first in range(0, n_users, len(users))]
        for name in ("model", "train", "validation"):
            (unfinished / name).mkdir()
        np.save(unfinished / "model" / "item_factors.npy", np.load(drawn / "items.npy"))
        path, shape = unfinished / "model" / "user_factors.npy", (n_users, users.shape[1])
        out = np.lib.format.open_memmap(path, "w+", users.dtype, shape)
        for number, n in enumerate(parts):
            out[number * len(users) :][:n] = users[:n]
        out.flush()
        sizes = np.concatenate([np.diff(starts)[:n] for n in parts])
        ends = {"train": np.cumsum(sizes), "validation": np.arange(1, n_users + 1)}
        columns = {
            "train": np.concatenate([seen[: starts[n]] for n in parts]),
            "validation": np.concatenate([held[:n] for n in parts]),
        }
        for name, indices in columns.items():
            place = unfinished / name
            np.save(place / "indices.npy", indices.astype(np.int32))
            np.save(place / "data.npy", np.ones(len(indices), np.int8))
            np.save(place / "indptr.npy", np.concatenate([[0], ends[name]]).astype(np.int64))
            np.save(place / "shape.npy", (n_users, n_items))

    once(Path(folder), write)
    return {"bytes": bytes_in(folder)}


def bytes_in(folder: str) -> int:
    return sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())


def measured(work: Callable[[], se.Evaluation]) -> dict[str, Any]:
    """Return the seconds of an evaluation, and the memory peak of the process."""
    start = time.perf_counter()
    ev = work()
    seconds = time.perf_counter() - start
    peak = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"seconds": seconds, "bytes": peak, "values": ev.mean()}


def evaluate_tables(folder: str, memory: int) -> dict[str, Any]:
    def evaluate(place: Path, **options: Any) -> se.Evaluation:
        sides = (place / "recs.parquet", place / "truth.parquet")
        return se.evaluate(*sides, OF_TABLES, keep="totals", **options)

    warm = Path(folder).with_name("tables-1000")
    tables(str(warm), 1000)
    evaluate(warm)
    return measured(lambda: evaluate(Path(folder), memory=memory, progress=False))


def evaluate_users(folder: str, memory: int) -> dict[str, Any]:
    """Evaluate with one thread, to measure a single core."""
    options: dict[str, Any] = {"memory": memory, "num_threads": 1}
    totals(warm_sides(folder), OF_USERS, **options)
    return measured(lambda: totals(sides_of(folder), OF_USERS, **options))


def totals(sides: tuple[Path, Path, Path], metrics: str, **options: Any) -> se.Evaluation:
    return se.evaluate_model(*sides, metrics, keep="totals", **options)


def sides_of(folder: str) -> tuple[Path, Path, Path]:
    return Path(folder, "model"), Path(folder, "train"), Path(folder, "validation")


def warm_sides(folder: str) -> tuple[Path, Path, Path]:
    """Return a model of few users, next to another one, for calls that are not timed."""
    warm = str(Path(folder).with_name(f"model-{WARM_USERS}"))
    model(warm, WARM_USERS)
    return sides_of(warm)


@contextmanager
def cluster(n_workers: int) -> Iterator[Any]:
    """Yield a Dask client of new workers with one thread each."""
    from dask.distributed import Client, LocalCluster

    options = {"threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(n_workers=n_workers, **options) as local, Client(local) as client:
        yield client


def workers(folder: str, n_workers: int, rounds: int) -> dict[str, Any]:
    """Evaluate with Dask, with one worker and with several, in turn."""
    warm = warm_sides(folder)
    seconds: dict[int, list[float]] = {1: [], n_workers: []}
    means = []
    for n, found in rounds * list(seconds.items()):
        with cluster(n) as client:
            totals(warm, OF_USERS, client=client)
            start = time.perf_counter()
            ev = totals(sides_of(folder), OF_USERS, client=client)
            found.append(time.perf_counter() - start)
            means.append(ev.mean())
    return {
        "seconds": {str(n): found for n, found in seconds.items()},
        "ratio": float(np.median(seconds[1]) / np.median(seconds[n_workers])),
        "same": all(mean == means[0] for mean in means),
    }
