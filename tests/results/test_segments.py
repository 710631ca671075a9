"""Test groups of users, bands of items, and the precision-recall curve."""

import itertools
import math

import numpy as np
import oracle
import pandas as pd
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, SparseEvalError

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")


def many(no_relevant=None, **options):
    rng = np.random.default_rng(4)
    train = rng.random((200, 40)) < rng.random(40) * 0.5
    train[:20] = False
    gains = csr_matrix(((rng.random((200, 40)) < 0.1) & ~train) * rng.integers(1, 4, (200, 40)))
    lists = se.Rankings.from_scores(rng.random((200, 40)), k=10, seen=csr_matrix(train))
    names = ["ndcg@10", "recall@10", "recall(average=micro)@10", "hit_rate@5", "coverage@10"]
    protocol = se.Protocol(names, no_relevant=no_relevant)
    ev = se.evaluate(lists, gains, protocol, **{"train": csr_matrix(train)} | options)
    return ev, gains, csr_matrix(train)


def test_groups_are_means_over_their_users():
    ev, gains, train = many()
    groups = np.array(["x", "y", "z"])[np.arange(200) % 3]
    table = ev.by(groups)
    assert table.index.names == ["group", "metric"]
    assert table.index.get_level_values("group").unique().tolist() == ["x", "y", "z"]
    for group in "xyz":
        only = csr_matrix(gains.multiply((groups == group)[:, None]))
        expected = se.evaluate(ev.rankings, only, ev.names, train=train).summary()
        for name in ("mean", "std", "n_users"):
            found = table.loc[group, name].to_numpy(float)
            assert found == pytest.approx(expected[name].to_numpy(float), rel=1e-12, nan_ok=True)
    pd.testing.assert_frame_equal(ev.by(dict(enumerate(groups))), table)
    some = [None if n == 0 else "a" for n in ev.n_relevant]  # who is left out needs no group
    assert (ev.by(some)["n_users"] == ev.n_users).all()


def mad(values):
    """Elliot 0.3.1, UserMADranking.eval: the mean difference of the averages of all pairs."""
    averages = [sum(group) / len(group) for group in values.values()]
    differences = [abs(a - b) for a, b in itertools.combinations(averages, 2)]
    return sum(differences) / len(differences) if differences else math.nan


@given(cases(), st.lists(st.sampled_from("abc"), min_size=6, max_size=6))
def test_deviation_is_the_mean_difference_of_groups(case, labels):
    names = ["ndcg@3", "recall@5", "mrr"]
    ev = se.evaluate(*case.matrices, names)
    labels = labels[: len(case.ranked)]
    table = ev.deviation(labels)
    for name in names:
        groups = {}
        for label, value in zip(labels, ev.values(name), strict=True):
            if not math.isnan(value):
                groups.setdefault(label, []).append(value)
        assert table.loc[name, "deviation"] == pytest.approx(mad(groups), rel=1e-12, nan_ok=True)
        assert table.loc[name, "n_groups"] == len(groups)
        assert table.loc[name, "n_users"] == ev.n_users


def test_groups_at_random_deviate_by_chance():
    ev, *_ = many()
    rng = np.random.default_rng(0)
    draws = [ev.deviation(rng.integers(5, size=200)).loc["ndcg@10"] for _ in range(60)]
    found, chance = (np.array([draw[name] for draw in draws]) for name in ("deviation", "chance"))
    error = found.std(ddof=1) / math.sqrt(len(draws))
    assert abs(found.mean() - chance.mean()) < 4 * error
    assert chance.mean() > 10 * error


def test_deviation_needs_groups_of_users():
    ev, *_ = many()
    with raises(InvalidDataError, user=1):
        ev.deviation({0: "a"})
    assert ev.deviation(["a"] * 200)["deviation"].isna().all()
    totals, (judged, gains, train) = many(keep="totals")[0], many(no_relevant="zero")
    wrong = [
        (ev.deviation, "popularity"),
        (totals.deviation, "activity"),
        (judged.by, ["a"] * 5),
        (judged.by, {0: "a"}),
        (judged.by, ["a"] * 199 + [None]),
        (judged.by, pd.Series(["a", "b"], index=[3, 3])),
        (judged.by, "country"),
        # Bands need training data, and a metric.
        (many(train=None)[0].by, "activity"),
        (many(train=None)[0].by, "popularity"),
        (se.evaluate(ev.rankings, gains, "mrr@5", train=train).by, "popularity"),
    ]
    for function, groups in wrong:
        with raises(SparseEvalError):
            function(groups)


def test_activity_has_cold_users_and_even_bands():
    ev, _, train = many()
    table = ev.by("activity", bands=3).xs("recall@10", level="metric")
    counts = np.diff(train.indptr)[ev.n_relevant > 0]
    assert table.index[0] == "cold"
    assert len(table) == 4
    for name, n_users in table["n_users"].items():
        low, high = (0, 0) if name == "cold" else map(int, str(name).split(" ")[0].split("–"))
        assert n_users == ((counts >= low) & (counts <= high)).sum()
        assert name == "cold" or n_users > ev.n_users / 6


def test_bands_by_popularity_divide_the_relevant_items():
    ev, gains, train = many()
    table = ev.by("popularity", bands=3)
    names = ["recall@10", "recall(average=micro)@10", "hit_rate@5"]
    assert set(table.index.get_level_values("metric")) == set(names)
    bands = table.index.get_level_values(0).unique()
    assert table.xs("recall@10", level="metric")["n_relevant"].sum() == ev.n_relevant.sum()
    counts = np.asarray((train != 0).sum(axis=0)).ravel()
    for band in bands:
        low, high = map(int, band.removesuffix(" users").split("–"))
        part = csr_matrix(gains.multiply((counts >= low) & (counts <= high)))
        only = se.evaluate(ev.rankings, part, names)
        found = table.loc[band, "mean"]
        assert found.to_dict() == pytest.approx(only.mean(), rel=1e-12)


def test_equal_counts_stay_together():
    train = csr_matrix(np.eye(6))
    lists = se.Rankings.from_topk(np.tile([0, 1], (6, 1)), shape=(6, 6))
    ev = se.evaluate(lists, csr_matrix(np.ones((6, 6))), "recall@2", train=train)
    assert ev.by("activity").index.tolist() == [("1 items", "recall@2")]
    assert ev.by("popularity").index.tolist() == [("1 users", "recall@2")]
    halves = se.evaluate(lists, ev.relevance, "recall@2", train=csr_matrix(np.tri(6)))
    bands = halves.by("activity", bands=2).index.get_level_values("group").tolist()
    assert bands == ["1–3 items", "4–6 items"]


@given(cases())
def test_precision_recall_equals_the_oracle(case):
    ev = se.evaluate(*case.matrices, "recall@1")
    users = [
        (ranked, gains, None)
        for ranked, gains in zip(case.ranked, case.relevant, strict=True)
        if any(gain > 0 for gain in gains.values())
    ]
    for k in (3, 12):
        curve = ev.precision_recall(k)
        expected = oracle.precision_recall_curve(k, users)
        np.testing.assert_allclose(curve.to_frame().to_numpy(), expected, rtol=1e-12, atol=1e-15)
        averages = [oracle.interpolated_average_precision(k, *user[:2]) for user in users]
        assert curve.average_precision == pytest.approx(math.fsum(averages) / len(users), rel=1e-12)
        assert curve.n_users == len(users)
        for level, precision in zip(curve.levels, curve.interpolated, strict=True):
            best = [best_precision(k, level, *user[:2]) for user in users]
            assert precision == pytest.approx(math.fsum(best) / len(users), rel=1e-12)


def best_precision(k, level, ranked, gains):
    relevant = {item for item, gain in gains.items() if gain > 0}
    best = 0.0
    for rank in range(1, k + 1):
        hits = sum(item in relevant for item, position in ranked.items() if position <= rank)
        # In whole numbers: 0.3 of ten items is three of them.
        if hits * 10 >= round(level * 10) * len(relevant):
            best = max(best, hits / rank)
    return best


def test_precision_recall_refuses_uncertain_positions_and_bad_depths():
    tied = se.Rankings.from_scores([[1.0, 1.0]], ties="average")
    ev = se.evaluate(tied, csr_matrix([[1, 0]]), "ndcg@1")
    with raises(InvalidDataError):
        ev.precision_recall()
    far = se.evaluate(csr_matrix([[2**31 - 1]]), csr_matrix([[1]]), "mrr")
    with raises(InvalidDataError):
        far.precision_recall()
