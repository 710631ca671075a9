"""`Eligible`: each user's candidates without seen items; random lists are drawn from them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..core.csr import are_in, indptr_from_counts, take_rows
from ..kernels.catalogue import draw_lists, draw_ranks, popular_unseen

if TYPE_CHECKING:
    from ..core.types import Booleans, Floats, Integers, Items
    from .candidates import Candidates


def eligible_items(
    n_items: int,
    seen: tuple[Integers, Items] | None,
    candidates: Candidates | None,
    users: Integers,
) -> Eligible:
    """Return the items that can be in the lists of some users.

    Parameters
    ----------
    n_items : int
        N, the number of items in the catalogue.
    seen : tuple of ndarray, optional
        (indptr, items) of the items that these users have seen, ascending.
    candidates : Candidates, optional
        The candidates of all users; by default the catalogue.
    users : ndarray of int64
        The rows of these users in `candidates`.
    """
    if seen is None:
        seen = np.zeros(len(users) + 1, np.int64), np.empty(0, np.int32)
    if candidates is None or candidates.for_all:
        everything = np.arange(n_items, dtype=np.int32)
        return Eligible(n_items, *seen, everything if candidates is None else candidates.items)
    own = candidates.take(users).unseen(*seen)
    return Eligible(n_items, own.indptr, own.items)


class Eligible:
    """The items that can be recommended to each of some users.

    Parameters
    ----------
    n_items : int
        N, the number of items in the catalogue.
    indptr, items : ndarray
        Where the rows of users start and end, and the items of each user, ascending.
    common : ndarray of int32, optional
        The items that all users have in common, ascending. If given, `items` are the seen items to
        exclude from them.
    """

    def __init__(
        self, n_items: int, indptr: Integers, items: Items, common: Items | None = None
    ) -> None:
        self.n_items, self.common = n_items, common
        if common is not None:
            self.number_of = np.full(n_items, -1, np.int32)
            self.number_of[common] = np.arange(len(common), dtype=np.int32)
            kept = self.number_of[items] >= 0
            indptr, items = indptr_from_counts(kept)[indptr - indptr[0]], items[kept]
        self.indptr, self.items = indptr, items
        self.n_users = len(indptr) - 1

    @cached_property
    def matrix(self) -> sparse.csr_matrix:
        """Users × items, 1 for the entries of the rows."""
        parts = (np.ones(len(self.items)), self.items, self.indptr)
        return sparse.csr_matrix(parts, shape=(self.n_users, self.n_items))

    @cached_property
    def counts(self) -> Integers:
        """The number of items of each user."""
        n_entries: Integers = np.diff(self.indptr)
        return n_entries if self.common is None else len(self.common) - n_entries

    def contain(self, rows: Integers, items: Integers | Items) -> Booleans:
        """Return whether the items of pairs of user and item can be recommended to the users."""
        owners = np.repeat(np.arange(self.n_users), np.diff(self.indptr))
        found = are_in(rows * self.n_items + items, owners * self.n_items + self.items)
        return found if self.common is None else ~found & (self.number_of[items] >= 0)

    def sum_over_items(self, item_values: Floats) -> Floats:
        """Return the sum of a value or vector of items over each user's items."""
        sums: Floats = self.matrix @ item_values
        return sums if self.common is None else item_values[self.common].sum(axis=0) - sums

    def sum_over_users(self, user_values: Floats) -> Floats:
        """Return for each item the sum of a value over the users it can be recommended to."""
        sums: Floats = self.matrix.T @ user_values
        if self.common is None:
            return sums
        return np.where(self.number_of >= 0, user_values.sum() - sums, 0.0)

    def count_members(self, members: sparse.csr_matrix) -> tuple[Integers, sparse.csr_matrix]:
        """Return the number of common items of each group, and each user's difference from it."""
        members = members.astype(np.int64)
        of_users = self.matrix.astype(np.int64) @ members
        if self.common is None:
            return np.zeros(members.shape[1], np.int64), of_users
        return np.asarray(members[self.common].sum(axis=0)).ravel(), -of_users

    def first(self, order: Items, k: int) -> Items:
        """Return the first k items of each user in a common order, padded with -1."""
        if self.common is not None:
            out = np.empty((self.n_users, min(k, len(self.common))), np.int32)
            popular_unseen(order[self.number_of[order] >= 0], self.indptr, self.items, out)
            return out
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        owners = np.repeat(np.arange(self.n_users), self.counts)
        ordered = self.items[np.lexsort((places[self.items], owners))]
        bounds, items = take_rows(self.indptr, np.arange(self.n_users), ordered, limit=k)
        out = np.full((self.n_users, min(k, int(self.counts.max(initial=0)))), -1, np.int32)
        out[np.arange(out.shape[1]) < np.diff(bounds)[:, None]] = items
        return out

    def draw(self, numbers: Floats) -> Items:
        """Draw a list for each user, using uniform numbers of shape (n_users, k)."""
        out = np.full(numbers.shape, -1, np.int32)
        if self.common is not None:
            seen = self.number_of[self.items]
            draw_lists(numbers, self.indptr, seen, len(self.common), out)
            return np.append(self.common, np.int32(-1))[out]
        lengths = np.minimum(self.counts, numbers.shape[1])
        listed = np.arange(numbers.shape[1]) < lengths[:, None]
        places = np.empty(int(lengths.sum()), np.int64)
        draw_ranks(numbers[listed], self.counts, indptr_from_counts(lengths), places)
        out[listed] = self.items[np.repeat(self.indptr[:-1], lengths) + places - 1]
        return out
