"""Rankings of unseen items by popularity: lists, or the ranks of relevant items among all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..inputs.judged import judged_candidates
from ..inputs.rankings import Rankings
from ..inputs.training import excluded_items
from .ranking import eligible_of, hits_of, with_unjudged_lists

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, Integers, Items
    from ..inputs.candidates import Candidates
    from ..inputs.relevance import Relevance
    from ..metrics.request import Request


def popularity_rankings(
    request: Request,
    order: Items,
    train: CSRMatrix,
    relevance: Relevance,
    k: int | None,
    candidates: Candidates | None = None,
) -> Rankings:
    """Rank the unseen candidates of every user whose list matters, by popularity.

    Parameters
    ----------
    request : Request
    order, train, relevance
        As of `popularity_ranks`, but that `order` is of all items.
    k : int or None
        List length; None if only the ranks of relevant items are needed, among all.
    candidates : Candidates, optional
        With the rows and columns of `train`.
    """
    users = request.listed_users(relevance)
    if request.judged_only:
        candidates = judged_candidates(relevance)
    train = excluded_items(train, request.seen)
    if k is None and (candidates is None or candidates.for_all):
        if candidates is not None:
            order = order[candidates.within(train.shape[1]).mask[order]]
        return popularity_ranks(order, train, hits_of(request, relevance, users), users)
    ids = eligible_of(train, candidates, users).first(order, len(order) if k is None else k)
    shape = (relevance.shape[0], train.shape[1])
    rankings = Rankings.from_topk(ids, user_rows=users, shape=shape)
    if request.judged_only:
        return with_unjudged_lists(rankings, train, users)
    return rankings


def popularity_ranks(
    order: Items, train: CSRMatrix, relevance: Relevance, listed: Integers
) -> Rankings:
    """Rank all unseen items of some users by popularity.

    Parameters
    ----------
    order : ndarray of int32
        The candidates among the items of `train`, the most popular first.
    train : csr_matrix, shape (at least n_users, n_items)
        What users have seen.
    relevance : Relevance
        Of `n_users` users. What it has beyond the items of `train` is ranked nowhere.
    listed : ndarray of int64
        The users who get a list; all who have a relevant item among them.

    Returns
    -------
    Rankings
        The relevant items with their positions, in lists as long as there are unseen items.
    """
    n_users, n_items = relevance.shape[0], train.shape[1]
    n = len(order)
    place = np.full(n_items, -1)
    place[order] = np.arange(n)
    starts = train.indptr[: n_users + 1].astype(np.int64)
    # A key for each user and place: the seen items before a relevant one are found by bisection.
    places = place[train.indices[: starts[-1]]]
    seen = (np.repeat(np.arange(n_users), np.diff(starts)) * n + places)[places >= 0]
    seen.sort()
    starts = np.searchsorted(seen, np.arange(n_users + 1) * n)
    lengths = np.zeros(n_users, np.int64)
    lengths[listed] = n - np.diff(starts)[listed]
    ranked = (relevance.gains > 0) & (relevance.items < n_items)
    ranked[ranked] = place[relevance.items[ranked]] >= 0
    users = np.repeat(np.arange(n_users), np.diff(relevance.indptr))[ranked]
    keys = np.sort(users * n + place[relevance.items[ranked]])
    before = np.searchsorted(seen, keys)
    unseen = before == np.searchsorted(seen, keys, side="right")
    users, places = np.divmod(keys[unseen], max(n, 1))
    positions = places + 1 - (before[unseen] - starts[users])
    indptr = np.concatenate(([0], np.cumsum(np.bincount(users, minlength=n_users))))
    return Rankings((n_users, n_items), indptr, order[places], positions.astype(np.int32), lengths)
