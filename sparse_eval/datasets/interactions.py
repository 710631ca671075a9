"""`Interactions`: who met what, how strongly and when, with the ids encoded once."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..core.csr import summed_csr
from ..errors import InvalidDataError
from .labels import at, check_labels, encode

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray
    from scipy import sparse

__all__ = ["Interactions", "column_of", "missing_column"]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Interactions:
    """Encoded interactions of users with items, one row per event.

    Codes do not depend on the order of the rows: labels are sorted (numbers by value, text
    lexicographically, mixed types by type name and text), and code i stands for label i. The same
    pair may be there more than once; `matrix` adds such events up.

    Parameters
    ----------
    user_codes, item_codes : ndarray of int32, shape (n,)
        Places in `users` and `items`.
    values : ndarray of float64, shape (n,)
        Strength of the interaction, finite and >= 0. An explicit zero is kept: it means shown
        and not chosen.
    timestamps : ndarray of int64, shape (n,), or None
        When, in the unit of the source: whatever a number column holds (seconds in MovieLens and
        MIND), nanoseconds since 1970 (UTC) where the source has dates.
    users, items : pandas.Index
        The labels; a `pandas.RangeIndex` when the source has none.
    n_skipped : int
        How many malformed lines the loader left out.

    Raises
    ------
    InvalidDataError
        When the arrays differ in length, or a code has no label.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"user": ["u2", "u1", "u2"], "item": [30, 10, 30]})
    >>> interactions = Interactions.from_frame(frame)
    >>> interactions
    Interactions(2 users × 2 items, 3 events)
    >>> interactions.matrix().toarray()
    array([[1., 0.],
           [0., 2.]])
    """

    user_codes: NDArray[np.int32]
    item_codes: NDArray[np.int32]
    values: NDArray[np.float64]
    timestamps: NDArray[np.int64] | None
    users: pd.Index[Any]
    items: pd.Index[Any]
    n_skipped: int = 0

    def __post_init__(self) -> None:
        """Check that the parts belong together."""
        arrays = {"user_codes": self.user_codes, "item_codes": self.item_codes}
        for name, array in [*arrays.items(), ("timestamps", self.timestamps)]:
            if array is not None and array.shape != (len(self.values),):
                raise InvalidDataError(
                    f"{name}: expected shape ({len(self.values)},) as values, found {array.shape}"
                )
        for (name, codes), size in zip(arrays.items(), self.shape, strict=True):
            if len(codes) and not (codes.min() >= 0 and codes.max() < size):
                raise InvalidDataError(
                    f"{name}: expected codes in 0..{size - 1}, found {codes.min()}..{codes.max()}"
                )

    @property
    def n_users(self) -> int:
        """Number of users, those without events included."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items, those without events included."""
        return len(self.items)

    @property
    def shape(self) -> tuple[int, int]:
        """(n_users, n_items)."""
        return self.n_users, self.n_items

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.values)

    def __repr__(self) -> str:
        """Return the sizes."""
        parts = [f"{self.n_users:,} users × {self.n_items:,} items", f"{len(self):,} events"]
        if self.timestamps is not None:
            parts.append("timestamps")
        if self.n_skipped:
            parts.append(f"{self.n_skipped:,} lines skipped")
        return f"Interactions({', '.join(parts)})"

    def matrix(self) -> sparse.csr_matrix[np.float64]:
        """Return the values as a matrix of users × items.

        Returns
        -------
        csr_matrix of float64, shape (n_users, n_items)
            Sorted indices, the events of a pair summed (the sum does not depend on the order of
            the rows), explicit zeros kept.

        Raises
        ------
        InvalidDataError
            When a sum is beyond float64.
        """
        return summed_csr(self.user_codes, self.item_codes, self.values, self.shape)

    def without(self, held: Any) -> Interactions:
        """Return the interactions whose pair is not stored in a matrix.

        Parameters
        ----------
        held : csr_matrix, shape (n_users, n_items)

        Returns
        -------
        Interactions
            Of the same users and items.

        Examples
        --------
        >>> import sparse_eval as se
        >>> clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
        >>> test = se.split.random(clicks, seed=0).validation
        >>> len(clicks.without(test)) + test.nnz == len(clicks)
        True
        """
        pairs = self.user_codes.astype(np.int64) * self.n_items + self.item_codes
        rows = np.repeat(np.arange(held.shape[0]), np.diff(held.indptr))
        kept = ~np.isin(pairs, rows * self.n_items + held.indices)
        times = self.timestamps
        return replace(
            self,
            user_codes=self.user_codes[kept],
            item_codes=self.item_codes[kept],
            values=self.values[kept],
            timestamps=None if times is None else times[kept],
        )

    def to_frame(self) -> pd.DataFrame:
        """Decode: return a frame with columns user, item, value and, if known, timestamp."""
        frame = pd.DataFrame(
            {
                "user": self.users.take(self.user_codes),
                "item": self.items.take(self.item_codes),
                "value": self.values.copy(),
            }
        )
        if self.timestamps is not None:
            frame["timestamp"] = self.timestamps.copy()
        return frame

    @classmethod
    def from_frame(
        cls,
        df: pd.DataFrame,
        user: Hashable = "user",
        item: Hashable = "item",
        value: Hashable | None = None,
        timestamp: Hashable | None = None,
        users: pd.Index[Any] | Sequence[Hashable] | None = None,
        items: pd.Index[Any] | Sequence[Hashable] | None = None,
    ) -> Interactions:
        """Encode a frame with one row per event.

        Parameters
        ----------
        df : pandas.DataFrame
            The events; it is not changed.
        user, item : hashable
            Names of the columns with the ids: text, numbers, anything hashable.
        value : hashable, optional
            Name of the column with the values, finite and >= 0; default: every event counts 1.
        timestamp : hashable, optional
            Name of the column with the times: whole numbers of any unit, or dates, which become
            nanoseconds since 1970 (those without a time zone are taken as UTC).
        users, items : pandas.Index or sequence, optional
            The labels to encode with, in this order; default: the sorted distinct ids.

        Returns
        -------
        Interactions
            In the order of the rows.

        Raises
        ------
        InvalidDataError
            When the frame is empty, a column does not exist, or a row has a missing id, an id
            outside `users` or `items`, or a value or time that is none. Rows are counted from 0,
            as ``df.iloc`` does.

        Examples
        --------
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"who": ["b", "a"], "what": [7, 5], "stars": [4, 0]})
        >>> Interactions.from_frame(frame, user="who", item="what", value="stars").to_frame()
          user  item  value
        0    b     7    4.0
        1    a     5    0.0
        """
        user_column, item_column = column_of(df, user), column_of(df, item)
        value_column = None if value is None else column_of(df, value)
        time_column = None if timestamp is None else column_of(df, timestamp)
        if not len(df):
            raise InvalidDataError("there are no interactions: the frame has no rows")
        user_index = None if users is None else check_labels(users, "user")
        item_index = None if items is None else check_labels(items, "item")
        user_codes, user_index = encode(user_column, "user", user_index)
        item_codes, item_index = encode(item_column, "item", item_index)
        return cls(
            user_codes=user_codes,
            item_codes=item_codes,
            values=np.ones(len(df)) if value_column is None else _values(value_column),
            timestamps=None if time_column is None else _timestamps(time_column),
            users=user_index,
            items=item_index,
        )


def missing_column(name: Hashable, columns: Iterable[Hashable]) -> str:
    """Return the message for a column that is not there: what there is, and the nearest."""
    names = [str(column) for column in columns]
    near = get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no column {name!r}; the columns are {', '.join(map(repr, names))}{hint}"


def column_of(df: pd.DataFrame, name: Hashable) -> pd.Series[Any]:
    """Return a column of a frame.

    Raises
    ------
    InvalidDataError
        When it is no frame, or has no such column, or several.
    """
    if not isinstance(df, pd.DataFrame):
        raise InvalidDataError(f"expected a pandas.DataFrame, found {type(df).__name__}")
    if name not in df.columns:
        raise InvalidDataError(missing_column(name, df.columns))
    places = np.flatnonzero(df.columns == name)
    if len(places) > 1:
        raise InvalidDataError(f"the column {name!r} is there {len(places)} times; rename one")
    return df[name]


def _fault(column: pd.Series[Any], fine: NDArray[np.bool_], expected: str) -> InvalidDataError:
    row = int(np.argmin(fine))
    return InvalidDataError(
        f"row {row}, column {column.name!r}: expected {expected}, found {at(column, row)!r}"
    )


def _numbers(column: pd.Series[Any], expected: str) -> NDArray[np.float64]:
    """Return a column as float64, NaN where it is no number."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "cmM":
        raise InvalidDataError(
            f"column {column.name!r}: expected {expected}, found {column.dtype} values"
        )
    if kind not in "buif":
        column = pd.to_numeric(column.astype(object), errors="coerce")
    return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _values(column: pd.Series[Any]) -> NDArray[np.float64]:
    expected = "a finite number that is not negative"
    values = _numbers(column, expected)
    fine = np.isfinite(values) & (values >= 0)
    if not fine.all():
        raise _fault(column, fine, expected)
    return values


def _timestamps(column: pd.Series[Any]) -> NDArray[np.int64]:
    expected = "a whole number or a date"
    missing = column.isna().to_numpy()
    if missing.any():
        raise _fault(column, ~missing, expected)
    if pd.api.types.infer_dtype(column) in ("datetime64", "datetime", "date"):
        try:
            dates = pd.to_datetime(column, utc=True).dt.tz_localize(None).dt.as_unit("ns")
            return dates.to_numpy().astype(np.int64)
        except (ValueError, TypeError) as error:  # includes dates outside 1677..2262
            raise InvalidDataError(f"column {column.name!r}: {error}") from error
    if pd.api.types.is_integer_dtype(column.dtype):
        fine = (column <= np.iinfo(np.int64).max).to_numpy(dtype=bool)
        if not fine.all():
            raise _fault(column, fine, expected)
        return column.to_numpy(dtype=np.int64, copy=True)
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_string_dtype(column):
        raise _fault(
            column,
            np.zeros(len(column), dtype=bool),
            f"{expected} (pandas.to_datetime reads dates from text)",
        )
    numbers = _numbers(column, expected)
    # 2**63 itself is the first float64 that int64 cannot hold.
    fine = (np.abs(numbers) < 2.0**63) & (np.floor(numbers) == numbers)
    if not fine.all():
        raise _fault(column, fine, f"{expected} (use a finer unit for fractions)")
    return numbers.astype(np.int64)
