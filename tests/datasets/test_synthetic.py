"""The synthetic data set and the sample file made from it."""

import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises

from sparse_eval.datasets import synthetic
from sparse_eval.errors import InvalidDataError

ROOT = Path(__file__).parents[2]


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 70), st.data())
def test_draws_any_possible_size(n_users, n_items, n_topics, data):
    size = data.draw(st.integers(n_users, n_users * n_items))
    interactions = synthetic(n_users, n_items, n_interactions=size, n_topics=n_topics)
    matrix = interactions.matrix()
    assert matrix.shape == (n_users, n_items)
    assert matrix.nnz == len(interactions) == size  # no pair twice
    assert (np.diff(matrix.indptr) >= 1).all()
    assert (matrix.data == 1).all()
    assert (np.diff(interactions.timestamps) >= 0).all()


def test_activity_and_popularity_are_skewed():
    interactions = synthetic(n_users=2000, n_items=3000)
    assert len(interactions) == 60_000
    clicks = np.bincount(interactions.user_codes)
    popularity = np.sort(np.bincount(interactions.item_codes, minlength=3000))[::-1]
    assert clicks.max() > 5 * np.median(clicks)  # few users are very active
    assert popularity[:300].sum() > 0.4 * popularity.sum()  # a tenth of the items, Zipf
    weeks = np.ptp(interactions.timestamps) / (7 * 24 * 3600)
    assert 3 < weeks <= 4
    assert interactions.users[0] == "U1"
    assert interactions.items.index.is_monotonic_increasing


@pytest.mark.parametrize(
    "options", [{"n_users": 0}, {"seed": -1}, {"n_users": 5, "n_items": 4, "n_interactions": 21}]
)
def test_refuses_impossible_sizes(options):
    with raises(InvalidDataError):
        synthetic(**options)


def test_sample_data_can_be_regenerated(tmp_path, monkeypatch):
    script = ROOT / "scripts" / "make_sample_data.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
    runpy.run_path(str(script), run_name="__main__")
    for name in ("mind_small/behaviors.tsv", "README.md"):
        assert (tmp_path / name).read_bytes() == (ROOT / "data" / name).read_bytes()
    assert len(list(tmp_path.rglob("*"))) == 3  # no temporary files
    assert (tmp_path / "mind_small" / "behaviors.tsv").stat().st_size <= 300_000
