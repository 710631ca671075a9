"""The first k items of users' lists, from which metrics of recommended items are computed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.csr import find_entries, indptr_from_counts, take_rows
from ..kernels.catalogue import count_listed
from .eligible import eligible_items

if TYPE_CHECKING:
    from ..core.types import Floats, Integers, Items
    from ..inputs.candidates import Candidates
    from ..inputs.training import Training
    from .eligible import Eligible


@dataclass(frozen=True)
class Lists:
    """The first k items of the lists of a block of users, and side data of items.

    Attributes
    ----------
    k : int
        The cut-off; `FULL_LIST` for whole lists.
    users : ndarray of int64, shape (n_users,)
        Row numbers of the users.
    rankings : tuple of ndarray
        (indptr, items) of all users, best first; `indptr` and `items` are the arrays of `users`.
    n_items : int
        N, the number of items in the catalogue.
    relevance : tuple of ndarray
        (indptr, items, gains) of all users; `relevant` has the arrays of `users`.
    training : Training or None
        For a metric that needs "train".
    groups : csr_matrix of float64, shape (n_items, n_groups), or None
        For a metric that needs "item_groups": each item's shares of the groups, which sum to 1.
    vectors : ndarray of float64, shape (n_items, width), or None
        For a metric that needs "item_vectors": vectors of length 1, or 0 for a vector of zeros.
    candidates : Candidates or None
        The items that can be recommended, if these are not the whole catalogue.

    See Also
    --------
    Statistics : The sums from which accuracy metrics are computed.
    sparse_eval.register_metric : Register a formula over `Lists` or `Statistics`.
    """

    k: int
    users: Integers
    rankings: tuple[Integers, Items]
    n_items: int
    relevance: tuple[Integers, Items, Floats]
    training: Training | None = None
    groups: Any = None  # not None for a metric that needs them
    vectors: Any = None
    candidates: Candidates | None = None

    @cached_property
    def group_members(self) -> sparse.csr_matrix:
        """Items × groups, 1 if the item is in the group."""
        members = self.groups.copy()
        members.data = (members.data > 0).astype(np.float64)
        members.eliminate_zeros()
        return members

    @cached_property
    def group_vectors(self) -> sparse.csr_matrix:
        """`groups` with rows of length 1."""
        scale = sparse.diags_array(1 / np.sqrt(row_sums(self.groups, power=2)))
        return sparse.csr_matrix(scale @ self.groups)

    @cached_property
    def eligible(self) -> Eligible:
        """The items that could be in the list of each of `users`."""
        seen = None if self.training is None else self.training.seen(self.users)
        return eligible_items(self.n_items, seen, self.candidates, self.users)

    @property
    def train(self) -> Training:
        """`training`, for a metric that needs "train"."""
        assert self.training is not None  # noqa: S101 - the metric is refused without it
        return self.training

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.users)

    @cached_property
    def n_listed(self) -> int:
        """The number of users whose list is not empty."""
        return int(np.count_nonzero(self.lengths))

    @cached_property
    def lengths(self) -> Integers:
        """The number of items in each list."""
        return np.minimum(np.diff(self.rankings[0])[self.users], self.k)

    @cached_property
    def indptr(self) -> Integers:
        """Where each user's list starts and ends in `items`, shape (n_users + 1,)."""
        return indptr_from_counts(self.lengths)

    @cached_property
    def items(self) -> Items:
        """Item ids, user by user, best first."""
        indptr, items = self.rankings
        return take_rows(indptr, self.users, items, limit=self.k)[1]

    @cached_property
    def relevant(self) -> tuple[Integers, Items, Floats]:
        """(indptr, items, gains) of the same users; items ascend within a user."""
        indptr, items, gains = self.relevance
        return (*take_rows(indptr, self.users, items), take_rows(indptr, self.users, gains)[1])

    @cached_property
    def rows(self) -> Integers:
        """For each of `items`, the index of its user in `users`."""
        return np.repeat(np.arange(len(self.users)), self.lengths)

    @cached_property
    def gains(self) -> Floats:
        """The gain of each of `items` for its user, 0 if it is not relevant."""
        indptr, items, gains = self.relevant
        entries = find_entries(self.rows, self.items, indptr, items, self.n_items)
        return np.append(gains, 0.0)[entries]

    @cached_property
    def ranks(self) -> Integers:
        """The 1-based rank of each of `items`."""
        return np.arange(1, len(self.items) + 1) - np.repeat(self.indptr[:-1], self.lengths)

    @cached_property
    def item_counts(self) -> Integers:
        """The number of lists that contain each item of the catalogue."""
        counts = np.zeros(self.n_items, np.int64)
        count_listed(*self.rankings, self.k, self.users, counts)  # fast, for bootstraps
        return counts

    @cached_property
    def picks(self) -> sparse.csr_matrix:
        """Users × items, 1 if the item is in the user's list."""
        return self.picked(self.indptr, self.items)

    def picked(self, indptr: Integers, items: Items) -> sparse.csr_matrix:
        """Return users × items, 1 for the given items of the same users."""
        shape = (len(self.users), self.n_items)
        return sparse.csr_matrix((np.ones(len(items)), items, indptr), shape=shape)

    def mean_of(self, item_values: Floats) -> Floats:
        """Return the mean of a value of items over each list, NaN for an empty list."""
        sums = np.bincount(self.rows, item_values[self.items], len(self.users))
        means: Floats = sums / self.lengths
        return means


@dataclass(frozen=True)
class RandomLists:
    """Random lists from the items that can be recommended to each user, in random order.

    Attributes
    ----------
    lists : Lists
        The users and side data; its lists are empty.
    depths : ndarray of int64
        The length of each random list.
    """

    lists: Lists
    depths: Integers

    @cached_property
    def n_unseen(self) -> Integers:
        """The number of items that each list is drawn from."""
        return self.lists.eligible.counts

    @cached_property
    def share(self) -> Floats:
        """The probability that an unseen item is in the user's list."""
        return np.minimum(self.depths, self.n_unseen) / np.maximum(self.n_unseen, 1)

    def sum_unseen(self, item_values: Floats) -> Floats:
        """Return the sum of a value or vector of items over each user's unseen items."""
        return self.lists.eligible.sum_over_items(item_values)

    def over_users(self, user_values: Floats) -> Floats:
        """Return for each item the sum of a value over the users it can be recommended to."""
        return self.lists.eligible.sum_over_users(user_values)

    def mean_of(self, item_values: Floats) -> Floats:
        """Return the expected mean of a value of items over each list."""
        return self.sum_unseen(item_values) / self.n_unseen

    @cached_property
    def possible_hits(self) -> tuple[Integers, Items]:
        """The relevant items that a list can hold: rows in `users`, and items."""
        indptr, items, gains = self.lists.relevant
        rows = np.repeat(np.arange(len(self.lists.users)), np.diff(indptr))
        possible = (gains > 0) & self.lists.eligible.contain(rows, items)
        return rows[possible], items[possible]

    def mean_of_hits(self, hit_values: Floats) -> Floats:
        """Return the expected mean over each list of a value of `possible_hits`.

        The value of other items is 0, and so is the mean of an empty list.
        """
        sums = np.bincount(self.possible_hits[0], hit_values, len(self.lists.users))
        return np.where(self.depths > 0, sums / np.maximum(self.n_unseen, 1), 0.0)


def row_sums(matrix: Floats | sparse.csr_matrix, power: int) -> Floats:
    """Return the sum of a power of the entries of each row of a dense or sparse matrix."""
    powers = matrix.power(power) if isinstance(matrix, sparse.csr_matrix) else matrix**power
    sums: Floats = np.asarray(powers.sum(axis=1)).ravel()
    return sums
