"""Splits by time leak nothing, lose nothing uncounted, and say what training does not know.

Each event has a power of two as its value, so the value of a pair says which of its events a part
holds. The oracles go through the events one by one.
"""

from dataclasses import replace
from datetime import date, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse
from split_cases import EVENTS, events_in, interactions_of

from sparse_eval import split
from sparse_eval.datasets import UNDATED, synthetic
from sparse_eval.errors import InvalidDataError

CUTS = st.integers(-4, 13)
LENGTHS = st.integers(1, 6)
REPEATS = st.sampled_from(["drop", "keep"])


def parts_of(holdout, data, events):
    parts = [holdout.train, holdout.validation]
    parts += [] if holdout.test is None else [holdout.test]
    return [events_in(part, data, events) for part in parts]


def divided(events, train, held_out, repeats):
    """Return the parts and the numbers of repeated events and of others, one event at a time."""
    parts, n_repeated = [train], 0
    for chosen in held_out:
        known = {events[n][:2] for part in parts for n in part}
        repeated = {n for n in chosen if events[n][:2] in known and repeats == "drop"}
        n_repeated += len(repeated)
        parts.append(chosen - repeated)
    n_outside = len(events) - n_repeated - sum(map(len, parts))
    return parts, n_repeated, n_outside


def within(events, start, end):
    """Return the numbers of the dated events in a period, without limit where it is None."""
    return {
        n
        for n, (*_, time) in enumerate(events)
        if time is not None and (start is None or time >= start) and (end is None or time < end)
    }


def undated(events):
    return {n for n, (*_, time) in enumerate(events) if time is None}


def assert_no_leak(events, parts):
    """Assert that no event is earlier than one of an earlier part, and none is there twice."""
    assert sum(map(len, parts)) == len(set().union(*parts))
    for earlier, later in pairwise(parts):
        assert not later & undated(events)
        times = [events[n][2] for n in earlier - undated(events)]
        if times and later:
            assert max(times) < min(events[n][2] for n in later)


@given(EVENTS, CUTS, st.none() | LENGTHS, st.integers(0, 4), REPEATS)
def test_temporal_divides_the_events_at_the_cuts(events, at, until_test, gap, repeats):
    data = interactions_of(events)
    test = None if until_test is None else at + until_test
    train = within(events, None, at - gap) | undated(events)
    held_out = [within(events, at, None if test is None else test - gap)]
    held_out += [] if test is None else [within(events, test, None)]
    expected, n_repeated, n_outside = divided(events, train, held_out, repeats)
    empty = [name for name, part in zip(split.holdout.PARTS, expected, strict=False) if not part]
    if empty:
        with pytest.raises(InvalidDataError, match=f"the cut {at}.* leaves {empty[0]} empty"):
            split.temporal(data, at=at, test=test, gap=gap, repeats=repeats)
        return
    holdout = split.temporal(data, at=at, test=test, gap=gap, repeats=repeats)
    parts = parts_of(holdout, data, events)
    assert parts == expected
    assert_no_leak(events, parts)
    assert holdout.cut == at
    assert holdout.left_out == (n_repeated, n_outside, 0)
    if not gap and repeats == "keep":
        assert set().union(*parts) == set(range(len(events)))
        assert (sum(m.csr for m in _matrices(holdout)) != data.matrix().csr).nnz == 0


def _matrices(holdout):
    return [m for m in (holdout.train, holdout.validation, holdout.test) if m is not None]


@given(EVENTS, CUTS, LENGTHS, st.none() | LENGTHS, st.none() | LENGTHS, st.integers(0, 4), REPEATS)
def test_rolling_holds_out_one_window_after_the_other(
    events, at, window, step, train_window, gap, repeats
):
    data = interactions_of(events)
    options = {"at": at, "window": window, "step": step, "train_window": train_window, "gap": gap}
    if not within(events, at, None):
        with pytest.raises(InvalidDataError, match=f"the cut {at} leaves validation empty|train"):
            split.rolling(data, **options)
        return
    if not within(events, None, at - gap) | undated(events):
        with pytest.raises(InvalidDataError, match=f"the cut {at} leaves train empty"):
            split.rolling(data, **options)
        return
    holdouts = list(split.rolling(data, **options, repeats=repeats))
    starts = [holdout.cut for holdout in holdouts]
    stride = window if step is None else step
    last = max(time for *_, time in events if time is not None)
    assert starts == [at + n * stride for n in range(len(starts))]
    assert starts[-1] <= last < starts[-1] + stride
    held_out = []
    for start, holdout in zip(starts, holdouts, strict=True):
        begin = None if train_window is None else start - gap - train_window
        train = within(events, begin, start - gap) | undated(events)
        chosen = [within(events, start, start + window)]
        expected, n_repeated, n_outside = divided(events, train, chosen, repeats)
        parts = parts_of(holdout, data, events)
        assert parts == expected
        assert_no_leak(events, parts)
        assert holdout.left_out == (n_repeated, n_outside, 0)
        held_out.append(parts[1])
    if step is None and repeats == "keep":  # every event from the first cut on, once
        assert sum(map(len, held_out)) == len(set().union(*held_out))
        assert set().union(*held_out) == within(events, at, None)


@given(EVENTS, st.integers(1, 3), st.none() | st.integers(1, 3))
def test_last_n_trains_on_nothing_later_than_what_it_holds_out(events, n, n_test):
    data = interactions_of(events)
    holdout = split.last_n(data, n=n, test=n_test)
    parts = parts_of(holdout, data, events)
    expected = [set(), set(), set()]
    for user in range(5):
        own = [number for number, event in enumerate(events) if event[0] == user]
        first = {}
        for number in own:
            _, item, time = events[number]
            time = -np.inf if time is None else time
            first[item] = min(time, first.get(item, time))
        order = sorted(first, key=lambda item: (first[item], item))
        groups = [order, [], []]
        for group, count in ((2, n_test), (1, n)):
            rest = groups[0]
            n_dated = sum(first[item] > -np.inf for item in rest)
            if count is not None and len(rest) > count and n_dated >= count:
                groups[0], groups[group] = rest[:-count], rest[-count:]
        for group, items in enumerate(groups):
            later = [first[item] for others in groups[group + 1 :] for item in others]
            limit = min(later, default=np.inf)
            expected[group] |= {
                number
                for number in own
                if events[number][1] in items
                and (events[number][2] is None or events[number][2] <= limit)
            }
    assert parts == expected[: len(parts)]
    assert not expected[2] or n_test is not None
    assert holdout.left_out == (len(events) - sum(map(len, parts)), 0, 0)
    assert holdout.cut is None


@given(EVENTS, st.sampled_from([0.05, 0.2, 0.4]), st.sampled_from([None, 0.1, 0.3]))
def test_fractions_are_of_the_dated_pairs(events, fraction, test):
    data = interactions_of(events)
    first = {}
    for user, item, time in events:
        time = -np.inf if time is None else time
        first[user, item] = min(time, first.get((user, item), time))
    met = sorted((time for time in first.values() if time > -np.inf), reverse=True)
    assume(met)
    counts = [max(1, round(share * len(met))) for share in (test, fraction) if share is not None]
    cuts = [met[min(total, len(met)) - 1] for total in np.cumsum(counts)][::-1]
    at_cuts = {"at": cuts[0], "test": None if test is None else cuts[1]}
    try:
        holdout = split.temporal(data, fraction=fraction, test=test)
    except InvalidDataError:  # ties, or nothing before the cut
        with pytest.raises(InvalidDataError, match="empty|test: expected a time after"):
            split.temporal(data, **at_cuts)
        return
    assert holdout.cut == cuts[0]
    same = split.temporal(data, **at_cuts)
    assert parts_of(holdout, data, events) == parts_of(same, data, events)
    next(split.rolling(data, window=1, fraction=fraction))


@given(EVENTS, CUTS)
def test_known_leaves_out_what_training_does_not_know(events, at):
    data = interactions_of(events)
    try:
        holdout = split.temporal(data, at=at, test=at + 4)
    except InvalidDataError:
        assume(False)
    train, validation, test = parts_of(holdout, data, events)
    users, items = ({events[n][axis] for n in train} for axis in (0, 1))
    new = {n for n in validation if events[n][0] not in users or events[n][1] not in items}
    assert holdout.unknown == (
        len({events[n][0] for n in validation} - users),
        len({events[n][1] for n in validation} - items),
        len({events[n][:2] for n in new}),
    )
    known = holdout.known()
    kept = validation - new
    users, items = ({events[n][axis] for n in train | kept} for axis in (0, 1))
    gone = {n for n in test if events[n][0] not in users or events[n][1] not in items}
    assert parts_of(known, data, events) == [train, kept, test - gone]
    assert known.unknown == known.for_test().unknown == (0, 0, 0)
    n_pairs = len({events[n][:2] for n in new}) + len({events[n][:2] for n in gone})
    assert known.left_out == holdout.left_out._replace(unknown=n_pairs)
    assert known.train.shape == holdout.train.shape
    assert parts_of(known.for_test(), data, events) == [train | kept, test - gone]
    assert parts_of(known.known(), data, events) == parts_of(known, data, events)


def test_a_value_of_zero_teaches_nothing():
    train = sparse.csr_matrix(([1.0, 0.0], ([0, 1], [0, 1])), shape=(2, 2))
    holdout = split.Holdout(train, sparse.csr_matrix([[0.0, 1.0], [1.0, 0.0]]))
    assert holdout.unknown == (1, 1, 2)
    assert "validation not in train: 1 users, 1 items, 2 pairs" in repr(holdout)
    assert holdout.known().validation.nnz == 0
    both = split.Holdout(train, train, test=train).for_test()
    assert both.train.nnz == 2  # the explicit zero is kept
    assert both.train.csr.sum() == 2


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", None])
@pytest.mark.parametrize("at", ["2019-11-14 13:00+01:00", datetime(2019, 11, 14, 12), "integer"])
def test_cuts_at_dates_in_every_unit(unit, at):
    clicks = synthetic(50, 60, n_interactions=900)
    scale = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, None: 10**3}[unit]
    data = replace(clicks, timestamps=clicks.timestamps * scale, time_unit=unit)
    noon = 1573732800
    expected = set(zip(*data.matrix().csr.nonzero(), strict=True))
    frame = clicks.to_frame()
    later = frame[frame["timestamp"] >= noon]
    holdout = split.temporal(data, at=noon * scale if at == "integer" else at)
    assert holdout.validation.nnz == len(later)
    assert holdout.train.nnz == len(expected) - len(later)
    known = unit is not None or at != "integer"
    assert holdout.cut == (np.datetime64("2019-11-14T12") if known else noon * scale)
    assert ("cut at 2019-11-14 12:00:00" if known else f"cut at {noon * scale}") in repr(holdout)


def test_durations_are_those_of_the_numbers():
    clicks = synthetic(50, 60, n_interactions=900)
    day = 86_400
    for gap in ("1D", timedelta(days=1), day):
        holdout = split.temporal(clicks, at=date(2019, 11, 20), gap=gap)
        on_the_day = (clicks.timestamps // day == 1574208000 // day - 1).sum()
        assert holdout.left_out.outside == on_the_day > 0
    days = [h.cut for h in split.rolling(clicks, at="2019-12-03", window="1D")]
    assert days == [np.datetime64(f"2019-12-0{day}") for day in (3, 4, 5, 6)]
    numbers = [h.cut for h in split.rolling(clicks, at=1575331200, window=day)]
    assert numbers == days


def test_refuses_events_without_any_date():
    data = interactions_of([(0, 0, 1), (0, 1, 2)])
    data = replace(data, timestamps=np.full(2, UNDATED))
    for function in (split.last_n, split.temporal):
        with raises(InvalidDataError):
            function(data)
    with raises(InvalidDataError, argument="test"):
        split.last_n(interactions_of([(0, 0, 1)]), test=0)


def test_last_n_leaves_out_later_events_of_known_pairs():
    events = [(0, 0, 10), (0, 0, 20), (0, 0, 40), (0, 1, 30)]
    data = interactions_of(events)
    holdout = split.last_n(data)
    assert parts_of(holdout, data, events) == [{0, 1}, {3}]
    assert holdout.left_out.repeated == 1
