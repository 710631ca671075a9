"""Rankings as frames, and back."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sparse_eval as se

#: Blank text is no id.
TEXT = st.text(st.characters(codec="utf-8"), max_size=4).filter(str.strip)
KINDS = st.sampled_from([TEXT, st.integers(-(2**63), 2**63 - 1)])


@st.composite
def frames(draw):
    """Draw lists with gaps, in any order of their rows."""
    ids = [draw(st.lists(draw(KINDS), min_size=1, max_size=6, unique=True)) for _ in range(2)]
    ranks = st.dictionaries(st.sampled_from(ids[1]), st.integers(1, 50), min_size=1)
    lists = {
        user: draw(ranks.filter(lambda row: len({*row.values()}) == len(row))) for user in ids[0]
    }
    rows = [(user, item, rank) for user, row in lists.items() for item, rank in row.items()]
    return pd.DataFrame(draw(st.permutations(rows)), columns=["user", "item", "rank"])


@pytest.mark.long
@given(frames())
def test_comes_back_from_a_frame(frame):
    lists = se.Rankings.from_frame(frame, rank="rank")
    found = lists.to_frame()
    assert sorted(found.values.tolist()) == sorted(frame.values.tolist())
    again = se.Rankings.from_frame(found, rank="rank")
    assert again.shape == lists.shape
    for name in ("indptr", "items", "positions", "lengths"):
        np.testing.assert_array_equal(getattr(again, name), getattr(lists, name))
    assert again.users.equals(lists.users)
    pd.testing.assert_frame_equal(again.to_frame(), found)
    assert (found["rank"].groupby(found["user"], sort=False).diff().dropna() > 0).all()


def test_rows_and_columns_without_labels_are_numbers():
    ids = [[4, -1, 2], [-1, -1, -1], [0, 1, 3]]
    lists = se.Rankings.from_topk(ids, shape=(4, 9))
    found = lists.to_frame()
    assert found.dtypes.tolist() == [np.int64] * 3
    assert found.to_numpy().tolist() == [[0, 4, 1], [0, 2, 3], [2, 0, 1], [2, 1, 2], [2, 3, 3]]
    found["item"] = 7
    assert lists.to_frame()["item"].tolist() == [4, 2, 0, 1, 3]
    nothing = se.Rankings.from_topk(np.empty((0, 3), np.int64)).to_frame()
    assert (list(nothing), len(nothing)) == (["user", "item", "rank"], 0)
