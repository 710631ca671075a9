"""Duplicated events: how they are counted, dropped and refused."""

import numpy as np
import pandas as pd
import pytest
from events import rows
from hypothesis import given
from hypothesis import strategies as st
from raising import raises

from sparse_eval.datasets import Interactions, load
from sparse_eval.datasets.times import doubtful_days, events_a_day
from sparse_eval.errors import InvalidDataError

FEW = st.integers(0, 1)


@given(st.lists(st.tuples(FEW, FEW, FEW, FEW), min_size=1, max_size=30))
def test_duplicates_are_those_of_pandas(events):
    frame = pd.DataFrame(events, columns=["user", "item", "value", "timestamp"])
    expected = frame[~frame.duplicated()]
    clicks = Interactions.from_frame(frame)
    assert clicks.n_duplicates == len(frame) - len(expected)
    assert ("duplicated events" in repr(clicks)) == (len(frame) > len(expected))
    kept = Interactions.from_frame(frame, duplicates="drop")
    assert rows(kept) == [tuple(row) for row in expected.to_numpy()]
    assert kept.n_duplicates == 0
    assert kept.dropped.get("duplicates", 0) == clicks.n_duplicates
    if clicks.n_duplicates:
        with pytest.raises(InvalidDataError):
            Interactions.from_frame(frame, duplicates="error")
    else:
        assert len(Interactions.from_frame(frame, duplicates="error")) == len(frame)


def test_a_log_that_was_delivered_twice(write):
    path = write("a.csv", "user,item,ts\na,x,2026-01-01\na,y,2026-01-03\n")
    clicks = load([path, path])
    assert (clicks.n_duplicates, len(clicks)) == (2, 4)
    assert rows(load([path, path], duplicates="drop")) == rows(load(path))
    with raises(InvalidDataError, argument="duplicates", user="a"):
        load([path, path], duplicates="error")


def test_events_of_different_types_are_no_duplicates():
    frame = pd.DataFrame(
        {"user": [1, 1, 1], "item": 2, "timestamp": 5, "type": ["view", "buy", "buy"]}
    )
    options = {"event": "type", "events": ["view", "buy"]}
    assert len(Interactions.from_frame(frame, **options, duplicates="drop")) == 2


def test_without_times_nothing_is_known_to_be_a_duplicate(write):
    frame = pd.DataFrame({"user": [1, 1], "item": [2, 2]})
    assert Interactions.from_frame(frame).n_duplicates == 0
    path = write("a.txt", "1 2 2\n")
    for duplicates in ("drop", "error"):
        with raises(InvalidDataError, argument="duplicates"):
            Interactions.from_frame(frame, duplicates=duplicates)
        with raises(InvalidDataError, argument="duplicates"):
            load(path, format="adjacency", duplicates=duplicates)
    with raises(InvalidDataError, argument="duplicates"):
        load(frame, duplicates="first")


DAY = 86400
FIRST = 20_000 * DAY  # 2024-10-04


@pytest.mark.parametrize(
    ("times", "unit", "expected"),
    [
        ([FIRST, FIRST + DAY, FIRST + DAY + 1], "s", "fewest 1 (2024-10-04), most 2 (2024-10-05)"),
        ([FIRST, FIRST + 2 * DAY - 1], None, "fewest 1 (2024-10-04), most 1 (2024-10-04)"),
        ([FIRST, FIRST, FIRST + 2 * DAY], None, "fewest 0 (2024-10-05), most 2 (2024-10-04)"),
        ([-1, 0, 0], "s", "fewest 1 (1969-12-31), most 2 (1970-01-01)"),
        ([5, 7], None, ""),
        ([0, 2**62], "s", ""),
        ([np.iinfo(np.int64).min], "s", ""),
    ],
)
def test_events_a_day(times, unit, expected):
    assert events_a_day(np.array(times), unit).partition(": ")[2] == expected


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([100] * 20, []),
        (
            [100] * 18 + [40, 100],
            ["2024-10-22 has 40 events, and the median of the week before is 100"],
        ),
        ([100] * 18 + [205, 100], ["2024-10-22 has 205 events"]),
        ([100] * 19 + [3], []),  # the last day may have just begun
        ([100] * 18 + [195, 100], ["2024-10-22 has 195 events"]),
        ([100] * 19 + [300], ["2024-10-23 has 300 events"]),
        ([100, 300] + [100] * 18, []),  # long ago
        ([100] * 18 + [60, 100], []),
        ([4] * 18 + [9, 4], []),  # few events vary more
        ([100] * 18 + [0, 100], ["2024-10-22 has 0 events"]),
    ],
)
def test_doubtful_days(counts, expected):
    days = np.repeat(np.arange(len(counts)), counts)
    found = doubtful_days(FIRST + days * DAY, "s")
    assert len(found) == len(expected)
    assert all(text in one for text, one in zip(expected, found, strict=True))
    assert doubtful_days(np.arange(9), None) == []


def test_a_last_day_that_is_whole():
    days = np.repeat(np.arange(20), [100] * 19 + [3])
    (found,) = doubtful_days(FIRST + days * DAY, "s", is_whole=True)
    assert found.startswith("2024-10-23 has 3 events")
