"""`CandidateSearch`: exact lists and ranks among candidates of each user by itself."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..core.arrays import read_only
from ..core.threads import thread_count
from ..errors import InvalidDataError
from ..kernels.candidates import list_candidates, rank_candidates
from ..kernels.exact import find_seen
from ..kernels.structures import HeldOut, Seen
from .factors import check_factors
from .search import Report, Search

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from ..core.types import Integers, SparseInput
    from ..inputs.candidates import Candidates
    from ..inputs.relevance import Relevance
    from ..kernels.structures import Lists

#: Users in a block that a thread takes.
_BLOCK = 256


class CandidateSearch(Search):
    """Exact search of users' best candidates, or of the ranks of held-out ones.

    The score of every pair is computed, as `Search` defines it, and none is of any other item.

    Parameters
    ----------
    user_factors, item_factors, seen, exclude, num_threads, progress
        As in `top_k`.
    candidates : Candidates
        With a row for each user, and the columns of `item_factors`.
    """

    def __init__(
        self,
        user_factors: object,
        item_factors: object,
        seen: SparseInput | None,
        candidates: Candidates,
        exclude: ArrayLike | None = None,
        num_threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.threads = thread_count(num_threads)
        self.progress = progress
        (self.user_factors, self.user_norms), (self.item_factors, norms) = check_factors(
            user_factors, item_factors, num_threads
        )
        self.shape = (len(self.user_factors), len(self.item_factors))
        largest = float(norms.max(initial=0.0))
        if not largest * float(self.user_norms.max(initial=0.0)) < 8e307:
            raise InvalidDataError(
                f"factors are so large (a user's of length {self.user_norms.max():g}, an item's "
                f"of {largest:g}) that a score could overflow; scale them down"
            )
        self.seen = self._check_seen(seen)
        own = candidates.of_users(0, self.shape[0])
        if exclude is not None:
            own = own.without(np.flatnonzero(~self._check_candidates(None, exclude)))
        own = own.unseen(self.seen.indptr, self.seen.items)
        self.unseen = Seen(read_only(own.bounds), read_only(own.items))
        # Which items are candidates depends on the user, see `prepare_held_out`.
        self.is_candidate = np.ones(self.shape[1], bool)
        self.candidates = np.arange(self.longest, dtype=np.int32)
        self.is_cold = norms == 0
        self.n_products = np.zeros(1, np.int64)
        self.cold_users = 0
        self.lock = Lock()

    @property
    def longest(self) -> int:
        """The largest number of candidates of a user."""
        return int(np.diff(self.unseen.indptr).max(initial=0))

    def n_candidates(self, rows: Integers) -> Integers:
        """Return the number of unseen candidates of each user in `rows`."""
        return np.asarray(self.unseen.indptr[rows + 1] - self.unseen.indptr[rows])

    def prepare_held_out(
        self, validation: Relevance | SparseInput, overlap: Literal["error", "report"]
    ) -> tuple[HeldOut, Integers, int]:
        """Return the held-out candidates, sorted; their users' rows; the number of seen ones."""
        every, rows, n_overlap = super().prepare_held_out(validation, overlap)
        kept = np.empty(len(every.items), bool)
        self._share(find_seen, len(rows), rows, every.indptr, every.items, self.unseen, kept)
        before = np.concatenate([[0], np.cumsum(kept)])
        held_out = every._replace(
            indptr=before[every.indptr],
            items=every.items[kept],
            scores=every.scores[kept],
            above=every.above[kept],
            tied=every.tied[kept],
        )
        return held_out, rows, n_overlap

    def run(
        self,
        rows: Integers,
        k: int,
        held_out: HeldOut | None,
        out: Lists | None,
        in_groups: bool | None = None,
    ) -> None:
        """Find the ranks of the held-out items of the users in `rows`, or else their lists."""
        if held_out is not None:
            self.run_fully(rows, held_out)
            return
        assert out is not None  # noqa: S101 - either is given

        def work(first: int, last: int) -> None:
            n = self._longest_of(rows[first:last])
            space = np.empty(n, np.int32), np.empty(n + 7), np.empty(n, np.int32), np.empty(n)
            factors = (self.user_factors, self.item_factors)
            list_candidates(first, last, rows, *factors, self.unseen, k, out, *space)

        self._run(rows, work)

    def run_fully(self, rows: Integers, held_out: HeldOut) -> None:
        """Count all candidates above every held-out item of the users in `rows`."""

        def work(first: int, last: int) -> None:
            n = self._longest_of(rows[first:last])
            space = np.empty(n, np.int32), np.empty(n + 7)
            factors = (self.user_factors, self.item_factors)
            rank_candidates(first, last, rows, *factors, self.unseen, held_out, *space)

        self._run(rows, work)

    def report(self, n_users: int) -> Report:
        """Return the statistics of this search for `n_users` users."""
        n_cold = 0
        if self.is_cold.any():
            is_candidate = np.zeros(self.shape[1], bool)
            is_candidate[self.unseen.items] = True
            n_cold = int(np.count_nonzero(is_candidate & self.is_cold))
        n_products = int(self.n_products[0])
        return Report(n_products, n_products, self.cold_users, n_cold)

    def _longest_of(self, rows: Integers) -> int:
        return int(self.n_candidates(rows).max(initial=0))

    def _run(self, rows: Integers, work: Callable[[int, int], None]) -> None:
        self.cold_users = int(np.count_nonzero(self.user_norms[rows] == 0))
        self.n_products[0] += self.n_candidates(rows).sum()
        with self._progress(len(rows)) as bar:

            def share(first: int, last: int) -> None:
                work(first, last)
                with self.lock:
                    bar.update(last - first)

            self._share(share, len(rows), block=_BLOCK)
