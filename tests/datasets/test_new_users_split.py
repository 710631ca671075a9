"""A split by users leaves nothing of a held-out user in training, and loses nothing uncounted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse
from split_cases import EVENTS, events_in, interactions_of

import sparse_eval as se
from sparse_eval import split
from sparse_eval.errors import InvalidDataError

FRACTIONS = st.floats(0.05, 0.95)
PAIRS = st.sets(st.tuples(st.integers(0, 9), st.integers(0, 6)), min_size=1, max_size=60)


def matrix_of(pairs):
    rows, columns = zip(*sorted(pairs), strict=True)
    values = np.arange(len(rows)) % 3  # explicit zeros among them
    return sparse.csr_matrix((values.astype(float), (rows, columns)), shape=(11, 7))


def pairs_of(matrix):
    coo = matrix.tocoo()
    return set(zip(coo.row.tolist(), coo.col.tolist(), strict=True))


def by_user(pairs):
    return {user: {pair for pair in pairs if pair[0] == user} for user in range(11)}


@given(PAIRS, FRACTIONS, FRACTIONS, st.none() | FRACTIONS, st.integers(0, 3))
def test_every_user_is_trained_on_or_divided(pairs, fraction, fold_in, test, seed):
    options = {"fraction": fraction, "fold_in": fold_in, "test": test, "seed": seed}
    whole = matrix_of(pairs)
    eligible = {user for user, own in by_user(pairs).items() if len(own) > 1}
    counts = [max(1, round(share * len(eligible))) for share in (fraction, test or 0)]
    counts[1] = 0 if test is None else counts[1]
    if test is not None and fraction + test >= 1:
        with pytest.raises(InvalidDataError, match="leave nobody to train on"):
            split.users(whole, **options)
        return
    if sum(counts) > len(eligible) or sum(counts) == 11:
        with pytest.raises(InvalidDataError, match="too few to hold some out"):
            split.users(whole, **options)
        return
    holdout = split.users(whole, **options)
    held_out = [
        by_user(pairs_of(part))
        for part in (holdout.validation, holdout.test)[: 1 + (test is not None)]
    ]
    given_to_model, train = (by_user(pairs_of(part)) for part in (holdout.fold_in, holdout.train))
    for part, count in zip(held_out, counts, strict=False):
        assert sum(map(bool, part.values())) == count
    for user, own in by_user(pairs).items():
        parts = [part[user] for part in held_out if part[user]]
        if not parts:
            assert (train[user], given_to_model[user]) == (own, set())
            continue
        assert len(parts) == 1
        assert user in eligible
        assert not train[user]
        assert given_to_model[user] | parts[0] == own
        assert not given_to_model[user] & parts[0]
        n = len(own)
        assert len(given_to_model[user]) == max(1, min(n - 1, round(fold_in * n)))
    again = split.users(whole, **options)
    for name in ("train", "fold_in", "validation"):
        assert (getattr(holdout, name).csr != getattr(again, name).csr).nnz == 0
    assert pairs_of(holdout.seen) == pairs_of(holdout.train) | pairs_of(holdout.fold_in)
    assert holdout.left_out == (0, 0, 0)


@given(EVENTS, FRACTIONS, FRACTIONS, st.none() | FRACTIONS, st.integers(0, 3))
def test_by_time_the_model_is_given_the_earliest_pairs(events, fraction, fold_in, test, seed):
    data = interactions_of(events)
    options = {"fraction": fraction, "fold_in": fold_in, "test": test, "seed": seed}
    try:
        holdout = split.users(data, order="time", **options)
    except InvalidDataError:
        assume(False)
    train, given_to_model, validation = (
        events_in(part, data, events)
        for part in (holdout.train, holdout.fold_in, holdout.validation)
    )
    tested = set() if holdout.test is None else events_in(holdout.test, data, events)
    everything = set(range(len(events)))
    left_out = everything - train - given_to_model - validation - tested
    assert holdout.left_out == (len(left_out), 0, 0)
    held_out = validation | tested
    users = {events[n][0] for n in held_out}
    assert users == {events[n][0] for n in given_to_model}
    assert {events[n][0] for n in validation}.isdisjoint(events[n][0] for n in tested)
    assert train == {n for n in everything if events[n][0] not in users}
    for user in users:
        own = {n for n in everything if events[n][0] == user}
        pairs = {events[n][1] for n in own}
        first = {  # an undated event is the earliest
            item: min(
                -99 if events[n][2] is None else events[n][2] for n in own if events[n][1] == item
            )
            for item in pairs
        }
        n_given = max(1, min(len(pairs) - 1, round(fold_in * len(pairs))))
        order = sorted(pairs, key=lambda item: (first[item], data.items.get_loc(item)))
        assert {events[n][1] for n in own & given_to_model} == set(order[:n_given])
        assert {n for n in own if events[n][1] in order[n_given:]} == own & held_out
        cut = first[order[n_given]]
        assert cut > -99  # what is held out has a date
        assert own & left_out == {
            n
            for n in own
            if events[n][1] in order[:n_given] and events[n][2] is not None and events[n][2] > cut
        }


@given(EVENTS, st.integers(1, 3), st.none() | st.integers(1, 3))
def test_last_n_keeps_repeats(events, n, test):
    data = interactions_of(events)
    holdout = split.last_n(data, n=n, test=test, repeats="keep")
    parts = [events_in(part, data, events) for part in (holdout.train, holdout.validation)]
    tested = set() if test is None else events_in(holdout.test, data, events)
    for user in {event[0] for event in events}:
        rest = {number for number in range(len(events)) if events[number][0] == user}
        for size, part in ((test, tested), (n, parts[1])):
            expected = set() if size is None else _latest(events, data, rest, size)
            assert {number for number in part if events[number][0] == user} == expected
            rest -= expected
        assert {number for number in parts[0] if events[number][0] == user} == rest
        assert rest
    assert holdout.left_out == (0, 0, 0)


def _latest(events, data, numbers, n):
    """Return the last events of the n items whose last event is latest."""
    last = {}
    for number in numbers:
        _, item, time = events[number]
        last[item] = max(last.get(item, -99), -99 if time is None else time)
    dated = [item for item in last if last[item] > -99]
    if len(last) <= n or len(dated) < n:
        return set()
    chosen = sorted(last, key=lambda item: (last[item], data.items.get_loc(item)))[-n:]
    limit = min(last[item] for item in chosen)
    return {
        number
        for number in numbers
        if events[number][1] in chosen
        and events[number][2] is not None
        and events[number][2] >= limit
    }


def test_users_of_the_test_are_folded_in_after_validation():
    holdout = split.users(
        se.datasets.synthetic(100, 200, n_interactions=1500), fraction=0.2, test=0.1
    )
    last = holdout.for_test()
    n_test = np.count_nonzero(np.diff(holdout.test.indptr))
    assert n_test == 10
    assert np.count_nonzero(np.diff(last.fold_in.indptr)) == n_test
    assert last.train.nnz + last.fold_in.nnz == holdout.seen.nnz + holdout.validation.nnz
    assert (last.validation.csr != holdout.test.csr).nnz == 0
    assert pairs_of(last.seen) >= pairs_of(holdout.seen)


def test_is_saved_and_read_with_what_is_folded_in(tmp_path):
    clicks = se.datasets.synthetic(100, 200, n_interactions=1500)
    holdout = split.users(clicks, fold_in=0.5, test=0.1)
    holdout.save(tmp_path)
    again = se.Holdout.load(tmp_path)
    assert repr(again) == repr(holdout)
    for name in ("train", "fold_in", "validation", "test"):
        assert (getattr(holdout, name).csr != getattr(again, name).csr).nnz == 0
    assert again.fold_in.part == "fold_in"
    split.random(clicks).save(tmp_path)  # over it
    assert se.Holdout.load(tmp_path).fold_in is None
    assert not (tmp_path / "fold_in.npz").exists()


def test_a_user_that_is_folded_in_is_known_and_its_unknown_items_are_not():
    train = sparse.csr_matrix([[1, 1, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]])
    fold_in = sparse.csr_matrix([[0, 0, 0, 0], [1, 0, 1, 0], [0, 0, 0, 0]])
    validation = sparse.csr_matrix([[0, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0]])
    holdout = se.Holdout(train, validation, fold_in=fold_in)
    assert holdout.unknown == (1, 1, 2)
    assert pairs_of(holdout.known().validation) == {(1, 1)}
    assert (holdout.known().fold_in.csr != fold_in).nnz == 0


def test_refuses_a_user_who_is_trained_on_and_folded_in():
    both = sparse.csr_matrix([[1, 1]])
    with raises(InvalidDataError):
        se.Holdout(both, both, ["anna"], fold_in=both)


@pytest.mark.parametrize(
    "options",
    [
        {"fraction": 1.0},
        {"fold_in": 0},
        {"order": "late"},
        {"order": "time"},
    ],
)
def test_refuses_options(options):
    with raises(InvalidDataError):
        split.users(matrix_of({(0, 0), (0, 1), (1, 0), (1, 1)}), **options)
