"""What a metric of lists, relevant or not, is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..kernels.catalogue import (
    count_listed,
    count_unexpected,
    pack_bits,
    popular_unseen,
    sum_cosines,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["Lists", "Training", "TrainingOfBlock", "rows_of"]

#: Pairs of items whose common users a thread remembers: 16 bytes each.
CACHED_PAIRS = 1 << 17


def rows_of(
    indptr: Integers, users: Integers, data: Any, limit: int | None = None
) -> tuple[Integers, Any]:
    """Take rows of a CSR, of each at most `limit` entries: their bounds and their data."""
    counts = np.diff(indptr)[users]
    if limit is not None:
        counts = np.minimum(counts, limit)
    bounds = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    return bounds, data[np.arange(bounds[-1]) + np.repeat(indptr[users] - bounds[:-1], counts)]


class Training:
    """What the training data say of items and users.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_users + 1,)
    items : ndarray of int32
        What each user has seen, ascending: every stored entry, an explicit zero too. The first
        rows are the users that are evaluated.
    n_items : int
        N, items of the catalogue.
    """

    def __init__(
        self,
        indptr: Integers,
        items: NDArray[np.int32],
        interacted: NDArray[np.bool_] | None,
        n_items: int,
    ) -> None:
        self.indptr = indptr
        self.items = items
        self.n_items = n_items
        self._interacted = interacted
        # What pairs of items share, for one thread at a time, which takes one and gives it back.
        self._caches: list[Integers] = []

    @cached_property
    def item_users(self) -> tuple[Integers, NDArray[np.int32]]:
        """Users of each item, ascending: (bounds of the items, users). Explicit zeros are none."""
        users = np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), np.diff(self.indptr))
        items = self.items
        if self._interacted is not None:
            users, items = users[self._interacted], items[self._interacted]
        order = np.argsort(items, kind="stable")
        bounds = np.zeros(self.n_items + 1, np.int64)
        np.cumsum(np.bincount(items, minlength=self.n_items), out=bounds[1:])
        return bounds, users[order]

    @cached_property
    def item_counts(self) -> Integers:
        """Users of each item."""
        return np.diff(self.item_users[0])

    @cached_property
    def user_counts(self) -> Integers:
        """Items of each user, explicit zeros not counted."""
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        if self._interacted is not None:
            rows = rows[self._interacted]
        return np.bincount(rows, minlength=len(self.indptr) - 1)

    def seen(self, users: Integers) -> tuple[Integers, NDArray[np.int32]]:
        """Return what some users have seen: (bounds of the users, items ascending)."""
        return rows_of(self.indptr, users, self.items)

    @cached_property
    def item_novelty(self) -> Values:
        """−log2 of each item's share of the users; an item without users counts as one user's."""
        users = int(np.count_nonzero(self.user_counts))
        if users == 0:
            return np.full(self.n_items, np.nan)
        novelty: Values = np.log2(users / np.maximum(self.item_counts, 1))
        return novelty

    @cached_property
    def popularity_levels(self) -> Integers:
        """1 for the items of most users, 2 for those of the next number, …; 0 without users."""
        counts = self.item_counts
        levels = np.unique(counts[counts > 0])  # ascending
        ranks = len(levels) - np.searchsorted(levels, counts)
        return np.where(counts > 0, ranks, 0)

    def history(self, users: Integers) -> tuple[Integers, NDArray[np.int32]]:
        """Return as `seen`, explicit zeros left out."""
        bounds, items = self.seen(users)
        if self._interacted is None:
            return bounds, items
        _, interacted = rows_of(self.indptr, users, self._interacted)
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(interacted)))
        return before[bounds], items[interacted]

    def unexpected(self, lists: Lists) -> Values:
        """Count the hits of each list that are not among the k most popular unseen items."""
        out = np.empty((1, len(lists.users)))
        bounds, seen = self.seen(lists.users)
        count_unexpected(
            self._popularity_ranks, bounds, seen, lists.indptr, lists.items, lists.items[:0],
            False, *lists.relevant, np.array([lists.k]), out,
        )  # fmt: skip
        counts: Values = out[0]
        return counts

    def popular_unseen(self, users: Integers, k: int) -> NDArray[np.int32]:
        """Return the k most popular items that each user has not seen, -1 where there are fewer."""
        out = np.empty((len(users), min(k, self.n_items)), np.int32)
        popular_unseen(self.by_popularity, *self.seen(users), out)
        return out

    @cached_property
    def by_popularity(self) -> NDArray[np.int32]:
        """Items, those of most users first, equal ones by id."""
        return np.argsort(-self.item_counts, kind="stable").astype(np.int32)

    @cached_property
    def _popularity_ranks(self) -> Integers:
        """0 for the item of most users, 1 for the next, …; equal ones by id."""
        ranks = np.empty(self.n_items, np.int64)
        ranks[self.by_popularity] = np.arange(self.n_items)
        return ranks

    def cosines(self, lists: Lists) -> Values:
        """Sum the cosines of all pairs of each list, from the users that two items share."""
        out = np.empty((1, len(lists.users)))
        bits, bit_row = self._bitmaps
        try:
            cache = self._caches.pop()
        except IndexError:
            cache = np.zeros((CACHED_PAIRS, 2), np.int64)
        sum_cosines(
            lists.indptr, lists.items, np.array([lists.k]), *self.item_users, bits, bit_row,
            cache, out,
        )  # fmt: skip
        self._caches.append(cache)
        sums: Values = out[0]
        return sums

    @cached_property
    def _bitmaps(self) -> tuple[NDArray[np.uint64], Integers]:
        return pack_bits(*self.item_users, len(self.indptr) - 1)


def _of_all_users(name: str) -> Any:
    return property(lambda block: getattr(block._whole, name), doc="What all users say of items.")


class TrainingOfBlock(Training):
    """The users of a block among those of the training data; of items it says what all users do."""

    def __init__(self, whole: Training, first: int, last: int) -> None:
        n_users = len(whole.indptr) - 1
        indptr = whole.indptr[min(first, n_users) : last + 1]
        missing = last - first + 1 - len(indptr)
        if missing:  # users who are in no training data
            indptr = np.concatenate((indptr, np.full(missing, whole.indptr[-1])))
        super().__init__(indptr, whole.items, whole._interacted, whole.n_items)
        self._whole = whole
        self._caches = whole._caches

    item_users = _of_all_users("item_users")
    item_counts = _of_all_users("item_counts")
    item_novelty = _of_all_users("item_novelty")
    popularity_levels = _of_all_users("popularity_levels")
    by_popularity = _of_all_users("by_popularity")
    _popularity_ranks = _of_all_users("_popularity_ranks")
    _bitmaps = _of_all_users("_bitmaps")


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
        found: NDArray[np.int32] = rows_of(indptr, self.users, items, limit=self.k)[1]
        return found

    @cached_property
    def relevant(self) -> tuple[Integers, NDArray[np.int32], Values]:
        """(indptr, items, gains) of the same users; items ascend within a user."""
        indptr, items, gains = self.relevance
        return (
            *rows_of(indptr, self.users, items),
            rows_of(indptr, self.users, gains)[1],
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
