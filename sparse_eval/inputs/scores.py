"""Scores of users × items, and the lists that they order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast, get_args

import numpy as np
from scipy import sparse

from ..core.arguments import check_choice
from ..core.arrays import as_array, describe
from ..core.csr import (
    as_int32,
    canonical_csr,
    check_entries,
    find_entries,
    indptr_from_counts,
    order_within,
    plain_matrix,
)
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from ..core.types import AnyArray, Floats, Integers, Items

Ties = Literal["item", "item_descending", "average", "pessimistic"]

_SCORE = "a finite number, or -inf for an item that is not to be recommended"

#: The scores of an array that are read at once.
_BLOCK = 2**20


def score_matrix(scores: Any) -> Any:
    """Return scores of users × items as a canonical CSR or an array, checked but for its values."""
    scores = plain_matrix(scores)
    if sparse.issparse(scores):
        matrix = canonical_csr(scores, "the score matrix", sum_duplicates=False)
        # Minus infinity can be ordered, and NaN cannot.
        check_entries(matrix, matrix.data < np.inf, "the score", _SCORE)
        check_exact(matrix.data)
        return matrix
    expected = "a users × items array of numbers"
    array = as_array(scores, "scores", expected)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise InvalidDataError(f"scores are {describe(array)}; expected {expected}")
    check_exact(array)
    return array


def rank_scores(
    scores: Any, limit: int | None, hidden: sparse.csr_matrix | None, ties: Ties
) -> tuple[Integers, Items, Items | None, Integers, Items | None]:
    """Order the candidates of each user by score, as `rank_entries` does.

    Parameters
    ----------
    scores : csr_matrix or ndarray
        As from `score_matrix`. Minus infinity is no candidate.
    limit : int or None
        The longest list, None for all candidates.
    hidden : csr_matrix or None
        Items that are no candidates of a user.
    ties
        As of `rank_entries`.
    """
    n_users, n_items = scores.shape
    if sparse.issparse(scores):
        kept = scores.data > -np.inf
        if hidden is not None:
            rows = np.repeat(np.arange(n_users), np.diff(scores.indptr))
            pairs = rows, scores.indices, hidden.indptr, hidden.indices, n_items
            kept &= find_entries(*pairs) < 0
        indptr = indptr_from_counts(kept)[scores.indptr]
        values = scores.data[kept].astype(np.float64)
        return rank_entries(indptr, as_int32(scores.indices[kept]), values, ties, limit)
    step = max(_BLOCK // max(n_items, 1), 1)
    parts = []
    for first in range(0, max(n_users, 1), step):
        block = scores[first : first + step].astype(np.float64)
        if not (block < np.inf).all():
            row, column = np.argwhere(~(block < np.inf))[0]
            raise InvalidDataError(
                f"the score in row {first + row}, column {column} is {block[row, column]}; "
                f"expected {_SCORE}",
                row=first + row,
            )
        if hidden is not None:
            block[hidden[first : first + step].tocoo().coords] = -np.inf
        kept = block > -np.inf
        if limit is not None and limit < n_items:
            kept &= block >= np.partition(block, -limit, axis=1)[:, [-limit]]
        entries = indptr_from_counts(kept.sum(axis=1)), as_int32(kept.nonzero()[1]), block[kept]
        parts.append(rank_entries(*entries, ties, limit))
    bounds, items, firsts, lengths, lasts = zip(*parts, strict=True)
    positions = [None if ends[0] is None else np.concatenate(ends) for ends in (firsts, lasts)]
    indptr = indptr_from_counts(np.concatenate([np.diff(each) for each in bounds]))
    return indptr, np.concatenate(items), positions[0], np.concatenate(lengths), positions[1]


def rank_entries(
    indptr: Integers, items: Items, scores: Floats, ties: Ties, limit: int | None = None
) -> tuple[Integers, Items, Items | None, Integers, Items | None]:
    """Order the entries of each user by score.

    Parameters
    ----------
    indptr, items, scores
        Entries sorted by user and item: ndarray of int64, int32 and float64.
    ties : {"item", "item_descending", "average", "pessimistic"}
    limit : int, optional
        The longest list.

    Returns
    -------
    tuple
        ``indptr``, ``items``, first positions, ``lengths`` and last positions as `Rankings` has
        them; without positions if `ties` says which of equal items comes first.
    """
    sizes = np.diff(indptr)
    starts = np.repeat(indptr[:-1], sizes)
    # Floats are ordered as their bits are, except that those of negative ones descend.
    bits = (scores + 0.0).view(np.int64)
    bits ^= (bits >> 63) & np.iinfo(np.int64).max
    if ties == "item_descending":
        places = starts + np.repeat(sizes, sizes) - 1 - order_within(indptr, bits)
    else:
        places = starts + order_within(indptr, ~bits)
    ranked = np.empty_like(items)
    ranked[places] = items
    lengths = sizes if limit is None else np.minimum(sizes, limit)
    first = last = None
    if ties in ("average", "pessimistic"):
        ordered = np.empty_like(bits)
        ordered[places] = bits
        differ = np.ones(len(items), bool)
        differ[1:] = (ordered[1:] != ordered[:-1]) | (starts[1:] != starts[:-1])
        bounds = np.append(np.flatnonzero(differ), len(items))
        group = np.cumsum(differ) - 1
        first, last = as_int32(bounds[group] - starts + 1), as_int32(bounds[group + 1] - starts)
    if limit is not None and (sizes > limit).any():
        positions = np.arange(1, len(items) + 1) - starts if first is None else first
        kept = positions <= limit
        indptr, ranked = indptr_from_counts(kept)[indptr], ranked[kept]
        if first is not None and last is not None:
            first, last = first[kept], last[kept]
    return indptr, ranked, first, lengths, last


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
