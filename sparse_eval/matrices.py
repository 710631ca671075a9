"""`Rankings` and `Relevance`: what is evaluated and what it is evaluated against.

Everything that enters the kernels is checked and cast here, once, and nowhere else. What a caller
passes in is never changed; where its dtype fits already it is shared, not copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast, get_args

import numpy as np
from scipy import sparse

from .errors import InvalidDataError
from .formats import sound
from .kernels.catalogue import popular_unseen
from .kernels.lists import (
    check_rows,
    find_repeat,
    find_repeat_in_rows,
    order_by_position,
    rank_scores,
)
from .options import check_number, check_whole
from .parallel import for_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd
    from numpy.typing import ArrayLike, NDArray

    from .datasets import Interactions

__all__ = [
    "Rankings",
    "Relevance",
    "Ties",
    "canonical_csr",
    "check_parts",
    "check_ties",
    "last_positions",
    "order_rows",
    "place",
    "repeated_item",
    "train_csr",
]

Ties = Literal["item", "item_descending", "average"]
_MAX_ITEMS = np.iinfo(np.int32).max

#: Rows checked at once: a check is so quick that sharing fewer between threads costs more.
_CHECKED_ROWS = 20_000


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Rankings:
    """Each user's ranked list, its positions explicit.

    Make one with `from_topk`, `from_positions`, `from_scores` or `from_frame`. A list may have
    gaps: an item keeps its position though others of the list are unknown.

    Attributes
    ----------
    shape : tuple of int
        (number of users, number of items).
    indptr : ndarray of int64, shape (n_users + 1,)
        Where each user's list starts and ends in `items`.
    items : ndarray of int32
        Item ids in the order of their positions.
    gapped_positions : ndarray of int32 or None
        1-based positions, ascending within a list; None where every list is 1, 2, 3, … without
        gaps, which need not be stored.
    lengths : ndarray of int64, shape (n_users,)
        Each user's list length: the last position of the list, 0 for a user without one.
    last_positions : ndarray of int32 or None
        With ``ties="average"``: the last position that the item may take, `positions` holding the
        first. None where every position is certain.
    users, items_index : pandas.Index or None
        Labels of rows and columns, where they are known.
    """

    shape: tuple[int, int]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    gapped_positions: NDArray[np.int32] | None
    lengths: NDArray[np.int64]
    last_positions: NDArray[np.int32] | None = None
    users: pd.Index[Any] | None = None
    items_index: pd.Index[Any] | None = None

    @classmethod
    def from_topk(
        cls,
        ids: ArrayLike,
        users: ArrayLike | None = None,
        shape: tuple[int, int] | None = None,
    ) -> Rankings:
        """Make lists from an array of item ids, best first.

        Parameters
        ----------
        ids : array_like of int, shape (n_lists, k)
            Row by row the ids of a list; -1 is padding, and an id after it keeps its position.
        users : array_like of int, shape (n_lists,), optional
            The user (row of the validation matrix) of each list. By default list i is user i's.
        shape : tuple of int, optional
            (number of users, number of items). By default as small as the ids allow.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If `ids` is not a two-dimensional array of integers; an id lies outside ``shape[1]``
            or stands in a list twice; `users` has another length, lies outside ``shape[0]`` or
            names a user twice.

        Examples
        --------
        >>> from sparse_eval import Rankings
        >>> rankings = Rankings.from_topk([[7, 2, 5], [1, -1, -1]], shape=(2, 10))
        >>> rankings
        <Rankings: 2 lists of up to 3 items, 2 users × 10 items>
        >>> rankings.to_positions().toarray()[0]
        array([0, 0, 2, 0, 0, 3, 0, 1, 0, 0], dtype=int32)
        """
        table = _integers(ids, "ids", dimensions=2)
        rows = (
            np.arange(len(table), dtype=np.int64)
            if users is None
            else _integers(users, "users", dimensions=1).astype(np.int64)
        )
        if len(rows) != len(table):
            raise InvalidDataError(
                f"users has {len(rows)} entries, but ids has {len(table)} lists; give one user "
                "for each list"
            )
        if shape is None:
            shape = (int(rows.max(initial=-1)) + 1, int(table.max(initial=-1)) + 1)
        n_users, n_items = _shape(shape)
        if len(rows) and not (rows.min() >= 0 and rows.max() < n_users):
            bad = int(np.flatnonzero((rows < 0) | (rows >= n_users))[0])
            raise InvalidDataError(
                f"users[{bad}] is {rows[bad]}, but there are {n_users} users (0 to {n_users - 1})"
            )
        ascending = bool((rows[1:] > rows[:-1]).all())
        if not ascending:
            order = np.argsort(rows, kind="stable")
            _check_users_once(rows, order)

        least, most = int(table.min(initial=0)), int(table.max(initial=-1))
        if least < -1 or most >= n_items:
            row, column = np.argwhere((table < -1) | (table >= n_items))[0]
            raise InvalidDataError(
                f"ids[{row}, {column}] (user {rows[row]}) is {table[row, column]}, but there are "
                f"{n_items} items (0 to {n_items - 1}, and -1 for padding)"
            )

        def check(first: int, last: int, fault: NDArray[np.int64]) -> None:
            find_repeat(first, last, table, fault)

        fault = _run_checked(check, len(table))
        if fault is not None:
            _, row, column = fault
            _raise_duplicate(rows[row], table[row, column])
        if not ascending:
            table, rows = table[order], rows[order]
        n_lists, k = table.shape
        items = np.ascontiguousarray(table, np.int32).reshape(-1)
        counts = np.zeros(n_users, np.int64)
        if least >= 0:
            counts[rows] = k
            return cls((n_users, n_items), _indptr(counts), items, None, counts)
        held = items >= 0
        counts[rows] = held.reshape(table.shape).sum(axis=1)
        indptr = _indptr(counts)
        positions = np.tile(np.arange(1, k + 1, dtype=np.int32), n_lists)[held]
        lengths = last_positions(indptr, positions)
        return cls((n_users, n_items), indptr, items[held], positions, lengths)

    @classmethod
    def from_positions(cls, positions: Any) -> Rankings:
        """Make lists from a prediction-position matrix.

        Parameters
        ----------
        positions : scipy sparse matrix or array, shape (n_users, n_items)
            The stored value is the item's 1-based position in the user's list. Any numeric dtype
            whose values are whole numbers; a list may have gaps.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If a position is below 1 (an explicit zero too), fractional, not finite or repeated in
            its row, or a (user, item) pair is stored twice. Row and column are named.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> from sparse_eval import Rankings
        >>> Rankings.from_positions(csr_matrix([[0, 2, 1], [3, 0, 0]]))
        <Rankings: 2 lists of up to 3 items, 2 users × 3 items>
        """
        matrix = canonical_csr(positions, "the position matrix", sum_duplicates=False)
        data = matrix.data
        if data.dtype.kind == "f":
            whole = np.isfinite(data) & (data == np.floor(data))
        else:
            whole = np.ones(len(data), bool)
        valid = whole & (data >= 1) & (data <= _MAX_ITEMS)
        if not valid.all():
            entry = int(np.flatnonzero(~valid)[0])
            row, column = place(matrix, entry)
            hint = (
                "positions are 1-based: add 1 to 0-based ones"
                if data[entry] == 0
                else f"expected a whole number from 1 to {_MAX_ITEMS}"
            )
            raise InvalidDataError(
                f"the position in row {row}, column {column} is {data[entry]}; {hint}"
            )
        indptr = matrix.indptr.astype(np.int64)
        columns = _int32(matrix.indices)
        items, ordered, fault = order_rows(indptr, columns, data.astype(np.int32))
        if fault is not None:
            row, entry = fault
            raise InvalidDataError(
                f"row {row} has position {ordered[entry]} twice (columns {items[entry - 1]} and "
                f"{items[entry]}); each position of a list can be taken once"
            )
        return cls(matrix.shape, indptr, items, ordered, last_positions(indptr, ordered))

    @classmethod
    def from_scores(
        cls,
        scores: Any,
        k: int | None = None,
        seen: Any = None,
        ties: Ties = "item",
    ) -> Rankings:
        """Make lists from scores: every user's `k` best items.

        Parameters
        ----------
        scores : array_like or scipy sparse matrix, shape (n_users, n_items)
            Higher is better. Of a sparse matrix the stored entries are the candidates, explicit
            zeros too; an item that is not stored is not recommended.
        k : int, optional
            List length, at least 1; every candidate by default.
        seen : scipy sparse matrix, shape (n_users, n_items), optional
            Items to leave out of each list: every stored entry.
        ties : {"item", "item_descending", "average"}
            Equal scores: the lower item id first; the higher item id first; or the expectation
            over random orders of the tied items, which the gain family (cg, dcg, idcg, ndcg) has.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If a score is not finite (row and column are named), a pair is stored twice, shapes
            differ, `k` is below 1 or `ties` is something else.

        Examples
        --------
        >>> from sparse_eval import Rankings
        >>> Rankings.from_scores([[0.1, 0.9, 0.9]], k=2).items
        array([1, 2], dtype=int32)
        """
        ties = check_ties(ties)
        limit = check_whole("k", k, 1) if k is not None else None
        row_of = _ScoreRows(scores)
        n_users, n_items = row_of.shape
        hidden = None
        if seen is not None:
            hidden = canonical_csr(seen, "seen", sum_duplicates=True)
            if hidden.shape != (n_users, n_items):
                raise InvalidDataError(
                    f"seen has shape {hidden.shape}, scores have {(n_users, n_items)}; they must "
                    "agree"
                )
        items: list[NDArray[np.int32]] = []
        first: list[NDArray[np.int32]] = []
        last: list[NDArray[np.int32]] = []
        counts = np.zeros(n_users, np.int64)
        lengths = np.zeros(n_users, np.int64)
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
            k_user = n if limit is None else min(limit, n)
            size = rank_scores(candidates, values, n, k_user, ties == "average", *buffers)
            counts[user] = size
            lengths[user] = k_user
            for collected, buffer in zip((items, first, last), buffers, strict=True):
                collected.append(buffer[:size].copy())
        empty = [np.empty(0, np.int32)]
        return cls(
            (n_users, n_items),
            _indptr(counts),
            np.concatenate(items or empty),
            np.concatenate(first or empty) if ties == "average" else None,
            lengths,
            np.concatenate(last or empty) if ties == "average" else None,
        )

    @classmethod
    def from_frame(
        cls,
        df: pd.DataFrame,
        user: str = "user",
        item: str = "item",
        rank: str | None = None,
        score: str | None = None,
        ties: Ties | None = None,
    ) -> Rankings:
        """Make lists from a frame with one row for each recommended item.

        Ids may be any hashable values; `evaluate` matches them with those of a `Relevance` that
        was made by `Relevance.from_frame`.

        Parameters
        ----------
        df : pandas.DataFrame
            One row for each (user, item).
        user, item : str
            The columns of the ids.
        rank : str, optional
            The column of 1-based positions.
        score : str, optional
            The column of scores, higher is better. Exactly one of `rank` and `score` must be
            given.
        ties : {"item", "item_descending", "average"}, optional
            Equal scores, as in `from_scores`; "item" by default. Labels stand for ids: numbers by
            value, text by code points. Of ids that are text "item_descending" is what trec_eval
            does. A `rank` leaves no ties.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If a column is missing, neither or both of `rank` and `score` are given, `ties` is
            given with `rank`, a pair is there twice, or a value is what `from_positions` or
            `from_scores` refuse.

        Examples
        --------
        >>> import pandas as pd
        >>> from sparse_eval import Rankings
        >>> df = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "rank": [2, 1]})
        >>> Rankings.from_frame(df, rank="rank")
        <Rankings: 1 lists of up to 2 items, 1 users × 2 items>
        """
        # pandas is imported where frames are: it takes longer than evaluating does.
        from .datasets.interactions import column_of
        from .datasets.labels import encode

        if (rank is None) == (score is None):
            raise InvalidDataError("give exactly one of rank= and score=, the column to order by")
        if rank is not None and ties is not None:
            raise InvalidDataError(
                f"ties is {ties!r}, but a rank can be taken once; give ties= with score= only"
            )
        column = rank if rank is not None else score
        order = check_ties("item" if ties is None else ties)
        rows, user_labels = encode(column_of(df, user), "user")
        columns, item_labels = encode(column_of(df, item), "item")
        values = _frame_values(df, user, item, column, whole=rank is not None)
        matrix = sparse.coo_matrix(
            (values, (rows, columns)), shape=(len(user_labels), len(item_labels))
        )
        _check_pairs_once(matrix, user_labels, item_labels)
        if rank is not None:
            _check_ranks_once(rows, values, user_labels)
            plain = cls.from_positions(matrix)
        else:
            plain = cls.from_scores(matrix.tocsr(), ties=order)
        return replace(plain, users=user_labels, items_index=item_labels)

    @classmethod
    def from_popularity(cls, train: Any, k: int, users: ArrayLike | None = None) -> Rankings:
        """Recommend everybody the most popular items that they have not seen.

        Parameters
        ----------
        train : scipy sparse matrix or array, shape (n_users, n_items)
            An item's popularity is the number of users with an entry other than zero; equally
            popular items come by id. Every stored entry, an explicit zero too, is seen.
        k : int
            List length, at least 1.
        users : array_like of int, optional
            Rows of `train` that get a list; all of them by default.

        Returns
        -------
        Rankings
            For all users of `train`, those without a list included. A list is shorter than `k`
            where a user has seen all other items.

        Raises
        ------
        InvalidDataError
            If `train` is no sparse matrix, `k` is below 1, or a user lies outside of `train`.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> from sparse_eval import Rankings
        >>> popular = Rankings.from_popularity(csr_matrix([[1, 0, 0], [1, 1, 0], [0, 1, 0]]), k=2)
        >>> popular.items
        array([1, 2, 2, 0, 2], dtype=int32)
        """
        matrix = train_csr(train)
        k = min(check_whole("k", k, 1), max(matrix.shape[1], 1))
        rows = np.arange(matrix.shape[0]) if users is None else _integers(users, "users", 1)
        if len(rows) and not (rows.min() >= 0 and rows.max() < matrix.shape[0]):
            raise InvalidDataError(
                f"users name row {rows.max() if rows.min() >= 0 else rows.min()}, but train has "
                f"{matrix.shape[0]} users"
            )
        counts = np.bincount(matrix.indices[matrix.data != 0], minlength=matrix.shape[1])
        order = np.argsort(-counts, kind="stable").astype(np.int32)
        indptr, items = matrix.indptr.astype(np.int64), _int32(matrix.indices)
        ids = np.empty((matrix.shape[0], k), np.int32)

        def fill(first: int, last: int) -> None:
            popular_unseen(order, indptr[first : last + 1], items, ids[first:last])

        for_blocks(fill, matrix.shape[0])
        return cls.from_topk(ids[rows], rows, matrix.shape)

    @property
    def positions(self) -> NDArray[np.int32]:
        """1-based position of each of `items`; with ``ties="average"`` the first it may take."""
        if self.gapped_positions is not None:
            return self.gapped_positions
        before = np.repeat(self.indptr[:-1], np.diff(self.indptr))
        return (np.arange(1, len(self.items) + 1) - before).astype(np.int32)

    def to_positions(self) -> sparse.csr_matrix:
        """Return the prediction-position matrix.

        Returns
        -------
        csr_matrix of int32, shape (n_users, n_items)
            Canonical; the stored value is the 1-based position.

        Raises
        ------
        InvalidDataError
            If positions are uncertain (``ties="average"``).
        """
        if self.last_positions is not None:
            raise InvalidDataError(
                'lists with ties="average" have no certain positions; use ties="item"'
            )
        matrix = sparse.csr_matrix(
            (self.positions, self.items, self.indptr), shape=self.shape, copy=True
        )
        matrix.sort_indices()
        return matrix

    def __repr__(self) -> str:
        lists = int(np.count_nonzero(self.lengths))
        return (
            f"<Rankings: {lists} lists of up to {self.lengths.max(initial=0)} items, "
            f"{self.shape[0]} users × {self.shape[1]} items>"
        )


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Relevance:
    """Each user's relevant items and their gains.

    Make one with `from_csr` or `from_frame`.

    Attributes
    ----------
    shape : tuple of int
        (number of users, number of items).
    indptr : ndarray of int64, shape (n_users + 1,)
        Where each user's row starts and ends in `items` and `gains`.
    items : ndarray of int32
        Item ids, ascending within a row.
    gains : ndarray of float64
        At least 0. An item with gain 0 is known to be not relevant.
    binary : bool
        Whether every gain is 1.
    users, items_index : pandas.Index or None
        Labels of rows and columns, where they are known.
    """

    shape: tuple[int, int]
    indptr: NDArray[np.int64]
    items: NDArray[np.int32]
    gains: NDArray[np.float64]
    binary: bool = False
    users: pd.Index[Any] | None = None
    items_index: pd.Index[Any] | None = None

    @classmethod
    def from_csr(
        cls,
        matrix: Any,
        threshold: float | None = None,
        users: Any = None,
        items: Any = None,
    ) -> Relevance:
        """Make relevance from a validation matrix.

        Parameters
        ----------
        matrix : scipy sparse matrix or array, shape (n_users, n_items)
            The stored value is the gain; any real dtype. An explicit zero is not relevant. A pair
            that is stored twice is summed, as SciPy does.
        threshold : float, optional
            Values below it are not relevant. By default any value above 0 is.
        users, items : sequence of hashable, optional
            Labels of the rows and columns.

        Returns
        -------
        Relevance

        Raises
        ------
        InvalidDataError
            If a gain is negative or not finite (row and column are named), `threshold` is not a
            positive number or above every gain, or the labels do not fit the shape.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> from sparse_eval import Relevance
        >>> Relevance.from_csr(csr_matrix([[3, 0, 1], [0, 5, 2]]), threshold=2)
        <Relevance: 3 relevant items of 2 users, 2 users × 3 items>
        """
        csr = canonical_csr(matrix, "the validation matrix", sum_duplicates=True)
        if len(csr.data) < matrix.nnz:
            _check_summands(matrix)
        gains = csr.data.astype(np.float64, copy=False)
        least, most = (gains.min(), gains.max()) if len(gains) else (1.0, 1.0)
        if not (least >= 0 and most < np.inf):  # a NaN is neither
            entry = int(np.flatnonzero(~(np.isfinite(gains) & (gains >= 0)))[0])
            row, column = place(csr, entry)
            raise InvalidDataError(
                f"the gain in row {row}, column {column} of the validation matrix is "
                f"{gains[entry]}; expected a finite number of at least 0"
            )
        binary = bool(least == most == 1.0)
        if threshold is not None:
            threshold = check_number("threshold", threshold, 0, open_end=True)
            if len(gains) and 0 < most < threshold:
                raise InvalidDataError(
                    f"threshold is {threshold}, above every gain (the largest is {most}), so that "
                    "no item would be relevant; expected a threshold that some gain reaches"
                )
            gains = np.where(gains >= threshold, gains, 0.0)
            binary = binary and threshold <= 1.0
        return cls(
            csr.shape,
            csr.indptr.astype(np.int64, copy=False),
            _int32(csr.indices),
            np.ascontiguousarray(gains),
            binary,
            _labels(users, csr.shape[0], "users"),
            _labels(items, csr.shape[1], "items"),
        )

    @classmethod
    def from_frame(
        cls,
        df: pd.DataFrame,
        user: str = "user",
        item: str = "item",
        gain: str | None = None,
        threshold: float | None = None,
        event: str | None = None,
        gains: Mapping[Any, float] | None = None,
        combine: Literal["max", "sum"] | None = None,
    ) -> Relevance:
        """Make relevance from a frame with one row for each relevant item, or for each event.

        Parameters
        ----------
        df : pandas.DataFrame
            The rows; there may be several of one (user, item).
        user, item : str
            The columns of the ids, any hashable values.
        gain : str, optional
            The column of gains; 1 for each row by default.
        threshold : float, optional
            As in `from_csr`; it is compared with what `combine` makes of a pair's rows.
        event : str, optional
            Instead of `gain`, a column with the names of events.
        gains : mapping, optional
            The gain of each event, such as ``{"view": 1, "cart": 2, "purchase": 3}``. With a gain
            of 0 an event is known and not relevant.
        combine : {"max", "sum"}, optional
            What the rows of one (user, item) are together: the largest of their gains, or the
            sum. By default "max" for events, because a purchase is no more of one for the views
            before it, and "sum" otherwise.

        Returns
        -------
        Relevance

        Raises
        ------
        InvalidDataError
            If the frame is empty; a column, an id or an event is missing; an event has no gain;
            only one of `event` and `gains` is given, or `gain` with them; a gain or `threshold`
            is what `from_csr` refuses; or `combine` is something else.

        Examples
        --------
        >>> import pandas as pd
        >>> from sparse_eval import Relevance
        >>> df = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "clicks": [2, 1]})
        >>> Relevance.from_frame(df, gain="clicks")
        <Relevance: 2 relevant items of 1 users, 1 users × 2 items>
        >>> events = ["view", "buy", "view"]
        >>> df = pd.DataFrame({"user": ["a"] * 3, "item": [*"xxy"], "event": events})
        >>> Relevance.from_frame(df, event="event", gains={"view": 1, "buy": 3}).gains
        array([3., 1.])
        """
        from .datasets import Interactions

        if combine not in (None, "max", "sum"):
            raise InvalidDataError(f"combine is {combine!r}; expected 'max' or 'sum'")
        if (event is None) != (gains is None):
            raise InvalidDataError(
                "give event= (a column) and gains= (the gain of each event) together, or none of "
                "them"
            )
        if event is not None and gain is not None:
            raise InvalidDataError(
                "give gain= (a column of gains) or event= with gains=, not both of them"
            )
        pairs = Interactions.from_frame(df, user, item, gain)
        if gains is not None:
            pairs = replace(pairs, values=_event_gains(df, user, event, gains))
        if combine == "max" or (combine is None and event is not None):
            pairs = _largest(pairs)
        return cls.from_csr(pairs.matrix(), threshold, pairs.users, pairs.items)

    @property
    def n_relevant(self) -> NDArray[np.int64]:
        """Number of relevant items (gain above 0) of each user, shape (n_users,)."""
        before = np.concatenate(([0], np.cumsum(self.gains > 0, dtype=np.int64)))
        return np.diff(before[self.indptr])

    def __repr__(self) -> str:
        n = self.n_relevant
        return (
            f"<Relevance: {n.sum()} relevant items of {np.count_nonzero(n)} users, "
            f"{self.shape[0]} users × {self.shape[1]} items>"
        )


def order_rows(
    indptr: NDArray[np.int64], columns: NDArray[np.int32], positions: NDArray[np.int32]
) -> tuple[NDArray[np.int32], NDArray[np.int32], tuple[int, int] | None]:
    """Put the entries of each row in the order of their positions.

    Returns the columns, the positions, and the row and entry of one whose position is not the
    first of its kind in the row, or None.
    """
    items, ordered = np.empty((2, len(positions)), np.int32)

    def order(first: int, last: int, fault: NDArray[np.int64]) -> None:
        order_by_position(first, last, indptr, columns, positions, items, ordered, fault)

    fault = _run_checked(order, len(indptr) - 1)
    return items, ordered, None if fault is None else fault[1:]


def repeated_item(indptr: NDArray[np.int64], items: NDArray[np.int32]) -> tuple[int, int] | None:
    """Return the row and entry of an item that is in its row twice, or None."""

    def check(first: int, last: int, fault: NDArray[np.int64]) -> None:
        find_repeat_in_rows(first, last, indptr, items, fault)

    fault = _run_checked(check, len(indptr) - 1)
    return None if fault is None else fault[1:]


def last_positions(indptr: NDArray[np.int64], positions: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return each row's last position, 0 for an empty row."""
    lengths = np.zeros(len(indptr) - 1, np.int64)
    filled = indptr[1:] > indptr[:-1]
    lengths[filled] = positions[indptr[1:][filled] - 1]
    return lengths


def check_ties(ties: str) -> Ties:
    """Return `ties`, or raise `InvalidDataError` where it is no way to order equal scores."""
    if ties not in get_args(Ties):
        raise InvalidDataError(f"ties is {ties!r}; expected 'item', 'item_descending' or 'average'")
    return cast(Ties, ties)


def canonical_csr(matrix: Any, name: str, *, sum_duplicates: bool) -> Any:
    """Return `matrix` as a CSR whose rows ascend strictly, checked, without changing it.

    What is stored twice is summed, or refused where a sum has no meaning.
    """
    if not sparse.issparse(matrix):
        raise InvalidDataError(
            f"{name} is a {type(matrix).__name__}; expected a scipy sparse matrix, such as "
            "scipy.sparse.csr_matrix(x) of a dense array"
        )
    try:
        # A CSR, which is the common case, is checked below without a copy.
        csr = matrix if matrix.format == "csr" else sound(matrix)
    except InvalidDataError as error:
        raise InvalidDataError(f"{name}: {error}") from None
    if len(csr.shape) != 2:
        raise InvalidDataError(f"{name} has shape {csr.shape}; expected users × items")
    if csr.shape[1] > _MAX_ITEMS:
        raise InvalidDataError(f"{name} has {csr.shape[1]} columns; at most {_MAX_ITEMS} fit")
    if csr.format == "coo" and not sum_duplicates:
        _check_pairs_once(csr)  # converting would sum what is stored twice
    if sum_duplicates and csr.format != "csr":
        csr = csr.astype(np.float64)  # bool and int8 would overflow in the sum
    csr = csr.tocsr()
    check_parts(csr, name)
    kind, row, entry = _check_rows(csr) or (0, 0, 0)
    if kind == 3:
        raise InvalidDataError(f"{name} is not a CSR: the bounds of row {row} are out of order")
    if kind == 2:
        raise InvalidDataError(
            f"row {row} of {name} names column {csr.indices[entry]}, but it has "
            f"{csr.shape[1]} columns"
        )
    n_stored = csr.indptr[-1]  # the arrays may be longer than what indptr covers
    if kind == 1 or n_stored < len(csr.data):
        parts = (csr.data[:n_stored], csr.indices[:n_stored], csr.indptr)
        csr = sparse.csr_matrix(parts, shape=csr.shape, copy=True)
    if kind == 1:
        csr.sort_indices()
        if sum_duplicates:
            csr = csr.astype(np.float64)
            csr.sum_duplicates()
        elif fault := _check_rows(csr):
            _raise_duplicate(fault[1], csr.indices[fault[2]])
    if csr.data.dtype == np.float16 or csr.data.dtype.itemsize > 8:
        csr = csr.astype(np.float64)
    return csr


def train_csr(train: Any) -> Any:
    """Return training data as `canonical_csr`, its values finite."""
    matrix = canonical_csr(train, "the train matrix", sum_duplicates=True)
    finite = np.isfinite(matrix.data)
    if not finite.all():
        entry = int(np.flatnonzero(~finite)[0])
        row, column = place(matrix, entry)
        raise InvalidDataError(
            f"the train matrix holds {matrix.data[entry]} in row {row}, column {column}; expected "
            "finite numbers"
        )
    return matrix


def check_parts(csr: Any, name: str) -> None:
    """Refuse a CSR whose parts no kernel could read."""
    widths = (np.dtype(np.int32), np.dtype(np.int64))
    parts = (csr.data, csr.indices, csr.indptr)
    if (
        any(type(part) not in (np.ndarray, np.memmap) or part.ndim != 1 for part in parts)
        or csr.indices.dtype not in widths
        or csr.indptr.dtype not in widths
        or len(csr.indptr) != csr.shape[0] + 1
        or csr.indptr[0] != 0
        or len(csr.indices) != len(csr.data)
    ):
        raise InvalidDataError(
            f"{name} is not a CSR: its data, indices and indptr do not fit together; make it anew "
            "with scipy.sparse.csr_matrix"
        )
    if csr.data.dtype.kind not in "biuf":
        raise InvalidDataError(f"{name} holds {csr.data.dtype}; expected real numbers")


def _check_rows(csr: Any) -> tuple[int, int, int] | None:
    """Return (kind, row, entry) of what `check_rows` finds worst."""

    def check(first: int, last: int, fault: NDArray[np.int64]) -> None:
        check_rows(first, last, csr.indptr, csr.indices, csr.shape[1], fault)

    return _run_checked(check, csr.shape[0])


def _check_summands(matrix: Any) -> None:
    """Refuse a negative gain that a sum with others of its pair would hide."""
    coo = matrix.tocoo()
    negative = np.flatnonzero(coo.data < 0)
    if len(negative):
        at = negative[0]
        raise InvalidDataError(
            f"the gain in row {coo.row[at]}, column {coo.col[at]} of the validation matrix is "
            f"{coo.data[at]}, one of several stored for this pair; expected at least 0"
        )


def _check_pairs_once(matrix: Any, users: Any = None, items: Any = None) -> None:
    order = np.lexsort((matrix.col, matrix.row))
    rows, columns = matrix.row[order], matrix.col[order]
    repeated = np.flatnonzero((rows[1:] == rows[:-1]) & (columns[1:] == columns[:-1]))
    if len(repeated):
        row, column = rows[repeated[0]], columns[repeated[0]]
        _raise_duplicate(
            row if users is None else repr(users[row]),
            column if items is None else repr(items[column]),
        )


def _check_users_once(rows: NDArray[np.int64], order: NDArray[np.intp]) -> None:
    ordered = rows[order]
    repeated = np.flatnonzero(ordered[1:] == ordered[:-1])
    if len(repeated):
        first, second = order[repeated[0]], order[repeated[0] + 1]
        raise InvalidDataError(
            f"user {rows[first]} has two lists (rows {first} and {second} of ids); expected one "
            "list for each user"
        )


def _raise_duplicate(user: object, item: object) -> NoReturn:
    raise InvalidDataError(
        f"user {user} has item {item} twice in one list; remove the repetition, because a "
        "repeated hit would be counted twice"
    )


def place(csr: Any, entry: int) -> tuple[int, int]:
    """Return row and column of a stored entry of a CSR."""
    row = int(np.searchsorted(csr.indptr, entry, side="right")) - 1
    return row, int(csr.indices[entry])


def _indptr(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    indptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=indptr[1:])
    return indptr


def _int32(indices: NDArray[Any]) -> NDArray[np.int32]:
    return np.ascontiguousarray(indices, dtype=np.int32)  # in range: the columns were checked


def _run_checked(
    work: Callable[[int, int, NDArray[np.int64]], None], total: int
) -> tuple[int, int, int] | None:
    """Run a checking kernel over blocks of rows.

    Returns (kind, row, place) of a fault of the highest kind, the first of them, or None.
    """
    faults: list[tuple[int, int, int]] = []

    def block(first: int, last: int) -> None:
        fault = np.zeros(3, np.int64)
        work(first, last, fault)
        if fault[0]:
            faults.append((int(fault[0]), int(fault[1]), int(fault[2])))

    for_blocks(block, total, block=_CHECKED_ROWS)
    return min(faults, key=lambda fault: (-fault[0], fault[1])) if faults else None


def _integers(values: ArrayLike, name: str, dimensions: int) -> NDArray[np.integer[Any]]:
    _refuse_mask(values, name)
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths
        array = np.empty(0, object)
    if array.size == 0 and array.ndim == dimensions:
        array = array.astype(np.int64)
    if array.ndim != dimensions or array.dtype.kind not in "iu":
        wanted = "two-dimensional (lists × k, padded with -1)" if dimensions == 2 else "flat"
        raise InvalidDataError(
            f"{name} is an array of {array.dtype} with shape {array.shape}; expected a {wanted} "
            "array of integers"
        )
    if array.dtype == np.uint64 and array.size and array.max() > _MAX_ITEMS:
        raise InvalidDataError(f"{name} holds {array.max()}; expected at most {_MAX_ITEMS}")
    # Two dtypes are enough: a kernel is compiled for each that it meets.
    return np.ascontiguousarray(array, np.int32 if array.dtype == np.int32 else np.int64)


def _frame_values(
    df: pd.DataFrame, user: str, item: str, column: Any, *, whole: bool
) -> NDArray[np.float64]:
    """Return a column of ranks (`whole`) or scores, or name the first row that holds none."""
    from .datasets.interactions import column_of

    given = column_of(df, column)
    if given.dtype.kind not in "biuf":
        raise InvalidDataError(f"column {column!r} holds {given.dtype}; expected numbers")
    if not whole and given.dtype.kind in "iu":
        kind = np.uint64 if given.dtype.kind == "u" else np.int64
        _check_whole_scores(given.dropna().to_numpy(kind))
    values: NDArray[np.float64] = given.to_numpy(np.float64, na_value=np.nan)
    valid = np.isfinite(values)
    if whole:
        valid &= (values >= 1) & (values <= _MAX_ITEMS) & (values == np.floor(values))
    if not valid.all():
        row = int(np.flatnonzero(~valid)[0])
        expected = "a whole number of at least 1" if whole else "a finite number"
        raise InvalidDataError(
            f"row {row} of the frame, column {column!r} (user {df[user].iloc[row]!r}, item "
            f"{df[item].iloc[row]!r}): expected {expected}, found {values[row]:g}"
        )
    return values


def _event_gains(
    df: pd.DataFrame, user: str, event: Any, gains: Mapping[Any, float]
) -> NDArray[np.float64]:
    """Return the gain of each row's event."""
    from .datasets.interactions import column_of
    from .datasets.labels import at, encode

    if not isinstance(gains, Mapping):
        raise InvalidDataError(
            f"gains is a {type(gains).__name__}; expected a mapping of events to gains, such as "
            "{'view': 1, 'purchase': 3}"
        )
    worth = {name: check_number(f"gains[{name!r}]", gain, 0) for name, gain in gains.items()}
    column = column_of(df, event)

    def fault(row: int, what: str) -> InvalidDataError:
        user_label = at(df[user], row)
        return InvalidDataError(
            f"row {row} of the frame, column {event!r} (user {user_label!r}): {what}, or leave "
            "such rows out"
        )

    missing = column.isna().to_numpy()
    if missing.any():
        raise fault(int(missing.argmax()), "the event is missing; name it")
    codes, index = encode(column, "event")
    names = index.tolist()
    unknown = [code for code, name in enumerate(names) if name not in worth]
    if unknown:
        row = int(np.isin(codes, unknown).argmax())
        name = names[codes[row]]
        near = get_close_matches(str(name), [str(known) for known in worth], n=1)
        hint = f" (did you mean {near[0]!r}?)" if near else ""
        raise fault(
            row,
            f"the event {name!r} has no gain{hint}; add it to gains, with 0 if it is worth nothing",
        )
    return np.array([worth[name] for name in names], np.float64)[codes]


def _largest(pairs: Interactions) -> Interactions:
    """Return each (user, item) once, with the largest of its values."""
    from .datasets.coordinates import sort_pairs

    order, starts = sort_pairs(pairs.user_codes, pairs.item_codes, pairs.n_items)
    once = order[starts]
    return replace(
        pairs,
        user_codes=pairs.user_codes[once],
        item_codes=pairs.item_codes[once],
        values=np.maximum.reduceat(pairs.values[order], starts),
    )


def _check_ranks_once(rows: NDArray[Any], ranks: NDArray[np.float64], users: pd.Index[Any]) -> None:
    order = np.lexsort((ranks, rows))
    twice = (np.diff(rows[order]) == 0) & (np.diff(ranks[order]) == 0)
    if twice.any():
        first, second = order[int(twice.argmax())], order[int(twice.argmax()) + 1]
        raise InvalidDataError(
            f"rows {min(first, second)} and {max(first, second)} of the frame give user "
            f"{users[rows[first]]!r} the rank {ranks[first]:g} twice; a rank can be taken once"
        )


def _check_whole_scores(scores: NDArray[Any]) -> None:
    """Refuse whole numbers of which float64 would make others, and with it ties."""
    if scores.dtype.kind in "iu" and scores.dtype.itemsize == 8 and scores.size:
        for score in (scores.min(), scores.max()):
            if abs(int(score)) > 2**53:
                raise InvalidDataError(
                    f"scores hold {score}, a whole number beyond 2^53, which float64 cannot tell "
                    "from its neighbours; give ranks, or scores as floats"
                )


def _refuse_mask(values: object, name: str) -> None:
    if isinstance(values, np.ma.MaskedArray):  # np.asarray would uncover what it hides
        raise InvalidDataError(f"{name} is a masked array; expected a plain one, see .filled()")


def _shape(shape: tuple[int, int]) -> tuple[int, int]:
    if not isinstance(shape, tuple | list) or len(shape) != 2:
        raise InvalidDataError(f"shape is {shape!r}; expected (number of users, number of items)")
    return check_whole("shape[0]", shape[0], 0), check_whole("shape[1]", shape[1], 0, _MAX_ITEMS)


def _labels(labels: Any, n: int, name: str) -> pd.Index[Any] | None:
    if labels is None:
        return None
    import pandas as pd  # only where labels are used: importing it costs more than evaluating

    from .datasets.labels import check_labels

    try:
        index = (
            labels if isinstance(labels, pd.Index) else pd.Index(list(labels), tupleize_cols=False)
        )
        set(index)  # raises where a label cannot be hashed
        index = check_labels(index, name.removesuffix("s"))
    except InvalidDataError:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidDataError(f"{name} cannot be labels: {error}") from None
    if len(index) != n:
        raise InvalidDataError(f"{name} has {len(index)} labels; the matrix has {n} {name}")
    return index


class _ScoreRows:
    """Give the candidates of a user, ids ascending, and their scores as float64, checked."""

    def __init__(self, scores: Any) -> None:
        if sparse.issparse(scores):
            self.matrix: Any = canonical_csr(scores, "the score matrix", sum_duplicates=False)
            finite = np.isfinite(self.matrix.data)
            if not finite.all():
                entry = int(np.flatnonzero(~finite)[0])
                self._refuse(*place(self.matrix, entry), self.matrix.data[entry])
        else:
            _refuse_mask(scores, "scores")
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
        _check_whole_scores(stored)
        self.shape: tuple[int, int] = self.matrix.shape

    def __call__(self, user: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        if sparse.issparse(self.matrix):
            row = slice(self.matrix.indptr[user], self.matrix.indptr[user + 1])
            return (
                _int32(self.matrix.indices[row]),
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
