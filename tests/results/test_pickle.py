"""Evaluations that are pickled, as they are to come back from another process."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from evaluations import KINDS, in_blocks, in_memory, merged, of_model, same_everything, saved, some
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        yield executor


def again(ev: se.Evaluation) -> se.Evaluation:
    return pickle.loads(pickle.dumps(ev))  # noqa: S301 - our own


@pytest.mark.parametrize("kind", KINDS)
def test_comes_back_with_every_number(kind: str) -> None:
    ev = KINDS[kind]()
    found = again(ev)  # before anything was computed of it
    same_everything(ev, found)
    same_everything(ev, again(found))
    same_everything(ev, again(ev))
    assert repr(found) == repr(ev)
    assert found._repr_html_() == ev._repr_html_()


@pytest.mark.parametrize(
    "kind",
    [
        "in memory, text in no order",
        "blocks without the values of the users",
        "model with baselines",
    ],
)
def test_has_the_same_summary_in_another_process(pool: ProcessPoolExecutor, kind: str) -> None:
    ev = KINDS[kind]()
    found = pool.submit(se.Evaluation.summary, ev).result()
    pd.testing.assert_frame_equal(found, ev.summary(), check_exact=True)


def test_comes_back_from_a_pool(pool: ProcessPoolExecutor, tmp_path: Path) -> None:
    lists, gains = in_memory().rankings, in_memory().relevance
    metrics = ["ndcg@3", "coverage@2"]
    found = pool.submit(se.evaluate, lists, gains, metrics).result()
    same_everything(found, se.evaluate(lists, gains, metrics))
    few = pool.submit(in_blocks, keep="totals").result()
    same_everything(few, in_blocks(keep="totals"))
    ev = merged()
    ev.save(tmp_path / "merged")
    same_everything(pool.submit(se.Evaluation.load, tmp_path / "merged").result(), ev)


def test_what_needs_lists_works_after_it() -> None:
    ev = in_memory()
    found = again(ev)
    pd.testing.assert_frame_equal(found.explain(3), ev.explain(3))
    pd.testing.assert_frame_equal(found.by("activity"), ev.by("activity"))
    pd.testing.assert_frame_equal(found.by("popularity"), ev.by("popularity"))
    pd.testing.assert_frame_equal(
        found.precision_recall().to_frame(), ev.precision_recall().to_frame()
    )
    assert found.record.content == ev.record.content
    np.testing.assert_array_equal(found.rankings.items, ev.rankings.items)
    np.testing.assert_array_equal(found.relevance.gains, ev.relevance.gains)
    assert (found.compare(ev).table["p"].dropna() == 1.0).all()


def test_merges_after_it() -> None:
    blocks = [some(first=first) for first in (0, 10, 20)]
    expected = blocks[0].merge(*blocks[1:])
    found = again(blocks[2]).merge(again(blocks[0]), again(blocks[1].merge()))
    same_everything(found, expected)


def test_keeps_what_was_remembered(tmp_path: Path) -> None:
    ev = of_model()
    ev.save(tmp_path / "a", about={"seed": 1})
    loaded = se.Evaluation.load(tmp_path / "a")
    found = again(loaded)
    assert found.about == {"seed": 1}
    assert found.record.content == loaded.record.content
    same_everything(saved(found, tmp_path / "b", "parquet"), ev)


def test_random_baseline_is_that_of_the_source() -> None:
    """A source that can be read twice is left behind, and so is read before."""
    for ev in (in_blocks(keep="totals"), in_memory(keep="totals")):
        found = again(ev)
        assert found.random("ndcg@3") == ev.random("ndcg@3")
    with raises(InvalidDataError):
        again(in_blocks()).random("coverage@2")


@pytest.mark.parametrize("labels", [[1, "a", ("b", 2), b"c", 2.5], [0.5, 1.5, 2.5, 3.5, 4.5]])
def test_users_with_labels_of_any_type_come_back(labels: Any) -> None:
    ev = some(5, labels=labels)
    found = again(ev)
    same_everything(ev, found)
    assert found.users is not None
    assert found.users.tolist() == labels
