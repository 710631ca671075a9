"""Popularity, random, item neighbours and EASE, against their definitions in plain NumPy."""

import tempfile
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from evaluations import random_of
from hypothesis import assume, example, given
from hypothesis import strategies as st
from implicit.nearest_neighbours import CosineRecommender
from raising import raises
from scipy import sparse
from split_cases import EVENTS, events_in, interactions_of

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.models import baselines


def test_popularity_counts_users():
    matrix = sparse.csr_matrix([[1.0, 0.0, 2.0], [3.0, 1.0, 0.0]])
    matrix.data[matrix.data == 3.0] = 0.0  # an explicit zero does not count
    assert se.baselines.popularity(matrix).item_factors.ravel().tolist() == [1.0, 1.0, 1.0]


def test_random_depends_on_ids_and_seed_alone(holdout):
    def scores(data, seed=7):
        lists = se.recommend(se.baselines.random(data, seed=seed), data, k=80)
        return lists.set_index(["user", "item"])["score"].sort_index()

    found = scores(holdout)
    assert abs(found.mean() - 0.5) < 0.02
    assert abs(found.var() - 1 / 12) < 0.005
    assert found.is_unique
    coo = holdout.train.tocoo()
    frame = pd.DataFrame({"user": holdout.users[coo.row], "item": holdout.items[coo.col]})
    turned = scores(se.Interactions.from_frame(frame[::-1]))
    assert turned.equals(found.loc[turned.index])
    assert not scores(holdout, seed=8).isin(found).any()
    ev = se.evaluate_model(se.baselines.random(holdout, seed=7), holdout, "ndcg@10")
    assert ev["ndcg@10"] == pytest.approx(random_of(ev, "ndcg@10")[0], abs=0.03)


@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from([1, 3, 50]),
    st.sampled_from([0.0, 1.5]),
    st.sampled_from([1, 40, 1 << 23]),
)
def test_item_knn(seed, neighbors, shrinkage, at_once):
    rng = np.random.default_rng(seed)
    n_items = int(rng.integers(1, 25))
    x = rng.integers(0, 3, (12, n_items)).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "_PRODUCTS_AT_ONCE", at_once)
        model = se.baselines.item_knn(
            sparse.csr_matrix(x), neighbors=neighbors, shrinkage=shrinkage
        )
    lengths = np.sqrt((x**2).sum(axis=0))
    expected = np.zeros((n_items, n_items))
    for i in range(n_items):
        products = x[:, i] @ x
        scale = lengths[i] * lengths + shrinkage
        similarity = np.where(products != 0, products / np.where(scale == 0, 1, scale), 0)
        similarity[i] = 0
        nearest = np.lexsort((np.arange(n_items), -similarity))[:neighbors]
        expected[i, nearest] = similarity[nearest]
    assert (model.weights.toarray() == expected).all()


def test_item_knn_is_that_of_implicit(holdout):
    theirs = se.train_model(CosineRecommender(K=81), holdout.train).similarity.toarray()
    np.fill_diagonal(theirs, 0.0)
    ours = se.baselines.item_knn(holdout, neighbors=80).weights.toarray()
    assert np.allclose(ours, theirs, rtol=1e-12)


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.5, 250.0]), st.sampled_from([1, 3, 1024]))
def test_ease(seed, regularization, mirrored):
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 3, (12, int(rng.integers(1, 25)))).astype(float)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "_ITEMS_MIRRORED", mirrored)
        model = se.baselines.ease(sparse.csr_matrix(x), regularization=regularization)
    assert model.weights.flags.c_contiguous
    n_items = x.shape[1]
    # Each column is the ridge regression of an item on all others.
    for j in range(n_items):
        others = np.delete(np.arange(n_items), j)
        a = x[:, others]
        expected = np.linalg.solve(a.T @ a + regularization * np.eye(n_items - 1), a.T @ x[:, j])
        assert np.allclose(model.weights[others, j], expected, rtol=1e-8, atol=1e-12)
        assert model.weights[j, j] == 0


def test_refuses_what_cannot_be_trained_on(holdout):
    for call in [
        lambda: se.baselines.item_knn(holdout, neighbors=0),
        lambda: se.baselines.item_knn(holdout, shrinkage=-1),
        lambda: se.baselines.ease(holdout, regularization=0),
        lambda: se.baselines.popularity(holdout.validation),
        lambda: se.baselines.random(holdout, seed=-1),
    ]:
        with raises(InvalidDataError):
            call()


def recent_by_hand(clicks, held, window, half_life):
    """Count the users of each item by their last event before the cut, one event at a time."""
    end = int(np.datetime64(held.cut, "s").astype(np.int64))
    events = np.stack([clicks.user_codes, clicks.item_codes, clicks.timestamps], axis=1)
    last = {}
    for user, item, time in events.tolist():
        if time < end and held.train.csr[user, item]:
            last[user, item] = max(last.get((user, item), time), time)
    counts = [0.0] * clicks.n_items
    for (_, item), time in last.items():
        if end - time <= window:
            counts[item] += 0.5 ** ((end - time) / half_life)
    return counts


def test_recent_popularity_counts_last_events_before_the_cut():
    clicks = se.datasets.synthetic(n_users=150, n_items=80, seed=0)
    held = se.split.temporal(clicks, fraction=0.2)
    week, days = 7 * 86_400, 3 * 86_400
    order = np.random.default_rng(1).permutation(len(clicks))
    names = ("user_codes", "item_codes", "values", "timestamps")
    shuffled = replace(clicks, **{name: getattr(clicks, name)[order] for name in names})
    for options, window, half_life in (
        ({"window": "7D"}, week, np.inf),
        ({"half_life": "3D"}, np.inf, days),
        ({"window": week, "half_life": days}, week, days),
    ):
        model = se.baselines.popularity(held, interactions=clicks, **options)
        expected = recent_by_hand(clicks, held, window, half_life)
        assert model.item_factors[:, 0] == pytest.approx(expected, rel=1e-12)
        for train, events in ((held, shuffled), (held.train, clicks)):
            again = se.baselines.popularity(train, interactions=events, **options)
            assert np.array_equal(model.item_factors, again.item_factors)
    everything = se.baselines.popularity(held, interactions=clicks, window="9999D")
    assert np.array_equal(everything.item_factors, se.baselines.popularity(held).item_factors)


#: Splits, and when training ends; without a cut, with the last event of the training part.
SPLITS = {
    "temporal": lambda data, gap, how: (se.split.temporal(data, at=6, gap=gap, repeats=how), 6),
    "first of three": lambda data, gap, how: (
        se.split.temporal(data, at=4, test=8, gap=gap, repeats=how), 4),
    "last of three": lambda data, gap, how: (
        se.split.temporal(data, at=4, test=8, gap=gap, repeats=how).for_test(), 8),
    "last of three, known": lambda data, gap, how: (
        se.split.temporal(data, at=4, test=8, gap=gap, repeats=how).known().for_test().known(), 8),
    "rolling": lambda data, gap, how: (
        next(se.split.rolling(data, at=6, window=3, train_window=5, gap=gap, repeats=how)), 6),
    "last_n": lambda data, _, how: (se.split.last_n(data, n=1, repeats=how), None),
    "last_n for the test": lambda data, _, how: (
        se.split.last_n(data, n=1, test=1, repeats=how).for_test(), None),
    "users": lambda data, _, how: (
        se.split.users(data, fraction=0.3, order="time" if how == "drop" else "random"), None),
    "random": lambda data, *_: (se.split.random(data, fraction=0.4), None),
}  # fmt: skip


@given(
    st.sampled_from([*SPLITS]),
    EVENTS,
    st.integers(0, 3),
    st.sampled_from(["drop", "keep"]),
    st.booleans(),
)
@example("temporal", [(0, 0, 1), (0, 0, 5), (1, 1, 3), (1, 2, 7)], 2, "drop", True)
@example("last of three", [(0, 0, 1), (0, 1, 5), (0, 0, 6), (1, 2, 9)], 0, "drop", False)
@example("last_n", [(0, 0, 1), (0, 1, 2), (0, 0, 3), (1, 2, 3), (1, 3, 4)], 0, "drop", False)
def test_recency_is_of_the_events_in_train(name, events, gap, how, saved):
    data = interactions_of(events)
    try:
        held, end = SPLITS[name](data, gap, how)
    except InvalidDataError:  # a part would be empty
        assume(False)
    if saved and "last of" not in name:
        with tempfile.TemporaryDirectory() as folder:
            held.save(folder)
            held = se.Holdout.load(folder)
    last = {}
    for n in events_in(held.train, data, events):
        user, item, time = events[n]
        if time is not None:
            last[user, item] = max(last.get((user, item), time), time)
    if end is None:
        end = max(last.values(), default=0)
    else:
        end -= gap
    counts = dict.fromkeys(data.items, 0.0)
    for (_, item), time in last.items():
        counts[item] += (end - time <= 4) * 0.5 ** (end - time)
    may_fail = len({event[:2] for event in events}) < len(events) and name in ("last_n", "users")
    may_fail |= name == "last_n for the test"
    try:
        model = se.baselines.popularity(held, window=4, half_life=1, interactions=data)
    except InvalidDataError:
        assert may_fail
    else:
        assert dict(zip(data.items, model.item_factors[:, 0], strict=True)) == counts


def test_recent_popularity_of_interactions_ends_with_the_last_event():
    frame = pd.DataFrame({"user": [0, 1, 2, 0], "item": [0, 0, 1, 1], "at": [1, 5, 9, 10]})
    clicks = se.Interactions.from_frame(frame, timestamp="at")
    model = se.baselines.popularity(clicks, half_life=1, window=5)
    assert model.item_factors[:, 0].tolist() == [0.5**5, 0.5 + 1.0]
    shown = replace(clicks, values=np.array([1.0, 1.0, 0.0, 1.0]))  # user 2 did not choose item 1
    assert se.baselines.popularity(shown, window=99).item_factors[:, 0].tolist() == [2, 1]


def test_recent_popularity_with_times_far_apart():
    times = [-(2**62) - 5, 2**62]
    frame = pd.DataFrame({"user": [0, 1], "item": [0, 1], "timestamp": times})
    clicks = se.Interactions.from_frame(frame)
    model = se.baselines.popularity(clicks, half_life=2**62)
    assert model.item_factors.ravel().tolist() == [0.25, 1.0]


def test_recent_popularity_without_times_raises():
    clicks, others = (se.datasets.synthetic(n_users=50, n_items=n, seed=0) for n in (40, 41))
    held = se.split.random(clicks, seed=0)
    for argument, options in (
        ("window", {"window": "1D"}),
        ("half_life", {"half_life": "1D"}),
        ("interactions", {"window": "1D", "interactions": others}),
        ("window", {"window": 0, "interactions": clicks}),
        ("window", {"window": "soon", "interactions": clicks}),
    ):
        with raises(InvalidDataError, argument=argument):
            se.baselines.popularity(held, **options)
    twice = interactions_of([(0, 0, 1), (0, 1, 2), (0, 0, 3)])
    with raises(InvalidDataError, argument="interactions"):
        se.baselines.popularity(se.split.last_n(twice, n=1), window=1, interactions=twice)
    frame = pd.DataFrame({"user": [0], "item": [0], "timestamps": [1]})
    with raises(InvalidDataError, argument="window"):
        se.baselines.popularity(frame, window=1)
