"""Interactions: encoding, decoding, and invalid frames."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises

from sparse_eval.datasets import UNDATED, Interactions, load_frame
from sparse_eval.errors import InvalidDataError
from sparse_eval.inputs.rows import encode_texts

IDS = st.one_of(
    st.integers(-(2**60), 2**60),
    st.text(min_size=1, max_size=5).filter(lambda text: text.strip()),
    st.uuids(),
)
EVENTS = st.lists(
    st.tuples(IDS, IDS, st.floats(0, 1e6), st.integers(-(2**62), 2**62)), min_size=1, max_size=30
)


def frame_of(events):
    frame = pd.DataFrame(
        {
            "user": pd.Series([event[0] for event in events], dtype=object),
            "item": pd.Series([event[1] for event in events], dtype=object),
            "value": [event[2] for event in events],
            "timestamp": np.array([event[3] for event in events], dtype=np.int64),
        }
    )
    # Infer what a user would have: int64 and str columns where they are of one type.
    return frame.infer_objects()


def load(frame, **options):
    return load_frame(frame, value="value", timestamp="timestamp", **options)


@given(EVENTS, st.randoms(use_true_random=False))
def test_decodes_what_was_encoded_in_any_order_of_the_rows(events, rng):
    first = load(frame_of(events))
    result = first.to_frame()
    assert list(zip(*(result[column].tolist() for column in result), strict=True)) == events
    shuffled = list(events)
    rng.shuffle(shuffled)
    second = load(frame_of(shuffled))
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
        ([1.5, -2.0, 1.0], [-2.0, 1.0, 1.5]),
        (np.array([3, 1], dtype=np.uint8), [1, 3]),
        (np.array([2**64 - 1, 1], dtype=np.uint64), [1, 2**64 - 1]),
        (pd.array([3, 1], dtype="Int64"), [1, 3]),
        (pd.Series(["b", "a"], dtype="string"), ["a", "b"]),
        (pd.Categorical(["b", "a"], categories=["z", "b", "a"]), ["a", "b"]),
        (["b", 10, "a", 9], [10, 9, "a", "b"]),  # int before str; within a type by text
        ([("b", 1), ("a", 2)], [("a", 2), ("b", 1)]),
        ([np.int64(2), "x", np.str_("a")], [2, "a", "x"]),
        ([2.5, 1, 10], [1, 2.5, 10]),
        ([True, False], [False, True]),
    ],
)
def test_sorts_labels(ids, labels):
    frame = pd.DataFrame({"user": pd.Series(ids), "item": 0})
    interactions = load_frame(frame)
    assert interactions.users.tolist() == labels
    decoded = interactions.to_frame()["user"].tolist()
    assert decoded == list(ids)


@pytest.mark.parametrize(
    "ids",
    [["0", "-0"], ["7", "007"], ["1", "+1"], ["1", " 1"], ["1", "-01"], ["1", "1_0"], ["1", "١"],
     ["1", str(2**63)], ["1", str(-(2**63) - 1)]],
)  # fmt: skip
def test_ids_that_numbers_would_change_are_text(ids):
    assert encode_texts(ids, numbers=True)[1].tolist() == sorted(ids)
    whole = [0, -5, 2**63 - 1, -(2**63)]
    _, labels = encode_texts(list(map(str, whole)), numbers=True)
    assert (labels.dtype, labels.tolist()) == (np.int64, sorted(whole))


def test_both_zeros_are_one_id():
    interactions = load_frame(pd.DataFrame({"user": [-0.0, 0.0], "item": 0}))
    assert interactions.n_users == 1
    assert not np.signbit(interactions.users[0])


def test_neither_changes_nor_shares_the_frame():
    frame = pd.DataFrame({"user": [2, 1], "item": [1, 1], "value": [1.0, 2.0], "at": [1, 2]})
    before = frame.copy()
    interactions = load_frame(frame, value="value", timestamp="at")
    interactions.values[:] = 9
    interactions.timestamps[:] = 9
    interactions.matrix().data[:] = 9
    pd.testing.assert_frame_equal(frame, before)


def test_large_ids_of_dicts_are_not_rounded():
    rows = [{"user": 2**53 + 1, "item": 1}, {"user": 0.5, "item": 1}]
    assert load_frame(rows).users.tolist() == [0.5, 2**53 + 1]


@pytest.mark.parametrize("missing", [None, np.nan, " ", pd.NA])
@pytest.mark.parametrize("column", ["user", "item"])
@pytest.mark.parametrize("other", ["c", 3])
def test_refuses_missing_ids(column, other, missing):
    frame = pd.DataFrame({"user": ["a", "b", other], "item": ["x", "y", other]}).astype(object)
    frame.loc[1, column] = missing
    with raises(InvalidDataError):
        load_frame(frame)


@pytest.mark.parametrize(
    ("times", "expected", "unit"),
    [
        ([5, -7], [5, -7], None),
        (np.array([5, 7], dtype=np.uint8), [5, 7], None),
        (pd.array([5, 7], dtype="Int64"), [5, 7], None),
        ([5.0, 7.0], [5, 7], None),
        (["1970-01-01", "1970-01-02 00:00:00.000000001"], [0, 86400 * 10**9 + 1], "ns"),
        (["5", "-7"], [5, -7], None),
        (pd.to_datetime(["1970-01-01", "1970-01-02"]), [0, 86400 * 10**9], "ns"),
        (pd.to_datetime(["1970-01-01 01:00+01:00"] * 2), [0, 0], "ns"),
        (pd.to_datetime(["1970-01-01 00:00:01"] * 2).as_unit("s"), [10**9, 10**9], "ns"),
        (pd.Series([pd.Timestamp(5), pd.Timestamp(7)], dtype=object), [5, 7], "ns"),
        (pd.to_datetime([None, "1970-01-02", None]), [UNDATED, 86400 * 10**9, UNDATED], "ns"),
        ([None, pd.Timestamp(5), pd.NaT], [UNDATED, 5, UNDATED], "ns"),
        ([7.0, np.nan, 5.0], [7, UNDATED, 5], None),
        (pd.array([None, 7, 2**62 + 1], dtype="Int64"), [UNDATED, 7, 2**62 + 1], None),
        (np.array([UNDATED, 7, 5]), [UNDATED, 7, 5], None),
        ([None] * 3, [UNDATED] * 3, None),
    ],
)
def test_reads_times_and_missing_ones_on_request(times, expected, unit):
    frame = pd.DataFrame({"user": range(len(times)), "item": 1, "at": times})
    before = frame.copy()
    options = {"missing_times": "undated"} if UNDATED in expected else {}
    interactions = load_frame(frame, timestamp="at", **options)
    assert interactions.timestamps.dtype == np.int64
    assert interactions.timestamps.tolist() == expected
    assert interactions.time_unit == unit
    assert interactions.n_undated == expected.count(UNDATED)
    assert (f"{interactions.n_undated} undated" in repr(interactions)) == (UNDATED in expected)
    again = load_frame(interactions.to_frame(), timestamp="timestamp")
    assert again.timestamps.tolist() == expected
    pd.testing.assert_frame_equal(frame, before)


def test_missing_times_hide_no_other_fault():
    frame = pd.DataFrame({"user": [1, 2, 3], "item": 1, "at": [np.nan, 1.0, 1.5]})
    with raises(InvalidDataError):
        load_frame(frame, timestamp="at", missing_times="undated")
    with raises(InvalidDataError):
        load_frame(frame, timestamp="at", missing_times="skip")


@pytest.mark.parametrize(
    ("role", "cells"),
    [
        ("value", [1.0, -1.0]),
        ("value", [1.0, np.nan]),
        ("value", [np.inf, 1.0]),
        ("value", ["1", "x"]),
        ("value", pd.array([1, None], dtype="Int64")),
        ("value", [1j, 2j]),
        ("value", pd.to_datetime(["2020-01-01", "2020-01-02"])),
        ("timestamp", [1.5, 2.0]),
        ("timestamp", [1.0, np.nan]),
        ("timestamp", [1.0, np.inf]),
        ("timestamp", [1.0, 2.0**63]),
        ("timestamp", np.array([1, 2**63], dtype=np.uint64)),
        ("timestamp", ["2020-01-01", "1/2/2020"]),
        ("timestamp", ["2024-01-01", "2024-01-01 00:00:00.1234567891"]),
        ("timestamp", ["5", "2020-01-01"]),
        ("timestamp", pd.to_datetime(["2020-01-01", None])),
        ("timestamp", np.array(["9999-01-01", "2020-01-01"], dtype="datetime64[s]")),
        ("timestamp", [1j, 2j]),
    ],
)
def test_refuses_invalid_values_and_times(role, cells):
    frame = pd.DataFrame({"user": [1, 2], "item": [1, 2], "at": cells})
    with raises(InvalidDataError):
        load_frame(frame, **{role: "at"})


FRAME = pd.DataFrame({"user": ["a"], "item": [1], "rating": [2.0]})


@pytest.mark.parametrize(
    ("frame", "options"),
    [
        ([1], {}),
        (FRAME, {"value": "ratings"}),
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
        load_frame(frame, **options)


def test_refuses_sums_that_overflow():
    frame = pd.DataFrame({"user": [1, 1], "item": [1, 1], "v": [1e308, 1e308]})
    with raises(InvalidDataError, row=0, column=0):
        load_frame(frame, value="v").matrix()


def test_refuses_inconsistent_arrays():
    codes, values = np.zeros(2, dtype=np.int32), np.ones(2)
    one, index = np.zeros(1, dtype=np.int32), pd.RangeIndex(1)
    with raises(InvalidDataError):
        Interactions(codes, one, values, None, index, index)
    with raises(InvalidDataError):
        Interactions(codes, codes, values, one.astype(np.int64), index, index)
    with raises(InvalidDataError):
        Interactions(codes + 1, codes, values, None, index, index)
    assert len(Interactions(codes[:0], codes[:0], values[:0], None, index, index)) == 0


@pytest.mark.parametrize(
    "times",
    [["2024-01-01", "2024-01-03"], pd.to_datetime(["2024-01-01", "2024-01-03"]), [5, 3]],
)
def test_categorical_times_are_those_that_they_stand_for(times):
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"], "at": times})
    categorical = frame.assign(at=frame["at"].astype("category"))
    expected, found = (Interactions.from_frame(df, timestamp="at") for df in (frame, categorical))
    assert found.timestamps.tolist() == expected.timestamps.tolist()
    assert found.time_unit == expected.time_unit
