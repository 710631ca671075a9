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

RNG = np.random.default_rng(4)
SEEN = RNG.random((200, 40)) < RNG.random(40) * 0.5
SEEN[:20] = False
TRAIN = csr_matrix(SEEN)
GAINS = csr_matrix(((RNG.random((200, 40)) < 0.1) & ~SEEN) * RNG.integers(1, 4, (200, 40)))
LISTS = se.Rankings.from_scores(RNG.random((200, 40)), k=10, train=TRAIN)
NAMES = ["ndcg@10", "recall@10", "recall(average=micro)@10", "hit_rate@5", "coverage@10"]
EV = se.evaluate(LISTS, GAINS, NAMES, train=TRAIN)


def test_groups_are_means_over_their_users():
    groups = np.array(["x", "y", "z"])[np.arange(200) % 3]
    table = EV.by(groups)
    assert table.index.names == ["group", "metric"]
    assert table.index.get_level_values("group").unique().tolist() == ["x", "y", "z"]
    for group in "xyz":
        only = csr_matrix(GAINS.multiply((groups == group)[:, None]))
        expected = se.evaluate(LISTS, only, NAMES, train=TRAIN).summary()
        for name in ("mean", "std", "n_users"):
            found = table.loc[group, name].to_numpy(float)
            assert found == pytest.approx(expected[name].to_numpy(float), rel=1e-12, nan_ok=True)
    pd.testing.assert_frame_equal(EV.by(dict(enumerate(groups))), table)
    some = [None if n == 0 else "a" for n in EV._values.n_relevant]  # others need none
    assert (EV.by(some)["n_users"] == EV.n_users).all()


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
    rng = np.random.default_rng(0)
    draws = [EV.deviation(rng.integers(5, size=200)).loc["ndcg@10"] for _ in range(60)]
    found, chance = (np.array([draw[name] for draw in draws]) for name in ("deviation", "chance"))
    error = found.std(ddof=1) / math.sqrt(len(draws))
    assert abs(found.mean() - chance.mean()) < 4 * error
    assert chance.mean() > 10 * error


def test_deviation_needs_groups_of_users():
    without = se.evaluate(LISTS, GAINS, NAMES)
    for function, groups in (
        (EV.deviation, {0: "a"}),
        (EV.deviation, "popularity"),
        (se.evaluate(LISTS, GAINS, NAMES, train=TRAIN, keep="totals").deviation, "activity"),
        (EV.by, ["a"] * 5),
        (EV.by, "country"),
        # Bands need training data, and a metric.
        (without.by, "activity"),
        (se.evaluate(LISTS, GAINS, "mrr@5", train=TRAIN).by, "popularity"),
    ):
        with raises(SparseEvalError):
            function(groups)


def test_activity_has_cold_users_and_even_bands():
    table = EV.by("activity", bands=3).xs("recall@10", level="metric")
    counts = np.diff(TRAIN.indptr)[EV._values.n_relevant > 0]
    assert table.index[0] == "cold"
    assert len(table) == 4
    for name, n_users in table["n_users"].items():
        low, high = (0, 0) if name == "cold" else map(int, str(name).split(" ")[0].split("–"))
        assert n_users == ((counts >= low) & (counts <= high)).sum()
        assert name == "cold" or n_users > EV.n_users / 6


def test_bands_by_popularity_divide_the_relevant_items():
    table = EV.by("popularity", bands=3)
    names = ["recall@10", "recall(average=micro)@10", "hit_rate@5"]
    assert set(table.index.get_level_values("metric")) == set(names)
    assert table.xs("recall@10", level="metric")["n_relevant"].sum() == EV._values.n_relevant.sum()
    counts = SEEN.sum(axis=0)
    for band in table.index.get_level_values(0).unique():
        low, high = map(int, band.removesuffix(" users").split("–"))
        part = csr_matrix(GAINS.multiply((counts >= low) & (counts <= high)))
        expected = se.evaluate(LISTS, part, names).mean()
        assert table.loc[band, "mean"].to_dict() == pytest.approx(expected, rel=1e-12)


def test_equal_counts_stay_together():
    lists = se.Rankings.from_topk(np.tile([0, 1], (6, 1)), shape=(6, 6))
    ones, halves = (
        se.evaluate(lists, csr_matrix(np.ones((6, 6))), "recall@2", train=csr_matrix(train))
        for train in (np.eye(6), np.tri(6))
    )
    assert ones.by("activity").index.tolist() == [("1 items", "recall@2")]
    assert ones.by("popularity").index.tolist() == [("1 users", "recall@2")]
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
    far = csr_matrix([[2**31 - 1]])
    for ev in (
        se.evaluate(tied, csr_matrix([[1, 0]]), "ndcg@1"),
        se.evaluate(far, csr_matrix([[1]]), "mrr"),
    ):
        with raises(InvalidDataError):
            ev.precision_recall()
