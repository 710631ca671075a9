"""Scores of users × items, and the lists that they order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, get_args

import numpy as np
from scipy import sparse

from ..core.csr import as_int32, canonical_csr, check_not_masked, entry_position
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from ..core.types import AnyArray, Floats, Items

Ties = Literal["item", "item_descending", "average"]


class ScoreRows:
    """The candidates of each user, ids ascending, and their scores as float64, checked."""

    def __init__(self, scores: Any) -> None:
        if sparse.issparse(scores):
            self.matrix: Any = canonical_csr(scores, "the score matrix", sum_duplicates=False)
            finite = np.isfinite(self.matrix.data)
            if not finite.all():
                entry = int(np.flatnonzero(~finite)[0])
                self._refuse(*entry_position(self.matrix, entry), self.matrix.data[entry])
        else:
            check_not_masked(scores, "scores")
            try:
                self.matrix = np.asarray(scores)
            except ValueError:
                raise InvalidDataError(
                    "scores have rows of different lengths; expected a users × items array"
                ) from None
            if self.matrix.ndim != 2 or self.matrix.dtype.kind not in "biuf":
                raise InvalidDataError(
                    f"scores are an array of {self.matrix.dtype} with shape {self.matrix.shape}; "
                    "expected a users × items array of numbers"
                )
            self.all_items = np.arange(self.matrix.shape[1], dtype=np.int32)
        stored = self.matrix.data if sparse.issparse(self.matrix) else self.matrix
        check_exact(stored)
        self.shape: tuple[int, int] = self.matrix.shape

    def __call__(self, user: int) -> tuple[Items, Floats]:
        """Return the candidates of a user, and their scores."""
        if sparse.issparse(self.matrix):
            row = slice(self.matrix.indptr[user], self.matrix.indptr[user + 1])
            return (
                as_int32(self.matrix.indices[row]),
                self.matrix.data[row].astype(np.float64),
            )
        values = self.matrix[user].astype(np.float64)
        finite = np.isfinite(values)
        if not finite.all():
            column = int(np.flatnonzero(~finite)[0])
            self._refuse(user, column, values[column])
        return self.all_items, values

    @staticmethod
    def _refuse(row: int, column: int, value: float) -> NoReturn:
        raise InvalidDataError(
            f"the score in row {row}, column {column} is {value}; expected a finite number (to "
            "leave items out of a list, name them in seen=)"
        )


def check_exact(scores: AnyArray) -> None:
    """Raise if float64 would round whole numbers, and make ties of them."""
    if scores.dtype.kind in "iu" and scores.dtype.itemsize == 8 and scores.size:
        for score in (scores.min(), scores.max()):
            if abs(int(score)) > 2**53:
                raise InvalidDataError(
                    f"scores hold {score}, a whole number beyond 2^53, which float64 cannot tell "
                    "from its neighbours; give ranks, or scores as floats"
                )


def check_ties(ties: str) -> Ties:
    """Return `ties`, or raise `InvalidDataError` if it is not a way to order equal scores."""
    if ties not in get_args(Ties):
        raise InvalidDataError(f"ties is {ties!r}; expected 'item', 'item_descending' or 'average'")
    return cast(Ties, ties)
