"""`Ranker`: exact top-k lists and ranks of held-out items, whatever the scores come from.

A subclass computes scores in a way of its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy import sparse

from ..core.arrays import read_only
from ..core.csr import row_numbers
from ..core.progress import progress_bar
from ..core.threads import for_blocks, thread_count
from ..errors import InvalidDataError
from ..inputs.rankings import Rankings
from ..kernels.exact import find_seen
from ..kernels.structures import HeldOut, Lists, Seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from ..core.types import Booleans, CSRMatrix, Floats, Integers, Items
    from ..inputs.candidates import Candidates
    from ..inputs.relevance import Relevance

    Kernel = Callable[..., None]


class TopK(NamedTuple):
    """Each user's best items.

    Attributes
    ----------
    ids : ndarray of int32, shape (n_lists, k)
        The best item first; -1 after the end of a shorter list.
    scores : ndarray of float64, shape (n_lists, k)
        Their scores; minus infinity after the end.
    """

    ids: Items
    scores: Floats

    @property
    def lengths(self) -> Integers:
        """The number of items in each list."""
        return np.asarray((self.ids >= 0).sum(axis=1, dtype=np.int64))


class Options(NamedTuple):
    """What a ranker chooses from, and how.

    Attributes
    ----------
    seen : csr_matrix, shape (n_users, n_items), optional
        What is left out of users' lists: the entries of a canonical matrix.
    candidates : Candidates, optional
    exclude, num_threads, progress
        As in `top_k`.
    """

    seen: CSRMatrix | None = None
    candidates: Candidates | None = None
    exclude: ArrayLike | None = None
    num_threads: int | None = None
    progress: bool | None = None


def pattern_of(matrix: CSRMatrix) -> Seen:
    """Return where a canonical matrix stores entries, as kernels take it."""
    return Seen(
        read_only(matrix.indptr.astype(np.int64, copy=False)),
        read_only(matrix.indices.astype(np.int32, copy=False)),
    )


class Ranker(ABC):
    """Exact search of users' best items, or of the ranks of held-out items.

    Attributes
    ----------
    shape : tuple of int
        The numbers of users and items.
    candidates : ndarray of int32
        The items that anybody can be recommended, those of each user aside.
    own : Seen or None
        The unseen candidates of each user, where these are given.
    longest : int
        The largest number of items that a list can have.
    cold_users, cold_items : int or None
        Of the last search, the users whose factors are all zero, whose lists hold items in the
        order of their ids; and such candidates. None where there are no factors.
    """

    cold_users: int | None = None
    cold_items: int | None = None

    def __init__(self, shape: tuple[int, int], options: Options) -> None:
        self.shape = shape
        self.threads = thread_count(options.num_threads)
        self.lock = Lock()  # guards what the threads share
        self.bar = partial(progress_bar, options.progress, desc="retrieve", unit=" users")
        self.seen = pattern_of(sparse.csr_matrix(shape) if options.seen is None else options.seen)
        given = options.candidates
        if given is not None:
            too_few = not given.for_all and given.shape[0] < shape[0]
            if too_few or given.shape[1] > shape[1]:
                raise InvalidDataError(
                    f"candidates has shape {given.shape}, but there are {shape[0]} users and "
                    f"{shape[1]} items; give a row for each user, and no other items",
                    argument="candidates",
                )
            given = given.within(*shape)
        self.is_candidate: Booleans = np.ones(shape[1], bool)
        if given is not None and given.for_all:
            self.is_candidate = given.mask
        if options.exclude is not None:
            self.is_candidate[row_numbers(options.exclude, "exclude", shape[1], "items")] = False
        if not self.is_candidate.any():
            raise InvalidDataError("no candidates are left: there is no item to choose from")
        self.candidates = np.flatnonzero(self.is_candidate).astype(np.int32)
        self.longest = len(self.candidates)
        self.own: Seen | None = None
        if given is not None and not given.for_all:
            if not self.is_candidate.all():
                given = given.keep(self.is_candidate[given.items])
            given = given.unseen(self.seen.indptr, self.seen.items)
            self.own = Seen(read_only(given.indptr), read_only(given.items))
            self.longest = int(np.diff(given.indptr).max(initial=0))

    @abstractmethod
    def run(
        self, rows: Integers, k: int | None, held_out: HeldOut | None, out: Lists | None
    ) -> None:
        """Find the ranks of the held-out items of the users in `rows`, or else their lists.

        Row i of `held_out` and of `out` is of user ``rows[i]``. Ranks below `k` may be left at any
        count that is not below `k`; all are counted if it is None.
        """

    def lists(self, k: int, rows: Integers) -> tuple[TopK, Floats]:
        """Return the list of each user in `rows`, and the best score that it left out."""
        n, k = len(rows), min(k, self.longest)
        items, scores = np.full((n, k), -1, np.int32), np.full((n, k), -np.inf)
        dropped = np.zeros(n)
        self.run(rows, k, None, Lists(items, scores, np.zeros(n, np.int64), dropped))
        return TopK(items, scores), dropped

    def ranks(
        self, relevance: Relevance, k: int | None, users: Integers | None = None
    ) -> tuple[Rankings, int, int]:
        """Return the ranks of relevant items up to `k`, or all if it is None.

        So many of these items were seen by their users, as the second value says, and have none;
        and so many of those ranked share their score with another candidate. `users` have a list;
        by default those with relevant items.
        """
        held_out, rows, n_seen = self._held_out(relevance)
        most = self.longest if k is None else min(k, self.longest)
        self.run(rows, None if k is None else most, held_out, None)
        sizes = np.diff(held_out.indptr)
        place = np.arange(len(held_out.items)) - np.repeat(held_out.indptr[:-1], sizes)
        is_hit = (held_out.above < most) & (place < np.repeat(held_out.alive, sizes))
        before = np.concatenate([[0], np.cumsum(is_hit)])
        counts, lengths = np.zeros((2, self.shape[0]), np.int64)
        counts[rows] = np.diff(before[held_out.indptr])
        listed = rows if users is None else users
        lengths[listed] = np.minimum(self.n_candidates(listed), most)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        ranks = held_out.above[is_hit] + np.int32(1)
        ranking = Rankings(self.shape, indptr, held_out.items[is_hit], ranks, lengths)
        return ranking, n_seen, int(np.count_nonzero(held_out.tied[is_hit] > 0))

    def n_candidates(self, rows: Integers) -> Integers:
        """Return the number of unseen candidates of each user in `rows`."""
        if self.own is not None:
            return np.asarray(self.own.indptr[rows + 1] - self.own.indptr[rows])
        before = self.seen.indptr
        if len(self.candidates) < self.shape[1]:
            counted = np.concatenate([[0], np.cumsum(self.is_candidate[self.seen.items])])
            before = counted[self.seen.indptr]
        seen = before[rows + 1] - before[rows]
        return np.asarray(len(self.candidates) - seen)

    def _held_out(self, relevance: Relevance) -> tuple[HeldOut, Integers, int]:
        """Return the relevant candidates, their users' rows, and the number of seen ones."""
        n_relevant = relevance.n_relevant
        rows = np.flatnonzero(n_relevant)
        items = relevance.items
        if len(items) > n_relevant.sum():
            items = items[relevance.gains > 0]
        indptr = np.concatenate([[0], np.cumsum(n_relevant[rows])])
        was_seen = np.empty(len(items), bool)
        self._share(find_seen, len(rows), rows, indptr, items, self.seen, was_seen)
        kept = self.is_candidate[items] & ~was_seen
        if self.own is not None:
            is_own = np.empty(len(items), bool)
            self._share(find_seen, len(rows), rows, indptr, items, self.own, is_own)
            kept &= is_own
        before = np.concatenate([[0], np.cumsum(kept)])
        indptr, items = before[indptr], items[kept]  # copies, which the kernel sorts in place
        n = len(items)
        counts = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(len(rows), np.int64)
        return HeldOut(indptr, items, np.empty(n), *counts), rows, int(was_seen.sum())

    def _share(
        self, kernel: Kernel, total: int, *arguments: object, block: int | None = None
    ) -> None:
        """Run a kernel on blocks of ``range(total)``, shared between threads."""
        for_blocks(lambda start, stop: kernel(start, stop, *arguments), total, self.threads, block)
