"""Sweeps whose checkpoints are scored elsewhere: by an executor, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from raising import raises
from sweep_cases import METRICS, rows_of, same_table, save

import sparse_eval as se
import sparse_eval.models.sweep as sweeping
from sparse_eval.errors import InvalidDataError, WorkerError
from sparse_eval.models.evaluate import evaluate_request


@pytest.fixture
def data(holdout: Any) -> tuple[Any, ...]:
    return holdout.train, holdout.validation, METRICS


def test_threads_give_the_same_table(folder: Path, data: Any, tmp_path: Path) -> None:
    (folder / "broken.npz").write_bytes(b"PK")
    expected = se.sweep(folder, *data, out=tmp_path / "here")
    with ThreadPoolExecutor(3) as pool:
        table = se.sweep(folder, *data, out=tmp_path / "pool", client=pool)
        assert same_table(table, expected)
        assert same_table(se.sweep(folder, *data, client=pool), expected)
    assert table["status"].tolist() == ["ok", "ok", "ok", "failed"]
    here, there = (rows_of(tmp_path / name / "table.csv") for name in ("here", "pool"))
    assert [row | {"seconds": ""} for row in there] == [row | {"seconds": ""} for row in here]


def test_processes_give_the_same_table(folder: Path, data: Any) -> None:
    expected = se.sweep(folder, *data)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert same_table(se.sweep(folder, *data, client=pool), expected)


def test_relative_paths_lead_to_the_same_files(
    folder: Path, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    with ThreadPoolExecutor(1) as pool:
        table = se.sweep(folder.name, *data, client=pool)
    assert table["file"].tolist() == [f"checkpoints/als-{factors}.npz" for factors in (2, 4, 10)]
    assert same_table(table, se.sweep(folder.name, *data))


def test_a_worker_has_one_thread(folder: Path, data: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    def evaluate(*arguments: Any, **options: Any) -> Any:
        given.append(options["num_threads"])
        return evaluate_request(*arguments, **options)

    monkeypatch.setattr(sweeping, "evaluate_request", evaluate)
    with ThreadPoolExecutor(2) as pool:
        se.sweep(folder, *data, client=pool)
    assert given == [1, 1, 1]


def test_continues_what_another_client_began(
    folder: Path, data: Any, tmp_path: Path, scored: list[Any]
) -> None:
    out = tmp_path / "out" / "table.csv"
    with ThreadPoolExecutor(2) as pool:
        se.sweep(folder, *data, out=out.parent, client=pool)
        assert sorted(scored) == [2, 4, 10]
        save(folder / "als-7.npz", 7)
        table = se.sweep(folder, *data, out=out.parent, client=pool)
    assert sorted(scored) == [2, 4, 7, 10]
    assert same_table(se.sweep(folder, *data, out=out.parent), table)
    assert sorted(scored) == [2, 4, 7, 10]


def test_the_order_in_which_they_are_done_does_not_matter(
    folder: Path, data: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = se.sweep(folder, *data)

    class Backwards:
        num_threads = 1

        def run(self, work: Any, shared: Any, tasks: Any) -> Iterator[tuple[Any, Any]]:
            for task, tag in reversed(list(tasks)):
                yield tag, work(shared, task)

    @contextmanager
    def open_runner(client: Any) -> Iterator[Any]:
        yield Backwards()

    monkeypatch.setattr(sweeping, "open_runner", open_runner)
    assert same_table(se.sweep(folder, *data), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_refuses_other_clients(folder: Path, data: Any) -> None:
    pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    with raises(InvalidDataError):
        se.sweep(folder, *data, client=3)  # type: ignore[arg-type]
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with raises(WorkerError):
        se.sweep(folder, *data, client=pool)


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::UserWarning:distributed", "ignore::DeprecationWarning"
)
def test_a_dask_cluster_gives_the_same_table(folder: Path, data: Any, tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra [dask] is not installed")
    (folder / "broken.npz").write_bytes(b"")
    expected = se.sweep(folder, *data)
    options: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as local,
        distributed.Client(local, set_as_default=False) as client,
    ):
        table = se.sweep(folder, *data, out=tmp_path / "sweep", client=client)
        assert same_table(table, expected)
        assert same_table(se.sweep(folder, *data, client=local.scheduler_address), expected)
    assert len(rows_of(tmp_path / "sweep" / "table.csv")) == 4


def test_refuses_spark(folder: Path, data: Any) -> None:
    session = type("SparkSession", (), {"__module__": "pyspark.sql.session"})()
    with raises(InvalidDataError):
        se.sweep(folder, *data, client=session)
