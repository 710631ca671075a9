"""Splits keep every pair on exactly one side, and refuse unusable input."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
import split_cases
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

from sparse_eval import split
from sparse_eval.datasets import UNDATED, Interactions, synthetic
from sparse_eval.errors import InvalidDataError

EVENTS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.integers(0, 6),
        st.sampled_from([0.0, 0.1, 0.7, 1.0, 3.0]),
        st.integers(0, 9),
    ),
    min_size=1,
    max_size=50,
)
SPLITS = {
    "random": split.random,
    "random half": partial(split.random, fraction=0.5, seed=3, min_interactions=3),
    "random nearly all": partial(split.random, fraction=0.999),
    "leave_k_out": partial(split.leave_k_out, n=2),
    "last_n": partial(split.last_n, n=2),
    "temporal": partial(split.temporal, fraction=0.3),
    "rolling": partial(split.rolling, window=2, fraction=0.5),
    "k_fold": partial(split.k_fold, k=3),
    "users": partial(split.users, fraction=0.3),
}
BY_TIME = ("last_n", "temporal")


def interactions_of(events):
    return Interactions.from_frame(
        pd.DataFrame(events, columns=["user", "item", "value", "timestamp"])
    )


def pairs(matrix):
    coo = matrix.tocoo()
    return set(zip(coo.row.tolist(), coo.col.tolist(), strict=True))


def n_held_out(holdout):
    return np.diff(holdout.validation.indptr)


def holdouts_of(name, data):
    """Return the holdouts; none if there is rightly no cut."""
    try:
        result = SPLITS[name](data)
    except InvalidDataError:
        assert name in ("temporal", "rolling", "users")
        return []
    return [result] if isinstance(result, split.Holdout) else list(result)


def assert_same(one, other):
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(one, name), getattr(other, name))


@pytest.mark.long
@pytest.mark.parametrize("name", SPLITS)
@given(events=EVENTS, rng=st.randoms(use_true_random=False))
def test_parts_add_up_to_the_whole_in_any_order_of_the_rows(name, events, rng):
    data = interactions_of(events)
    whole = data.matrix()
    shuffled = list(events)
    rng.shuffle(shuffled)
    others = holdouts_of(name, interactions_of(shuffled))
    for holdout, other in zip(holdouts_of(name, data), others, strict=True):
        for part in ("train", "seen", "validation"):
            assert_same(getattr(holdout, part), getattr(other, part))
        if name == "rolling":
            continue
        seen, validation = holdout.seen.csr, holdout.validation.csr
        for part in (seen, validation):
            assert type(part) is sparse.csr_matrix
            assert part.dtype == np.float64
            assert part.shape == whole.shape
            assert part.has_canonical_format
        assert not pairs(seen) & pairs(validation)
        assert pairs(seen) | pairs(validation) == pairs(whole)  # explicit zeros included
        if name not in BY_TIME:  # which leave later events of known pairs out
            assert (seen + validation != whole.csr).nnz == 0
            assert holdout.left_out == (0, 0, 0)
        if name != "temporal":
            assert (np.diff(seen.indptr) >= 1).all()
        assert holdout.users is data.users
        assert holdout.items is data.items


@given(EVENTS)
def test_holds_out_the_requested_number_of_pairs(events):
    data = interactions_of(events)
    sizes = np.diff(data.matrix().indptr).tolist()
    for least in (1, 4):
        expected = [min(round(0.4 * n), n - 1) if n >= least else 0 for n in sizes]
        holdout = split.random(data, fraction=0.4, min_interactions=least)
        assert n_held_out(holdout).tolist() == expected
    for holdout in (split.leave_k_out(data, n=2), split.last_n(data, n=2)):
        assert n_held_out(holdout).tolist() == [2 if n > 2 else 0 for n in sizes]


@given(EVENTS, st.integers(2, 9))
def test_every_pair_is_held_out_in_one_fold(events, k):
    data = interactions_of(events)
    folds = list(split.k_fold(data, k=k))
    assert len(folds) == k
    sizes = np.diff(data.matrix().indptr)
    counts = np.array([n_held_out(fold) for fold in folds])
    assert (counts.sum(axis=0) == np.where(sizes > 1, sizes, 0)).all()
    assert (np.ptp(counts, axis=0) <= 1).all()
    together = [pair for fold in folds for pair in pairs(fold.validation)]
    assert len(together) == len(set(together))


def test_folds_are_balanced_over_users():
    sizes = [fold.validation.nnz for fold in split.k_fold(sparse.csr_matrix(np.ones((1000, 3))))]
    assert sum(sizes) == 3000
    assert np.ptp(sizes) < 150


def test_another_seed_gives_another_split():
    data = synthetic(200, 300, n_interactions=4000)
    for function in (split.random, split.leave_k_out, lambda *a, **k: next(split.k_fold(*a, **k))):
        one, other = (function(data, seed=seed).validation.csr for seed in (5, 2**200))
        assert (one != other).nnz > 0
    held_out = [n_held_out(split.users(data, seed=seed)) > 0 for seed in (5, 6)]
    assert (held_out[0] != held_out[1]).any()


def test_split_of_a_user_does_not_depend_on_other_users():
    matrix = synthetic(200, 300, n_interactions=4000).matrix().csr
    others = matrix.copy()
    others.data[others.indptr[100] :: 2] = 0
    others.eliminate_zeros()
    for function in (split.random, split.leave_k_out):
        one, other = function(matrix).validation.csr, function(others).validation.csr
        assert_same(one[:100], other[:100])
        assert not np.array_equal(one.indices, other.indices)


def test_every_item_is_equally_likely():
    validation = split.leave_k_out(sparse.csr_matrix(np.ones((20_000, 5)))).validation
    counts = np.bincount(validation.indices, minlength=5)
    assert (abs(counts - 4000) < 5 * np.sqrt(4000 * 0.8)).all()


def test_sums_duplicates_of_any_object_with_a_matrix():
    class Log:
        def matrix(self):
            return sparse.coo_matrix(([1.0, 2.0, 0.0], ([0, 0, 0], [1, 1, 0])), shape=(1, 2))

    holdout = split.leave_k_out(Log())
    assert holdout.train.nnz == holdout.validation.nnz == 1
    assert (holdout.train.csr + holdout.validation.csr).toarray().tolist() == [[0, 3]]


FRACTIONS = st.floats(0.05, 0.95)


@pytest.mark.long
@pytest.mark.parametrize("order", ["random", "time"])
@settings(max_examples=60)
@given(
    events=split_cases.EVENTS,
    fraction=FRACTIONS,
    fold_in=FRACTIONS,
    test=st.none() | FRACTIONS,
    seed=st.integers(0, 3),
)
def test_every_user_is_trained_on_or_divided(order, events, fraction, fold_in, test, seed):
    data = split_cases.interactions_of(events)
    options = {"fraction": fraction, "fold_in": fold_in, "test": test, "order": order, "seed": seed}
    shares = [fraction] if test is None else [fraction, test]
    users = {user: {n for n, event in enumerate(events) if event[0] == user} for user, *_ in events}
    n_eligible = 0
    for own in users.values():
        items = {events[n][1] for n in own}
        n_dated = len(items - {events[n][1] for n in own if events[n][2] is None})
        is_datable = order == "random" or n_dated >= len(items) - n_given_of(items, fold_in)
        n_eligible += len(items) > 1 and is_datable
    counts = [max(1, round(share * n_eligible)) for share in shares]
    if sum(shares) >= 1 or sum(counts) > n_eligible or sum(counts) == len(users):
        fault = "leave nobody to train on" if sum(shares) >= 1 else "too few to hold some out"
        with pytest.raises(InvalidDataError, match=fault):
            split.users(data, **options)
        return
    holdout, again = (split.users(data, **options) for _ in range(2))
    names = ["train", "fold_in", "validation", "test"][: 2 + len(shares)]
    parts, repeated, (seen,) = (
        [split_cases.events_in(getattr(one, name), data, events) for name in of]
        for one, of in ((holdout, names), (again, names), (holdout, ["seen"]))
    )
    assert parts == repeated
    train, given_to_model, *held_out = parts
    for part, count in zip(held_out, counts, strict=True):
        assert len({events[n][0] for n in part}) == count
    assert seen == train | given_to_model
    assert holdout.left_out == (len(events) - sum(map(len, parts)), 0, 0)
    for own in users.values():
        tested = [part & own for part in held_out if part & own]
        if not tested:
            assert own <= train - given_to_model
            continue
        known = {events[n][1] for n in own & given_to_model}
        assert not train & own
        assert tested == [{n for n in own if events[n][1] not in known}]
        items = {events[n][1] for n in own}
        assert len(known) == n_given_of(items, fold_in)
        late = own - given_to_model - tested[0]
        if order == "random":
            assert not late
            continue
        times = {n: split_cases.time_of(events[n]) for n in own}
        first = {item: min(times[n] for n in own if events[n][1] == item) for item in items}
        earliest = sorted(items, key=lambda item: (first[item], item))
        assert known == set(earliest[: len(known)])
        cut = first[earliest[len(known)]]
        assert cut > -np.inf  # the first held-out event has a date
        assert late == {n for n in own if events[n][1] in known and times[n] > cut}


def n_given_of(items, fold_in):
    return max(1, min(len(items) - 1, round(fold_in * len(items))))


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (split.random, {"fraction": 1}),
        (split.random, {"seed": -1}),
        (split.random, {"min_interactions": 0}),
        (split.leave_k_out, {"n": 0}),
        (split.leave_k_out, {"seed": -1}),
        (split.k_fold, {"k": 1}),
        (split.k_fold, {"seed": -1}),
        (split.users, {"fraction": 1.0}),
        (split.users, {"fold_in": 0}),
        (split.users, {"order": "late"}),
        (split.last_n, {"n": 0}),
        (split.last_n, {"test": 0}),
        (split.temporal, {"at": 5, "fraction": 0.2}),
        (split.temporal, {"at": 5, "test": 5}),
        (split.temporal, {"test": 1.5}),
        (split.temporal, {"fraction": 0.6, "test": 0.4}),
        (split.temporal, {"at": 5, "gap": -1}),
        (split.temporal, {"at": 5, "repeats": "no"}),
        (split.temporal, {"at": 9}),
        (split.rolling, {"window": 0}),
        (split.rolling, {"window": 1, "step": 0}),
        (split.rolling, {"window": 1, "train_window": 0}),
        (split.rolling, {"window": 1, "repeats": None}),
    ],
)
def test_refuses_options_at_the_call(function, options):
    data = interactions_of([(0, 0, 1.0, 0), (0, 1, 2.0, 5), (0, 0, 4.0, 9)])
    with raises(InvalidDataError):
        function(data, **options)


def test_refuses_unusable_input():
    matrix = sparse.csr_matrix([[1, 1]])
    undated = interactions_of([(0, 0, 1.0, UNDATED)])
    by_time = partial(split.users, order="time")
    for function in (split.last_n, split.temporal, partial(split.rolling, window=1), by_time):
        for data in (matrix, undated):
            with raises(InvalidDataError):
                function(data)
    outside = matrix.copy()
    outside.indices[1] = 7
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "at": [1, 2]})
    for data in (np.ones((2, 2)), None, frame, sparse.csr_matrix([[1, -1]]), outside):
        with raises(InvalidDataError):
            split.random(data)
