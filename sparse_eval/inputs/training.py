"""Training data: the items that each user has seen, and how popular and how alike items are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from scipy import sparse

from ..core import elementary
from ..core.arrays import read_only
from ..core.csr import (
    as_int32,
    bounds_of,
    indptr_from_counts,
    sort_pairs,
    take_rows,
    without_entries,
)
from ..core.hashing import fingerprints
from ..core.threads import for_blocks
from ..errors import InvalidMetricError
from ..kernels.catalogue import pack_bits, popular_unseen, sum_similarities
from ..kernels.structures import Rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..core.types import AnyArray, Booleans, CSRMatrix, Floats, Integers, Items
    from .axes import Axis

#: Whether items that their user has seen may be recommended again, see `evaluate_model`.
SeenItems: TypeAlias = Literal["exclude", "allow"]

#: Items whose co-occurrences with all others are computed together.
_ITEMS_AT_ONCE = 128

#: Co-occurrences that are looked up together: 50 bytes each.
_LOOKUPS_AT_ONCE = 1 << 21

#: Pairs of items whose number of common users is remembered: 16 bytes each.
CACHED_PAIRS = 1 << 17


def digest_by_item(values: AnyArray, labels: Axis | None) -> str:
    """Return a digest of numbers by item, 16 hexadecimal digits that do not depend on their order.

    Items with a 0 do not count, because some evaluations have more of them than others.
    """
    items = np.flatnonzero(values)
    if labels is not None and len(labels) < len(values):
        labels = None
    (digest,) = fingerprints(
        np.array([0, len(items)]),
        items,
        values[items],
        None if labels is None else labels.item_keys,
    )
    return f"{int(digest):016x}"


def count_users(train: CSRMatrix, n_items: int = 0) -> Integers:
    """Return the number of users of at least `n_items` items; explicit zeros do not count."""
    n_items = max(n_items, train.shape[1])
    return np.bincount(train.indices[train.data != 0], minlength=n_items)


def popular_lists(train: CSRMatrix, k: int, filter_seen: bool) -> Items:
    """Return the k most popular items that each user can be recommended, -1 if there are fewer.

    Equally popular items are in the order of their ids.
    """
    order = np.argsort(-count_users(train), kind="stable").astype(np.int32)
    excluded = train if filter_seen else without_entries(train)
    indptr, items = excluded.indptr.astype(np.int64), as_int32(excluded.indices)
    ids = np.empty((train.shape[0], k), np.int32)

    def fill(first: int, last: int) -> None:
        popular_unseen(order, indptr[first : last + 1], items, ids[first:last])

    for_blocks(fill, train.shape[0])
    return ids


class ItemStatistics:
    """The training data of all users, and statistics of the items, which all blocks share.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_users + 1,)
        Where each user's row starts and ends in `items`.
    items : ndarray of int32
        Item ids, ascending within a row: every stored entry, also an explicit zero.
    interacted : ndarray of bool, or None
        False for explicit zeros; None if there are none.
    n_items : int
        N, the number of items in the catalogue.
    """

    def __init__(
        self, indptr: Integers, items: Items, interacted: Booleans | None, n_items: int
    ) -> None:
        self.indptr = indptr
        self.items = items
        self.interacted = interacted
        self.n_items = n_items
        self._renumbered: ItemStatistics | None = None

    def renumbered(self, numbers: Integers) -> ItemStatistics:
        """Return the same data with another number for each item; always called with the same."""
        if self._renumbered is None:
            rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
            items = as_int32(numbers[self.items])
            order = sort_pairs(rows, items)[0]
            kept = None if self.interacted is None else self.interacted[order]
            ordered = read_only(items[order])
            self._renumbered = ItemStatistics(self.indptr, ordered, kept, self.n_items)
        return self._renumbered

    @cached_property
    def item_users(self) -> tuple[Integers, Items]:
        """`indptr` and ascending users of each item, without explicit zeros."""
        users = np.repeat(np.arange(len(self.indptr) - 1, dtype=np.int32), np.diff(self.indptr))
        items = self.items
        if self.interacted is not None:
            users, items = users[self.interacted], items[self.interacted]
        order = np.argsort(items, kind="stable")
        return indptr_from_counts(np.bincount(items, minlength=self.n_items)), users[order]

    @cached_property
    def item_counts(self) -> Integers:
        """The number of users of each item."""
        return np.diff(self.item_users[0])

    @cached_property
    def n_active(self) -> int:
        """The number of users who have an item."""
        return int(np.count_nonzero(count_items(self.indptr, self.interacted)))

    @cached_property
    def item_novelty(self) -> Floats:
        """−log2 of each item's share of the users; an item without users counts as one user's."""
        if self.n_active == 0:
            return np.full(self.n_items, np.nan)
        return elementary.log2(self.n_active / np.maximum(self.item_counts, 1))

    @cached_property
    def by_popularity(self) -> Items:
        """All items, the most popular first, equally popular ones by id."""
        return np.argsort(-self.item_counts, kind="stable").astype(np.int32)

    @cached_property
    def popularity_levels(self) -> Integers:
        """1 for the most popular items, 2 for the next number of users, …; 0 without users."""
        counts = self.item_counts
        levels = np.unique(counts[counts > 0])  # ascending
        ranks = len(levels) - np.searchsorted(levels, counts)
        return np.where(counts > 0, ranks, 0)

    @cached_property
    def bitmaps(self) -> tuple[NDArray[np.uint64], Integers]:
        """The users of popular items as bits, see `pack_bits`."""
        return pack_bits(*self.item_users, len(self.indptr) - 1)

    @cached_property
    def item_matrix(self) -> sparse.csr_matrix:
        """Items × users, 1 for each interaction."""
        indptr, users = self.item_users
        parts = (np.ones(len(users), np.int64), users, indptr)
        return sparse.csr_matrix(parts, shape=(self.n_items, len(self.indptr) - 1))


def count_items(indptr: Integers, interacted: Booleans | None) -> Integers:
    """Return the number of items of each row, without explicit zeros."""
    if interacted is None:
        return np.diff(indptr)
    first, last = indptr[0], indptr[-1]
    bounds = indptr_from_counts(interacted[first:last])
    counts: Integers = np.diff(bounds[indptr - first])
    return counts


@dataclass(frozen=True, eq=False)
class Training:
    """The items that each user has seen in the training data, and statistics of the items.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_users + 1,)
        Where each user's row starts and ends in `items`. The first rows are the users that are
        evaluated.
    whole : ItemStatistics
        The data of all users. `items` and `n_items` are its own.
    allows_seen : bool
        Whether items that users have seen are candidates too.
    covers_all : bool
        Whether `whole` has all users, so that it has statistics of the items.
    """

    indptr: Integers
    whole: ItemStatistics
    allows_seen: bool = False
    covers_all: bool = True

    @property
    def items(self) -> Items:
        """Item ids, ascending within a row: every stored entry, also an explicit zero."""
        return self.whole.items

    @property
    def n_items(self) -> int:
        """N, the number of items in the catalogue."""
        return self.whole.n_items

    def part(self, first: int, last: int) -> Training:
        """Return the data of some users, with the item statistics of all users."""
        if (first, last) == (0, len(self.indptr) - 1):
            return self
        return replace(self, indptr=bounds_of(self.indptr, first, last))

    def allowing_seen(self) -> Training:
        """Return the same data, but users can be recommended items that they have seen."""
        return replace(self, allows_seen=True)

    def of_own_users(self) -> Training:
        """Return the same data without statistics of the items, as they cover only some users."""
        return replace(self, covers_all=False)

    def renumbered(self, numbers: Integers) -> Training:
        """Return the same data with another number for each item; always called with the same."""
        return replace(self, whole=self.whole.renumbered(numbers))

    @cached_property
    def user_counts(self) -> Integers:
        """The number of items of each user, without explicit zeros."""
        return count_items(self.indptr, self.whole.interacted)

    def seen(self, users: Integers) -> tuple[Integers, Items]:
        """Return `indptr` and the ascending items that each given user has seen.

        These are not candidates. They are empty if seen items may be recommended again.
        """
        if self.allows_seen:
            return np.zeros(len(users) + 1, np.int64), self.items[:0]
        return take_rows(self.indptr, users, self.items)

    def history(self, users: Integers) -> tuple[Integers, Items]:
        """Return `indptr` and ascending items of the given users, without explicit zeros."""
        bounds, items = take_rows(self.indptr, users, self.items)
        if self.whole.interacted is None:
            return bounds, items
        _, interacted = take_rows(self.indptr, users, self.whole.interacted)
        kept = np.flatnonzero(interacted)
        return np.searchsorted(kept, bounds), items[kept]

    def _of_all_users(self, name: str) -> ItemStatistics:
        """Return the statistics, or raise an error about the one that a metric reads."""
        if not self.covers_all:
            raise InvalidMetricError(
                f"a metric reads {name} of the training data of all users without declaring it; "
                'register the metric with needs=["train"]'
            )
        return self.whole

    @property
    def item_counts(self) -> Integers:
        """The number of users of each item."""
        return self._of_all_users("item_counts").item_counts

    @property
    def n_active(self) -> int:
        """The number of users who have an item."""
        return self._of_all_users("n_active").n_active

    @property
    def item_novelty(self) -> Floats:
        """−log2 of each item's share of the users; an item without users counts as one user's."""
        return self._of_all_users("item_novelty").item_novelty

    @property
    def by_popularity(self) -> Items:
        """All items, the most popular first, equally popular ones by id."""
        return self._of_all_users("by_popularity").by_popularity

    @property
    def popularity_levels(self) -> Integers:
        """1 for the most popular items, 2 for the next number of users, …; 0 without users."""
        return self._of_all_users("popularity_levels").popularity_levels

    def digest_of_counts(self, labels: Axis | None) -> str:
        """Return digits that identify the numbers of users, of each item and in all."""
        return f"{self.n_active}-{digest_by_item(self.item_counts, labels)}"

    def similarities(
        self, indptr: Integers, items: Items, k: int, *, jaccard: bool = False
    ) -> Floats:
        """Sum the similarities of all pairs of the first k items of each list.

        These are the cosines, or the Jaccard indices, of the users of two items.
        """
        whole = self._of_all_users("similarities")
        sums = np.empty(len(indptr) - 1)
        cache = np.zeros((CACHED_PAIRS, 2), np.int64)
        lists, users = Rows(indptr, items), Rows(*whole.item_users)
        sum_similarities(lists, k, users, *whole.bitmaps, cache, jaccard, sums)
        return sums

    def cosines_with_history(self, users: Integers, rows: Integers, items: Items) -> Floats:
        """Return, for pairs of a user and an item, its mean cosine with the user's history.

        A pair is an index of `users` and an item. NaN for a user without history.
        """
        whole = self._of_all_users("cosines_with_history")
        bounds, known = self.history(users)
        sizes = np.diff(bounds)
        means = np.full(len(rows), np.nan)
        # Co-occurrences of some items at a time with all others take bounded memory.
        order = np.argsort(items, kind="stable")
        distinct, starts = np.unique(items[order], return_index=True)
        stops = np.append(starts[1:], len(items))
        for first in range(0, len(distinct), _ITEMS_AT_ONCE):
            chosen = distinct[first : first + _ITEMS_AT_ONCE]
            common = whole.item_matrix[chosen] @ whole.item_matrix.T
            common.sort_indices()  # entries are looked up, in a row of any order one after another
            last = min(first + _ITEMS_AT_ONCE, len(distinct)) - 1
            pairs = order[starts[first] : stops[last]]
            sums = np.cumsum(sizes[rows[pairs]])
            cuts = np.searchsorted(sums, np.arange(_LOOKUPS_AT_ONCE, sums[-1], _LOOKUPS_AT_ONCE))
            for some in np.split(pairs, cuts):
                counts = sizes[rows[some]]
                others = take_rows(bounds, rows[some], known)[1]
                places = np.repeat(np.searchsorted(chosen, items[some]), counts)
                both = np.zeros(0)  # SciPy returns a matrix for no entries
                if len(others):
                    both = np.asarray(common[places, others]).ravel()
                degrees = whole.item_counts
                product = degrees[chosen[places]].astype(np.float64) * degrees[others]
                cosines = np.divide(both, np.sqrt(product), out=np.zeros(len(both)), where=both > 0)
                total = np.bincount(np.repeat(np.arange(len(some)), counts), cosines, len(some))
                means[some] = np.where(counts > 0, total / np.maximum(counts, 1), np.nan)
        return means
