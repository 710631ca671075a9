"""Random lists of items with what is known of these, for tests of what is recommended."""

from typing import NamedTuple

import numpy as np
from cases import of_sets, to_csr
from hypothesis import strategies as st

import sparse_eval as se

N_ITEMS = 9
GROUPS = ["a", "b", "a", "c", "c", "a", "b", "a", "a"]
VECTORS = np.random.default_rng(0).normal(size=(N_ITEMS, 3))
VECTORS[4] = 0.0  # an item without features


class Case(NamedTuple):
    """The list, the gains by item and the seen items of each user."""

    lists: list
    relevant: list
    train: list

    def evaluate(self, metrics, **options):
        ids = [items + [-1] * (N_ITEMS - len(items)) for items in self.lists]
        defaults = {
            "train": 2 * of_sets(self.train, N_ITEMS),  # users count once, whatever is stored
            "item_data": se.ItemData(groups=GROUPS, vectors=VECTORS),
        }
        return se.evaluate(
            se.Rankings.from_topk(ids, shape=(len(ids), N_ITEMS)),
            to_csr(self.relevant, np.float64, N_ITEMS),
            metrics,
            **defaults | options,
        )


@st.composite
def list_cases(draw):
    """Draw users of whom the last at least can be evaluated."""
    items = st.integers(0, N_ITEMS - 1)
    n_users = draw(st.integers(1, 5))
    lists = [draw(st.lists(items, unique=True)) for _ in range(n_users)]
    relevant = [draw(st.dictionaries(items, st.sampled_from([0.0, 1.0, 2.0]))) for _ in lists]
    relevant[-1] = {draw(items): 1.0}
    return Case(lists, relevant, [draw(st.sets(items)) for _ in lists])
