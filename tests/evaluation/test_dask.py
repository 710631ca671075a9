"""Dask: the numbers of one process, to the last bit, whatever happens to the workers."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from merge_cases import same_bits, same_numbers, same_random
from raising import raises
from rules import each_convention
from scipy.sparse import csr_matrix, save_npz
from tables_cases import damage_pages, saved_csr
from ways_cases import check_against_plain, make_case
from ways_cases import same as same_by_every_way

import sparse_eval as se
from sparse_eval.datasets.adjacency import load_adjacency
from sparse_eval.errors import InvalidDataError, InvalidFileError, WorkerError
from sparse_eval.evaluation.clients import open_runner
from sparse_eval.evaluation.run import Shared, evaluate_task, merge
from sparse_eval.metrics import REGISTRY
from sparse_eval.metrics.conventions import CONVENTIONS
from sparse_eval.metrics.request import Request
from sparse_eval.models.source import ModelSource

distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
dataframe = pytest.importorskip("dask.dataframe")
from sparse_eval.evaluation.dask import DaskRunner, check_version, result_of  # noqa: E402

# Of distributed about itself, when workers die and start again.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::UserWarning:distributed", "ignore::DeprecationWarning"
)

EVERY = [
    f"{one.name}@10"
    for one in REGISTRY.values()
    if one.cutoff != "none" and set(one.needs) <= {"train"}
] + ["recall(average=micro)@10", "ndcg(gain=exp)@{5,20}"]


@contextmanager
def cluster() -> Iterator[Any]:
    """Start two workers, each with one thread."""
    options: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as local,
        distributed.Client(local, set_as_default=False) as connected,
    ):
        yield connected


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Return a client of workers that all tests share."""
    with cluster() as connected:
        yield connected


@pytest.fixture
def doomed() -> Iterator[Any]:
    """Return a client of workers that die: how soon they start again is not ours to test."""
    with cluster() as connected:
        yield connected


@pytest.fixture(scope="module")
def data() -> tuple[Any, csr_matrix, csr_matrix]:
    """Return a model, and what it was trained and is evaluated on."""
    clicks = se.datasets.synthetic(n_users=900, n_items=200, seed=0)
    holdout = se.split.random(clicks, seed=0)
    # Without ids, which matrices on disk do not have either.
    train, held = (csr_matrix(part) for part in (holdout.train, holdout.validation))
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


def test_every_metric_has_the_bits_of_one_process(client: Any, data: Any, tmp_path: Path) -> None:
    whole = se.evaluate_model(*data, EVERY)
    same(se.evaluate_model(*data, EVERY, client=client), whole)
    checkpoint = tmp_path / "als.npz"
    data[0].save(checkpoint)
    same(se.evaluate_model(checkpoint, *data[1:], EVERY, client=client), whole)
    files = on_disk(tmp_path, *data)
    found = se.evaluate_model(*files, EVERY, client=client, keep="totals")
    same_numbers(found, whole)
    same_random(found, whole)
    with raises(InvalidDataError):
        _ = found.per_user


@pytest.mark.parametrize("kind", ["dense", "sparse", "npy", "npz", "partial", "lambda"])
@pytest.mark.filterwarnings("ignore:.*(are no candidates|no held-out item is in its user's train)")
def test_item_matrices_and_functions_have_the_bits_of_one_process(
    client: Any, data: Any, tmp_path: Path, kind: str
) -> None:
    _, train, held = data
    rng = np.random.default_rng(0)
    weights = np.where(rng.random((200, 200)) < 0.2, rng.normal(size=(200, 200)), 0)
    table = rng.normal(size=train.shape)
    np.save(tmp_path / "weights.npy", weights)
    save_npz(tmp_path / "weights.npz", csr_matrix(weights))
    model: Any = {
        "dense": weights,
        "sparse": csr_matrix(weights),
        "npy": tmp_path / "weights.npy",
        "npz": tmp_path / "weights.npz",
        "partial": partial(np.take, table, axis=0),
        "lambda": lambda users: table[users],
    }[kind]
    candidates = csr_matrix(rng.random(train.shape) < 0.5)
    for metrics in (["ndcg@10", "coverage@5"], ["auc", "mrr", "ndcg@10"]):
        cases: list[dict[str, Any]] = [
            {"metrics": metrics, "baselines": True},
            {"metrics": metrics, "candidates": candidates, "baselines": True},
            {"metrics": se.Protocol(metrics, filter_seen=False), "candidates": candidates},
        ]
        for options in cases:
            whole = se.evaluate_model(model, train, held, **options)
            shared = se.evaluate_model(model, train, held, client=client, **options)
            same(shared, whole)
            assert shared.candidates == whole.candidates
            for name, baseline in whole.baselines.items():
                same_bits(shared.baselines[name], baseline)


@pytest.mark.slow
def test_gowalla_has_the_bits_of_one_process(client: Any, gowalla: Path) -> None:
    parts = [part.matrix() for part in load_adjacency(gowalla / "train.txt", gowalla / "test.txt")]
    model = gowalla / "als64.npz"
    whole = se.evaluate_model(model, *parts, EVERY)
    same(se.evaluate_model(model, *parts, EVERY, client=client), whole)


def test_a_worker_that_is_killed_changes_nothing(doomed: Any, data: Any) -> None:
    request = Request.parse(se.Protocol("ndcg@10"), {"train"})
    source = ModelSource(request, *data, {}, num_threads=1, for_workers=True)
    source.n_rows = 50
    started = threading.Event()

    def tasks() -> Iterator[tuple[Any, int]]:
        for task, _ in source.tasks():
            if task.first == 300:
                started.set()
            time.sleep(0.05)
            yield task, task.first

    def kill() -> None:
        started.wait()
        victim = next(iter(doomed.run(os.getpid).values()))
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    with open_runner(doomed) as runner:
        shared = Shared(request, source.load, True, False, runner.num_threads)
        done = list(runner.run(evaluate_task, shared, tasks()))
    killer.join()
    assert sorted(first for first, _ in done) == list(range(0, 900, 50))
    found = se.Evaluation(request, parts=[merge(part for _, part in done)])
    same(found, se.evaluate_model(*data, "ndcg@10"))


def die(shared: Any, task: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_task_that_kills_every_worker_ends(doomed: Any) -> None:
    with open_runner(doomed) as runner, raises(WorkerError):
        list(runner.run(die, None, [(1, 1)]))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "garbage", "", "what://is:this", ":1"])
def test_nobody_answers(data: Any, address: str) -> None:
    start = time.perf_counter()
    with raises(WorkerError):
        se.evaluate_model(*data, "ndcg@10", client=address)
    assert time.perf_counter() - start < 30


def test_others_than_schedulers_are_refused(client: Any, data: Any) -> None:
    worker = next(iter(client.scheduler_info()["workers"]))
    with raises(WorkerError):
        se.evaluate_model(*data, "ndcg@10", client=worker)
    with raises(InvalidDataError):
        se.evaluate_model(*data, "ndcg@10", client=7)


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
    with raises(WorkerError):
        DaskRunner(Cluster("running"))
    with raises(InvalidDataError):
        DaskRunner(Cluster("closed"))
    with raises(WorkerError):
        check_version("0.0.1")
    with raises(WorkerError):
        result_of(Failed(ModuleNotFoundError("No module named 'sparse_eval'")))
    with raises(WorkerError):
        result_of(Failed(CancelledError("lost")))
    with pytest.raises(RuntimeError, match="something else"):
        result_of(Failed(RuntimeError("something else")))


def test_refuses_a_client_that_is_closed(data: Any, tables: Any) -> None:
    frames = [dataframe.from_pandas(frame, npartitions=2) for frame in tables]
    with cluster() as connected:
        pass
    for evaluate in (
        lambda: se.evaluate_model(*data, "ndcg@10", client=connected),
        lambda: se.evaluate(*tables, "ndcg@10", client=connected),
        lambda: se.evaluate(*frames, "ndcg@10", client=connected),
    ):
        with raises(InvalidDataError):
            evaluate()
    with raises(InvalidDataError):
        se.evaluate(*frames, "ndcg@10")


def test_the_summary_is_there_after_the_client_is_gone(data: Any, tables: Any) -> None:
    metrics = ["ndcg@5", "coverage@5", "recall(average=micro)@5"]
    frames = [dataframe.from_pandas(frame, npartitions=2) for frame in tables]
    with cluster() as connected:
        of_model = se.evaluate_model(*data, metrics, client=connected)
        of_frames = se.evaluate(*frames, metrics, client=connected)
        asked = se.evaluate(*frames, metrics, client=connected)
        asked.summary()
    whole = se.evaluate_model(*data, metrics)
    same(of_model, whole)
    same_random(of_model, whole)
    assert of_model.random("ndcg@5") == whole.random("ndcg@5")
    whole = se.evaluate(*tables, metrics)
    same_numbers(of_frames, whole)
    assert of_frames.summary()["random"].isna().all()
    with raises(InvalidDataError):
        of_frames.random("ndcg@5")
    same_random(asked, whole)
    assert asked.random("ndcg@5") == whole.random("ndcg@5")


def test_a_file_that_a_worker_cannot_read_is_told_here(client: Any, tmp_path: Path) -> None:
    recs, truth = damage_pages(tmp_path)
    with raises(InvalidFileError) as told:
        se.evaluate(recs, truth, "mrr", client=client)
    assert told.value.path == recs


def test_what_a_worker_finds_wrong_is_told_here(client: Any, data: Any) -> None:
    model, train, held = data
    held = held.astype(np.float64)
    held.data[-1] = -1
    with raises(InvalidDataError):
        se.evaluate_model(model, train, held, "ndcg@10", client=client)
    with raises(InvalidDataError):
        se.evaluate_model(model, train[:-1], held, "ndcg@10", client=client)


def test_a_sweep_is_that_of_one_process(client: Any, data: Any, tmp_path: Path) -> None:
    for factors in (2, 4):
        se.train_als(data[1], factors=factors, iterations=2).save(tmp_path / f"als-{factors}.npz")
    (tmp_path / "broken.npz").write_bytes(b"no model")
    out = tmp_path / "out" / "table.csv"
    found = se.sweep(tmp_path, *data[1:], "ndcg@10", client=client, out=out.parent)
    wanted = se.sweep(tmp_path, *data[1:], "ndcg@10")
    columns = [name for name in wanted if name != "seconds"]
    pd.testing.assert_frame_equal(found[columns], wanted[columns], check_exact=True)
    assert list(found["status"]) == ["ok", "ok", "failed"]
    before = out.read_bytes()
    again = se.sweep(tmp_path, *data[1:], "ndcg@10", client=client, out=out.parent)
    pd.testing.assert_series_equal(again["seconds"][:2], found["seconds"][:2])
    assert before.splitlines()[:3] == out.read_bytes().splitlines()[:3]


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


@pytest.mark.parametrize("convention", each_convention())
def test_frames_give_the_number_of_every_way(client: Any, convention: str) -> None:
    kind = ("ranks", "gaps", "ties")[list(CONVENTIONS).index(convention) % 3]
    case = make_case(11, kind=kind, n_users=20).accepted(convention)
    metrics, options = case.metrics(convention), {"convention": convention}
    expected = se.evaluate(case.positions, case.validation, metrics, **options)
    check_against_plain(expected, case)
    shuffled = (frame.sample(frac=1, random_state=0) for frame in case.tables)
    frames = [dataframe.from_pandas(frame, npartitions=3, sort=False) for frame in shuffled]
    for keep in ("values", "totals"):
        found = se.evaluate(*frames, metrics, client=client, keep=keep, **options)
        same_by_every_way(found, expected)


@pytest.mark.parametrize("ids", ["int64", "int32", "category", "text"])
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


def test_columns_have_other_names_on_each_side(client: Any, tables: Any) -> None:
    of_recs = {"user": "who", "item": "a `what`.x", "rank": "place"}
    of_truth = {"user": "reader", "item": "user", "gain": "item"}
    recs, truth = (
        dataframe.from_pandas(frame.rename(columns=names), npartitions=3, sort=False)
        for frame, names in zip(tables, (of_recs, of_truth), strict=True)
    )
    scans = se.Rankings.scan(recs, **of_recs), se.Relevance.scan(truth, **of_truth)
    found = se.evaluate(*scans, OF_TABLES, client=client)
    same_numbers(found, in_memory(*tables))
    with client.as_current():
        same_numbers(se.evaluate(*scans, OF_TABLES, keep="totals"), found)


def test_tables_on_disk_need_no_dataframe(client: Any, tables: Any, tmp_path: Path) -> None:
    wanted = in_memory(*tables)
    for order in ("sorted", "shuffled"):
        files = [tmp_path / f"{order}-{name}.parquet" for name in ("recs", "truth")]
        for frame, file in zip(tables, files, strict=True):
            frame = frame.sort_values("user") if order == "sorted" else frame
            frame.to_parquet(file, index=False, row_group_size=100)
        found = se.evaluate(*files, OF_TABLES, client=client)
        assert found.mean() == wanted.mean()
        with ThreadPoolExecutor(2) as pool:
            found = se.evaluate(*files, OF_TABLES, client=pool)
        assert found.mean() == wanted.mean()


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
        lambda r, t: (r.rename(columns={"rank": "place"}), t),
        lambda r, t: (pd.concat([r, r[:1]]), t),
        lambda r, t: (r.assign(rank=r["rank"] - 1), t),
        lambda r, t: (r, t.assign(gain=-t["gain"])),
        lambda r, t: (r, t.assign(gain=0.0)),
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


def die_of(frame: pd.DataFrame) -> pd.DataFrame:
    os._exit(1)


@pytest.mark.slow
def test_tables_that_kill_every_worker_end(doomed: Any, tables: Any) -> None:
    deadly, other = (dataframe.from_pandas(frame, npartitions=2) for frame in tables)
    deadly = deadly.map_partitions(die_of, meta=tables[0].iloc[:0])
    with raises(WorkerError):
        se.evaluate(deadly, other, "ndcg@5", client=doomed)


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


def test_the_command_scores_elsewhere(
    client: Any, data: Any, tmp_path: Path, command: Callable[..., tuple[int, str, str]]
) -> None:
    clicks = se.datasets.synthetic(n_users=900, n_items=200, seed=0)
    se.split.random(clicks, seed=0).save(tmp_path / "split")
    data[0].save(tmp_path / "als.npz")
    words = ["score", tmp_path / "als.npz", "--split", tmp_path / "split", "-m", "ndcg@{5,10}"]
    here = command(*words)
    address = client.scheduler.address
    there = command(*words, "--scheduler", address)
    assert (here[0], there[0]) == (0, 0)
    # Without baselines, which are computed in one process only.
    rows = [
        [re.split(r"  +", line)[:3] for line in printed.splitlines()]
        for _, printed, _ in (here, there)
    ]
    assert rows[0] == rows[1]
    several = [*words[:2], tmp_path / "als.npz", *words[2:], "--scheduler", address]
    status, printed, _ = command(*several)
    assert status == 0
    assert "als.npz" in printed
    status, _, told = command(*words, "--scheduler", "tcp://127.0.0.1:9")
    assert status == 2
    assert "no scheduler answers" in told
