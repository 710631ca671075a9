"""Events with times, and which of them a part of a split holds.

Each event has a power of two as its value, so the value of a pair says which of its events a part
holds.
"""

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from sparse_eval.datasets import UNDATED, Interactions

#: Users, items and times of events; None is undated.
EVENTS = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 5), st.none() | st.integers(-3, 12)),
    min_size=1,
    max_size=45,
).filter(lambda events: any(time is not None for *_, time in events))


def time_of(event):
    """Return the time of an event; undated ones come before all others."""
    return -np.inf if event[2] is None else event[2]


def interactions_of(events):
    frame = pd.DataFrame([event[:2] for event in events], columns=["user", "item"])
    frame["value"] = 2.0 ** np.arange(len(events))
    frame["timestamp"] = [UNDATED if time is None else time for *_, time in events]
    return Interactions.from_frame(frame)


def events_in(part, data, events):
    """Return the numbers of the events that a part holds."""
    found = set()
    coo = part.tocoo()
    for row, column, value in zip(coo.row, coo.col, coo.data, strict=True):
        numbers = {n for n in range(len(events)) if int(value) >> n & 1}
        pair = (data.users[row], data.items[column])
        assert {events[n][:2] for n in numbers} == {pair}
        found |= numbers
    return found
