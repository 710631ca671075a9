"""Leaving out events: by users, items and values, and until everybody has enough."""

import pickle

import pandas as pd
import pytest
from events import rows
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

from sparse_eval.datasets import Interactions, load
from sparse_eval.errors import InvalidDataError

FRAME = pd.DataFrame(
    {
        "user": [*"aabbcd"],
        "item": [*"xyxyzz"],
        "value": [3, 1, 2, 0.5, 4, 1],
        "timestamp": [6, 5, 4, 3, 2, 1],
    }
)


def test_keeps_what_meets_the_conditions():
    clicks = Interactions.from_frame(FRAME)
    kept = clicks.filter(min_value=1)
    assert rows(kept) == [row for row in rows(clicks) if row[2] >= 1]
    assert repr(kept) == (
        "Interactions(4 users × 3 items, 5 events, timestamps, 1 events dropped by min_value)"
    )
    few = clicks.filter(users=["b", "c", "nobody"], items=pd.Index(["x", "y"]))
    assert rows(few) == [("b", "x", 2.0, 4), ("b", "y", 0.5, 3)]
    assert few.dropped == {"users": 3, "items": 1}
    assert (few.users.tolist(), few.items.tolist()) == (["b"], ["x", "y"])
    again = pickle.loads(pickle.dumps(few.filter(min_value=0.6).filter(min_value=2)))  # noqa: S301
    assert again.dropped == {"users": 3, "items": 1, "min_value": 1}
    assert rows(again) == [("b", "x", 2.0, 4)]
    assert (clicks.dropped, len(clicks)) == ({}, 6)


def test_conditions_are_repeated_until_all_are_met():
    # Without d, item z has one user; without z, so has nobody but a and b two items.
    clicks = Interactions.from_frame(FRAME)
    assert clicks.filter(min_user_interactions=2).users.tolist() == ["a", "b"]
    chain = [{"user": u, "item": i} for u in range(10) for i in (u, u + 1)]
    assert len(Interactions.from_frame(chain).filter(min_user_interactions=2)) == 20
    with raises(InvalidDataError):
        Interactions.from_frame(chain).filter(min_user_interactions=2, min_item_interactions=2)


EVENTS = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6), st.sampled_from([0.0, 0.5, 1.0, 3.0])),
    min_size=1,
    max_size=60,
)


@given(EVENTS, st.integers(1, 4), st.integers(1, 4), st.sampled_from([0.0, 0.5, 1.0]))
def test_equals_the_plain_definition(events, min_user, min_item, min_value):
    frame = pd.DataFrame(events, columns=["user", "item", "value"])
    expected, n_before = frame[frame["value"] >= min_value], -1
    while len(expected) != n_before:
        n_before = len(expected)
        chosen = expected[expected["value"] > 0].drop_duplicates(["user", "item"])
        n_items, n_users = chosen["user"].value_counts(), chosen["item"].value_counts()
        expected = expected[
            expected["user"].map(n_items).fillna(0).ge(min_user)
            & expected["item"].map(n_users).fillna(0).ge(min_item)
        ]
    options = {"min_user_interactions": min_user, "min_item_interactions": min_item}
    clicks = Interactions.from_frame(frame)
    if expected.empty:
        with pytest.raises(InvalidDataError, match="no interactions are left"):
            clicks.filter(min_value=min_value, **options)
        return
    found = clicks.filter(min_value=min_value, **options)
    assert rows(found) == list(expected.itertuples(index=False, name=None))
    assert found.users.tolist() == sorted(set(expected["user"]))
    assert found.items.tolist() == sorted(set(expected["item"]))
    assert sum(found.dropped.values()) == len(frame) - len(expected)


def test_events_before_a_time():
    clicks = Interactions.from_frame(FRAME)
    assert [row[3] for row in rows(clicks.filter(before=4))] == [3, 2, 1]
    days = pd.to_datetime(FRAME["timestamp"], unit="D")
    kept = Interactions.from_frame(FRAME.assign(timestamp=days)).filter(before="1970-01-05")
    assert [row[:2] for row in rows(kept)] == [("b", "y"), ("c", "z"), ("d", "z")]
    assert kept.dropped == {"before": 3}
    with raises(InvalidDataError, argument="before"):
        Interactions.from_frame(FRAME.drop(columns="timestamp")).filter(before=4)
    with raises(InvalidDataError, argument="before"):
        clicks.filter(before="1970-01-05")


def test_labels_without_events_are_removed(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_matrix([[0, 0, 0], [0, 2, 0], [0, 0, 1]]))
    kept = load(tmp_path / "a.npz").filter(min_value=2)
    assert (kept.users.tolist(), kept.items.tolist()) == ([1], [1])  # the numbers that they had
    assert kept.matrix().csr.toarray().tolist() == [[2.0]]
    everybody = load(tmp_path / "a.npz").filter()
    assert (everybody.shape, everybody.dropped) == ((2, 2), {})


@pytest.mark.parametrize(
    "options",
    [
        {"min_value": -1},
        {"min_user_interactions": 0},
        {"min_item_interactions": 1.5},
        {"users": ["a", "a"]},
        {"users": [1, 2]},
    ],
)
def test_refuses_options(options):
    with raises(InvalidDataError):
        Interactions.from_frame(FRAME).filter(**options)
