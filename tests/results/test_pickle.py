"""Evaluations that are pickled, as they are to come back from another process."""

from __future__ import annotations

import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from evaluations import KINDS, in_memory, merged, of_model, same_everything, saved, some
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError


def again(ev: se.Evaluation) -> se.Evaluation:
    return pickle.loads(pickle.dumps(ev))  # noqa: S301 - our own


@pytest.mark.parametrize(
    "kind",
    [
        "in memory, text in no order",
        "blocks without the values of the users",
        "merged text",
        "model with baselines",
    ],
)
def test_comes_back_with_every_number(kind: str) -> None:
    ev = KINDS[kind]()
    found = again(ev)  # before anything was computed of it
    same_everything(ev, found)
    same_everything(ev, again(found))


def test_comes_back_from_a_pool(tmp_path: Path) -> None:
    ev = merged()
    folder = ev.save(tmp_path / "merged")
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        found = pool.submit(some, keep="totals").result()
        same_everything(found, some(keep="totals"))
        same_everything(pool.submit(se.Evaluation.load, folder).result(), ev)


def test_what_needs_lists_works_after_it() -> None:
    ev = in_memory()
    found = again(ev)
    pd.testing.assert_frame_equal(found.explain(3), ev.explain(3))
    pd.testing.assert_frame_equal(found.by("activity"), ev.by("activity"))
    pd.testing.assert_frame_equal(
        found.precision_recall().to_frame(), ev.precision_recall().to_frame()
    )
    assert found.record == ev.record


def test_keeps_what_was_remembered(tmp_path: Path) -> None:
    ev = of_model()
    ev.save(tmp_path / "a", about={"seed": 1})
    loaded = se.Evaluation.load(tmp_path / "a")
    found = again(loaded)
    assert found.about == {"seed": 1}
    assert found.record == loaded.record
    same_everything(saved(found, tmp_path / "b", "parquet"), ev)


def test_random_baseline_is_that_of_the_source() -> None:
    """A source that can be read twice is left behind, and so is read before."""
    ev = some(keep="totals", memory=1 << 24)
    assert again(ev).random("ndcg@3") == ev.random("ndcg@3")
    with raises(InvalidDataError):
        again(ev).random("coverage@2")


@pytest.mark.parametrize("labels", [[1, "a", ("b", 2), b"c", 2.5], [0.5, 1.5, 2.5, 3.5, 4.5]])
def test_users_with_labels_of_any_type_come_back(labels: Any) -> None:
    ev = some(5, labels=labels)
    found = again(ev)
    same_everything(ev, found)
    assert found.users is not None
    assert found.users.tolist() == labels
