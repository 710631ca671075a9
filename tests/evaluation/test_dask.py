"""Dask: the numbers of one process, to the last bit, whatever happens to the workers."""

import gc
import os
import signal
from concurrent.futures import Future
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from merge_cases import same_bits, same_numbers, same_random
from raising import raises
from tables_cases import check_model, damage_pages, make_tables

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, WorkerError
from sparse_eval.evaluation import parquet
from sparse_eval.evaluation.execution import Execution, Shared, evaluate_task, open_runner
from sparse_eval.metrics.request import Request
from sparse_eval.models.model_source import open_source
from sparse_eval.results.partial_results import merge_parts

distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
dataframe = pytest.importorskip("dask.dataframe")
from dask import config  # noqa: E402

from sparse_eval.evaluation.dask import DaskRunner  # noqa: E402

# Of distributed about itself, when workers die and start again.
pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::UserWarning:distributed", "ignore::DeprecationWarning"
    ),
]


@contextmanager
def cluster(*, processes):
    """Start two workers, each with one thread."""
    options = {"dashboard_address": None, "silence_logs": 50}
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
def client():
    """Return a client of workers in this process."""
    with cluster(processes=False) as connected:
        yield connected


@pytest.fixture(scope="module")
def workers():
    """Return a client of workers in processes of their own, which take seconds to start."""
    with cluster(processes=True) as connected:
        yield connected


def test_models_have_the_bits_of_one_process(client, data, tmp_path):
    check_model(client, data, tmp_path)


@pytest.mark.parametrize("n_killed", [1, 2])  # with both, the shared data are lost too
def test_workers_that_are_killed_change_nothing(workers, data, n_killed):
    request = Request.parse(se.Protocol("ndcg@10"), {"train"})
    source = open_source(request, Execution(client=workers), *data, {})
    source.n_rows = 50
    processes = list(workers.run(os.getpid).values())

    def tasks():
        for task, _ in source.tasks():
            if task.first == 300:
                for process in processes[:n_killed]:
                    os.kill(process, signal.SIGKILL)
            yield task, task.first

    with open_runner(workers) as runner:
        shared = Shared(request, source.load, True, False, runner.num_threads)
        done = list(runner.run(evaluate_task, shared, tasks()))
    assert [first for first, _ in done] == list(range(0, 900, 50))
    found = se.Evaluation(merge_parts(part for _, part in done))
    same_bits(found, se.evaluate_model(*data, "ndcg@10"))


def test_nobody_answers(client, data):
    worker = next(iter(client.scheduler_info()["workers"]))
    for address in ("tcp://127.0.0.1:9", "garbage", worker):
        with raises(WorkerError):
            se.evaluate_model(*data, "ndcg@10", client=address)


def test_clients_without_workers_and_tasks_that_kill_them():
    without_workers = {"wait_for_workers.side_effect": TimeoutError}
    with raises(WorkerError, may_pass=True):
        DaskRunner(mock.Mock(status="running", **without_workers))
    with raises(InvalidDataError):
        DaskRunner(mock.Mock(status="closed", **without_workers))
    killed = Future()
    killed.set_exception(distributed.KilledWorker("task", mock.Mock(address="tcp://a:1"), 3))
    client = mock.Mock(status="running", **{"nthreads.return_value": {"a": 9}})
    submit = client.get_executor.return_value.submit
    submit.return_value = killed
    with raises(WorkerError, may_pass=True):
        list(DaskRunner(client).run(evaluate_task, None, [(0, 1)] * 100))
    assert submit.call_count == 18  # two for each thread


def test_the_summary_is_there_after_the_client_is_closed(data, tables):
    metrics = ["ndcg@5", "coverage@5", "recall(average=micro)@5"]
    with cluster(processes=False) as connected:
        found = se.evaluate(*tables, metrics, client=connected)
    whole = se.evaluate(*tables, metrics)
    same_numbers(found, whole)
    same_random(found, whole)
    with raises(InvalidDataError):
        se.evaluate_model(*data, "ndcg@10", client=connected)


def test_what_a_worker_finds_wrong_is_told_here(client, data, tmp_path):
    recs, truth = damage_pages(tmp_path)
    with raises(InvalidFileError, path=recs):
        se.evaluate(recs, truth, "mrr", client=client)
    model, train, held = data
    held = held.astype(np.float64)
    held.data[-1] = -1
    with raises(InvalidDataError):
        se.evaluate_model(model, train, held, "ndcg@10", client=client)


@pytest.fixture(scope="module")
def tables():
    return make_tables(gains=True)


@pytest.mark.parametrize("n_rows", [10**6, 100])  # one range of users, and files by user
def test_tables_have_the_bits_of_one_process(workers, tables, tmp_path, monkeypatch, n_rows):
    monkeypatch.setattr(parquet, "ROWS_PER_TASK", n_rows)
    paths = [tmp_path / "recs.parquet", tmp_path / "truth.parquet"]
    for table, path in zip(tables, paths, strict=True):
        table.to_parquet(path, index=False)
    metrics = "ndcg@{3,5},map@5,mrr@5,auc@5,coverage@5,gini@5,err@5,recall(average=micro)@5"
    same_numbers(se.evaluate(*paths, metrics, client=workers), se.evaluate(*tables, metrics))


def test_dataframes_of_dask_are_refused_before_anything_is_read(tables, tmp_path):
    tables[1].to_parquet(tmp_path / "truth.parquet", index=False)
    frame = dataframe.from_pandas(tables[0], npartitions=2)
    for call in (
        lambda: se.evaluate(frame, tmp_path / "truth.parquet", "ndcg@5"),
        lambda: se.evaluate(tables[0], frame, "ndcg@5"),
        lambda: se.evaluate(se.Rankings.scan(frame), tables[1], "ndcg@5"),
        lambda: se.Rankings.from_frame(frame),
        lambda: se.Interactions.from_frame(frame),
    ):
        with raises(InvalidDataError):
            call()
