"""Rankings as frames, and back."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

import sparse_eval as se

#: Blank text is no id.
TEXT = st.text(st.characters(codec="utf-8"), max_size=4).filter(str.strip)

IDS = st.one_of(
    st.lists(TEXT, min_size=1, max_size=6, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6, unique=True),
)


@st.composite
def frames(draw):
    """Draw lists with gaps, in any order of their rows."""
    users, items = draw(IDS), draw(IDS)
    rows = []
    for user in users:
        listed = draw(st.lists(st.sampled_from(items), min_size=1, unique=True))
        ranks = draw(
            st.lists(st.integers(1, 50), min_size=len(listed), max_size=len(listed), unique=True)
        )
        rows += [(user, item, rank) for item, rank in zip(listed, ranks, strict=True)]
    frame = pd.DataFrame(draw(st.permutations(rows)), columns=["user", "item", "rank"])
    for side in ("user", "item"):  # text of letters alone is not to become something else
        if isinstance(frame[side].iloc[0], str):
            frame[side] = frame[side].astype(object)
    return frame


@given(frames())
def test_comes_back_from_a_frame(frame):
    lists = se.Rankings.from_frame(frame, rank="rank")
    found = lists.to_frame()
    assert set(found.itertuples(index=False, name=None)) == set(
        frame.itertuples(index=False, name=None)
    )
    assert len(found) == len(frame)
    again = se.Rankings.from_frame(found, rank="rank")
    assert again.shape == lists.shape
    for name in ("indptr", "items", "positions", "lengths"):
        np.testing.assert_array_equal(getattr(again, name), getattr(lists, name))
    assert again.users is not None
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
