"""`Rankings`: the ranked list of each user, with explicit positions; repeated items are errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast, get_args

import numpy as np
from scipy import sparse

from ..core.arguments import check_choice, check_flag, check_whole, show_spelling
from ..core.arrays import as_array, check_exact, describe
from ..core.csr import (
    MAX_ITEMS,
    as_int32,
    canonical_csr,
    check_entries,
    find_entries,
    find_fault,
    gather,
    group_rows,
    indptr_from_counts,
    integer_array,
    order_within,
    plain_matrix,
    raise_repeated_item,
    row_numbers,
    sort_distinct,
    training_csr,
)
from ..errors import InvalidDataError
from ..kernels.rows import find_repeat, order_by_position
from .axes import label_of
from .encoded_rows import read_rows
from .input_files import naming
from .labelled import UserRows, labels_of, matrix_labels
from .lists_by_user import pad_lists, rows_by_user
from .tables import RankingsScan, named, open_table
from .training import popular_lists

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import ArrayLike

    from ..core.types import AnyArray, Floats, Integers, Items, PathLike
    from .axes import Axis
    from .columns import TableColumns
    from .encoded_rows import EncodedRows
    from .relevance import Relevance
    from .tables import ArrowStream, Frame, FrameLike, InputTable


#: How equal scores are ordered.
Ties = Literal["item", "item_descending", "average", "pessimistic"]

_SCORE = "a finite number, or -inf for an item not to recommend"

#: The scores of an array that are read at once.
_SCORES_AT_ONCE = 2**20

#: The hint of errors about positions, which may be scores.
_MAY_BE_SCORES = ". If the matrix contains scores, use Rankings.from_scores(matrix)"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Rankings(UserRows):
    """The ranked list of each user, with explicit positions.

    Make one with `from_topk`, `from_positions`, `from_scores` or `from_frame`. A list may have
    gaps: an item keeps its position if items above it are unknown. A gap counts as a listed
    item that is not relevant, and the last position is the length of the list. `evaluate` warns if
    no list has a position 1, except if the lists hold only hits, as from `sparse_eval.ranks`.

    Attributes
    ----------
    shape : tuple of int
        (number of users, number of items).
    indptr : ndarray of int64, shape (n_users + 1,)
        Where each user's list starts and ends in `items`.
    items : ndarray of int32
        Item ids in the order of their positions.
    gapped_positions : ndarray of int32 or None
        1-based positions, ascending within a list; None if every list is 1, 2, 3, … without
        gaps, which need not be stored.
    lengths : ndarray of int64, shape (n_users,)
        Each user's list length: the last position of the list, 0 for a user without one.
    last_positions : ndarray of int32 or None
        The last position that an item may take if equal scores have no fixed order
        (``ties="average"`` and ``"pessimistic"``); `positions` then holds the first. None if every
        position is certain.
    relevant_last : bool
        With ``ties="pessimistic"``: relevant items come behind others of equal score.
    users, items_index : Axis or None
        Labels of rows and columns, if they are known.
    """

    shape: tuple[int, int]
    indptr: Integers
    items: Items
    gapped_positions: Items | None
    lengths: Integers
    last_positions: Items | None = None
    users: Axis | None = None
    items_index: Axis | None = None
    relevant_last: bool = False
    may_be_ids: bool = False  # neither a shape nor labels tell if `items` are columns or ids

    _of_entries: ClassVar = ("items", "gapped_positions", "last_positions")
    _of_users: ClassVar = ("lengths",)
    _ascending: ClassVar = False

    def __len__(self) -> int:
        """Return the number of users."""
        return self.shape[0]

    @classmethod
    def from_topk(
        cls,
        ids: Any,
        *,
        users: Any = None,
        items: Any = None,
        user_rows: ArrayLike | None = None,
        shape: tuple[int, int] | None = None,
    ) -> Rankings:
        """Make lists from item ids, best first.

        Parameters
        ----------
        ids : array_like of int, shape (n_lists, k), list of lists, or mapping
            Row by row the numbers of the items; -1 is padding, and an item after it keeps its
            position. Lists of lists may be of different lengths, and hold ids such as text in
            place of numbers. A mapping has the ids of each user's items in a list, or their scores
            by id.
        users : sequence of hashable, shape (n_lists,), optional
            The label of each list's user.
        items : sequence of hashable, optional
            The labels of the items, in the order of the numbers in `ids`.
        user_rows : array_like of int, shape (n_lists,), optional
            Instead of `users` the row of the validation matrix that each list is for. By default
            list i is for row i.
        shape : tuple of int, optional
            (number of users, number of items). By default as small as the ids and labels allow.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If `ids` is not a two-dimensional array of integers, or an id is outside ``shape[1]`` or
            occurs twice in a list. If `user_rows` does not fit, names a user twice or is given with
            `users`. If labels are repeated or too few.

        Examples
        --------
        >>> from sparse_eval import Rankings
        >>> rankings = Rankings.from_topk([[7, 2, 5], [1, -1, -1]], shape=(2, 10))
        >>> rankings
        <Rankings: 2 lists of up to 3 items, 2 users × 10 items>
        >>> rankings.to_positions().toarray()[0]
        array([0, 0, 2, 0, 0, 3, 0, 1, 0, 0], dtype=int32)

        With labels, lists are matched with relevant items by user and item:

        >>> import pandas as pd
        >>> from sparse_eval import Relevance, evaluate
        >>> lists = Rankings.from_topk([[1, 0]], users=["ann"], items=["milk", "eggs"])
        >>> truth = Relevance.from_frame(pd.DataFrame({"user": ["ann"], "item": ["eggs"]}))
        >>> evaluate(lists, truth, "mrr")["mrr"]
        1.0
        """
        named = isinstance(ids, Mapping)
        padded, labels_of_items = pad_lists(None if named else ids)
        if (named and not (users is items is user_rows is None)) or (
            labels_of_items is not None and items is not None
        ):
            raise InvalidDataError("ids are labels already; omit users=, items= and user_rows=")
        if named:
            return cls.from_frame(rows_by_user(ids, "ids", "score"))
        if labels_of_items is not None:
            items = labels_of_items.marked(True)
        if users is not None and user_rows is not None:
            raise InvalidDataError("pass users= (labels) or user_rows= (rows), not both")
        table = integer_array(padded, "ids", dimensions=2)
        n_lists, k = table.shape
        rows: Any = np.arange(n_lists) if user_rows is None else user_rows
        rows = integer_array(rows, "user_rows", dimensions=1).astype(np.int64)
        if len(rows) != n_lists:
            raise InvalidDataError(
                f"user_rows has {len(rows)} entries, but ids has {n_lists} lists; pass one user "
                "for each list",
                argument="user_rows",
            )
        may_be_ids = shape is None and items is None
        if shape is None:
            items = items if items is None or hasattr(items, "__len__") else list(items)
            n_labels = 0 if items is None else len(items)
            shape = (int(rows.max(initial=-1)) + 1, max(int(table.max(initial=-1)) + 1, n_labels))
        if not isinstance(shape, tuple | list) or len(shape) != 2:
            raise InvalidDataError(
                f"shape is {shape!r}; expected (number of users, number of items)", argument="shape"
            )
        n_users, n_items = shape
        check_whole("shape[0]", n_users, 0)
        check_whole("shape[1]", n_items, 0, MAX_ITEMS)
        labels = matrix_labels(None, (n_users, n_items), users, items)
        rows = row_numbers(rows, "user_rows", n_users, "users")
        is_padded = _check_ids(table, rows, n_items)
        if not (rows[1:] > rows[:-1]).all():
            order = np.argsort(rows, kind="stable")
            table, rows = table[order], rows[order]
            repeated = np.flatnonzero(np.diff(rows) == 0)
            if len(repeated):
                first, second = order[repeated[0] : repeated[0] + 2]
                raise InvalidDataError(
                    f"user {rows[repeated[0]]} has two lists (rows {first} and {second} of ids); "
                    "expected one list for each user",
                    user=rows[repeated[0]],
                )
        columns = np.ascontiguousarray(table, np.int32).reshape(-1)
        counts = np.zeros(n_users, np.int64)
        counts[rows] = (table >= 0).sum(axis=1) if is_padded else k
        indptr = indptr_from_counts(counts)
        positions, lengths = None, counts
        if is_padded:
            held = columns >= 0
            columns = columns[held]
            positions = np.tile(np.arange(1, k + 1, dtype=np.int32), n_lists)[held]
            lengths = _last_positions(indptr, positions)
        arrays = indptr, columns, positions, lengths, None
        return cls((n_users, n_items), *arrays, *labels, may_be_ids=may_be_ids)

    @classmethod
    def from_positions(cls, positions: Any, *, users: Any = None, items: Any = None) -> Rankings:
        """Make lists from a prediction-position matrix.

        Parameters
        ----------
        positions : scipy sparse matrix or array, shape (n_users, n_items)
            The stored value is the item's 1-based position in the user's list. Any numeric dtype
            whose values are whole numbers; a list may have gaps.
        users, items : sequence of hashable, optional
            Labels of the rows and columns; by default those that the matrix knows.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If a position is below 1 (an explicit zero too), fractional, not finite or repeated in
            its row. If a (user, item) pair is stored twice; the error names row and column. If the
            labels do not fit the shape.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> from sparse_eval import Rankings
        >>> Rankings.from_positions(csr_matrix([[0, 2, 1], [3, 0, 0]]))
        <Rankings: 2 lists of up to 3 items, 2 users × 3 items>
        """
        matrix = canonical_csr(positions, "the position matrix", sum_duplicates=False)
        data = matrix.data
        valid = (data == np.floor(data)) & (data >= 1) & (data <= MAX_ITEMS)
        if not valid.all():
            expected = f"a whole number from 1 to {MAX_ITEMS} (add 1 to 0-based positions)"
            check_entries(matrix, valid, "the position", expected + _MAY_BE_SCORES)
        labels = matrix_labels(positions, matrix.shape, users, items)
        entries = np.ascontiguousarray(matrix.indices, np.int32), data.astype(np.int32)
        try:
            return cls._of_positions(matrix.indptr.astype(np.int64), *entries, matrix.shape, labels)
        except InvalidDataError as error:
            raise InvalidDataError(
                f"{error}{_MAY_BE_SCORES}; if it contains gains, pass it to evaluate second",
                row=error.row,
            ) from None

    @classmethod
    @show_spelling
    def from_scores(
        cls,
        scores: Any,
        *,
        k: int | None = None,
        train: Any = None,
        ties: Ties = "item",
        users: Any = None,
        items: Any = None,
    ) -> Rankings:
        """Make lists from scores: every user's `k` best items.

        Parameters
        ----------
        scores : array_like or scipy sparse matrix, shape (n_users, n_items)
            Higher is better; an item of minus infinity is not recommended. The stored entries of a
            sparse matrix are the candidates, explicit zeros too; other items are not recommended.
            Tensors in the memory of the CPU are read as they are.
        k : int, optional
            List length, at least 1; every candidate by default.
        train : scipy sparse matrix, shape (n_users, n_items), optional
            The items that users have seen, to leave out of each list: every stored entry.
        ties : {"item", "item_descending", "average", "pessimistic"}
            The order of equal scores: the lower or the higher item id first; the expectation over
            random orders; or the worst order. The expectation is for metrics that are sums over
            items. In the worst order, relevant items come last and the largest gain at the end.
        users, items : sequence of hashable, optional
            Labels of the rows and columns; by default the labels of the sparse matrix.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If a score is NaN or infinity (the error names row and column), or a pair is stored
            twice. If shapes differ, `k` is below 1, `ties` is unknown or the labels do not fit the
            shape. If a tensor requires grad or is on a GPU.

        Examples
        --------
        >>> from sparse_eval import Rankings
        >>> Rankings.from_scores([[0.1, 0.9, 0.9]], k=2).items
        array([1, 2], dtype=int32)
        """
        ties = check_ties(ties)
        limit = check_whole("k", k, 1) if k is not None else None
        matrix = _score_matrix(scores)
        hidden = None
        if train is not None:
            hidden = canonical_csr(train, "train", sum_duplicates=True)
            if hidden.shape != matrix.shape:
                raise InvalidDataError(
                    f"train has shape {hidden.shape}, but scores have {matrix.shape}; expected the "
                    "same",
                    argument="train",
                )
        labels = matrix_labels(scores, matrix.shape, users, items)
        lists = _rank_scores(matrix, limit, hidden, ties)
        return cls(matrix.shape, *lists, *labels, relevant_last=ties == "pessimistic")

    @classmethod
    @show_spelling
    def from_frame(
        cls,
        df: Frame,
        *,
        user: str = "user",
        item: str = "item",
        rank: str | None = None,
        score: str | None = None,
        ties: Ties | None = None,
    ) -> Rankings:
        """Make lists from a frame with one row for each recommended item.

        Ids may be any hashable values; `evaluate` matches them with the ids of the relevance.

        Parameters
        ----------
        df : pandas.DataFrame, frame of another library, or list of dict
            One row for each (user, item); frames as in `Interactions.from_frame`. Or one row for
            each user, with a list of items, best first, and perhaps a list of their scores.
        user, item : str
            The columns of the ids.
        rank : str, optional
            The column of 1-based positions.
        score : str, optional
            The column of scores, higher is better. With neither, one with a usual name, a rank
            rather than a score.
        ties : {"item", "item_descending", "average", "pessimistic"}, optional
            Equal scores, as in `from_scores`; "item" by default. Labels stand for ids: numbers by
            value, text by code points. Of ids that are text "item_descending" is what trec_eval
            does. A `rank` leaves no ties.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If a column is missing, both `rank` and `score` are given, or `ties` is given for ranks.
            If a pair occurs twice, or a value is not valid in `from_positions` or `from_scores`.

        Examples
        --------
        >>> import pandas as pd
        >>> from sparse_eval import Rankings
        >>> df = pd.DataFrame({"user": ["a", "a"], "item": ["x", "y"], "rank": [2, 1]})
        >>> Rankings.from_frame(df, rank="rank")
        <Rankings: 1 lists of up to 2 items, 1 users × 2 items>
        """
        table = open_table(df)
        columns = table.choose(named(user, item, rank=rank, score=score))
        if "score" not in columns.names and ties is not None:
            raise InvalidDataError("ranks have no ties; use ties= with score=", argument="ties")
        return cls.of_table(table, columns, check_ties("item" if ties is None else ties))

    @classmethod
    def of_table(
        cls,
        table: InputTable,
        columns: TableColumns,
        ties: Ties,
        relevance: Relevance | None = None,
    ) -> Rankings:
        """Read the columns of a table; `ties` applies to scores.

        Lists of ranks have users and items in the order of the relevance, other ones after them.
        Equal scores are in the order of the labels.
        """
        ranked = "score" not in columns.names
        order = labels_of(relevance)
        if not ranked or (order[0] is not None and not order[0].by_id):
            order = (None, None)
        rows = read_rows(table, columns, order=order)
        rows.users, rows.items = rows.users.marked(True), rows.items.marked(True)
        with naming(table.where):
            return cls.of_rows(rows, ranked=ranked, ties=ties)

    @classmethod
    def of_rows(cls, rows: EncodedRows, *, ranked: bool, ties: Ties = "item") -> Rankings:
        """Order the rows of a table by its numbers, which are ranks or else scores."""
        values: Any = rows.numbers
        codes, labels = (rows.user_codes, rows.item_codes), (rows.users, rows.items)
        shape = (len(rows.users), len(rows.items))
        if ranked:
            indptr, order = group_rows(codes[0], shape[0])
            entries = gather(codes[1], order), gather(values.astype(np.int32, copy=False), order)
            lists = cls._of_positions(indptr, *entries, shape, labels)
            repeated = repeated_item(indptr, lists.items)
            if repeated is not None:
                row, entry = repeated
                raise_repeated_item(rows.users[row], rows.items[lists.items[entry]])
            return lists
        order, listed = sort_distinct(*codes, *labels)
        indptr = indptr_from_counts(np.bincount(codes[0], minlength=shape[0]))
        ordered = _rank_entries(indptr, listed, values[order], ties)
        return cls(shape, *ordered, *labels, relevant_last=ties == "pessimistic")

    @classmethod
    def _of_positions(
        cls,
        indptr: Integers,
        columns: Items,
        positions: Items,
        shape: tuple[int, int],
        labels: tuple[Axis | None, Axis | None],
    ) -> Rankings:
        """Return the lists of rows whose entries have positions, in any order."""
        listed, ordered = np.empty((2, len(positions)), np.int32)
        arrays = indptr, columns, positions, listed, ordered
        if fault := find_fault(order_by_position, len(indptr) - 1, *arrays):
            _, row, entry = fault
            user = label_of(labels[0], row)
            first, second = (label_of(labels[1], int(listed[at])) for at in (entry - 1, entry))
            raise InvalidDataError(
                f"user {user!r} has position {ordered[entry]} twice (items {first!r} and "
                f"{second!r}); a position can be taken only once",
                row=row if labels[0] is None else None,
                user=user,
            )
        lengths = _last_positions(indptr, ordered)
        gapped = None if (lengths == np.diff(indptr)).all() else ordered
        return cls(shape, indptr, listed, gapped, lengths, None, *labels)

    @classmethod
    def scan(
        cls,
        table: PathLike | FrameLike | ArrowStream,
        *,
        user: str = "user",
        item: str = "item",
        rank: str | None = None,
        score: str | None = None,
    ) -> RankingsScan:
        """Name the columns of a table that `evaluate` is to read.

        Nothing is read here: a table in Parquet need not fit into memory, and a frame of Spark is
        evaluated by its workers.

        Parameters
        ----------
        table : str, Path or frame
            A Parquet or CSV file, a folder of Parquet files, or a frame of pandas, polars, Arrow or
            Spark, with a row for each recommended item.
        user, item : str
            The columns with the ids: whole numbers or text.
        rank : str, optional
            The column of 1-based positions.
        score : str, optional
            The column of scores, higher is better, of equal ones the smaller item first. With
            neither, "rank" if the table has it, or else "score".

        Returns
        -------
        RankingsScan
            To be given to `evaluate`.

        See Also
        --------
        Relevance.scan : The other side.
        from_frame : Make lists from a frame of pandas now.

        Examples
        --------
        >>> import pandas as pd
        >>> import sparse_eval as se
        >>> recs = pd.DataFrame({"uid": ["a", "a"], "iid": ["x", "y"], "score": [0.1, 0.7]})
        >>> clicks = pd.DataFrame({"user": ["a"], "item": ["y"]})
        >>> lists = se.Rankings.scan(recs, user="uid", item="iid")
        >>> se.evaluate(lists, se.Relevance.scan(clicks), "mrr")["mrr"]
        1.0
        """
        return RankingsScan(table, named(user, item, rank=rank, score=score))

    @classmethod
    def from_popularity(cls, train: Any, k: int, *, filter_seen: bool = True) -> Rankings:
        """Recommend to each user the most popular items that the user has not seen.

        Parameters
        ----------
        train : scipy sparse matrix or array, shape (n_users, n_items)
            An item's popularity is the number of users with an entry other than zero; equally
            popular items come by id. Every stored entry, an explicit zero too, is seen.
        k : int
            List length, at least 1.
        filter_seen : bool
            Whether items that the user has seen are left out.

        Returns
        -------
        Rankings
            A list for each user of `train`, shorter than `k` if all other items were seen.

        Raises
        ------
        InvalidDataError
            If `train` is no sparse matrix or `k` is below 1.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> from sparse_eval import Rankings
        >>> popular = Rankings.from_popularity(csr_matrix([[1, 0, 0], [1, 1, 0], [0, 1, 0]]), k=2)
        >>> popular.items
        array([1, 2, 2, 0, 2], dtype=int32)
        """
        matrix = training_csr(train)
        k = min(check_whole("k", k, 1), max(matrix.shape[1], 1))
        ids = popular_lists(matrix, k, check_flag("filter_seen", filter_seen))
        lists = cls.from_topk(ids, shape=matrix.shape)
        users, items = labels_of(train)
        return replace(lists, users=users, items_index=items)

    def head(self, k: int) -> Rankings:
        """Return the first `k` positions of each list, as trec_eval's ``-M`` takes them.

        Parameters
        ----------
        k : int
            At least 1.

        Returns
        -------
        Rankings

        Raises
        ------
        InvalidDataError
            If `k` is below 1.

        Examples
        --------
        >>> from sparse_eval import Rankings
        >>> Rankings.from_topk([[7, 2, 5], [1, -1, -1]]).head(2)
        <Rankings: 2 lists of up to 2 items, 2 users × 8 items>
        """
        k = min(check_whole("k", k, 1), np.iinfo(np.int64).max)  # no list is longer
        return replace(self.keep(self.positions <= k), lengths=np.minimum(self.lengths, k))

    @property
    def positions(self) -> Items:
        """1-based position of each of `items`, or the first it may take, see `last_positions`."""
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
            If positions are uncertain (``ties="average"`` or ``"pessimistic"``).
        """
        self._check_certain()
        matrix = sparse.csr_matrix(
            (self.positions, self.items, self.indptr), shape=self.shape, copy=True
        )
        matrix.sort_indices()
        return matrix

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with a row for each item of a list.

        Returns
        -------
        pandas.DataFrame
            Columns ``user`` and ``item``, labels if they are known and row and column numbers
            otherwise, and ``rank``, the 1-based position. User by user, each list in its order;
            a user without a list has no row. Scores are not kept by rankings.

        Raises
        ------
        InvalidDataError
            If positions are uncertain (``ties="average"`` or ``"pessimistic"``).

        See Also
        --------
        from_frame : Make the same lists again, with ``rank="rank"``.

        Examples
        --------
        >>> from sparse_eval import Rankings
        >>> Rankings.from_topk([[7, 2], [1, -1]]).to_frame()
           user  item  rank
        0     0     7     1
        1     0     2     2
        2     1     1     1
        """
        import pandas as pd

        self._check_certain()
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        items = self.items.astype(np.int64)
        return pd.DataFrame(
            {
                "user": rows if self.users is None else self.users.index.take(rows),
                "item": items if self.items_index is None else self.items_index.index.take(items),
                "rank": self.positions.astype(np.int64),
            }
        )

    def _check_certain(self) -> None:
        if self.last_positions is not None:
            raise InvalidDataError(
                'lists with ties="average" or "pessimistic" have no certain positions; make them '
                'with ties="item"'
            )

    def __repr__(self) -> str:
        lists = int(np.count_nonzero(self.lengths))
        return (
            f"<Rankings: {lists} lists of up to {self.lengths.max(initial=0)} items, "
            f"{self.shape[0]} users × {self.shape[1]} items>"
        )


def repeated_item(indptr: Integers, items: Items) -> tuple[int, int] | None:
    """Return the row and entry of an item that is in its row twice, or None."""
    longest = int(np.diff(indptr).max(initial=0))

    def check(first: int, last: int, fault: Integers) -> None:
        scratch = np.empty(longest, items.dtype)
        find_repeat(first, last, indptr, items, scratch, fault)

    fault = find_fault(check, len(indptr) - 1)
    return None if fault is None else fault[1:]


def _last_positions(indptr: Integers, positions: Items) -> Integers:
    """Return each row's last position, 0 for an empty row."""
    lengths = np.zeros(len(indptr) - 1, np.int64)
    filled = indptr[1:] > indptr[:-1]
    lengths[filled] = positions[indptr[1:][filled] - 1]
    return lengths


def _check_ids(table: AnyArray, rows: Integers, n_items: int) -> bool:
    """Raise if a table of ids has an id out of range, or one twice in a list.

    `rows` has the user of each list. Return whether lists are padded, with -1.
    """
    least = table.min(initial=0)
    if least < -1 or table.max(initial=-1) >= n_items:
        row, column = np.argwhere((table < -1) | (table >= n_items))[0]
        raise InvalidDataError(
            f"ids[{row}, {column}] (user {rows[row]}) is {table[row, column]}, but there are "
            f"{n_items} items (0 to {n_items - 1}, and -1 for padding)",
            user=rows[row],
        )

    repeated = repeated_item(np.arange(len(table) + 1) * table.shape[1], table.ravel())
    if repeated is not None:
        raise_repeated_item(rows[repeated[0]], table.ravel()[repeated[1]])
    return bool(least < 0)


def _score_matrix(scores: Any) -> Any:
    """Return scores of users × items as a canonical CSR or an array, with unchecked values."""
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


def _rank_scores(
    scores: Any, limit: int | None, hidden: sparse.csr_matrix | None, ties: Ties
) -> tuple[Integers, Items, Items | None, Integers, Items | None]:
    """Order the candidates of each user by score, as `_rank_entries` does.

    Parameters
    ----------
    scores : csr_matrix or ndarray
        As from `_score_matrix`. An item of minus infinity is not a candidate.
    limit : int or None
        The longest list, None for all candidates.
    hidden : csr_matrix or None
        Items that are not candidates for a user.
    ties
        As of `_rank_entries`.
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
        return _rank_entries(indptr, as_int32(scores.indices[kept]), values, ties, limit)
    step = max(_SCORES_AT_ONCE // max(n_items, 1), 1)
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
        parts.append(_rank_entries(*entries, ties, limit))
    bounds, items, firsts, lengths, lasts = zip(*parts, strict=True)
    positions = [None if ends[0] is None else np.concatenate(ends) for ends in (firsts, lasts)]
    indptr = indptr_from_counts(np.concatenate([np.diff(each) for each in bounds]))
    return indptr, np.concatenate(items), positions[0], np.concatenate(lengths), positions[1]


def _rank_entries(
    indptr: Integers, items: Items, scores: Floats, ties: Ties, limit: int | None = None
) -> tuple[Integers, Items, Items | None, Integers, Items | None]:
    """Order the entries of each user by score.

    Parameters
    ----------
    indptr, items, scores
        Entries sorted by user and item: ndarray of int64, int32 and float64.
    limit : int, optional
        The longest list.

    Returns
    -------
    tuple
        ``indptr``, ``items``, first positions, ``lengths`` and last positions as `Rankings` has
        them; without positions if `ties` fixes the order of equal items.
    """
    sizes = np.diff(indptr)
    starts = np.repeat(indptr[:-1], sizes)
    # Floats have the order of their bits, except that the order of negative floats is reversed.
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


def check_ties(ties: str) -> Ties:
    """Return `ties`, or raise `InvalidDataError` if it is not a way to order equal scores."""
    return cast("Ties", check_choice("ties", ties, get_args(Ties)))
