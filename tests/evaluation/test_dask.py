"""Dask: the numbers of one process, to the last bit, whatever happens to the workers."""

import gc
import os
import signal
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from unittest import mock

import numpy as np
import pytest
from merge_cases import same_bits, same_numbers, same_random
from raising import raises
from tables_cases import check_model, damage_pages, make_tables
from ways_cases import same

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, WorkerError
from sparse_eval.evaluation.run import Execution, Shared, evaluate_task, open_runner
from sparse_eval.metrics.request import Request
from sparse_eval.models.source import ModelSource
from sparse_eval.results.parts import merge_parts

distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
dataframe = pytest.importorskip("dask.dataframe")
from dask import config, delayed  # noqa: E402

from sparse_eval.evaluation.dask import DaskRunner, check_version, result_of  # noqa: E402

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


@pytest.mark.long
def test_a_worker_that_is_killed_changes_nothing(workers, data):
    request = Request.parse(se.Protocol("ndcg@10"), {"train"})
    source = ModelSource(request, Execution(client=workers), *data, {})
    source.n_rows = 50

    def tasks():
        for task, _ in source.tasks():
            if task.first == 300:
                os.kill(next(iter(workers.run(os.getpid).values())), signal.SIGKILL)
            yield task, task.first

    with open_runner(workers) as runner:
        shared = Shared(request, source.load, True, False, runner.num_threads)
        done = list(runner.run(evaluate_task, shared, tasks()))
    assert sorted(first for first, _ in done) == list(range(0, 900, 50))
    found = se.Evaluation(request, parts=[merge_parts(part for _, part in done)])
    same_bits(found, se.evaluate_model(*data, "ndcg@10"))


def test_nobody_answers(client, data):
    worker = next(iter(client.scheduler_info()["workers"]))
    for address in ("tcp://127.0.0.1:9", "garbage", worker):
        with raises(WorkerError):
            se.evaluate_model(*data, "ndcg@10", client=address)


def test_workers_need_the_same_version():
    without_workers = {"wait_for_workers.side_effect": TimeoutError}
    with raises(WorkerError, may_pass=True):
        DaskRunner(mock.Mock(status="running", **without_workers))
    with raises(InvalidDataError):
        DaskRunner(mock.Mock(status="closed", **without_workers))
    with raises(WorkerError, may_pass=False):
        check_version("0.0.1")
    missing = ModuleNotFoundError("No module named 'sparse_eval'")
    for error, may_pass in ((missing, False), (CancelledError("lost"), True)):
        with raises(WorkerError, may_pass=may_pass):
            result_of(mock.Mock(**{"result.side_effect": error}))
    with pytest.raises(RuntimeError, match="something else"):
        result_of(mock.Mock(**{"result.side_effect": RuntimeError("something else")}))


def test_the_summary_is_there_after_the_client_is_closed(data, tables):
    metrics = ["ndcg@5", "coverage@5", "recall(average=micro)@5"]
    frames = [dataframe.from_pandas(frame, npartitions=2) for frame in tables]
    with cluster(processes=False) as connected:
        of_frames = se.evaluate(*frames, metrics, client=connected)
        asked = se.evaluate(*frames, metrics, client=connected)
        asked.summary()
    whole = se.evaluate(*tables, metrics)
    same_numbers(of_frames, whole)
    same_random(asked, whole)
    assert of_frames.summary()["random"].isna().all()
    for call in (
        lambda: se.evaluate(*tables, "ndcg@10", client=connected),
        lambda: se.evaluate(*frames, "ndcg@10", client=connected),
        lambda: se.evaluate(*frames, "ndcg@10"),
        lambda: se.evaluate_model(*data, "ndcg@10", client=connected),
    ):
        with raises(InvalidDataError):
            call()


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


OF_TABLES = "ndcg@{3,5},map@5,mrr@5,auc@5,coverage@5,gini@5,err@5,recall(average=micro)@5"


@pytest.mark.parametrize("ids", ["category", "text"])
def test_tables_have_the_bits_of_one_process(client, tables, ids):
    lists, truth = tables
    if ids == "category":  # of another type
        other = truth.astype({"user": "int32", "item": "int16"})
        other = other.astype({"user": "category", "item": "category"})
    else:
        lists, truth = (table.astype({"user": str, "item": str}) for table in tables)
        other = truth
    frames = [dataframe.from_pandas(side, npartitions=n) for n, side in ((3, lists), (4, other))]
    found = se.evaluate(*frames, OF_TABLES, client=client)
    same(found, se.evaluate(lists, truth, OF_TABLES))


@pytest.mark.parametrize("apart", [True, False])
def test_only_users_in_two_partitions_are_shuffled(client, tables, apart):
    lists, truth = (frame.sort_values("user", kind="stable") for frame in tables)
    assert lists["user"].iloc[1000] == lists["user"].iloc[1001] == truth["user"].iloc[380] == 240
    frames = []
    for frame, cut in ((lists, 1000 if apart else 1001), (truth, 380)):
        parts = [delayed(part) for part in (frame[:cut], frame[cut:], frame[:0])]
        frames.append(dataframe.from_delayed(parts, meta=frame.iloc[:0]))
    kind = type(frames[0])
    with mock.patch.object(kind, "shuffle", autospec=True, side_effect=kind.shuffle) as shuffle:
        found = se.evaluate(*frames, OF_TABLES, client=client)
    assert shuffle.called != apart
    same(found, se.evaluate(lists, truth, OF_TABLES))


@pytest.mark.parametrize(
    "change",
    [
        lambda r, t: (r.assign(user=r["user"] + 0.5), t),
        lambda r, t: (r.assign(user=r["user"].abs().astype("uint64") + 2**63), t),
        lambda r, t: (r.astype({"user": object}), t.assign(user=t["user"].map(str))),
    ],
)
def test_tables_that_are_refused(client, tables, change):
    with config.set({"dataframe.convert-string": False}):
        sides = [dataframe.from_pandas(frame, npartitions=2) for frame in change(*tables)]
        with raises(InvalidDataError):
            se.evaluate(*sides, "ndcg@5", client=client)


def test_tables_and_clients_have_to_fit(client, tables, tmp_path):
    frame = dataframe.from_pandas(tables[0], npartitions=2)
    with ThreadPoolExecutor(1) as pool:
        for truth, runner in ((tables[1], client), (frame, pool)):
            with raises(InvalidDataError):
                se.evaluate(frame, truth, "ndcg@5", client=runner)
    with raises(InvalidDataError):
        se.Rankings.from_frame(frame)
    tables[1].to_parquet(tmp_path / "truth.parquet", index=False)
    found = se.evaluate(frame, tmp_path / "truth.parquet", OF_TABLES, client=client)
    same_numbers(found, se.evaluate(*tables, OF_TABLES))
