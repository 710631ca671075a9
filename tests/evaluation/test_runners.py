"""Executors as workers: the bits of one process, errors with their class, workers that are gone."""

import os
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from threading import Barrier
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from merge_cases import same_bits, same_random
from raising import raises
from tables_cases import check_model, saved_csr

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, WorkerError
from sparse_eval.evaluation.array_source import FileReference, FileRows
from sparse_eval.evaluation.execution import Execution, Shared, evaluate_task, open_runner
from sparse_eval.evaluation.runners import ExecutorRunner, check_version
from sparse_eval.metrics.request import Request
from sparse_eval.models.model_source import open_source

pytestmark = pytest.mark.long

METRICS = ["ndcg@5", "coverage@5", "recall(average=micro)@5", "novelty@5"]


def processes():
    return ProcessPoolExecutor(2, mp_context=get_context("spawn"))


@pytest.fixture(scope="module", params=[ThreadPoolExecutor, processes])
def pool(request):
    """Return an executor that tests share: a process takes seconds to start."""
    with request.param() as executor:
        yield executor


def test_an_executor_gives_the_bits_of_one_process(pool, data, tmp_path):
    check_model(pool, data, tmp_path)
    options = {"baselines": True, "keep": "totals", "memory": 1 << 28}
    found = se.evaluate_model(*data, METRICS, client=pool, **options)
    expected = se.evaluate_model(*data, METRICS, baselines=True)
    assert found.mean() == expected.mean()
    assert found.baselines["popularity"].mean() == expected.baselines["popularity"].mean()


def work_of(shared, task):
    """What a worker does here: it raises what it is given, or dies."""
    if isinstance(task, Exception):
        raise task
    if task == "die":
        os._exit(9)
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


def test_as_many_more_tasks_wait_as_are_running():
    given = []

    def submit(*_):
        given.append(Future())
        if len(given) <= 8:
            given[-1].set_running_or_notify_cancel()
        if len(given) == 16:
            for future in given[:2]:
                future.set_result(None)
        return given[-1]

    done = ExecutorRunner(mock.Mock(Executor, submit=submit)).run(work_of, None, [(0, 1)] * 1000)
    next(done)
    assert len(given) == 16
    next(done)
    assert len(given) == 1 + 16 + 2 * 6
    done.close()
    assert [future.cancelled() for future in given[:9]] == [False] * 8 + [True]


def test_sixteen_workers_are_all_busy():
    together = Barrier(16)
    with ThreadPoolExecutor(16) as executor:
        done = ExecutorRunner(executor).run(lambda *_: together.wait(60), None, [(0, 1)] * 64)
        assert len(list(done)) == 64


def test_refuses_other_clients_and_executors_that_were_shut_down(data):
    threads, others = ThreadPoolExecutor(), processes()
    threads.shutdown()
    others.shutdown()
    for client, error in ((7, InvalidDataError), (threads, WorkerError), (others, WorkerError)):
        with raises(error):
            se.evaluate_model(*data, "ndcg@10", client=client)


def test_a_worker_that_dies_is_told_and_so_is_its_executor(data):
    with processes() as executor:
        with open_runner(executor) as runner, raises(WorkerError):
            list(runner.run(work_of, None, [("die", 1)]))
        with raises(WorkerError):
            se.evaluate_model(*data, "ndcg@10", client=executor)  # it is broken for good


def test_tasks_that_an_executor_cancels_are_told():
    cancelled = Future()
    cancelled.cancel()
    executor = mock.Mock(Executor, submit=lambda *_: cancelled)
    with raises(WorkerError, may_pass=True):
        list(ExecutorRunner(executor).run(work_of, None, [(0, 1)]))


def test_workers_need_the_same_version():
    with raises(WorkerError, may_pass=False):
        check_version("0.0.1")


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
    expected = se.evaluate_model(*data, METRICS)
    same_bits(of_files, expected)
    same_random(of_files, expected)


def test_files_that_are_others_elsewhere_are_refused(data, tmp_path):
    model, train, held = data
    folder = saved_csr(tmp_path / "train", train)
    request = Request.parse(se.Protocol("ndcg@5"), {"train"})
    source = open_source(request, Execution(client="workers"), model, folder, held, {})
    task, _ = next(source.tasks())
    assert isinstance(task.train, FileRows)
    gone = replace(task, train=FileRows(FileReference(tmp_path / "nowhere", "0"), 0, 1))
    np.save(folder / "indices.npy", train.indices[::-1].copy())
    for wrong in (task, gone):
        with raises(InvalidFileError):
            evaluate_task(Shared(request, source.load, False, False, 1), wrong)


@pytest.mark.filterwarnings("ignore:.*fewer than 9 items:UserWarning")
def test_a_task_has_the_candidates_of_its_own_users(data):
    model, train, held = data
    candidates = se.sample_negatives(train, held, n=9)
    request = Request.parse(se.Protocol("ndcg@5"), {"train", "candidates"})
    inputs = {"candidates": candidates}
    source = open_source(request, Execution(client="workers"), model, train, held, inputs)
    assert source.load.side_data.candidates is None
    tasks = [task for task, _ in source.tasks()]
    assert len(tasks) > 1
    assert sum(len(task.candidates.items) for task in tasks) == len(candidates.items)


def test_no_random_baseline_of_chosen_users_once_the_model_is_gone(data, tmp_path):
    model, *given = data
    path = tmp_path / "als.npz"
    model.save(path)
    with ThreadPoolExecutor(2) as executor:
        ev = se.evaluate_model(path, *given, METRICS, users=[1, 2, 3], client=executor)
    path.unlink()
    assert ev.summary()["random"].isna().all()
