"""Gains of events: what `Relevance.from_frame` makes of their names."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

from sparse_eval import Relevance
from sparse_eval.errors import InvalidDataError

EVENTS = pd.DataFrame(
    {
        "user": [*"bbbbaac"],
        "item": [*"xxxxyxy"],
        "event": ["view", "view", "purchase", "view", "cart", "view", "shown"],
    }
)
WORTH = {"shown": 0, "view": 1, "cart": 2, "purchase": 3, "return": 9}
OPTIONS = {"event": "event", "gains": WORTH}


def test_events_are_worth_their_largest_gain():
    before = EVENTS.copy(deep=True)
    relevance = Relevance.from_frame(EVENTS, **OPTIONS)
    assert relevance.users.tolist() == [*"abc"]
    assert relevance.items_index.tolist() == [*"xy"]
    found = sparse.csr_matrix((relevance.gains, relevance.items, relevance.indptr))
    assert found.toarray().tolist() == [[1, 2], [3, 0], [0, 0]]
    assert found.nnz == 4  # what was shown is known, and not relevant
    assert relevance.n_relevant.tolist() == [2, 1, 0]
    summed = Relevance.from_frame(EVENTS, **OPTIONS, combine="sum")
    assert summed.gains.tolist() == [1, 2, 6, 0]
    assert Relevance.from_frame(EVENTS, **OPTIONS, threshold=2).n_relevant.tolist() == [1, 1, 0]
    pd.testing.assert_frame_equal(EVENTS, before)


@pytest.mark.parametrize("dtype", ["category", "int64", "float64", "Int8", "object"])
def test_events_may_be_of_any_type(dtype):
    codes = {name: name if dtype == "category" else code for code, name in enumerate(WORTH)}
    frame = EVENTS.assign(event=EVENTS["event"].map(codes).astype(dtype))
    gains = {codes[name]: np.float32(gain) for name, gain in WORTH.items()}
    relevance = Relevance.from_frame(frame, event="event", gains=gains)
    assert relevance.gains.tolist() == [1, 2, 3, 0]


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.floats(0, 1e300)), min_size=1
    ),
    st.sampled_from(["max", "sum"]),
)
def test_what_is_combined_equals_pandas(rows, combine):
    df = pd.DataFrame(rows, columns=["user", "item", "gain"])
    relevance = Relevance.from_frame(df, gain="gain", combine=combine)
    expected = df.groupby(["user", "item"])["gain"].agg(combine)
    users = np.repeat(relevance.users.to_numpy(), np.diff(relevance.indptr))
    pairs = zip(users, relevance.items_index[relevance.items], strict=True)
    assert list(pairs) == [*expected.index]
    assert relevance.gains.tolist() == pytest.approx(expected.tolist(), rel=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"event": "event"},
        {**OPTIONS, "gain": "worth"},
        {"combine": "mean"},
        {"event": "what", "gains": WORTH},
        {"event": "event", "gains": {"view": 1, "cart": 2, "purchases": 3, "shown": 0}},
        *({"event": "event", "gains": WORTH | {"view": bad}} for bad in (-1, 10**400, "1", True)),
    ],
)
def test_refuses_events(options):
    with raises(InvalidDataError):
        Relevance.from_frame(EVENTS.assign(worth=1), **options)
