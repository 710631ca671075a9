"""`Ranker`: exact top-k lists and ranks of held-out items, from any scores.

A subclass computes its scores. `FactorRanker` is the base of searches by the products of factors.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.arrays import as_array, describe, is_array, read_only
from ..core.csr import row_numbers
from ..core.progress import progress_bar
from ..core.threads import for_blocks, thread_count
from ..errors import InvalidDataError
from ..inputs.rankings import Rankings
from ..kernels.candidates import list_candidates, rank_candidates
from ..kernels.exact import find_seen, measure_rows, score_held_out
from ..kernels.structures import HeldOut, Lists, Seen

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..core.types import AnyArray, Booleans, CSRMatrix, Floats, Integers, Items
    from ..inputs.candidates import Candidates
    from ..inputs.relevance import Relevance

#: Rows of factors that are looked at together.
_ROWS_AT_ONCE = 1 << 16


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
    """The options of a ranker.

    Attributes
    ----------
    seen : csr_matrix, shape (n_users, n_items), optional
        The items to leave out of users' lists: the entries of a canonical matrix.
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
    """Return the positions of a canonical matrix's entries, as kernels take them."""
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
        The items that anybody can be recommended, apart from each user's own candidates.
    own : Seen or None
        The unseen candidates of each user, where these are given.
    longest : int
        The largest number of items that a list can have.
    cold_users, cold_items : int or None
        Of the last search, the users whose factors are all zero, whose lists hold items in the
        order of their ids; and such candidates. None if there are no factors.
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
                    f"{shape[1]} items; pass a row for each user, and no other items",
                    argument="candidates",
                )
            given = given.within(*shape)
        self.is_candidate: Booleans = np.ones(shape[1], bool)
        if given is not None and given.for_all:
            self.is_candidate = given.mask
        if options.exclude is not None:
            self.is_candidate[row_numbers(options.exclude, "exclude", shape[1], "items")] = False
        if not self.is_candidate.any():
            raise InvalidDataError("no candidates are left, so there is no item to choose from")
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

        Also return the number of relevant items without a rank, because their users have seen them.
        The last number counts ranked items whose score another candidate shares. `users` have a
        list; by default all users with relevant items.
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
        for_blocks(
            find_seen, len(rows), self.threads, None, (rows, indptr, items, self.seen, was_seen)
        )
        kept = self.is_candidate[items] & ~was_seen
        if self.own is not None:
            is_own = np.empty(len(items), bool)
            for_blocks(
                find_seen, len(rows), self.threads, None, (rows, indptr, items, self.own, is_own)
            )
            kept &= is_own
        before = np.concatenate([[0], np.cumsum(kept)])
        indptr, items = before[indptr], items[kept]  # copies, which the kernel sorts in place
        n = len(items)
        counts = np.zeros(n, np.int32), np.zeros(n, np.int32), np.zeros(len(rows), np.int64)
        return HeldOut(indptr, items, np.empty(n), *counts), rows, int(was_seen.sum())


#: Rows per block of `measure_rows`, and users in a block that a thread takes.
_ROWS_AT_ONCE, _USERS_AT_ONCE = 10_000, 256


class MeasuredFactors(NamedTuple):
    """Read-only factors of float32 or float64, and the Euclidean norm of each row."""

    values: AnyArray
    norms: Floats


def check_factors(
    user_factors: object, item_factors: object, num_threads: int | None = None
) -> tuple[MeasuredFactors, MeasuredFactors]:
    """Return the factors of both sides in the form that the kernels take.

    They may be tensors in memory that the CPU can read. float16 becomes float32; an array that
    needs no conversion is not copied. Raises `InvalidDataError` if a side is not a two-dimensional
    float array, a row is not finite (the message names it), or the widths differ.
    """
    users = _check_side(user_factors, "user_factors", num_threads)
    items = _check_side(item_factors, "item_factors", num_threads)
    widths = users.values.shape[1], items.values.shape[1]
    if widths[0] != widths[1]:
        raise InvalidDataError(
            f"user_factors have {widths[0]} columns, item_factors {widths[1]}; they must come from "
            "the same model",
            argument="user_factors",
        )
    return users, items


def _check_side(factors: object, name: str, num_threads: int | None) -> MeasuredFactors:
    expected = "a float array, rows × factors, such as numpy.asarray(x, numpy.float32)"
    array: Any = factors
    if type(factors) is not np.ndarray:
        if not is_array(factors):
            raise InvalidDataError(
                f"{name} is {describe(factors)}; expected {expected}", argument=name
            )
        array = as_array(factors, name, expected)
    if array.ndim != 2 or array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise InvalidDataError(f"{name} is {describe(array)}; expected {expected}", argument=name)
    dtype = np.float64 if array.dtype.itemsize == 8 else np.float32
    values: AnyArray = read_only(np.ascontiguousarray(array, dtype))
    norms = np.empty(len(values))
    for_blocks(measure_rows, len(values), num_threads, _ROWS_AT_ONCE, (values, norms))
    not_finite = np.isnan(norms)
    if not_finite.any():
        raise InvalidDataError(
            f"{name}, row {int(not_finite.argmax())} is not finite; train again with a lower alpha "
            "or learning rate, or more regularization",
            argument=name,
        )
    return MeasuredFactors(values, norms)


class FactorRanker(Ranker):
    """The base class of searches by the products of factors."""

    def __init__(self, user_factors: object, item_factors: object, options: Options) -> None:
        (self.user_factors, self.user_norms), (self.item_factors, self.item_norms) = check_factors(
            user_factors, item_factors, options.num_threads
        )
        super().__init__((len(self.user_factors), len(self.item_factors)), options)
        self.largest = float(self.item_norms[self.candidates].max())
        if not self.largest * float(self.user_norms.max(initial=0.0)) < 8e307:
            raise InvalidDataError(
                f"factors are so large (a user's of length {self.user_norms.max():g}, an item's "
                f"of {self.largest:g}) that a score could overflow; scale them down"
            )
        is_cold = self.is_candidate & (self.item_norms == 0.0)
        if self.own is not None and is_cold.any():
            is_cold &= np.bincount(self.own.items, minlength=len(is_cold)) > 0
        self.cold_items = int(np.count_nonzero(is_cold))

    @cached_property
    def _largest_factors(self) -> Floats:
        """The largest absolute value of each factor among the candidates."""
        largest = np.zeros(self.item_factors.shape[1])
        for first in range(0, len(self.candidates), _ROWS_AT_ONCE):
            some = self.item_factors[self.candidates[first : first + _ROWS_AT_ONCE]]
            np.maximum(largest, np.abs(some).max(axis=0), out=largest)
        return largest

    def check_users(self, rows: Integers) -> None:
        """Count the cold users in `rows`, and raise if the scores of others lose their order.

        Scores below the smallest normal number lose digits. Powers of two scale factors without
        rounding, so scaled factors show the right order. Only users whose scores are all so small
        are compared: for others, a lost score is nothing next to the best ones.
        """
        warm = rows[self.user_norms[rows] > 0.0]
        self.cold_users = len(rows) - len(warm)
        largest, small = self._largest_factors, list[int]()
        limit = len(largest) * np.finfo(np.float64).tiny
        with np.errstate(under="ignore"):  # which the caller's settings may raise
            for first in range(0, len(warm), _ROWS_AT_ONCE):
                some = warm[first : first + _ROWS_AT_ONCE]
                reach = np.einsum("ij,j->i", np.abs(self.user_factors[some]), largest)
                small += some[reach < limit].tolist()
            for row in small:
                user = np.abs(self.user_factors[row].astype(float))
                factors = (user > 0.0) & (largest > 0.0)  # others, as of a bias of 0, add nothing
                if not factors.any():
                    continue
                seen = self.seen.items[self.seen.indptr[row] : self.seen.indptr[row + 1]]
                unseen = np.setdiff1d(self.candidates, seen)
                if self.own is not None:
                    unseen = self.own.items[self.own.indptr[row] : self.own.indptr[row + 1]]
                sides = (
                    self.user_factors[row, factors].astype(float),
                    self.item_factors[unseen][:, factors].T.astype(float),
                )
                own, of_items = np.frexp(user[factors])[1], np.frexp(largest[factors])[1]
                shift = own - (own + of_items).max()
                scaled = np.ldexp(sides[0], -own), np.ldexp(sides[1], shift[:, None])
                if (_order(*sides) != _order(*scaled)).any():
                    raise InvalidDataError(
                        f"the factors of user {row} and of the items are so small that scores "
                        "underflow and lose their order. Multiply the factors by a power of two, "
                        "such as 2.0**500",
                        row=row,
                    )

    def score_held_out(self, rows: Integers, held_out: HeldOut) -> None:
        """Score and sort the held-out items of the users in `rows`."""
        factors = (self.user_factors, self.item_factors)
        longest = int(np.diff(held_out.indptr).max(initial=0))

        def score(first: int, last: int) -> None:
            space = np.empty(longest, np.int32), np.empty(longest + 7)
            score_held_out(first, last, rows, *factors, held_out, *space)

        for_blocks(score, len(rows), self.threads)


def _order(user: Floats, items: Floats) -> Integers:
    """Return the order of the scores of items, shape (n_factors, n_items), for a user."""
    scores = np.zeros(items.shape[1])
    for factor, column in zip(user, items, strict=True):  # accumulated as in the kernels
        scores += factor * column
    return np.argsort(-scores, kind="stable")


class CandidateSearch(FactorRanker):
    """Exact search of users' best candidates, or of the ranks of held-out ones.

    The score of every pair is computed, as `Search` defines it, and none is of any other item.
    """

    own: Seen

    def run(
        self, rows: Integers, k: int | None, held_out: HeldOut | None, out: Lists | None
    ) -> None:
        """Find the ranks of the held-out items of the users in `rows`, or else their lists."""
        self.check_users(rows)
        factors = (self.user_factors, self.item_factors)
        if held_out is not None:
            self.score_held_out(rows, held_out)

        def work(first: int, last: int) -> None:
            n = int(self.n_candidates(rows[first:last]).max(initial=0))
            space = np.empty(n, np.int32), np.empty(n + 7)
            if held_out is not None:
                rank_candidates(first, last, rows, *factors, self.own, held_out, *space)
            elif k is not None and out is not None:
                of_list = np.empty(n, np.int32), np.empty(n)
                list_candidates(first, last, rows, *factors, self.own, k, out, *space, *of_list)
            with self.lock:
                bar.update(last - first)

        with self.bar(total=len(rows)) as bar:
            for_blocks(work, len(rows), self.threads, _USERS_AT_ONCE)
