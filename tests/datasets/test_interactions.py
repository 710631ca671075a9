"""Interactions: encoding, decoding, and invalid frames."""

from datetime import time
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pytest
from events import rows
from hypothesis import given
from hypothesis import strategies as st
from raising import raises

from sparse_eval.datasets import UNDATED, Interactions
from sparse_eval.errors import InvalidDataError

NUMBERS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(min_size=1, max_size=5).filter(lambda text: text.strip())
EVENTS = st.one_of(
    st.lists(
        st.tuples(users, items, st.floats(0, 1e6), st.integers(-(2**62), 2**62)),
        min_size=1,
        max_size=30,
    )
    for users in (NUMBERS, TEXTS)
    for items in (NUMBERS, TEXTS)
)


def frame_of(events):
    return pd.DataFrame(events, columns=["user", "item", "value", "timestamp"])


@given(EVENTS, st.randoms(use_true_random=False))
def test_decodes_what_was_encoded_in_any_order_of_the_rows(events, rng):
    first = Interactions.from_frame(frame_of(events))
    assert rows(first) == events
    shuffled = list(events)
    rng.shuffle(shuffled)
    second = Interactions.from_frame(frame_of(shuffled))
    assert first.users.tolist() == second.users.tolist()
    assert first.items.tolist() == second.items.tolist()
    one, other = first.matrix(), second.matrix()
    for name in ("data", "indices", "indptr"):
        assert np.array_equal(getattr(one, name), getattr(other, name))
    matrix = one.csr
    assert matrix.dtype == np.float64
    assert matrix.has_canonical_format
    assert matrix.shape == first.shape
    assert matrix.nnz == len({event[:2] for event in events})
    assert matrix.sum() == pytest.approx(sum(event[2] for event in events))


@pytest.mark.parametrize(
    ("ids", "labels"),
    [
        (["b", "a", "B", "é"], ["B", "a", "b", "é"]),
        (["10", "9", "1"], ["1", "10", "9"]),
        ([10, 9, -1], [-1, 9, 10]),
        (np.array([3, 1], dtype=np.uint8), [1, 3]),
        (np.array([2**63 - 1, 1], dtype=np.uint64), [1, 2**63 - 1]),
        ([3.0, 1.0], [1, 3]),
        ([Decimal(3), Decimal(1)], [1, 3]),
        ([np.str_("b"), "a"], ["a", "b"]),
        (pd.array([3, 1], dtype="Int64"), [1, 3]),
        (pd.Series(["b", "a"], dtype="string"), ["a", "b"]),
        (pd.Categorical(["b", "a"], categories=["z", "b", "a"]), ["a", "b"]),
    ],
)
def test_sorts_labels(ids, labels):
    interactions = Interactions.from_frame(pd.DataFrame({"user": pd.Series(ids), "item": 0}))
    assert interactions.users.tolist() == labels
    assert interactions.to_frame()["user"].tolist() == list(ids)


@pytest.mark.parametrize(
    "ids",
    [
        np.array([2**63, 1], dtype=np.uint64),
        [2.0**53, 1.0],
        np.array([2.0**24, 1], np.float32),
        [2.5, 1.0],
        [np.inf, 1.0],
        [Decimal("2.5"), Decimal(1)],
        ["b", 10],
        [10, "b"],
        [("b", 1), ("a", 2)],
        [b"b", b"a"],
        [UUID(int=1), UUID(int=2)],
        [True, False],
        pd.to_datetime(["2024-01-01", "2024-01-02"]),
        pd.Categorical([2.5, 1.0]),
        [2**53 + 1, 0.5],
        [2**70, 1],
    ],
)
def test_refuses_ids_that_are_neither_text_nor_whole_numbers(ids):
    frame = pd.DataFrame({"user": pd.Series(ids), "item": 0})
    with raises(InvalidDataError, column="user"):
        Interactions.from_frame(frame)
    interactions = Interactions.from_frame(frame.astype({"user": str}))  # as the error advises
    assert interactions.users.tolist() == sorted(frame["user"].astype(str))


def test_minus_zero_is_zero():
    frame = pd.DataFrame({"user": [-0.0, 0.0], "item": 0})
    assert Interactions.from_frame(frame).users.tolist() == [0]


def test_neither_changes_nor_shares_the_frame():
    frame = pd.DataFrame({"user": [2, 1], "item": [1, 1], "value": [1.0, 2.0], "at": [1, 2]})
    before = frame.copy()
    interactions = Interactions.from_frame(frame, value="value", timestamp="at")
    interactions.values[:] = 9
    interactions.timestamps[:] = 9
    interactions.matrix().data[:] = 9
    pd.testing.assert_frame_equal(frame, before)


DATES = ["1970-01-01", "1970-01-02"]
DAY = 86400 * 10**9


@pytest.mark.parametrize(
    ("times", "expected", "unit"),
    [
        ([5, -7], [5, -7], None),
        (np.array([5, 7], dtype=np.uint8), [5, 7], None),
        (pd.array([5, 7], dtype="Int64"), [5, 7], None),
        (pd.Categorical([5, 3]), [5, 3], None),
        ([5.0, 7.0], [5, 7], None),
        (np.array([5, 2**24 - 1], np.float32), [5, 2**24 - 1], None),
        ([1.7e15, 5.0], [17 * 10**14, 5], None),
        ([DATES[0], f"{DATES[1]} 00:00:00.000000001"], [0, DAY + 1], "ns"),
        (pd.Categorical(DATES), [0, DAY], "ns"),
        (pd.to_datetime(DATES), [0, DAY], "ns"),
        (pd.Categorical(pd.to_datetime(DATES)), [0, DAY], "ns"),
        (pd.to_datetime(["1970-01-01 01:00+01:00"] * 2), [0, 0], "ns"),
        (pd.to_datetime(DATES).as_unit("s"), [0, DAY], "ns"),
        (pd.Series([pd.Timestamp(5), pd.Timestamp(7)], dtype=object), [5, 7], "ns"),
        (np.array([UNDATED, 7, 5]), [UNDATED, 7, 5], None),
    ],
)
def test_reads_times(times, expected, unit):
    frame = pd.DataFrame({"user": range(len(times)), "item": 1, "at": times})
    before = frame.copy()
    interactions = Interactions.from_frame(frame, timestamp="at")
    assert interactions.timestamps.dtype == np.int64
    assert interactions.timestamps.tolist() == expected
    assert interactions.time_unit == unit
    assert (f"{expected.count(UNDATED)} undated" in repr(interactions)) == (UNDATED in expected)
    assert Interactions.from_frame(interactions.to_frame()).timestamps.tolist() == expected
    pd.testing.assert_frame_equal(frame, before)


@pytest.mark.parametrize("missing", [None, np.nan, " ", pd.NA])
@pytest.mark.parametrize("column", ["user", "item"])
def test_refuses_missing_ids(column, missing):
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]}).astype(object)
    frame.loc[1, column] = missing
    with raises(InvalidDataError):
        Interactions.from_frame(frame)


@pytest.mark.parametrize(
    ("role", "cells"),
    [
        ("value", [1.0, -1.0]),
        ("value", [np.inf, 1.0]),
        ("value", ["1", "x"]),
        ("value", pd.array([1, None], dtype="Int64")),
        ("value", [1j, 2j]),
        ("value", pd.to_datetime(DATES).as_unit("us")),
        ("value", [1e308, 1e308]),  # of one pair
        ("timestamp", [1.5, 2.0]),
        ("timestamp", [1.0, np.nan]),
        ("timestamp", [1.0, 2.0**63]),
        ("timestamp", [1.7e18, 5.0]),
        ("timestamp", pd.to_timedelta(["1D", "2D"])),
        ("timestamp", [time(1), time(2)]),
        ("timestamp", [pd.Timestamp("2024-01-01"), pd.Timestamp("2024-01-01", tz="CET")]),
        ("timestamp", np.array([1, 2**63], dtype=np.uint64)),
        ("timestamp", ["2020-01-01", "1/2/2020"]),
        ("timestamp", ["2024-01-01", "2024-01-01 00:00:00.1234567891"]),
        ("timestamp", ["5", "7"]),
        ("timestamp", ["5", "2020-01-01"]),
        ("timestamp", pd.to_datetime(["2020-01-01", None])),
        ("timestamp", np.array(["9999-01-01", "2020-01-01"], dtype="datetime64[s]")),
        ("timestamp", [1j, 2j]),
    ],
)
def test_refuses_invalid_values_and_times(role, cells):
    frame = pd.DataFrame({"user": 1, "item": 2, "at": cells})
    with raises(InvalidDataError):
        Interactions.from_frame(frame, **{role: "at"}).matrix()


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_refuses_times_that_their_type_rounds(dtype):
    """Such as 1.7e9 seconds, in steps of 128, or more milliseconds and nanoseconds."""
    largest = 2.0 ** (np.finfo(dtype).nmant + 1)
    times = np.array([5, largest], dtype)
    frame = pd.DataFrame({"user": range(len(times)), "item": 2, "at": times})
    with raises(InvalidDataError, column="at", row=len(times) - 1):
        Interactions.from_frame(frame, timestamp="at")


FRAME = pd.DataFrame({"user": ["a"], "item": [1], "rating": [2.0]})


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        ([1], {}),
        (FRAME.iloc[:0], {}),
        (pd.concat([FRAME, FRAME], axis=1), {}),
        (FRAME, {"users": ["b"]}),
        (FRAME, {"items": ["1"]}),
        (FRAME, {"users": ["b", "b"]}),
        (FRAME, {"items": [1.0, None]}),
        (pd.DataFrame({"user": pd.Series([1, True], dtype=object), "item": 1}), {}),
    ],
)
def test_refuses_unusable_columns_labels_and_ids(frame, options):
    with raises(InvalidDataError):
        Interactions.from_frame(frame, **options)


def test_refuses_inconsistent_arrays():
    codes, values = np.zeros(2, dtype=np.int32), np.ones(2)
    one, index = np.zeros(1, dtype=np.int32), pd.RangeIndex(1)
    for arrays in (
        (codes, one, values, None),
        (codes, codes, values, one.astype(np.int64)),
        (codes + 1, codes, values, None),
    ):
        with raises(InvalidDataError):
            Interactions(*arrays, index, index)
    assert len(Interactions(codes[:0], codes[:0], values[:0], None, index, index)) == 0
