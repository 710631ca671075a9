"""Sweeps whose checkpoints are scored elsewhere: by an executor, or on a Dask cluster."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from raising import raises
from sweep_cases import METRICS, same_table

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, WorkerError


@pytest.fixture
def data(holdout: Any) -> tuple[Any, ...]:
    return holdout.train, holdout.validation, METRICS


def test_processes_give_the_same_table(folder: Path, data: Any) -> None:
    expected = se.sweep(folder, *data)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        assert same_table(se.sweep(folder, *data, client=pool), expected)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_refuses_other_clients(folder: Path, data: Any) -> None:
    with raises(InvalidDataError):
        se.sweep(folder, *data, client=3)  # type: ignore[arg-type]
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with raises(WorkerError):
        se.sweep(folder, *data, client=pool)


def test_refuses_spark(folder: Path, data: Any) -> None:
    session = type("SparkSession", (), {"__module__": "pyspark.sql.session"})()
    with raises(InvalidDataError):
        se.sweep(folder, *data, client=session)
