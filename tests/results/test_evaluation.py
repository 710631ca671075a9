"""What an evaluation has, what it lacks where lists or values were not kept, what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from evaluations import MIXED, merged, some, without_lists
from merge_cases import N_ITEMS
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError


@pytest.fixture(scope="module")
def halves() -> tuple[se.Evaluation, se.Evaluation]:
    """The same users, as a whole and merged."""
    rng = np.random.default_rng(1)
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (400, 1)), axis=1)[:, :6]
    gains = csr_matrix((rng.random((400, N_ITEMS)) < 0.3) * 1.0)

    def evaluate(rows: slice, users: Any) -> se.Evaluation:
        lists = se.Rankings.from_topk(ids[rows], shape=gains[rows].shape)
        return se.evaluate(lists, se.Relevance.from_csr(gains[rows], users=users), MIXED)

    first = evaluate(slice(0, 150), range(150))
    second = evaluate(slice(150, None), range(150, 400))
    return evaluate(slice(None), None), second.merge(first)


def test_what_needs_the_lists_says_so(halves: Any, tmp_path: Path) -> None:
    ev, merged = halves
    loaded = se.Evaluation.load(ev.save(tmp_path / "a"))
    for found in (merged, without_lists(ev, per_user=False), loaded):
        for call in (
            lambda found=found: found.explain(0),
            lambda found=found: found.by(["a"] * 400),
            lambda found=found: found.by("popularity"),
            lambda found=found: found.precision_recall(),
            lambda found=found: found.rankings,
            lambda found=found: found.relevance,
        ):
            with raises(InvalidDataError):
                call()


def test_numbers_are_asked_for_by_any_spelling(halves: Any) -> None:
    for ev in halves:
        with raises(InvalidMetricError, metric="ndcg@3"):
            ev.replicates("ndcg@3")
        with raises(InvalidMetricError, metric="coverage@2"):
            ev.values("coverage@2")
        assert ev["recall(average=macro)@2"] == ev["recall@2"]
        assert ev[ev.metrics[1]] == ev["recall@2"] == ev[" Recall@2 "]
        for call in (ev.values, ev.replicates, ev.random, ev.is_per_user, ev.__getitem__):
            with raises(InvalidMetricError, metric="map"):
                call("map")
        with raises(InvalidDataError, argument="level"):
            ev.summary(2)


def test_what_needs_the_values_of_the_users_says_so(halves: Any, tmp_path: Path) -> None:
    without = without_lists(halves[0], per_user=False)
    assert without.mean() == halves[0].mean()
    for call in (
        lambda: without.values("ndcg@3"),
        lambda: without.per_user,
        lambda: without.users,
        lambda: without.n_relevant,
        lambda: without.to_csv(tmp_path / "a.csv"),
        lambda: without.to_parquet(tmp_path / "a.parquet"),
        lambda: without.compare(halves[0]),
        lambda: halves[0].compare(without),
    ):
        with raises(InvalidDataError):
            call()
    assert list(tmp_path.iterdir()) == []


def test_writes_the_same_whatever_was_kept(halves: Any, tmp_path: Path) -> None:
    ev, merged = halves
    found = merged.to_dict()
    assert json.loads(merged.to_json(tmp_path / "a.json")) == found
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8")) == found
    assert {name: row["mean"] for name, row in found["metrics"].items()} == ev.mean()
    merged.to_csv(tmp_path / "merged.csv")
    ev.to_csv(tmp_path / "whole.csv")
    assert (tmp_path / "merged.csv").read_text() == (tmp_path / "whole.csv").read_text()
    merged.to_parquet(tmp_path / "merged.parquet")
    pd.testing.assert_frame_equal(
        pd.read_parquet(tmp_path / "merged.parquet"), ev.per_user, check_index_type=False
    )
    assert repr(merged) == repr(ev)
    without = without_lists(ev, per_user=False)
    assert without.to_dict() == found
    assert without._repr_html_() == merged._repr_html_()
    assert str(without) == str(merged)


def test_merged_evaluations_have_no_random_baseline() -> None:
    found = merged()
    assert found.summary()[["random", "random_se", "lift"]].isna().all(axis=None)
    with raises(InvalidDataError):
        found.random("ndcg@3")


def test_nothing_can_be_changed_through_what_it_returns() -> None:
    ev = some()
    ev.names.append("x")
    ev.mean()["x"] = 0.0
    frame = ev.per_user
    frame.iloc[:] = 7.0
    assert ev.names == list(ev.mean()) == MIXED
    assert not (ev.per_user == 7).any(axis=None)
    ev.about["x"] = 1
    assert ev.about == {}
