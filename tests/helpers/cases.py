"""Random users, with lists and relevant items of every shape, for tests against the oracle."""

from typing import NamedTuple

import numpy as np
import oracle
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

#: The catalogue is so large that no list of unknown items can be all of it.
N_ITEMS = 50

gains = st.sampled_from([0.0, 0.25, 1.0, 1.0, 2.0, 3.0, 4.0])


class Case(NamedTuple):
    """Positions by item, gains by item, and seen items, of each user."""

    ranked: list
    relevant: list
    seen: list

    def users(self, among=None):
        """Return the list, the gains and the context of each user, who may have candidates."""
        largest = max(gain for row in self.relevant for gain in row.values())
        contexts = [
            oracle.Context(
                n_items=N_ITEMS, seen=seen, largest_gain=largest, among=among and among[user]
            )
            for user, seen in enumerate(self.seen)
        ]
        return list(zip(self.ranked, self.relevant, contexts, strict=True))

    def without_gaps(self):
        ranked = [
            {item: rank for rank, item in enumerate(sorted(row, key=row.get), 1)}
            for row in self.ranked
        ]
        return self._replace(ranked=ranked)

    @property
    def matrices(self):
        return to_csr(self.ranked, np.int64), to_csr(self.relevant, np.float64)

    @property
    def train(self):
        return of_sets(self.seen)


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


def same_values(ev, rows, users):
    """Check the values of users in metrics of the oracle."""
    for spelling, name, options, k in rows:
        expected = [oracle.value(name, options, k, *user) for user in users]
        np.testing.assert_allclose(
            ev.values(spelling), expected, rtol=1e-12, atol=1e-15, err_msg=spelling
        )


def to_csr(rows, dtype, n_items=N_ITEMS):
    """Return users × items from the values by item of each user."""
    indptr = np.cumsum([0] + [len(row) for row in rows])
    indices = [item for row in rows for item in sorted(row)]
    data = [row[item] for row in rows for item in sorted(row)]
    return csr_matrix((np.array(data, dtype), np.array(indices, int), indptr), (len(rows), n_items))


def of_sets(rows, n_items=N_ITEMS):
    """Return users × items from the items of each user."""
    return to_csr([dict.fromkeys(row, 1) for row in rows], np.int64, n_items)
