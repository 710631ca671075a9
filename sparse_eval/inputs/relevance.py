"""`Relevance`: the relevant items of each user and their gains; repeated pairs are combined."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from ..core.arguments import check_choice, check_number
from ..core.csr import (
    canonical_csr,
    check_entries,
    sort_pairs,
    summed_csr,
)
from ..errors import InvalidDataError
from .columns import USUAL, Usual
from .encoded_rows import read_rows
from .input_files import naming
from .labelled import LabelledMatrix, UserRows, matrix_labels
from .tables import RelevanceScan, named, open_table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.types import Floats, Integers, Items, PathLike
    from .axes import Axis
    from .columns import TableColumns
    from .tables import ArrowStream, Frame, FrameLike, InputTable


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Relevance(UserRows):
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
    users, items_index : Axis or None
        Labels of rows and columns, if they are known.
    states_irrelevant : bool
        Whether `threshold` or the gains of events define which stored values are not relevant.

    See Also
    --------
    Rankings : What was recommended.
    evaluate : Evaluate lists against relevance.
    """

    shape: tuple[int, int]
    indptr: Integers
    items: Items
    gains: Floats
    binary: bool = False
    users: Axis | None = None
    items_index: Axis | None = None
    states_irrelevant: bool = False

    _of_entries: ClassVar = ("items", "gains")

    @classmethod
    def from_csr(
        cls,
        matrix: Any,
        *,
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
            Stored values below it are not relevant, and do not count in the sum of a pair. By
            default any value above 0 is. Call ``matrix.sum_duplicates()`` first to compare sums.
        users, items : sequence of hashable, optional
            Labels of the rows and columns; by default those that the matrix knows, as the parts
            of a `Holdout` do.

        Returns
        -------
        Relevance

        Raises
        ------
        InvalidDataError
            If a gain is negative or not finite (row and column are named), `threshold` is not a
            positive number, or exceeds every gain, or the labels do not fit the shape.

        Examples
        --------
        >>> from scipy.sparse import csr_matrix
        >>> from sparse_eval import Relevance
        >>> Relevance.from_csr(csr_matrix([[3, 0, 1], [0, 5, 2]]), threshold=2)
        <Relevance: 3 relevant items of 2 users, 2 users × 3 items>
        """
        csr = canonical_csr(matrix, "the validation matrix", sum_duplicates=True)
        is_summed = len(csr.data) < matrix.nnz
        if is_summed:  # a sum would hide a negative gain
            coo = matrix.tocoo()
            check_entries(coo, ~(coo.data < 0), "the gain of validation", "at least 0")
        gains = csr.data.astype(np.float64, copy=False)
        least, most = (gains.min(), gains.max()) if len(gains) else (1.0, 1.0)
        if not (least >= 0 and most < np.inf):  # a NaN is neither
            valid = np.isfinite(gains) & (gains >= 0)
            check_entries(csr, valid, "the gain of validation", "a finite number of at least 0")
        binary = bool(least == most == 1.0)
        if threshold is not None:
            if is_summed:
                entries = _reaching(coo.data.astype(np.float64), threshold), (coo.row, coo.col)
                reaching = sparse.coo_matrix(entries, csr.shape)
                gains = canonical_csr(reaching, "the validation matrix", sum_duplicates=True).data
            else:
                gains = _reaching(gains, threshold)
            binary = binary and bool((gains == 1.0).all())
        return cls(
            csr.shape,
            csr.indptr.astype(np.int64, copy=False),
            np.ascontiguousarray(csr.indices, np.int32),
            np.ascontiguousarray(gains),
            binary,
            *matrix_labels(matrix, csr.shape, users, items),
            states_irrelevant=threshold is not None,
        )

    @classmethod
    def from_frame(
        cls,
        df: Frame,
        *,
        user: str = "user",
        item: str = "item",
        gain: str | Usual | None = USUAL,
        threshold: float | None = None,
        event: str | None = None,
        gains: Mapping[Any, float] | None = None,
        combine: Literal["max", "sum"] | None = None,
    ) -> Relevance:
        """Make relevance from a frame with one row for each relevant item, or for each event.

        Parameters
        ----------
        df : pandas.DataFrame, frame of another library, or list of dict
            The rows, frames as in `Interactions.from_frame`; there may be several of one
            (user, item).
        user, item : str
            The columns of the ids, any hashable values.
        gain : str or None, optional
            The column of gains, by default one with a usual name, such as "gain", "rating" or
            "clicked". With None, or if no column may hold gains, every row counts 1.
        threshold : float, optional
            Gains below it are not relevant. It is compared with the gain of each row, before the
            rows of a pair are combined, or, if `combine` is given, with the combined gain.
        event : str, optional
            Instead of `gain`, a column with the names of events.
        gains : mapping, optional
            The gain of each event, such as ``{"view": 1, "cart": 2, "purchase": 3}``. With a gain
            of 0 an event is known and not relevant.
        combine : {"max", "sum"}, optional
            The gain of several rows for one (user, item): the largest of their gains, or the sum.
            The default is "max" for events, because views before a purchase do not add to it, and
            "sum" otherwise. Give "sum" to compare `threshold` with the sum, as of plays.

        Returns
        -------
        Relevance

        Raises
        ------
        InvalidDataError
            If the frame is empty, a column, an id or an event is missing, or an event has no gain.
            If only one of `event` and `gains` is given, or `gain` with them. If a gain or
            `threshold` is not valid in `from_csr`, or `combine` is unknown.

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

        A threshold for ratings, and for a number of plays:

        >>> df = pd.DataFrame({"user": ["a"] * 3, "item": [*"xxy"], "value": [2, 3, 5]})
        >>> Relevance.from_frame(df, threshold=4).gains
        array([0., 5.])
        >>> Relevance.from_frame(df, threshold=4, combine="sum").gains
        array([5., 5.])
        """
        if combine is not None:
            check_choice("combine", combine, ("max", "sum"))
        if (event is None) != (gains is None) or (event is not None and gain not in (None, USUAL)):
            raise InvalidDataError(
                "pass gain= (a column), or event= (a column) with gains= (the gain of each event)"
            )
        if gains is not None:
            gain = None
            gains = {name: check_number(f"gains[{name!r}]", n, 0) for name, n in gains.items()}
        table = open_table(df)
        columns = table.choose(named(user, item, gain=gain), event)
        return cls.of_table(table, columns, threshold, gains, combine)

    @classmethod
    def of_table(
        cls,
        table: InputTable,
        columns: TableColumns,
        threshold: float | None = None,
        gains: Mapping[Any, float] | None = None,
        combine: str | None = None,
    ) -> Relevance:
        """Read the columns of a table."""
        rows = read_rows(table, columns, gains=gains)
        users, items, values = rows.user_codes, rows.item_codes, rows.numbers
        if values is None:
            values = np.ones(len(users))
        elif gains is None:
            n_zeros = len(users) - int(np.count_nonzero(values))
            columns.warn_of_zeros("gain", n_zeros, len(users))
        if threshold is not None and combine is None:
            with naming(table.where):
                values = _reaching(values, threshold)
        if combine == "max" or (combine is None and gains is not None):
            order, _, starts = sort_pairs(users, items)
            users, items = users[order[starts]], items[order[starts]]
            values = np.maximum.reduceat(values[order], starts)
        with naming(table.where):
            matrix = summed_csr(users, items, values, (len(rows.users), len(rows.items)))
            relevance = cls.from_csr(matrix, threshold=threshold)
        return replace(
            relevance,
            users=rows.users.marked(True),
            items_index=rows.items.marked(True),
            states_irrelevant=relevance.states_irrelevant or gains is not None,
        )

    @classmethod
    def scan(
        cls,
        table: PathLike | FrameLike | ArrowStream,
        *,
        user: str = "user",
        item: str = "item",
        gain: str | Usual | None = USUAL,
    ) -> RelevanceScan:
        """Name the columns of a table that `evaluate` is to read.

        Parameters
        ----------
        table : str, Path or frame
            As in `Rankings.scan`, with a row for each relevant item.
        user, item : str
            The columns with the ids: whole numbers or text.
        gain : str, optional
            As in `from_frame`.

        Returns
        -------
        RelevanceScan
            To be given to `evaluate`.

        See Also
        --------
        Rankings.scan : The other side, with an example.
        from_frame : Make relevance from a frame of pandas now.
        """
        return RelevanceScan(table, named(user, item, gain=gain))

    @property
    def n_relevant(self) -> Integers:
        """Number of relevant items (gain above 0) of each user, shape (n_users,)."""
        return np.diff(np.append(0, np.cumsum(self.gains > 0))[self.indptr])

    def with_entries(self, csr: Any, users: Axis | None, items: Axis | None) -> Relevance:
        """Return the same relevance with the entries of a canonical matrix, and labels."""
        arrays = {
            "indptr": csr.indptr.astype(np.int64, copy=False),
            "items": np.ascontiguousarray(csr.indices, np.int32),
            "gains": csr.data,
        }
        return replace(self, shape=csr.shape, users=users, items_index=items, **arrays)

    def to_csr(self) -> LabelledMatrix:
        """Return the gains as a matrix of users × items, with the labels; it shares the arrays."""
        matrix = sparse.csr_matrix((self.gains, self.items, self.indptr), shape=self.shape)
        return LabelledMatrix(matrix, self.users, self.items_index)

    def __repr__(self) -> str:
        n = self.n_relevant
        return (
            f"<Relevance: {n.sum()} relevant items of {np.count_nonzero(n)} users, "
            f"{self.shape[0]} users × {self.shape[1]} items>"
        )


def _reaching(gains: Floats, threshold: float) -> Floats:
    """Return gains with 0 for those below a threshold.

    Raises `InvalidDataError` if the threshold is not a positive number, or exceeds every gain.
    """
    threshold = check_number("threshold", threshold, 0, open_end=True)
    most = gains.max(initial=0.0)
    if 0 < most < threshold:
        raise InvalidDataError(
            f"threshold is {threshold}, but the largest gain is {most}. Pass a threshold of at "
            f"most {most}",
            argument="threshold",
        )
    return np.where(gains >= threshold, gains, 0.0)
