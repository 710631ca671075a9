"""Interactions written as frames, CSV and Parquet, and read again without naming anything."""

import tempfile

import pandas as pd
import pytest
from events import rows
from hypothesis import given, settings
from hypothesis import strategies as st

from sparse_eval.datasets import Interactions, load

#: Ids of text as CSV can hold them: in one line, and something else than white space.
TEXTS = st.text(
    st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1, max_size=4
).filter(lambda text: text.strip())
NUMBERS = st.integers(-(2**63) + 1, 2**63 - 1)
VALUES = st.floats(0, allow_infinity=False)
TIMES = st.integers(-(2**63), 2**63 - 1)


@st.composite
def interactions(draw):
    """Draw events with ids of one type each, with or without times, and labels without events."""
    ids = [draw(st.sampled_from([TEXTS, NUMBERS])) for _ in range(2)]
    events = draw(st.lists(st.tuples(*ids, VALUES, TIMES), min_size=1, max_size=12))
    frame = pd.DataFrame(events, columns=["user", "item", "value", "timestamp"])
    if draw(st.booleans()):
        frame = frame.drop(columns="timestamp")
    users, items = (
        draw(st.permutations(list(dict.fromkeys([*frame[role], *draw(st.lists(of, max_size=3))]))))
        for role, of in zip(("user", "item"), ids, strict=True)
    )
    return Interactions.from_frame(frame, users=users, items=items)


def ways(clicks):
    """Yield every way to write and read, and whether types of ids survive by themselves."""
    frame = clicks.to_frame()
    yield True, lambda **labels: Interactions.from_frame(frame, **labels)
    yield True, lambda **labels: load(frame.to_dict("records"), **labels)
    with tempfile.TemporaryDirectory() as folder:
        for index in (False, True):  # as pandas does it by default
            frame.to_csv(f"{folder}/a.csv", index=index)
            yield False, lambda **labels: load(f"{folder}/a.csv", **labels)
        frame.to_parquet(f"{folder}/a.parquet")
        yield True, lambda **labels: load(f"{folder}/a.parquet", **labels)


@pytest.mark.long
@settings(max_examples=25)
@given(interactions())
def test_nothing_is_lost(clicks):
    for typed, read in ways(clicks):
        found = read()
        # Text in CSV that looks like whole numbers is read as such, if all of it does.
        change = (lambda row: row) if typed else (lambda row: tuple(map(str, row)))
        assert list(map(change, rows(found))) == list(map(change, rows(clicks)))
        assert found.values.tobytes() == clicks.values.tobytes()
        assert (found.timestamps is None) == (clicks.timestamps is None)
        assert found.recognized == {}
        assert (found.n_users, found.n_items) == clicks.filter().shape
        found = read(users=clicks.users, items=clicks.items)
        assert found.users.equals(clicks.users)
        assert found.items.equals(clicks.items)
        assert found.user_codes.tobytes() == clicks.user_codes.tobytes()
        assert found.item_codes.tobytes() == clicks.item_codes.tobytes()
