"""Approximate lists against exact ones: plain loops, `compare`, `by`, and refused input."""

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy import stats

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

METRICS = ["ndcg@{10,20}", "coverage@10"]


@pytest.fixture(scope="module")
def case():
    """Return a holdout, and evaluations of approximate and of exact lists."""
    holdout = se.split.random(se.datasets.synthetic(n_users=400, n_items=120, seed=0), seed=0)
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(holdout.train.shape[0], 6)) @ rng.normal(size=(6, 120))
    lists = []
    for noisy in (scores + 0.4 * rng.normal(size=scores.shape), scores):
        model = se.Scorer(noisy, users=holdout.users, items=holdout.items)
        lists.append(se.evaluate_model(model, holdout, METRICS, keep="lists"))
    return holdout, *lists


def top(ev, k):
    lists = np.split(ev.rankings.items, ev.rankings.indptr[1:-1])
    return [set(items[:k].tolist()) for items in lists]


def test_recall_and_overlap_by_plain_loops(case):
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


def test_the_loss_is_that_of_compare(case):
    _, approximate, exact = case
    table = se.compare_lists(approximate, exact, level=0.9).loc[("all", "all")]
    both = {"exact": exact, "approximate": approximate}
    compared = se.compare(both, "ndcg@{10,20}", level=0.9).table.set_index("metric")
    for name, row in compared.iterrows():
        expected = row[["difference", "ci_low", "ci_high", "n_users"]].astype(float)
        assert table.loc[f"loss of {name}"].to_numpy() == pytest.approx(expected.to_numpy())
    assert "loss of coverage@10" not in table.index


def test_by_activity_and_popularity(case):
    holdout, approximate, exact = case
    table = se.compare_lists(approximate, exact, k=10, train=holdout.train)
    pairs = list(zip(top(approximate, 10), top(exact, 10), strict=True))
    users = pd.Series(np.diff(holdout.train.indptr), holdout.users)
    seen = users.reindex(exact._values.users.index).to_numpy()
    counts = np.bincount(holdout.train.indices, minlength=120)
    for by, unit in (("activity", " items"), ("popularity", " users")):
        bands = table.loc[by].xs("recall@10", level="metric")
        assert len(bands) == 4
        for band, row in bands.iterrows():
            low, high = map(int, str(band).removesuffix(unit).split("–"))
            shares = []
            for n_seen, (one, other) in zip(seen, pairs, strict=True):
                inside = {item for item in other if low <= counts[item] <= high}
                if by == "activity":
                    inside = other if low <= n_seen <= high else set()
                if inside:  # others are left out
                    shares.append(len(one & inside) / len(inside))
            assert row["mean"] == pytest.approx(np.mean(shares))
            assert row["n_users"] == len(shares)


def test_users_without_lists_and_lists_of_other_lengths():
    ids = [[0, 1], [1, 2], [-1, -1]], [[-1, -1], [2, 1], [0, 1]]
    exact, index = map(se.Rankings.from_topk, ids)
    table = se.compare_lists(index, exact, k=2).loc[("all", "all")]
    assert table["n_users"].tolist() == [2, 2]  # the last has no exact list
    assert table.loc["recall@2", "mean"] == 0.5
    fewer = se.Rankings.from_topk(ids[1][1:], users=["b", "c"])
    exact = se.Rankings.from_topk(ids[0], users=["a", "b", "c"])
    with raises(InvalidDataError, argument="k"):
        se.compare_lists(fewer, exact, k=[1, 3])
    for other in ([[0, 1]], None):
        with raises(InvalidDataError):
            se.compare_lists(exact, other)
