"""A split by users leaves nothing of a held-out user in training, and loses nothing uncounted."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from raising import raises
from scipy import sparse
from split_cases import EVENTS, events_in, interactions_of

import sparse_eval as se
from sparse_eval import split
from sparse_eval.errors import InvalidDataError

FRACTIONS = st.floats(0.05, 0.95)


def pairs_of(matrix):
    coo = matrix.tocoo()
    return set(zip(coo.row.tolist(), coo.col.tolist(), strict=True))


@pytest.mark.parametrize("order", ["random", "time"])
@settings(max_examples=60)
@given(
    events=EVENTS,
    fraction=FRACTIONS,
    fold_in=FRACTIONS,
    test=st.none() | FRACTIONS,
    seed=st.integers(0, 3),
)
def test_every_user_is_trained_on_or_divided(order, events, fraction, fold_in, test, seed):
    data = interactions_of(events)
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
    parts = [events_in(getattr(holdout, name), data, events) for name in names]
    assert parts == [events_in(getattr(again, name), data, events) for name in names]
    train, given_to_model, *held_out = parts
    for part, count in zip(held_out, counts, strict=True):
        assert len({events[n][0] for n in part}) == count
    assert events_in(holdout.seen, data, events) == train | given_to_model
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
        first = dict.fromkeys(items, np.inf)
        for n in own:  # an undated event is the earliest
            time = -np.inf if events[n][2] is None else events[n][2]
            first[events[n][1]] = min(time, first[events[n][1]])
        earliest = sorted(items, key=lambda item: (first[item], data.items.get_loc(item)))
        assert known == set(earliest[: len(known)])
        cut = first[earliest[len(known)]]
        assert cut > -np.inf  # the first held-out event has a date
        times = {n: events[n][2] for n in own if events[n][1] in known}
        assert late == {n for n, time in times.items() if time is not None and time > cut}


def n_given_of(items, fold_in):
    return max(1, min(len(items) - 1, round(fold_in * len(items))))


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
