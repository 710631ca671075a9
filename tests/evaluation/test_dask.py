"""Dask: the numbers of one process, to the last bit, whatever happens to the workers."""

from __future__ import annotations

import gc
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from merge_cases import same_bits, same_numbers, same_random
from raising import raises
from scipy.sparse import csr_matrix
from tables_cases import damage_pages, saved_csr
from ways_cases import make_case
from ways_cases import same as same_by_every_way

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, WorkerError
from sparse_eval.evaluation.run import Execution, Shared, evaluate_task, open_runner
from sparse_eval.metrics.request import Request
from sparse_eval.models.source import ModelSource
from sparse_eval.results.parts import merge_parts

distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
dataframe = pytest.importorskip("dask.dataframe")
from dask import config  # noqa: E402

from sparse_eval.evaluation.dask import DaskRunner, check_version, result_of  # noqa: E402

# Of distributed about itself, when workers die and start again.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::UserWarning:distributed", "ignore::DeprecationWarning"
)

METRICS = ["ndcg(gain=exp)@{5,10}", "recall(average=micro)@10", "coverage@10", "novelty@10"]


@contextmanager
def cluster(*, processes: bool) -> Iterator[Any]:
    """Start two workers, each with one thread."""
    options: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}
    gc.collect()  # distributed waits forever if it deletes a client while it starts a cluster
    with (
        # So long after a worker ended, its cluster gives it up if it is just starting once more.
        config.set({"distributed.deploy.lost-worker-timeout": "1 h"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=processes, **options
        ) as local,
        distributed.Client(local, set_as_default=False) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Return a client of workers in this process."""
    with cluster(processes=False) as connected:
        yield connected


@pytest.fixture(scope="module")
def workers() -> Iterator[Any]:
    """Return a client of workers in processes of their own, which take seconds to start."""
    with cluster(processes=True) as connected:
        yield connected


@pytest.fixture(scope="module")
def data() -> tuple[Any, csr_matrix, csr_matrix]:
    """Return a model, and what it was trained and is evaluated on."""
    clicks = se.datasets.synthetic(n_users=900, n_items=200, seed=0)
    holdout = se.split.random(clicks, seed=0)
    # Without ids, which matrices on disk do not have either.
    train, held = (part.csr for part in (holdout.train, holdout.validation))
    return se.train_als(train, factors=8, iterations=3), train, held


def same(one: se.Evaluation, other: se.Evaluation) -> None:
    same_bits(one, other)
    assert one.retrieval == other.retrieval


def on_disk(folder: Path, model: Any, train: csr_matrix, held: csr_matrix) -> list[Path]:
    for name, matrix in (("train", train), ("validation", held)):
        saved_csr(folder / name, matrix)
    (folder / "model").mkdir()
    for side in ("user_factors", "item_factors"):
        np.save(folder / "model" / f"{side}.npy", getattr(model, side))
    return [folder / name for name in ("model", "train", "validation")]


def test_models_have_the_bits_of_one_process(workers: Any, data: Any, tmp_path: Path) -> None:
    whole = se.evaluate_model(*data, METRICS)
    same(se.evaluate_model(*data, METRICS, client=workers), whole)
    files = on_disk(tmp_path, *data)
    found = se.evaluate_model(*files, METRICS, client=workers, keep="totals")
    same_numbers(found, whole)
    same_random(found, whole)


def test_a_worker_that_is_killed_changes_nothing(workers: Any, data: Any) -> None:
    request = Request.parse(se.Protocol("ndcg@10"), {"train"})
    source = ModelSource(request, Execution(client=workers), *data, {})
    source.n_rows = 50

    def tasks() -> Iterator[tuple[Any, int]]:
        for task, _ in source.tasks():
            if task.first == 300:
                os.kill(next(iter(workers.run(os.getpid).values())), signal.SIGKILL)
            yield task, task.first

    with open_runner(workers) as runner:
        shared = Shared(request, source.load, True, False, runner.num_threads)
        done = list(runner.run(evaluate_task, shared, tasks()))
    assert sorted(first for first, _ in done) == list(range(0, 900, 50))
    found = se.Evaluation(request, parts=[merge_parts(part for _, part in done)])
    same(found, se.evaluate_model(*data, "ndcg@10"))


def die(*_: Any) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.long
def test_what_kills_every_worker_ends(workers: Any, tables: Any) -> None:
    with open_runner(workers) as runner, raises(WorkerError):
        list(runner.run(die, None, [(1, 1)]))
    deadly, other = (dataframe.from_pandas(frame, npartitions=2) for frame in tables)
    deadly = deadly.map_partitions(die, meta=tables[0].iloc[:0])
    with raises(WorkerError):
        se.evaluate(deadly, other, "ndcg@5", client=workers)


def test_nobody_answers(client: Any, data: Any) -> None:
    worker = next(iter(client.scheduler_info()["workers"]))
    for address in ("tcp://127.0.0.1:9", "garbage", worker):
        start = time.perf_counter()
        with raises(WorkerError):
            se.evaluate_model(*data, "ndcg@10", client=address)
        assert time.perf_counter() - start < 30


class Cluster:
    """A client of a cluster without workers."""

    def __init__(self, status: str) -> None:
        self.status = status

    def wait_for_workers(self, n: int, timeout: float) -> None:
        raise TimeoutError


class Failed:
    """A task that failed."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def result(self) -> None:
        raise self.error


def test_workers_need_the_same_version() -> None:
    with raises(WorkerError, may_pass=True):
        DaskRunner(Cluster("running"))
    with raises(InvalidDataError):
        DaskRunner(Cluster("closed"))
    with raises(WorkerError, may_pass=False):
        check_version("0.0.1")
    with raises(WorkerError, may_pass=False):
        result_of(Failed(ModuleNotFoundError("No module named 'sparse_eval'")))
    with raises(WorkerError):
        result_of(Failed(CancelledError("lost")))
    with pytest.raises(RuntimeError, match="something else"):
        result_of(Failed(RuntimeError("something else")))


def test_the_summary_is_there_after_the_client_is_closed(data: Any, tables: Any) -> None:
    metrics = ["ndcg@5", "coverage@5", "recall(average=micro)@5"]
    frames = [dataframe.from_pandas(frame, npartitions=2) for frame in tables]
    with cluster(processes=False) as connected:
        of_frames = se.evaluate(*frames, metrics, client=connected)
        asked = se.evaluate(*frames, metrics, client=connected)
        asked.summary()
    whole = se.evaluate(*tables, metrics)
    same_numbers(of_frames, whole)
    assert of_frames.summary()["random"].isna().all()
    with raises(InvalidDataError):
        of_frames.random("ndcg@5")
    same_random(asked, whole)
    for sides, client in ((tables, connected), (frames, connected), (frames, None)):
        with raises(InvalidDataError):
            se.evaluate(*sides, "ndcg@10", client=client)
    with raises(InvalidDataError):
        se.evaluate_model(*data, "ndcg@10", client=connected)


def test_what_a_worker_finds_wrong_is_told_here(client: Any, data: Any, tmp_path: Path) -> None:
    recs, truth = damage_pages(tmp_path)
    with raises(InvalidFileError, path=recs):
        se.evaluate(recs, truth, "mrr", client=client)
    model, train, held = data
    held = held.astype(np.float64)
    held.data[-1] = -1
    with raises(InvalidDataError):
        se.evaluate_model(model, train, held, "ndcg@10", client=client)


@pytest.fixture(scope="module")
def tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return recommendations and the relevant items, in no order."""
    rng = np.random.default_rng(0)
    lists = pd.DataFrame(
        {
            "user": np.repeat(np.arange(300), 5),
            "item": (rng.permuted(np.tile(np.arange(40), (300, 1)), axis=1)[:, :5]).ravel(),
            "rank": np.tile(np.arange(1, 6), 300),
        }
    )
    truth = pd.DataFrame({"user": np.repeat(np.arange(20, 320), 3)})
    truth["item"] = rng.permuted(np.tile(np.arange(40), (300, 1)), axis=1)[:, :3].ravel()
    truth["gain"] = rng.integers(0, 4, len(truth)).astype(float)
    return lists.sample(frac=1, random_state=1), truth.sample(frac=1, random_state=2)


OF_TABLES = "ndcg@{3,5},map@5,mrr@5,auc@5,coverage@5,gini@5,err@5,recall(average=micro)@5"


def in_memory(lists: pd.DataFrame, truth: pd.DataFrame) -> se.Evaluation:
    return se.evaluate(
        se.Rankings.from_frame(lists, rank="rank"),
        se.Relevance.from_frame(truth, gain="gain"),
        OF_TABLES,
    )


@pytest.mark.parametrize(
    ("convention", "kind"),
    [("mind-notebook", "gaps"), ("trec_eval", "ties"), ("rectools", "ranks")],
)
def test_frames_give_the_number_of_every_way(client: Any, convention: str, kind: str) -> None:
    case = make_case(11, kind=kind, n_users=20).accepted(convention)
    protocol = se.Protocol(case.metrics(convention), convention=convention)
    expected = se.evaluate(case.positions, case.validation, protocol)
    shuffled = (frame.sample(frac=1, random_state=0) for frame in case.tables)
    frames = [dataframe.from_pandas(frame, npartitions=3, sort=False) for frame in shuffled]
    same_by_every_way(se.evaluate(*frames, protocol, client=client), expected)


@pytest.mark.parametrize("ids", ["int32", "category", "text"])
def test_tables_have_the_bits_of_one_process(client: Any, tables: Any, ids: str) -> None:
    lists, truth = tables
    wanted = in_memory(lists, truth)
    if ids == "int32":  # on one side
        lists = lists.astype({"user": "int32", "item": "int32"})
    elif ids == "category":  # of another type
        truth = truth.astype({"user": "int32", "item": "int16"}).astype(
            {"user": "category", "item": "category"}
        )
    elif ids == "text":
        both = (frame.assign(item=frame["item"].map("{:03}".format)) for frame in tables)
        lists, truth = (f.assign(user=f["user"].map("{:04}".format)) for f in both)
        wanted = in_memory(lists, truth)
    sides = dataframe.from_pandas(lists, npartitions=4), dataframe.from_pandas(truth, npartitions=3)
    found = se.evaluate(*sides, OF_TABLES, client=client)
    assert found.mean() == wanted.mean()
    columns = wanted.per_user.sort_index()
    pd.testing.assert_frame_equal(
        found.per_user, columns, check_exact=True, check_index_type=False, check_names=False
    )


def test_propensities_by_item(client: Any, tables: Any) -> None:
    items = se.ItemData(propensity=pd.Series(np.linspace(0.05, 1, 40), range(40)))
    frames = [dataframe.from_pandas(frame, npartitions=3) for frame in tables]
    metrics = ["psp(propensity=given)@3", "ndcg(weights=snips)@3"]
    found = se.evaluate(*frames, metrics, client=client, items=items)
    same_numbers(found, se.evaluate(*tables, metrics, items=items))


def test_tables_on_disk_need_no_dataframe(client: Any, tables: Any, tmp_path: Path) -> None:
    files = [tmp_path / f"{name}.parquet" for name in ("recs", "truth")]
    for frame, file in zip(tables, files, strict=True):
        frame.to_parquet(file, index=False, row_group_size=100)
    found = se.evaluate(*files, OF_TABLES, client=client)
    assert found.mean() == in_memory(*tables).mean()


def test_partitions_of_their_own_users_are_not_shuffled(
    client: Any, tables: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists, truth = (frame.sort_values("user", kind="stable") for frame in tables)
    apart = [
        dataframe.from_delayed(
            [_delayed(frame[(frame["user"] >= a) & (frame["user"] < b)]) for a, b in cuts],
            meta=frame.iloc[:0],
        )
        for frame in (lists, truth)
        for cuts in [((0, 100), (100, 250), (250, 900), (900, 901))]  # the last has no users
    ]

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("shuffled")

    monkeypatch.setattr(type(apart[0]), "shuffle", refuse)
    found = se.evaluate(*apart, OF_TABLES, client=client)
    assert found.mean() == in_memory(lists, truth).mean()


def test_a_user_in_two_partitions_is_put_together(client: Any, tables: Any) -> None:
    lists, truth = (frame.sort_values("user", kind="stable") for frame in tables)
    apart = [
        dataframe.from_delayed([_delayed(frame[:cut]), _delayed(frame[cut:])], meta=frame.iloc[:0])
        for frame, cut in ((lists, 502), (truth, 240))  # user 100 has two rows before the cut
    ]
    assert lists["user"].iloc[501] == lists["user"].iloc[502] == truth["user"].iloc[240] == 100
    found = se.evaluate(*apart, OF_TABLES, client=client)
    same_numbers(found, in_memory(lists, truth))


def _delayed(frame: pd.DataFrame) -> Any:
    from dask.delayed import delayed

    return delayed(frame)


@pytest.mark.parametrize(
    "change",
    [
        lambda r, t: (r.assign(user=r["user"].astype(str)), t),
        lambda r, t: (r.assign(user=r["user"] + 0.5), t),
        lambda r, t: (pd.concat([r, r[:1]]), t),
        lambda r, t: (r.assign(user=r["user"].astype("uint64") + 2**63), t),
        lambda r, t: (r.assign(user=r["user"].astype("Int64").replace(5, pd.NA)), t),
    ],
)
def test_tables_that_are_refused(client: Any, tables: Any, change: Any) -> None:
    sides = [dataframe.from_pandas(frame, npartitions=2) for frame in change(*tables)]
    with raises(InvalidDataError):
        se.evaluate(*sides, "ndcg@5", client=client)


def test_numbers_among_text_are_refused(client: Any, tables: Any) -> None:
    import dask

    lists, truth = (frame.assign(user=frame["user"].astype(object)) for frame in tables)
    text = truth.assign(user=truth["user"].map(str))
    with dask.config.set({"dataframe.convert-string": False}):
        sides = [dataframe.from_pandas(frame, npartitions=2) for frame in (lists, text)]
        with raises(InvalidDataError):
            se.evaluate(*sides, "ndcg@5", client=client)


def test_tables_and_clients_have_to_fit(client: Any, tables: Any, tmp_path: Path) -> None:
    frame = dataframe.from_pandas(tables[0], npartitions=2)
    with raises(InvalidDataError):
        se.evaluate(frame, tables[1], "ndcg@5", client=client)
    with (
        ThreadPoolExecutor(1) as pool,
        raises(InvalidDataError),
    ):
        se.evaluate(frame, frame, "ndcg@5", client=pool)
    truth = tmp_path / "truth.parquet"
    tables[1].to_parquet(truth, index=False)
    same_numbers(se.evaluate(frame, truth, OF_TABLES, client=client), in_memory(*tables))
