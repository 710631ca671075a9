"""The items that can be in users' lists: the candidates of each user that it has not seen."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy import sparse

from ..core.csr import indptr_from_counts
from ..inputs.training import take_rows
from ..kernels.catalogue import draw_lists, draw_ranks, popular_unseen

if TYPE_CHECKING:
    from ..core.types import Booleans, Floats, Integers, Items
    from ..inputs.candidates import Candidates


def eligible_items(
    n_items: int,
    seen: tuple[Integers, Items] | None,
    candidates: Candidates | None,
    users: Integers,
) -> Eligible:
    """Return what can be in the lists of some users.

    Parameters
    ----------
    n_items : int
        N, the number of items in the catalogue.
    seen : tuple of ndarray, optional
        (indptr, items) of what these users have seen, ascending.
    candidates : Candidates, optional
        Of all users; by default the catalogue.
    users : ndarray of int64
        Their rows in `candidates`.
    """
    if seen is None:
        seen = np.zeros(len(users) + 1, np.int64), np.empty(0, np.int32)
    if candidates is None or candidates.for_all:
        return AllBut(n_items, *seen, None if candidates is None else candidates.items)
    return Listed(candidates.take(users).unseen(*seen), n_items)


class AllBut:
    """The same items for all users, but for what each has seen.

    Parameters
    ----------
    n_items : int
        N, the number of items in the catalogue.
    indptr, items : ndarray
        Where the rows of users start and end, and what they have seen, ascending.
    common : ndarray of int32, optional
        The items that they have in common, ascending; by default the catalogue.
    """

    def __init__(
        self, n_items: int, indptr: Integers, items: Items, common: Items | None = None
    ) -> None:
        self.common = common
        self.shape = (len(indptr) - 1, n_items if common is None else len(common))
        if common is not None:  # from here on they are numbered among those in common
            self.number_of = np.full(n_items, -1, np.int32)
            self.number_of[common] = np.arange(len(common), dtype=np.int32)
            numbers = self.number_of[items]
            kept = numbers >= 0
            indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept)))[indptr - indptr[0]]
            items = numbers[kept]
        self.indptr, self.items = indptr, items

    @cached_property
    def seen(self) -> sparse.csr_matrix:
        """Users × items, 1 where the user has seen the item."""
        parts = (np.ones(len(self.items)), self.items, self.indptr)
        return sparse.csr_matrix(parts, shape=self.shape)

    @property
    def counts(self) -> Integers:
        """The number of items of each user."""
        unseen: Integers = self.shape[1] - np.diff(self.indptr)
        return unseen

    def contain(self, rows: Integers, items: Integers | Items) -> Booleans:
        """Return whether pairs of a user and an item are among them."""
        numbers = items if self.common is None else self.number_of[items]
        owners = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        keys = owners * self.shape[1] + self.items
        return (numbers >= 0) & ~are_in(rows * self.shape[1] + numbers, keys)

    def sum_over_items(self, item_values: Floats) -> Floats:
        """Return the sum of a value or vector of items over each user's items."""
        values = item_values if self.common is None else item_values[self.common]
        total: Floats = values.sum(axis=0) - self.seen @ values
        return total

    def sum_over_users(self, user_values: Floats) -> Floats:
        """Return the sum of a value of users over those who can be recommended each item."""
        total: Floats = user_values.sum() - self.seen.T @ user_values
        if self.common is None:
            return total
        sums = np.zeros(len(self.number_of))
        sums[self.common] = total
        return sums

    def count_members(self, members: sparse.csr_matrix) -> tuple[Integers, sparse.csr_matrix]:
        """Return how many items of each group are among them, and how many fewer of each user."""
        members = members.astype(np.int64)
        if self.common is not None:
            members = members[self.common]
        of_all: Integers = np.asarray(members.sum(axis=0)).ravel()
        return of_all, -(self.seen.astype(np.int64) @ members)

    def first(self, order: Items, k: int) -> Items:
        """Return the first k items of each user in a common order, -1 if there are fewer."""
        out = np.empty((self.shape[0], min(k, self.shape[1])), np.int32)
        if self.common is not None:
            order = self.number_of[order]
            order = order[order >= 0]
        popular_unseen(order, self.indptr, self.items, out)
        return self._named(out)

    def draw(self, numbers: Floats) -> Items:
        """Draw a list for each user from uniform numbers of shape (n_users, k)."""
        out = np.empty(numbers.shape, np.int32)
        draw_lists(numbers, self.indptr, self.items, self.shape[1], out)
        return self._named(out)

    def _named(self, numbers: Items) -> Items:
        """Return the items of numbers, in which -1 pads."""
        if self.common is None:
            return numbers
        return np.append(self.common, np.int32(-1))[numbers]


class Listed:
    """The items of each user by themselves, none of them seen."""

    def __init__(self, candidates: Candidates, n_items: int) -> None:
        self.indptr, self.items = candidates.bounds, candidates.items
        self.shape = (len(self.indptr) - 1, n_items)

    @cached_property
    def matrix(self) -> sparse.csr_matrix:
        """Users × items, 1 where the user can be recommended the item."""
        parts = (np.ones(len(self.items)), self.items, self.indptr)
        return sparse.csr_matrix(parts, shape=self.shape)

    @cached_property
    def counts(self) -> Integers:
        """The number of items of each user."""
        return np.diff(self.indptr)

    def contain(self, rows: Integers, items: Integers | Items) -> Booleans:
        """Return whether pairs of a user and an item are among them."""
        owners = np.repeat(np.arange(self.shape[0]), self.counts)
        return are_in(rows * self.shape[1] + items, owners * self.shape[1] + self.items)

    def sum_over_items(self, item_values: Floats) -> Floats:
        """Return the sum of a value or vector of items over each user's items."""
        sums: Floats = self.matrix @ item_values
        return sums

    def sum_over_users(self, user_values: Floats) -> Floats:
        """Return the sum of a value of users over those who can be recommended each item."""
        sums: Floats = self.matrix.T @ user_values
        return sums

    def count_members(self, members: sparse.csr_matrix) -> tuple[Integers, sparse.csr_matrix]:
        """Return 0 for each group, and how many of its items each user can be recommended."""
        of_users = self.matrix.astype(np.int64) @ members.astype(np.int64)
        return np.zeros(members.shape[1], np.int64), of_users

    def first(self, order: Items, k: int) -> Items:
        """Return the first k items of each user in a common order, -1 if there are fewer."""
        places = np.empty(len(order), np.int64)
        places[order] = np.arange(len(order))
        owners = np.repeat(np.arange(self.shape[0]), self.counts)
        ordered = self.items[np.lexsort((places[self.items], owners))]
        bounds, items = take_rows(self.indptr, np.arange(self.shape[0]), ordered, limit=k)
        width = min(k, int(self.counts.max(initial=0)))
        out = np.full((self.shape[0], width), -1, np.int32)
        out[np.arange(out.shape[1]) < np.diff(bounds)[:, None]] = items
        return out

    def draw(self, numbers: Floats) -> Items:
        """Draw a list for each user from uniform numbers of shape (n_users, k)."""
        lengths = np.minimum(self.counts, numbers.shape[1])
        listed = np.arange(numbers.shape[1]) < lengths[:, None]
        places = np.empty(int(lengths.sum()), np.int64)
        draw_ranks(numbers[listed], self.counts, indptr_from_counts(lengths), places)
        out = np.full(numbers.shape, -1, np.int32)
        out[listed] = self.items[np.repeat(self.indptr[:-1], lengths) + places - 1]
        return out


#: The items that each of some users can be recommended.
Eligible: TypeAlias = AllBut | Listed


def are_in(keys: Integers, ascending: Integers) -> Booleans:
    """Return which keys are among ascending ones."""
    if not len(ascending):
        return np.zeros(len(keys), bool)
    places = np.minimum(np.searchsorted(ascending, keys), len(ascending) - 1)
    found: Booleans = ascending[places] == keys
    return found
