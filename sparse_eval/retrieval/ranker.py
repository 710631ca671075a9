"""What lists and ranks need of a search: the base class of every way to find them.

A subclass computes scores in a way of its own; `top_k.py` makes lists and rankings of what it
finds, whatever the scores come from.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from ..core.arrays import read_only
from ..core.csr import canonical_csr, row_numbers
from ..core.progress import progress_bar
from ..core.threads import for_blocks, thread_count
from ..errors import InvalidDataError
from ..inputs.relevance import Relevance
from ..kernels.exact import find_seen
from ..kernels.structures import HeldOut, Lists, Seen

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from ..core.types import Booleans, CSRMatrix, Integers, SparseInput
    from ..inputs.candidates import Candidates

    Kernel = Callable[..., None]


@dataclass(frozen=True)
class Report:
    """Statistics of a search.

    Attributes
    ----------
    n_pairs : int
        Users × candidate items.
    n_products : int
        The number of pairs whose score was computed.
    cold_users, cold_items : int or None
        Users, and candidate items, whose factors are all zero; None where there are no factors. The
        list of a cold user holds the items in the order of their ids.
    """

    n_pairs: int
    n_products: int
    cold_users: int | None
    cold_items: int | None


def pattern_of(matrix: CSRMatrix) -> Seen:
    """Return where a canonical matrix stores entries, as kernels take it."""
    return Seen(
        read_only(matrix.indptr.astype(np.int64, copy=False)),
        read_only(matrix.indices.astype(np.int32, copy=False)),
    )


class Ranker(ABC):
    """Exact search of users' best items, or of the ranks of held-out items.

    Parameters
    ----------
    shape : tuple of int
        The numbers of users and items.
    seen, exclude, num_threads, progress
        As in `top_k`.
    candidates : Candidates, optional
    """

    def __init__(
        self,
        shape: tuple[int, int],
        seen: SparseInput | None = None,
        *,
        candidates: Candidates | None = None,
        exclude: ArrayLike | None = None,
        num_threads: int | None = None,
        progress: bool | None = None,
    ) -> None:
        self.shape = shape
        self.threads = thread_count(num_threads)
        self.progress = progress
        matrix = sparse.csr_matrix(shape) if seen is None else seen
        self.seen = pattern_of(canonical_csr(matrix, "seen", sum_duplicates=True))
        given = None
        if candidates is not None:
            too_few = not candidates.for_all and candidates.shape[0] < shape[0]
            if too_few or candidates.shape[1] > shape[1]:
                raise InvalidDataError(
                    f"candidates has shape {candidates.shape}, but there are {shape[0]} users and "
                    f"{shape[1]} items; give a row for each user, and no other items",
                    argument="candidates",
                )
            given = candidates.within(*shape)
        #: Which items are candidates of anybody, those of each user aside.
        self.is_candidate: Booleans = np.ones(shape[1], bool)
        if given is not None and given.for_all:
            self.is_candidate = given.mask
        if exclude is not None:
            self.is_candidate[row_numbers(exclude, "exclude", shape[1], "items")] = False
        if not self.is_candidate.any():
            raise InvalidDataError("no candidates are left: there is no item to choose from")
        self.candidates = np.flatnonzero(self.is_candidate).astype(np.int32)
        #: The unseen candidates of each user, where these are given.
        self.own: Seen | None = None
        if given is not None and not given.for_all:
            own = given
            if not self.is_candidate.all():
                own = own.keep(self.is_candidate[own.items])
            own = own.unseen(self.seen.indptr, self.seen.items)
            self.own = Seen(read_only(own.indptr), read_only(own.items))

    @abstractmethod
    def run(self, rows: Integers, k: int, held_out: HeldOut | None, out: Lists | None) -> None:
        """Find the ranks of the held-out items of the users in `rows`, or else their lists.

        Row i of `held_out` and of `out` is of user ``rows[i]``. Ranks below `k` may be left at any
        count that is not below `k`.
        """

    @abstractmethod
    def run_fully(self, rows: Integers, held_out: HeldOut) -> None:
        """Count all candidates above every held-out item of the users in `rows`."""

    @abstractmethod
    def score_held_out(self, rows: Integers, held_out: HeldOut) -> None:
        """Score and sort the held-out items of the users in `rows`, if `run` does not do so."""

    @abstractmethod
    def report(self, n_users: int) -> Report:
        """Return the statistics of this search for `n_users` users."""

    @property
    def longest(self) -> int:
        """The largest number of items that a list can have."""
        if self.own is not None:
            return int(np.diff(self.own.indptr).max(initial=0))
        return len(self.candidates)

    def n_pairs(self, n_users: int) -> int:
        """Return the number of pairs of users, of whom there are so many, and candidates."""
        return n_users * len(self.candidates) if self.own is None else len(self.own.items)

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

    def prepare_held_out(
        self, validation: Relevance | SparseInput, overlap: Literal["error", "report"]
    ) -> tuple[HeldOut, Integers, int]:
        """Return the held-out candidates, sorted; their users' rows; the number of seen ones."""
        relevance = (
            validation if isinstance(validation, Relevance) else Relevance.from_csr(validation)
        )
        n_relevant = relevance.n_relevant
        rows = np.flatnonzero(n_relevant)
        items = relevance.items
        if len(items) > n_relevant.sum():
            items = items[relevance.gains > 0]
        indptr = np.concatenate([[0], np.cumsum(n_relevant[rows])])
        was_seen = np.empty(len(items), bool)
        self._share(find_seen, len(rows), rows, indptr, items, self.seen, was_seen)
        n_overlap = int(was_seen.sum())
        if n_overlap and overlap == "error":
            first = int(was_seen.argmax())
            user = rows[np.searchsorted(indptr, first, side="right") - 1]
            raise InvalidDataError(
                f"{n_overlap} held-out items were seen by their users, the first by user "
                f"{user} (item {items[first]}), and no list can hold them; split again, or "
                'leave them without a rank with overlap="report"',
                user=user,
            )
        kept = self.is_candidate[items] & ~was_seen
        if self.own is not None:
            is_own = np.empty(len(items), bool)
            self._share(find_seen, len(rows), rows, indptr, items, self.own, is_own)
            kept &= is_own
        before = np.concatenate([[0], np.cumsum(kept)])
        indptr, items = before[indptr], items[kept]  # copies, which the kernel sorts in place
        n = len(items)
        held_out = HeldOut(
            indptr,
            items,
            np.empty(n),
            np.zeros(n, np.int32),
            np.zeros(n, np.int32),
            np.zeros(len(rows), np.int64),
        )
        self.score_held_out(rows, held_out)
        return held_out, rows, n_overlap

    def _progress(self, n_users: int) -> Any:
        return progress_bar(self.progress, total=n_users, desc="retrieve", unit=" users")

    def _share(
        self, kernel: Kernel, total: int, *arguments: object, block: int | None = None
    ) -> None:
        """Run a kernel on blocks of ``range(total)``, shared between threads."""
        for_blocks(lambda start, stop: kernel(start, stop, *arguments), total, self.threads, block)
