"""What a metric of lists, relevant or not, is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..inputs.training import Training, take_rows
from ..kernels.catalogue import count_listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["Lists"]


@dataclass(frozen=True)
class Lists:
    """The first k items of some users' lists, and what is known of items.

    Attributes
    ----------
    k : int
        The cut-off; `FULL_LIST` for whole lists.
    users : ndarray of int64, shape (n_users,)
        Row numbers of the users.
    rankings : tuple of ndarray
        (indptr, items) of every user there is, best first; see `indptr` and `items`.
    n_items : int
        N, items of the catalogue.
    relevance : tuple of ndarray
        (indptr, items, gains) of every user there is; see `relevant`.
    training : Training or None
        For a metric that needs "train".
    groups : csr_matrix of float64, shape (n_items, n_groups), or None
        For a metric that needs "item_groups": each item's shares of the groups, 1 in all.
    vectors : ndarray of float64, shape (n_items, width), or None
        For a metric that needs "item_vectors": of length 1, or 0 for a vector of zeros.
    """

    k: int
    users: Integers
    rankings: tuple[Integers, NDArray[np.int32]]
    n_items: int
    relevance: tuple[Integers, NDArray[np.int32], Values]
    training: Training | None = None
    groups: Any = None
    vectors: Values | None = None

    @property
    def train(self) -> Training:
        """`training`, for a metric that needs "train"."""
        assert self.training is not None  # noqa: S101 - `make_plans` refuses a metric without it
        return self.training

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.users)

    @cached_property
    def n_listed(self) -> int:
        """Number of users with a list that is not empty."""
        return int(np.count_nonzero(self.lengths))

    @cached_property
    def lengths(self) -> Integers:
        """Number of items of each user."""
        return np.minimum(np.diff(self.rankings[0])[self.users], self.k)

    @cached_property
    def indptr(self) -> Integers:
        """Where each user's items start and end, shape (n_users + 1,)."""
        return np.concatenate((np.zeros(1, np.int64), np.cumsum(self.lengths)))

    @cached_property
    def items(self) -> NDArray[np.int32]:
        """Item ids, user by user, best first."""
        indptr, items = self.rankings
        found: NDArray[np.int32] = take_rows(indptr, self.users, items, limit=self.k)[1]
        return found

    @cached_property
    def relevant(self) -> tuple[Integers, NDArray[np.int32], Values]:
        """(indptr, items, gains) of the same users; items ascend within a user."""
        indptr, items, gains = self.relevance
        return (
            *take_rows(indptr, self.users, items),
            take_rows(indptr, self.users, gains)[1],
        )

    @cached_property
    def rows(self) -> Integers:
        """For each of `items`, the place of its user in `users`."""
        return np.repeat(np.arange(len(self.users)), self.lengths)

    @cached_property
    def gains(self) -> Values:
        """The gain of each of `items` for its user, 0 where it is not relevant."""
        indptr, items, gains = self.relevant
        owners = np.repeat(np.arange(len(self.users)), np.diff(indptr))
        pairs = owners * self.n_items + items  # ascending
        found = np.searchsorted(pairs, wanted := self.rows * self.n_items + self.items)
        found[found == len(pairs)] = 0
        hit = pairs[found] == wanted if len(pairs) else np.zeros(len(wanted), bool)
        return np.where(hit, gains[found] if len(pairs) else 0.0, 0.0)

    @cached_property
    def ranks(self) -> Integers:
        """1-based rank of each of `items`."""
        return np.arange(1, len(self.items) + 1) - np.repeat(self.indptr[:-1], self.lengths)

    @cached_property
    def item_counts(self) -> Integers:
        """How often each item of the catalogue is in a list."""
        counts = np.zeros(self.n_items, np.int64)
        count_listed(*self.rankings, self.k, self.users, counts)  # a bootstrap asks often
        return counts

    @cached_property
    def picks(self) -> sparse.csr_matrix:
        """Users × items, 1 where the item is in the user's list."""
        return self.picked(self.indptr, self.items)

    def picked(self, indptr: Integers, items: NDArray[np.int32]) -> sparse.csr_matrix:
        """Users × items, 1 for the given items of the same users."""
        shape = (len(self.users), self.n_items)
        return sparse.csr_matrix((np.ones(len(items)), items, indptr), shape=shape)

    def mean_of(self, item_values: Values) -> Values:
        """Mean of a value of items over each list, 0/0 for an empty one."""
        sums = np.bincount(self.rows, item_values[self.items], len(self.users))
        means: Values = sums / self.lengths
        return means
