"""Random users, with lists and relevant items of every shape, for tests against the oracle."""

from typing import NamedTuple

import numpy as np
import oracle
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

CUTOFFS = [1, 2, 5, 20, None]

#: The catalogue is so large that no list of unknown items can be all of it.
N_ITEMS = 50

gains = st.sampled_from([0.0, 0.25, 1.0, 1.0, 2.0, 3.0, 4.0])


def spelled(rows):
    """Return (spelling, name, options, cut-off) at every cut-off that the metric can have."""
    return [
        (oracle.spelling(name, options, k), name, options, k)
        for name, options in rows
        for k in CUTOFFS
        if not (k is None and name in oracle.NEEDS_CUTOFF)
        and not (k is not None and name in oracle.NO_CUTOFF)
    ]


class Case(NamedTuple):
    """Positions by item, gains by item, and seen items, of each user."""

    ranked: list
    relevant: list
    seen: list[set[int]]

    @property
    def contexts(self):
        largest = max(gain for row in self.relevant for gain in row.values())
        return [
            oracle.Context(n_items=N_ITEMS, seen=seen, largest_gain=largest) for seen in self.seen
        ]

    @property
    def matrices(self):
        return to_csr(self.ranked, np.int64), to_csr(self.relevant, np.float64)

    @property
    def train(self):
        return to_csr([dict.fromkeys(seen, 1) for seen in self.seen], np.int64)


@st.composite
def cases(draw):
    """Draw users of whom the first at least can be evaluated."""
    items = st.integers(0, draw(st.integers(0, 11)))
    ranked, relevant, seen = [], [], []
    for _ in range(draw(st.integers(1, 6))):
        listed = draw(st.lists(items, unique=True))
        positions = draw(
            st.lists(st.integers(1, 30), unique=True, min_size=len(listed), max_size=len(listed))
        )
        ranked.append(dict(zip(listed, positions, strict=True)))
        relevant.append(draw(st.dictionaries(items, gains)))
        seen.append(draw(st.sets(st.integers(0, 15), max_size=6)))
    relevant[0] = {draw(items): 2.0} | relevant[0]
    if not any(gain > 0 for gain in relevant[0].values()):
        relevant[0] = {0: 1.0}
    return Case(ranked, relevant, seen)


def to_csr(rows, dtype, n_items=N_ITEMS):
    """Return users × items from the values by item of each user."""
    indptr = np.cumsum([0] + [len(row) for row in rows])
    indices = [item for row in rows for item in sorted(row)]
    data = [row[item] for row in rows for item in sorted(row)]
    return csr_matrix((np.array(data, dtype), np.array(indices, int), indptr), (len(rows), n_items))
