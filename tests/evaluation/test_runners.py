"""Executors as workers: the bits of one process, errors with their class, workers that are gone."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from merge_cases import same_bits, same_random
from raising import raises
from scipy import sparse
from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval.errors import (
    InvalidDataError,
    InvalidFileError,
    WorkerError,
)
from sparse_eval.evaluation.run import Execution, Shared, evaluate_task, open_runner
from sparse_eval.evaluation.runners import ExecutorRunner
from sparse_eval.metrics.request import Request
from sparse_eval.models.source import FileReference, ModelSource

METRICS = ["ndcg@5", "coverage@5", "recall(average=micro)@5", "novelty@5"]


def pool_of(kind: str) -> Executor:
    if kind == "threads":
        return ThreadPoolExecutor(2)
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


@pytest.fixture(scope="module", params=["threads", "processes"])
def pool(request: pytest.FixtureRequest) -> Iterator[Executor]:
    """Return an executor that tests share: a process takes seconds to start."""
    with pool_of(request.param) as executor:
        yield executor


@pytest.fixture(scope="module")
def data() -> tuple[Any, sparse.csr_matrix, sparse.csr_matrix]:
    clicks = se.datasets.synthetic(n_users=400, n_items=100, seed=0)
    holdout = se.split.random(clicks, seed=0)
    # Without ids, which matrices on disk do not have either.
    train, held = (part.csr for part in (holdout.train, holdout.validation))
    return se.train_als(train, factors=8, iterations=3), train, held


def same(found: se.Evaluation, expected: se.Evaluation) -> None:
    same_bits(found, expected)
    same_random(found, expected)
    assert found.retrieval == expected.retrieval


def test_an_executor_gives_the_bits_of_one_process(
    pool: Executor, data: Any, tmp_path: Path
) -> None:
    expected = se.evaluate_model(*data, METRICS)
    same(se.evaluate_model(*data, METRICS, client=pool), expected)
    data[0].save(tmp_path / "als.npz")
    folders = [saved_csr(tmp_path / str(n), side) for n, side in enumerate(data[1:])]
    same(se.evaluate_model(tmp_path / "als.npz", *folders, METRICS, client=pool), expected)
    same(se.evaluate_model(*data, METRICS, client=pool, memory=1 << 28), expected)
    beside = se.evaluate_model(*data, METRICS, client=pool, baselines=True, keep="totals")
    whole = se.evaluate_model(*data, METRICS, baselines=True)
    assert beside.mean() == whole.mean()
    assert beside.baselines["popularity"].mean() == whole.baselines["popularity"].mean()


def test_rows_in_no_order_are_there_until_the_last_worker_read_them(
    pool: Executor, data: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sparse_eval.evaluation import parquet

    monkeypatch.setattr(parquet, "ROWS_PER_TASK", 300)
    lists = se.evaluate_model(*data, "ndcg@5,coverage@5").rankings.to_positions().tocoo()
    held = data[2].tocoo()
    paths = []
    for name, side, value in (("recs", lists, "rank"), ("truth", held, "gain")):
        import pandas as pd

        frame = pd.DataFrame({"user": side.row, "item": side.col, value: side.data})
        paths.append(tmp_path / f"{name}.parquet")
        frame.sample(frac=1, random_state=0).to_parquet(paths[-1], index=False, row_group_size=100)
    metrics = ["ndcg@5", "coverage@5"]
    found = se.evaluate(*paths, metrics, client=pool)
    expected = se.evaluate(*paths, metrics)
    same(found, expected)


def work_of(shared: Any, task: Any) -> Any:
    """What a worker does here: it raises what it is given, or dies."""
    if isinstance(task, Exception):
        raise task
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return shared, task


ERRORS = [
    InvalidFileError("is torn", Path("a") / "recs.csv", 7),
    InvalidDataError("so"),
    KeyError("theirs"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_every_error_is_that_of_the_worker(pool: Executor, error: Exception) -> None:
    with open_runner(pool) as runner, pytest.raises(type(error)) as told:
        list(runner.run(work_of, None, [(error, 1)]))
    assert type(told.value) is type(error)
    assert str(told.value) == str(error)
    assert told.value.__dict__.items() >= error.__dict__.items() or not error.__dict__


def test_tags_stay_with_their_tasks(pool: Executor) -> None:
    tasks = [(number, -number) for number in range(50)]
    for client in (pool, None):
        with open_runner(client) as runner:
            done = list(runner.run(work_of, "shared", iter(tasks)))
        assert sorted(done) == sorted((tag, ("shared", task)) for task, tag in tasks)


class Slow(Executor):
    """An executor that counts what waits."""

    def __init__(self) -> None:
        self.waiting: list[Future[Any]] = []

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:  # type: ignore[override]
        future: Future[Any] = Future()
        self.waiting.append(future)
        if len(self.waiting) == 16:
            for waiting in self.waiting[:8]:
                waiting.set_exception(InvalidDataError("no more"))
        return future


def test_no_more_than_a_few_tasks_wait_and_are_cancelled_after_an_error() -> None:
    executor = Slow()
    given = []

    def tasks() -> Iterator[tuple[int, int]]:
        for number in range(1000):
            given.append(number)
            yield number, 1

    with raises(InvalidDataError):
        list(ExecutorRunner(executor).run(work_of, None, tasks()))
    assert len(given) == 16
    assert all(future.cancelled() for future in executor.waiting[8:])


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_refuses_an_executor_that_was_shut_down(kind: str, data: Any) -> None:
    executor = pool_of(kind)
    executor.shutdown()
    with raises(WorkerError):
        se.evaluate_model(*data, "ndcg@10", client=executor)
    with raises(WorkerError):
        se.evaluate(data[2].sign().astype(np.int64), data[2], "mrr", client=executor)


def test_a_worker_that_dies_is_told_and_so_is_its_executor(data: Any) -> None:
    with pool_of("processes") as executor:
        with (
            open_runner(executor) as runner,
            raises(WorkerError),
        ):
            list(runner.run(work_of, None, [("die", 1)]))
        with raises(WorkerError):
            se.evaluate_model(*data, "ndcg@10", client=executor)  # it is broken for good


@pytest.mark.parametrize("client", [7, object(), [1]])
def test_refuses_other_clients(client: Any, data: Any) -> None:
    with raises(InvalidDataError):
        se.evaluate_model(*data, "ndcg@10", client=client)
    with raises(InvalidDataError):
        se.evaluate(data[2], data[2], "mrr", client=client)


def test_the_summary_is_there_after_the_executor_and_the_files_are_gone(
    data: Any, tmp_path: Path
) -> None:
    import pandas as pd

    rows = pd.DataFrame({"user": np.repeat(np.arange(40), 2), "item": np.tile([1, 2], 40)})
    recs, truth = tmp_path / "recs.parquet", tmp_path / "truth.parquet"
    rows.assign(rank=rows["item"]).to_parquet(recs, index=False)
    rows.to_parquet(truth, index=False)
    model = tmp_path / "als.npz"
    data[0].save(model)
    with ThreadPoolExecutor(2) as executor:
        of_model = se.evaluate_model(*data, METRICS, client=executor)
        of_tables = se.evaluate(recs, truth, "ndcg@2", client=executor)
        of_files = se.evaluate_model(model, *data[1:], METRICS, client=executor)
    same(of_model, se.evaluate_model(*data, METRICS))
    expected = se.evaluate(recs, truth, "ndcg@2", memory=1 << 24)
    expected.summary()
    for path in (recs, truth, model):
        path.unlink()
    same_bits(of_tables, expected)
    assert of_tables.summary()["random"].isna().all()
    with raises(InvalidDataError):
        of_tables.random("ndcg@2")
    same_bits(of_files, of_model)


def test_files_that_are_others_elsewhere_are_refused(data: Any, tmp_path: Path) -> None:
    model, train, held = data
    folder = saved_csr(tmp_path / "train", train)
    request = Request.parse(se.Protocol("ndcg@5"), {"train"})
    source = ModelSource(request, Execution(client="workers"), model, folder, held, {})
    task, _ = next(source.tasks())
    assert isinstance(task.sides["train"], FileReference)
    shared = Shared(request, source.load, False, False, 1)
    np.save(folder / "indices.npy", train.indices[::-1].copy())
    with raises(InvalidFileError):
        evaluate_task(shared, task)
    gone = task._replace(sides=task.sides | {"train": FileReference(tmp_path / "nowhere", "0")})
    with raises(InvalidFileError):
        evaluate_task(shared, gone)
