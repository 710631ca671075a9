"""Searches by the products of factors: their base class, and the one among own candidates."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.threads import for_blocks
from ..errors import InvalidDataError
from ..kernels.candidates import list_candidates, rank_candidates
from ..kernels.exact import score_held_out
from .factors import check_factors
from .ranker import Ranker, Report

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import Integers, SparseInput
    from ..kernels.structures import HeldOut, Lists, Seen


class FactorRanker(Ranker):
    """The base class of searches by the products of factors; the options are those of `Ranker`."""

    def __init__(
        self,
        user_factors: object,
        item_factors: object,
        seen: SparseInput | None = None,
        *,
        num_threads: int | None = None,
        **options: Any,
    ) -> None:
        (self.user_factors, self.user_norms), (self.item_factors, self.item_norms) = check_factors(
            user_factors, item_factors, num_threads
        )
        shape = (len(self.user_factors), len(self.item_factors))
        super().__init__(shape, seen, num_threads=num_threads, **options)
        self.largest = float(self.item_norms[self.candidates].max())
        if not self.largest * float(self.user_norms.max(initial=0.0)) < 8e307:
            raise InvalidDataError(
                f"factors are so large (a user's of length {self.user_norms.max():g}, an item's "
                f"of {self.largest:g}) that a score could overflow; scale them down"
            )
        self.lock = Lock()  # guards what the threads share
        self.n_products = np.zeros(1, np.int64)
        self.cold_users = 0

    def score_held_out(self, rows: Integers, held_out: HeldOut) -> None:
        """Score and sort the held-out items of the users in `rows`."""
        factors = (self.user_factors, self.item_factors)
        longest = int(np.diff(held_out.indptr).max(initial=0))

        def score(first: int, last: int) -> None:
            space = np.empty(longest, np.int32), np.empty(longest + 7)
            score_held_out(first, last, rows, *factors, held_out, *space)

        for_blocks(score, len(rows), self.threads)


#: Users in a block that a thread takes.
_BLOCK = 256


class CandidateSearch(FactorRanker):
    """Exact search of users' best candidates, or of the ranks of held-out ones.

    The score of every pair is computed, as `Search` defines it, and none is of any other item.
    `candidates` are those of each user.
    """

    own: Seen

    def run(
        self,
        rows: Integers,
        k: int,
        held_out: HeldOut | None,
        out: Lists | None,
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
            list_candidates(first, last, rows, *factors, self.own, k, out, *space)

        self._run(rows, work)

    def run_fully(self, rows: Integers, held_out: HeldOut) -> None:
        """Count all candidates above every held-out item of the users in `rows`."""

        def work(first: int, last: int) -> None:
            n = self._longest_of(rows[first:last])
            space = np.empty(n, np.int32), np.empty(n + 7)
            factors = (self.user_factors, self.item_factors)
            rank_candidates(first, last, rows, *factors, self.own, held_out, *space)

        self._run(rows, work)

    def report(self, n_users: int) -> Report:
        """Return the statistics of this search for `n_users` users."""
        n_cold = 0
        is_cold = self.item_norms == 0
        if is_cold.any():
            is_candidate = np.zeros(self.shape[1], bool)
            is_candidate[self.own.items] = True
            n_cold = int(np.count_nonzero(is_candidate & is_cold))
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
