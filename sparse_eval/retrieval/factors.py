"""Factors of users and items: checked; and searched among the candidates of each user."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.arrays import as_array, describe, is_array, read_only
from ..core.threads import for_blocks
from ..errors import InvalidDataError
from ..kernels.candidates import list_candidates, rank_candidates
from ..kernels.exact import measure_rows, score_held_out
from .ranker import Ranker

if TYPE_CHECKING:
    from ..core.types import AnyArray, Floats, Integers
    from ..kernels.structures import HeldOut, Lists, Seen
    from .ranker import Options

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
    if not is_array(factors):
        raise InvalidDataError(f"{name} is {describe(factors)}; expected {expected}", argument=name)
    array = as_array(factors, name, expected)
    if array.ndim != 2 or array.dtype.kind != "f" or array.dtype.itemsize > 8:
        raise InvalidDataError(f"{name} is {describe(array)}; expected {expected}", argument=name)
    dtype = np.float64 if array.dtype.itemsize == 8 else np.float32
    values: AnyArray = read_only(np.ascontiguousarray(array, dtype))
    norms = np.empty(len(values))
    for_blocks(
        lambda start, stop: measure_rows(start, stop, values, norms),
        len(values),
        num_threads,
        _ROWS_AT_ONCE,
    )
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

    def score_held_out(self, rows: Integers, held_out: HeldOut) -> None:
        """Score and sort the held-out items of the users in `rows`."""
        factors = (self.user_factors, self.item_factors)
        longest = int(np.diff(held_out.indptr).max(initial=0))

        def score(first: int, last: int) -> None:
            space = np.empty(longest, np.int32), np.empty(longest + 7)
            score_held_out(first, last, rows, *factors, held_out, *space)

        for_blocks(score, len(rows), self.threads)


class CandidateSearch(FactorRanker):
    """Exact search of users' best candidates, or of the ranks of held-out ones.

    The score of every pair is computed, as `Search` defines it, and none is of any other item.
    """

    own: Seen

    def run(
        self, rows: Integers, k: int | None, held_out: HeldOut | None, out: Lists | None
    ) -> None:
        """Find the ranks of the held-out items of the users in `rows`, or else their lists."""
        self.cold_users = int(np.count_nonzero(self.user_norms[rows] == 0))
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
