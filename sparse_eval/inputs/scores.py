"""Scores of users × items, and the lists that they order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from scipy import sparse

from ..core.arguments import check_choice
from ..core.arrays import as_array
from ..core.csr import as_int32, canonical_csr, check_entries, indptr_from_counts, plain_matrix
from ..core.mistaken import describe
from ..core.sorting import order_within, sort_pairs
from ..errors import InvalidDataError
from ..kernels.rows import rank_scores

if TYPE_CHECKING:
    from ..core.types import AnyArray, CSRMatrix, Floats, Integers, Items

Ties = Literal["item", "item_descending", "average", "pessimistic"]

_SCORE = "a finite number, or -inf for an item that is not to be recommended"


class ScoreRows:
    """The candidates of each user, ids ascending, and their scores as float64, checked."""

    def __init__(self, scores: Any) -> None:
        scores = plain_matrix(scores)
        if sparse.issparse(scores):
            self.matrix: Any = canonical_csr(scores, "the score matrix", sum_duplicates=False)
            # Minus infinity can be ordered, and NaN cannot.
            check_entries(self.matrix, self.matrix.data < np.inf, "the score", _SCORE)
        else:
            expected = "a users × items array of numbers"
            self.matrix = as_array(scores, "scores", expected)
            if self.matrix.ndim != 2 or self.matrix.dtype.kind not in "biuf":
                raise InvalidDataError(f"scores are {describe(self.matrix)}; expected {expected}")
            self.all_items = np.arange(self.matrix.shape[1], dtype=np.int32)
        stored = self.matrix.data if sparse.issparse(self.matrix) else self.matrix
        check_exact(stored)
        self.shape: tuple[int, int] = self.matrix.shape

    def __call__(self, user: int) -> tuple[Items, Floats]:
        """Return the candidates of a user, and their scores; minus infinity is no candidate."""
        if sparse.issparse(self.matrix):
            row = slice(self.matrix.indptr[user], self.matrix.indptr[user + 1])
            items = as_int32(self.matrix.indices[row])
            values = self.matrix.data[row].astype(np.float64)
        else:
            items = self.all_items
            values = self.matrix[user].astype(np.float64)
            if not (values < np.inf).all():
                column = int(np.argmin(values < np.inf))
                raise InvalidDataError(
                    f"the score in row {user}, column {column} is {values[column]}; expected "
                    f"{_SCORE}",
                    row=user,
                )
        masked = values == -np.inf
        return (items[~masked], values[~masked]) if masked.any() else (items, values)


def rank_rows(
    row_of: ScoreRows, limit: int | None, hidden: CSRMatrix | None, ties: Ties
) -> tuple[Integers, Items, Items | None, Integers, Items | None]:
    """Order the candidates of each user.

    Parameters
    ----------
    row_of : ScoreRows
    limit : int or None
        The longest list, None for all candidates.
    hidden : csr_matrix or None
        Items that are no candidates of a user.
    ties : {"item", "item_descending", "average", "pessimistic"}

    Returns
    -------
    tuple
        ``indptr``, ``items``, first positions, ``lengths`` and last positions as `Rankings` has
        them; without positions if `ties` says which of equal items comes first.
    """
    n_users, n_items = row_of.shape
    collected: list[list[Items]] = [[], [], []]  # items, first and last positions
    counts = np.zeros(n_users, np.int64)
    lengths = np.zeros(n_users, np.int64)
    keep_ties = ties in ("average", "pessimistic")
    buffers = [np.empty(n_items, np.int32) for _ in range(3)]
    for user in range(n_users):
        candidates, values = row_of(user)
        if hidden is not None:
            left_out = hidden.indices[hidden.indptr[user] : hidden.indptr[user + 1]]
            kept = ~np.isin(candidates, left_out)
            candidates, values = candidates[kept], values[kept]
        if ties == "item_descending":  # the first of equal candidates stays the first
            candidates, values = candidates[::-1].copy(), values[::-1].copy()
        n = len(candidates)
        lengths[user] = n if limit is None else min(limit, n)
        counts[user] = rank_scores(candidates, values, n, int(lengths[user]), keep_ties, *buffers)
        for column, buffer in zip(collected, buffers, strict=True):
            column.append(buffer[: counts[user]].copy())
    items, first, last = (np.concatenate(column or [np.empty(0, np.int32)]) for column in collected)
    indptr = indptr_from_counts(counts)
    return indptr, items, first if keep_ties else None, lengths, last if keep_ties else None


def order_by_score(
    rows: Items, columns: Items, scores: Floats, shape: tuple[int, int], ties: Ties
) -> tuple[Integers, Items, tuple[int, int] | None]:
    """Order the entries of each row by score, of equal scores as `ties` says which comes first.

    Returns
    -------
    indptr : ndarray of int64
    items : ndarray of int32
        The columns, best first.
    repeated : tuple of int or None
        The row and column of an entry that is there twice.
    """
    n_users, n_items = shape
    keys = columns if ties == "item" else n_items - 1 - columns
    order, keys, starts = sort_pairs(rows, keys)
    items = keys if ties == "item" else n_items - 1 - keys
    indptr = indptr_from_counts(np.bincount(rows, minlength=n_users))
    if len(starts) < len(order):
        first = order[starts[np.argmax(np.diff(starts, append=len(order)) > 1)]]
        return indptr, items, (int(rows[first]), int(columns[first]))
    # Floats are ordered as their bits are, except that those of negative ones descend.
    bits = (scores[order] + 0.0).view(np.int64)
    bits = bits ^ ((bits >> 63) & np.iinfo(np.int64).max)
    positions = order_within(indptr, ~bits)
    ranked = np.empty_like(items)
    ranked[np.repeat(indptr[:-1], np.diff(indptr)) + positions] = items
    return indptr, ranked, None


def check_exact(scores: AnyArray) -> None:
    """Raise if float64 would round whole numbers, and make ties of them."""
    if scores.dtype.kind in "iu" and scores.dtype.itemsize == 8 and scores.size:
        for score in (scores.min(), scores.max()):
            if abs(int(score)) > 2**53:
                raise InvalidDataError(
                    f"scores hold {score}, a whole number beyond 2^53, which float64 cannot tell "
                    "from its neighbours; give ranks, or scores as floats",
                    argument="scores",
                )


def check_ties(ties: str) -> Ties:
    """Return `ties`, or raise `InvalidDataError` if it is not a way to order equal scores."""
    return cast("Ties", check_choice("ties", ties, get_args(Ties)))
