"""Lists and ranks from scores of all items, computed for blocks of users within bounded memory."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from scipy import sparse

from ..core.arrays import as_array, check_exact, describe, read_only
from ..core.csr import canonical_csr, plain_matrix
from ..core.threads import for_blocks, thread_lock
from ..errors import InvalidDataError
from ..inputs.npy import release
from ..kernels.blocks import leave_out, list_best, multiply_dense, multiply_sparse, rank_held_out
from ..kernels.structures import HeldOut, Lists, Seen
from .ranker import Ranker, pattern_of
from .spaces import growing_lists, sorting_room

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import AnyArray, CSRMatrix, Floats, Integers
    from .ranker import Options

    #: Given row numbers of users, returns their scores of all items.
    ScoreFunction = Callable[[Integers], Any]

#: The scores in memory at once: of each thread for a matrix, and of a call of a function.
CELLS_OF_THREAD = 1 << 20
CELLS_OF_CALL = 1 << 23

#: The bytes read of a matrix mapped from disk before its resident pages are released.
MAPPED_BYTES = 1 << 28

#: The most users of a call of a function, a power of two; blocks of users begin at multiples of it.
USERS_PER_CALL = 1 << 12


class ItemScores:
    """The scores of item-item models: the product of the users' items with a square matrix.

    A score is the sum of the user's stored values times the rows of the matrix, accumulated in
    float64 in the order of the user's items.

    Parameters
    ----------
    history : csr_matrix, shape (n_users, n_items)
        What users have, with values, in canonical form.
    weights : ndarray of float32 or float64, or csr_matrix, shape (n_items, n_items)
        From `check_weights`. A dense one may be memory-mapped.
    """

    def __init__(self, history: CSRMatrix, weights: AnyArray | CSRMatrix) -> None:
        self.shape = history.shape
        self.history = pattern_of(history)
        self.data = read_only(history.data.astype(np.float64, copy=False))
        self.multiply: Callable[..., None] = multiply_dense
        self.weights: tuple[AnyArray, ...]
        self.row_bytes = 0  # of a dense matrix
        if isinstance(weights, np.ndarray):
            self.weights = (read_only(weights),)
            self.row_bytes = weights.strides[0]
        else:
            self.multiply = multiply_sparse
            self.weights = (*pattern_of(weights), read_only(weights.data))

    def name_user(self, row: int) -> int:
        """Return the row of the user."""
        return row

    def blocks(
        self, rows: Integers, threads: int, work: Callable[[int, int, Floats], None]
    ) -> None:
        """Score small blocks of users, shared between threads."""
        block = max(CELLS_OF_THREAD // max(self.shape[1], 1), 1)
        spaces: list[Floats] = []
        n_read, lock = 0, Lock()

        def score(first: int, last: int) -> None:
            try:
                scores = spaces.pop()
            except IndexError:
                scores = np.empty((min(block, len(rows)), self.shape[1]))
            self.multiply(first, last, rows, self.history, self.data, *self.weights, scores)
            work(first, last, scores)
            spaces.append(scores)
            indptr, users = self.history.indptr, rows[first:last]
            nonlocal n_read
            with lock:
                n_read += int((indptr[users + 1] - indptr[users]).sum()) * self.row_bytes
                if n_read >= MAPPED_BYTES:
                    release(*self.weights)
                    n_read = 0

        for_blocks(score, len(rows), threads, block)


class FunctionScores:
    """The scores that a function returns, checked.

    Parameters
    ----------
    function : callable
        Given row numbers of users (an ndarray of int64), it returns an array or tensor of
        numbers of shape (n_users, n_items).
    users : ndarray of int64, shape (n_users,)
        The numbers that the function gets for the users.
    n_items : int
    """

    def __init__(self, function: ScoreFunction, users: Integers, n_items: int) -> None:
        self.function = function
        self.users = users
        self.shape = (len(users), n_items)

    def name_user(self, row: int) -> int:
        """Return the number that the function gets for a user."""
        return int(self.users[row])

    def blocks(
        self, rows: Integers, threads: int, work: Callable[[int, int, Floats], None]
    ) -> None:
        """Call the function for the users of each cell of `users_per_call` rows, in turn.

        So the users of a call do not depend on where blocks of users begin, at multiples of it.
        """
        cells = rows // users_per_call(self.shape[1])
        ends = [*(np.flatnonzero(cells[1:] != cells[:-1]) + 1).tolist(), len(rows)]
        first = 0
        for last in ends if len(rows) else []:
            users = self.users[rows[first:last]]
            shape = (len(users), self.shape[1])
            # Functions are never called from several threads at once: functions of torch and others
            # may cache their last result.
            with thread_lock("scores"):
                name = "what the function returns"
                expected = f"scores of {shape[0]} users × {shape[1]} items, of numbers"
                found = as_array(self.function(users.copy()), name, expected)
                kind = found.dtype.kind
                if found.shape != shape or kind not in "iuf" or found.dtype.itemsize > 8:
                    raise InvalidDataError(
                        f"{name} for {len(users)} users is {describe(found)}; expected {expected}"
                    )
                if kind != "f":
                    check_exact(found)
                scores = np.array(found, np.float64, order="C")  # which may be overwritten
            for_blocks(
                lambda a, b, first=first, scores=scores: work(first + a, first + b, scores[a:b]),
                last - first,
                threads,
                -(-(last - first) // threads),
            )
            first = last


def check_weights(weights: Any, name: str = "the item-item matrix") -> AnyArray | CSRMatrix:
    """Return an item-item matrix in a form that kernels take, float32 or float64.

    A dense one in C order is not copied, nor read: it may be memory-mapped. Scores are checked.

    Raises `InvalidDataError` if it is not a square matrix of real numbers.
    """
    matrix: Any
    if sparse.issparse(plain_matrix(weights)):
        matrix = canonical_csr(weights, name, sum_duplicates=True)
        if matrix.data.dtype != np.float32:
            matrix = matrix.astype(np.float64, copy=False)
    else:
        matrix = as_array(weights, name, "a square matrix, items × items")
        if matrix.ndim != 2 or matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
            raise InvalidDataError(
                f"{name} is {describe(matrix)}; expected a square matrix, items × items",
                argument=name,
            )
        single = matrix.dtype in (np.float16, np.float32)
        matrix = np.ascontiguousarray(matrix, np.float32 if single else np.float64)
    if matrix.shape[0] != matrix.shape[1] or not matrix.shape[0]:
        raise InvalidDataError(
            f"{name} has shape {matrix.shape}; expected a square, with a row and a column for each "
            "item",
            argument=name,
        )
    checked: AnyArray | CSRMatrix = matrix
    return checked


def users_per_call(n_items: int) -> int:
    """Return the largest number of users in a call of a function: a power of two."""
    most = min(CELLS_OF_CALL // max(n_items, 1), USERS_PER_CALL)
    return 1 << (max(most, 1).bit_length() - 1)


#: Where the scores of users come from. `blocks` calls ``work(first, last, scores)`` for blocks of
#: ``rows[first:last]``; `scores` may be overwritten, and blocks may be worked on at once.
Scores: TypeAlias = ItemScores | FunctionScores


class ScoreSearch(Ranker):
    """Exact lists and ranks from the scores of all items."""

    def __init__(self, scores: Scores, options: Options) -> None:
        super().__init__(scores.shape, options)
        self.scores = scores
        self.excluded = read_only(np.flatnonzero(~self.is_candidate).astype(np.int32))
        everything = Seen(read_only(np.zeros(1, np.int64)), read_only(np.empty(0, np.int32)))
        self.allowed = everything if self.own is None else self.own

    def run(
        self, rows: Integers, k: int | None, held_out: HeldOut | None, out: Lists | None
    ) -> None:
        """Find the ranks of the held-out items of the users in `rows`, or else their lists."""
        longest = 0 if held_out is None else int(np.diff(held_out.indptr).max(initial=0))

        def work(first: int, last: int, scores: Floats) -> None:
            # Items that are not candidates get minus infinity; all other scores must be finite.
            fault = np.zeros(3, np.int64)
            leave_out(first, last, rows, self.seen, self.excluded, self.allowed, scores, fault)
            if fault[0]:
                _, i, item = fault.tolist()
                raise InvalidDataError(
                    f"the score of user {self.scores.name_user(rows[i])} and item {item} is "
                    f"{scores[i - first, item]}; expected a finite number. Seen items and other "
                    "non-candidates are excluded, so their scores may be any finite placeholder"
                )
            if held_out is not None:
                space = np.empty(longest, np.int32), np.empty(longest)
                rank_held_out(first, last, scores, held_out, *space)
            elif k is not None and out is not None:
                list_best(first, last, k, scores, growing_lists(1, k), sorting_room(k), out)
            with self.lock:
                bar.update(last - first)

        with self.bar(total=len(rows)) as bar:
            self.scores.blocks(rows, self.threads, work)
