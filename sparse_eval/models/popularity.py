"""The ranks of relevant items among all that are unseen, by popularity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..inputs.rankings import Rankings

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, Items
    from ..inputs.relevance import Relevance


def popularity_ranks(order: Items, train: CSRMatrix, relevance: Relevance) -> Rankings:
    """Rank all unseen items of every user who has a relevant one, by popularity.

    Parameters
    ----------
    order : ndarray of int32
        All items of `train`, the most popular first.
    train : csr_matrix, shape (at least n_users, n_items)
        What users have seen.
    relevance : Relevance
        Of `n_users` users. What it has beyond the items of `train` is ranked nowhere.

    Returns
    -------
    Rankings
        The relevant items with their positions, in lists as long as there are unseen items.
    """
    n_users, n_items = relevance.shape[0], train.shape[1]
    place = np.empty(n_items, np.int64)
    place[order] = np.arange(n_items)
    starts = train.indptr[: n_users + 1].astype(np.int64)
    # A key for each user and place: the seen items before a relevant one are found by bisection.
    seen = np.repeat(np.arange(n_users), np.diff(starts)) * n_items
    seen = np.sort(seen + place[train.indices[: starts[-1]]])
    ranked = (relevance.gains > 0) & (relevance.items < n_items)
    users = np.repeat(np.arange(n_users), np.diff(relevance.indptr))[ranked]
    keys = np.sort(users * n_items + place[relevance.items[ranked]])
    before = np.searchsorted(seen, keys)
    unseen = before == np.searchsorted(seen, keys, side="right")
    users, places = np.divmod(keys[unseen], max(n_items, 1))
    positions = places + 1 - (before[unseen] - starts[users])
    lengths = np.where(relevance.n_relevant > 0, n_items - np.diff(starts), 0)
    indptr = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=n_users))))
    return Rankings((n_users, n_items), indptr, order[places], positions.astype(np.int32), lengths)
