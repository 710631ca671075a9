"""Splits by time leak nothing, and lose nothing uncounted.

Each event has a power of two as its value, so the value of a pair says which of its events a part
holds. The oracles go through the events one by one.
"""

from dataclasses import replace
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from raising import raises
from split_cases import EVENTS, events_in, interactions_of, time_of

from sparse_eval import baselines, split
from sparse_eval.datasets import Interactions, synthetic
from sparse_eval.errors import InvalidDataError

CUTS = st.integers(-4, 13)
LENGTHS = st.integers(1, 6)
REPEATS = st.sampled_from(["drop", "keep"])


def parts_of(holdout, data, events):
    parts = [holdout.train, holdout.validation]
    parts += [] if holdout.test is None else [holdout.test]
    return [events_in(part, data, events) for part in parts]


def divided(events, train, held_out, repeats):
    """Return the parts and the counts of what is left out, one event at a time."""
    parts, n_repeated = [train], 0
    for chosen in held_out:
        known = {events[n][:2] for part in parts for n in part}
        repeated = {n for n in chosen if events[n][:2] in known and repeats == "drop"}
        n_repeated += len(repeated)
        parts.append(chosen - repeated)
    n_outside = len(events) - n_repeated - sum(map(len, parts))
    return parts, (n_repeated, n_outside, 0)


def dated(events, start, end):
    """Return the numbers of the dated events in a period, without limit where it is None."""
    start, end = -np.inf if start is None else start, np.inf if end is None else end
    return {n for n, (*_, time) in enumerate(events) if time is not None and start <= time < end}


def undated(events):
    return {n for n, (*_, time) in enumerate(events) if time is None}


@given(EVENTS, CUTS, st.none() | LENGTHS, st.integers(0, 4), REPEATS)
def test_temporal_divides_the_events_at_the_cuts(events, at, until_test, gap, repeats):
    data = interactions_of(events)
    test = None if until_test is None else at + until_test
    train = dated(events, None, at - gap) | undated(events)
    held_out = [dated(events, at, None if test is None else test - gap)]
    held_out += [] if test is None else [dated(events, test, None)]
    expected, left_out = divided(events, train, held_out, repeats)
    empty = [name for name, part in zip(split.holdout.PARTS, expected, strict=False) if not part]
    if empty:
        with pytest.raises(InvalidDataError, match=f"the cut {at}.* leaves {empty[0]} empty"):
            split.temporal(data, at=at, test=test, gap=gap, repeats=repeats)
        return
    holdout = split.temporal(data, at=at, test=test, gap=gap, repeats=repeats)
    assert parts_of(holdout, data, events) == expected
    assert holdout.cut == at
    assert holdout.left_out == left_out


@given(EVENTS, CUTS, LENGTHS, st.none() | LENGTHS, st.none() | LENGTHS, st.integers(0, 4), REPEATS)
def test_rolling_holds_out_one_window_after_the_other(
    events, at, window, step, train_window, gap, repeats
):
    data = interactions_of(events)
    options = {"at": at, "window": window, "step": step, "train_window": train_window, "gap": gap}
    whole = {
        "train": dated(events, None, at - gap) | undated(events),
        "validation": dated(events, at, None),
    }
    empty = [name for name, part in whole.items() if not part]
    if empty:
        with pytest.raises(InvalidDataError, match=f"the cut {at} leaves {empty[0]} empty"):
            split.rolling(data, **options)
        return
    holdouts = list(split.rolling(data, **options, repeats=repeats))
    starts = [holdout.cut for holdout in holdouts]
    stride = window if step is None else step
    last = max(time for *_, time in events if time is not None)
    assert starts == list(range(at, last + 1, stride))
    for start, holdout in zip(starts, holdouts, strict=True):
        begin = None if train_window is None else start - gap - train_window
        train = dated(events, begin, start - gap) | undated(events)
        chosen = [dated(events, start, start + window)]
        expected, left_out = divided(events, train, chosen, repeats)
        assert parts_of(holdout, data, events) == expected
        assert holdout.left_out == left_out


@given(EVENTS, st.integers(1, 3), st.none() | st.integers(1, 3), REPEATS)
@example([(0, 0, 10), (0, 0, 20), (0, 0, 40), (0, 1, 30)], 1, None, "drop")
@example([(0, 0, 10), (0, 1, 20), (0, 1, 25), (0, 2, 22)], 1, 1, "drop")
def test_last_n_trains_on_nothing_later_than_what_it_holds_out(events, n, n_test, repeats):
    """A pair has the time of its first event, or with kept repeats of its last one."""
    keep = repeats == "keep"
    data = interactions_of(events)
    holdout = split.last_n(data, n=n, test=n_test, repeats=repeats)
    expected = [set(), set(), set()]
    for user in range(5):
        rest = {number for number, event in enumerate(events) if event[0] == user}
        limit = np.inf
        for part, count in ((2, n_test), (1, n)):
            times = {}
            for number in rest:
                item, time = events[number][1], time_of(events[number])
                times[item] = (max if keep else min)(time, times.get(item, time))
            order = sorted(times, key=lambda item: (times[item], item))
            if count is None or len(order) <= count or times[order[-count]] == -np.inf:
                continue
            since = times[order[-count]]
            held = {number for number in rest if events[number][1] in order[-count:]}
            if keep:
                held = {number for number in held if time_of(events[number]) >= since}
            rest -= held
            expected[part] |= {
                number for number in held if keep or time_of(events[number]) <= limit
            }
            limit = since
        expected[0] |= {number for number in rest if keep or time_of(events[number]) <= limit}
    parts = parts_of(holdout, data, events)
    assert parts == expected[: len(parts)]
    assert not expected[2] or n_test is not None
    assert holdout.left_out == (len(events) - sum(map(len, parts)), 0, 0)
    assert holdout.cut is None


@given(EVENTS, st.sampled_from([0.05, 0.2, 0.4]), st.sampled_from([None, 0.1, 0.3]))
def test_fractions_are_of_the_dated_pairs(events, fraction, test):
    data = interactions_of(events)
    first = {}
    for event in events:
        time = time_of(event)
        first[event[:2]] = min(time, first.get(event[:2], time))
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


@pytest.mark.parametrize("unit", ["s", "ns", None])
@pytest.mark.parametrize("at", ["2019-11-14 13:00+01:00", datetime(2019, 11, 14, 12), "integer"])
def test_cuts_at_dates_in_every_unit(unit, at):
    clicks = synthetic(50, 60, n_interactions=900)
    scale = {"s": 1, "ns": 10**9, None: 10**3}[unit]
    data = replace(clicks, timestamps=clicks.timestamps * scale, time_unit=unit)
    noon = 1573732800
    n_later = np.count_nonzero(clicks.timestamps >= noon)  # no pair occurs twice
    holdout = split.temporal(data, at=noon * scale if at == "integer" else at)
    assert (holdout.train.nnz, holdout.validation.nnz) == (len(clicks) - n_later, n_later)
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


def test_every_duration_of_dates_needs_a_unit():
    frame = synthetic(50, 60, n_interactions=900).to_frame()
    frame["timestamp"] = pd.to_datetime(frame["timestamp"], unit="s")
    clicks = Interactions.from_frame(frame)
    calls = (
        (split.temporal, {"gap": "1D"}),
        (split.rolling, {"window": "4D", "step": "2D", "train_window": "9D", "gap": "12h"}),
        (baselines.popularity, {"window": "7D", "half_life": "3D"}),
    )
    for function, options in calls:
        for data in (frame, clicks):
            if function is not baselines.popularity or data is clicks:
                function(data, **options)
                for name in options:
                    with raises(InvalidDataError, argument=name):
                        function(data, **options | {name: 7})
