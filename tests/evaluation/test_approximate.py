"""Approximate lists against exact ones: plain loops, `compare`, `by`, and refused input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy import stats

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

METRICS = ["ndcg@{10,20}", "coverage@10"]


@pytest.fixture(scope="module")
def case() -> Any:
    """Return a holdout, and evaluations of approximate and of exact lists."""
    clicks = se.datasets.synthetic(n_users=400, n_items=120, seed=0)
    holdout = se.split.random(clicks, seed=0)
    rng = np.random.default_rng(0)
    users, items = (rng.normal(size=(n, 6)).astype(np.float32) for n in holdout.train.shape)
    lists = []
    for noise in (0.4, 0.0):
        noisy = (users @ items.T + noise * rng.normal(size=holdout.train.shape)).astype(float)
        model = se.Scorer(noisy, users=holdout.users, items=holdout.items)
        lists.append(se.evaluate_model(model, holdout, METRICS, keep="lists"))
    return holdout, *lists


def top(ev: se.Evaluation, k: int) -> list[set[int]]:
    lists = ev.rankings
    bounds = zip(lists.indptr, lists.indptr[1:], strict=False)
    return [set(lists.items[first:last][:k].tolist()) for first, last in bounds]


def test_recall_and_overlap_by_plain_loops(case: Any) -> None:
    _, approximate, exact = case
    table = se.compare_lists(approximate, exact, k=[1, 7, 20]).loc[("all", "all")]
    for k in (1, 7, 20):
        pairs = zip(top(approximate, k), top(exact, k), strict=True)
        shares = [len(one & other) / len(other) for one, other in pairs if other]
        row = table.loc[f"recall@{k}"]
        assert row["mean"] == pytest.approx(np.mean(shares), rel=1e-12)
        ends = stats.t.interval(0.95, len(shares) - 1, np.mean(shares), stats.sem(shares))
        assert row[["ci_low", "ci_high"]].to_numpy() == pytest.approx(ends)
        assert row["n_users"] == len(shares)
    assert table.loc["rbo", "mean"] == pytest.approx(se.rbo(approximate, exact).mean())
    whole = se.compare_lists(exact, exact).loc[("all", "all"), "mean"]
    assert whole[["recall@1", "recall@10", "rbo"]].tolist() == pytest.approx([1, 1, 1])
    assert "recall@100" not in whole


def test_the_loss_is_that_of_compare(case: Any) -> None:
    _, approximate, exact = case
    table = se.compare_lists(approximate, exact, level=0.9).loc[("all", "all")]
    both = {"exact": exact, "approximate": approximate}
    compared = se.compare(both, "ndcg@{10,20}", level=0.9).table.set_index("metric")
    for name, row in compared.iterrows():
        expected = row[["difference", "ci_low", "ci_high", "n_users"]].astype(float)
        assert table.loc[f"loss of {name}"].to_numpy() == pytest.approx(expected.to_numpy())
    assert "loss of coverage@10" not in table.index


def test_by_activity_and_popularity(case: Any) -> None:
    holdout, approximate, exact = case
    table = se.compare_lists(approximate, exact, k=10, train=holdout.train)
    users = pd.Series(np.diff(holdout.train.indptr), holdout.users)
    own = pd.Series(
        [
            len(one & other) / len(other) if other else np.nan  # left out
            for one, other in zip(top(approximate, 10), top(exact, 10), strict=True)
        ],
        exact.all_users.index,
    )
    activity = table.loc["activity"].xs("recall@10", level="metric")
    assert len(activity) == 4
    assert activity["n_users"].sum() == own.notna().sum()
    for band, row in activity.iterrows():
        low, high = map(int, str(band).removesuffix(" items").split("–"))
        assert row["mean"] == pytest.approx(own[users.reindex(own.index).between(low, high)].mean())
    counts = np.bincount(holdout.train.indices, minlength=120)
    popularity = table.loc["popularity"].xs("recall@10", level="metric")
    assert len(popularity) == 4
    for band, row in popularity.iterrows():
        low, high = map(int, str(band).removesuffix(" users").split("–"))
        inside = set(np.flatnonzero((counts >= low) & (counts <= high)).tolist())
        pairs = zip(top(approximate, 10), top(exact, 10), strict=True)
        shares = [len(a & b & inside) / len(b & inside) for a, b in pairs if b & inside]
        assert row["mean"] == pytest.approx(np.mean(shares))
        assert row["n_users"] == len(shares)


def test_users_without_lists_and_lists_of_other_lengths() -> None:
    exact = se.Rankings.from_topk([[0, 1], [1, 2], [-1, -1]], users=["a", "b", "c"])
    index = se.Rankings.from_topk([[2, 1], [0, 1]], users=["b", "c"])
    with raises(InvalidDataError, argument="k"):
        se.compare_lists(index, exact, k=[1, 3])
    exact, index = (
        se.Rankings.from_topk([[0, 1], [1, 2], [-1, -1]]),
        se.Rankings.from_topk([[-1, -1], [2, 1], [0, 1]]),
    )
    table = se.compare_lists(index, exact, k=2).loc[("all", "all")]
    assert table["n_users"].tolist() == [2, 2]  # the last has no exact list
    assert table.loc["recall@2", "mean"] == 0.5


def test_refuses_what_is_no_list(case: Any) -> None:
    _, approximate, _ = case
    for other in ([[0, 1]], None):
        with raises(InvalidDataError):
            se.compare_lists(approximate, other)  # type: ignore[arg-type]
