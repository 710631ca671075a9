"""Executors as workers: the bits of one process, errors with their class, workers that are gone."""

import os
import signal
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from merge_cases import same_bits, same_random
from raising import raises
from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, WorkerError
from sparse_eval.evaluation.run import Execution, Shared, evaluate_task, open_runner
from sparse_eval.evaluation.runners import ExecutorRunner
from sparse_eval.metrics.request import Request
from sparse_eval.models.source import FileReference, ModelSource

METRICS = ["ndcg@5", "coverage@5", "recall(average=micro)@5", "novelty@5"]


def pool_of(kind):
    if kind == "threads":
        return ThreadPoolExecutor(2)
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


@pytest.fixture(scope="module", params=["threads", "processes"])
def pool(request):
    """Return an executor that tests share: a process takes seconds to start."""
    with pool_of(request.param) as executor:
        yield executor


@pytest.fixture(scope="module")
def data():
    clicks = se.datasets.synthetic(n_users=400, n_items=100, seed=0)
    holdout = se.split.random(clicks, seed=0)
    # Without ids, which matrices on disk do not have either.
    train, held = (part.csr for part in (holdout.train, holdout.validation))
    return se.train_als(train, factors=8, iterations=3), train, held


def same(found, expected):
    same_bits(found, expected)
    same_random(found, expected)
    assert found.retrieval == expected.retrieval


def test_an_executor_gives_the_bits_of_one_process(pool, data, tmp_path):
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


def work_of(shared, task):
    """What a worker does here: it raises what it is given, or dies."""
    if isinstance(task, Exception):
        raise task
    if task == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    return shared, task


@pytest.mark.parametrize(
    "error", [InvalidFileError("is torn", Path("a") / "recs.csv", 7), KeyError("theirs")], ids=str
)
def test_every_error_is_that_of_the_worker(pool, error):
    with open_runner(pool) as runner, pytest.raises(type(error)) as told:
        list(runner.run(work_of, None, [(error, 1)]))
    assert type(told.value) is type(error)
    assert str(told.value) == str(error)
    assert told.value.__dict__.items() >= error.__dict__.items()


def test_no_more_than_a_few_tasks_wait_and_are_cancelled_after_an_error():
    waiting = []
    given = []

    def submit(*_):
        waiting.append(Future())
        if len(waiting) == 16:
            for future in waiting[:8]:
                future.set_exception(InvalidDataError("no more"))
        return waiting[-1]

    def tasks():
        for number in range(1000):
            given.append(number)
            yield number, 1

    executor = mock.Mock(Executor, submit=submit)
    with raises(InvalidDataError):
        list(ExecutorRunner(executor).run(work_of, None, tasks()))
    assert len(given) == 16
    assert all(future.cancelled() for future in waiting[8:])


def test_refuses_other_clients_and_executors_that_were_shut_down(data):
    positions = data[2].sign().astype(np.int64)
    clients = [7, object(), [1], pool_of("threads"), pool_of("processes")]
    for executor in clients[3:]:
        executor.shutdown()
    for client in clients:
        for call in (
            partial(se.evaluate_model, *data, "ndcg@10", client=client),
            partial(se.evaluate, positions, data[2], "mrr", client=client),
        ):
            with raises(WorkerError if client in clients[3:] else InvalidDataError):
                call()


def test_a_worker_that_dies_is_told_and_so_is_its_executor(data):
    with pool_of("processes") as executor:
        with open_runner(executor) as runner, raises(WorkerError):
            list(runner.run(work_of, None, [("die", 1)]))
        with raises(WorkerError):
            se.evaluate_model(*data, "ndcg@10", client=executor)  # it is broken for good


def test_the_summary_is_there_after_the_executor_and_the_files_are_gone(data, tmp_path):
    rows = pd.DataFrame({"user": np.repeat(np.arange(40), 2), "item": np.tile([1, 2], 40)})
    recs, truth, model = (tmp_path / name for name in ("recs.parquet", "truth.parquet", "als.npz"))
    rows.assign(rank=rows["item"]).to_parquet(recs, index=False)
    rows.to_parquet(truth, index=False)
    data[0].save(model)
    with ThreadPoolExecutor(2) as executor:
        of_tables = se.evaluate(recs, truth, "ndcg@2", client=executor)
        of_files = se.evaluate_model(model, *data[1:], METRICS, client=executor)
    expected = se.evaluate(recs, truth, "ndcg@2")
    for path in (recs, truth, model):
        path.unlink()
    same_bits(of_tables, expected)
    assert of_tables.summary()["random"].isna().all()
    with raises(InvalidDataError):
        of_tables.random("ndcg@2")
    same(of_files, se.evaluate_model(*data, METRICS))


def test_files_that_are_others_elsewhere_are_refused(data, tmp_path):
    model, train, held = data
    folder = saved_csr(tmp_path / "train", train)
    request = Request.parse(se.Protocol("ndcg@5"), {"train"})
    source = ModelSource(request, Execution(client="workers"), model, folder, held, {})
    task, _ = next(source.tasks())
    assert isinstance(task.sides["train"], FileReference)
    gone = task._replace(sides=task.sides | {"train": FileReference(tmp_path / "nowhere", "0")})
    np.save(folder / "indices.npy", train.indices[::-1].copy())
    for wrong in (task, gone):
        with raises(InvalidFileError):
            evaluate_task(Shared(request, source.load, False, False, 1), wrong)
