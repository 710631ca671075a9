"""`Interactions`: events between users and items, with the ids encoded as integers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.csr import summed_csr
from ..errors import InvalidDataError
from .labels import at, check_labels, encode

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Sequence

    from numpy.typing import NDArray
    from scipy import sparse

    from ..core.types import Booleans, CSRMatrix, Floats, Integers, Labels
    from .labels import Column


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Interactions:
    """Encoded interactions of users with items, one row per event.

    Code i stands for label i. The loaders sort the labels (numbers by value, text
    lexicographically, mixed types by type name and text), so codes do not depend on the order of
    the rows. A pair of user and item may occur more than once; `matrix` sums such events.

    Parameters
    ----------
    user_codes, item_codes : ndarray of int32, shape (n,)
        Positions in `users` and `items`.
    values : ndarray of float64, shape (n,)
        Strength of each interaction, finite and >= 0. Explicit zeros are kept; they mean that
        the item was shown and not chosen.
    timestamps : ndarray of int64, shape (n,), or None
        Time of each event, in the unit of the source (seconds in MovieLens and MIND); dates are
        nanoseconds since 1970 (UTC).
    users, items : pandas.Index
        The labels; a `pandas.RangeIndex` if the source has none.
    n_skipped : int
        Number of malformed lines that the loader skipped.

    Raises
    ------
    InvalidDataError
        If the arrays differ in length, or a code has no label.

    See Also
    --------
    load : Read interactions from a file.
    Interactions.from_frame : Encode a pandas frame.
    sparse_eval.split : Divide interactions into training and validation data.

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
    values: Floats
    timestamps: Integers | None
    users: Labels
    items: Labels
    n_skipped: int = 0

    def __post_init__(self) -> None:
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
        """Number of users, including those without events."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """Number of items, including those without events."""
        return len(self.items)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of users and of items."""
        return self.n_users, self.n_items

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
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
            Canonical: indices are sorted and the events of a pair are summed (the sum does not
            depend on the order of the rows). Explicit zeros are kept.

        Raises
        ------
        InvalidDataError
            If a sum overflows float64.
        """
        return summed_csr(self.user_codes, self.item_codes, self.values, self.shape)

    def without(self, held: CSRMatrix) -> Interactions:
        """Return the interactions whose pair is not stored in a matrix.

        Parameters
        ----------
        held : csr_matrix, shape (n_users, n_items)
            For example the validation matrix of a `Holdout`; its values do not matter.

        Returns
        -------
        Interactions
            With the same users and items.

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
        """Return a frame with the columns user, item, value and, if there are any, timestamp."""
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
        *,
        user: Hashable = "user",
        item: Hashable = "item",
        value: Hashable | None = None,
        timestamp: Hashable | None = None,
        users: Labels | Sequence[Hashable] | None = None,
        items: Labels | Sequence[Hashable] | None = None,
    ) -> Interactions:
        """Encode a frame with one row per event.

        Parameters
        ----------
        df : pandas.DataFrame
            The events.
        user, item : hashable
            Names of the columns with the ids: text, numbers, anything hashable.
        value : hashable, optional
            Name of the column with the values, finite and >= 0; default: every event counts 1.
        timestamp : hashable, optional
            Name of the column with the times: integers in any unit, or dates, which become
            nanoseconds since 1970 (UTC is assumed for dates without a time zone).
        users, items : pandas.Index or sequence, optional
            The labels to encode with, in this order; default: the sorted distinct ids.

        Returns
        -------
        Interactions
            In the order of the rows.

        Raises
        ------
        InvalidDataError
            If the frame is empty, a column does not exist, or a row has a missing id, an id that
            is not in `users` or `items`, or an invalid value or time. The message counts rows
            from 0, as ``df.iloc`` does.

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
    """Return the message for a missing column, with the existing columns and the closest one."""
    names = [str(column) for column in columns]
    near = get_close_matches(str(name), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"there is no column {name!r}; the columns are {', '.join(map(repr, names))}{hint}"


def column_of(df: pd.DataFrame, name: Hashable) -> Column:
    """Return a column of a frame, or raise if there are none or several of this name."""
    if not isinstance(df, pd.DataFrame):
        raise InvalidDataError(f"expected a pandas.DataFrame, found {type(df).__name__}")
    try:
        found = name in df.columns
    except TypeError:  # it cannot be hashed
        raise InvalidDataError(f"{name!r} is no name of a column; expected text") from None
    if not found:
        raise InvalidDataError(missing_column(name, df.columns))
    n_columns = np.count_nonzero(df.columns == name)
    if n_columns > 1:
        raise InvalidDataError(f"there are {n_columns} columns named {name!r}; rename one")
    return df[name]


def _fault(column: Column, valid: Booleans, expected: str) -> InvalidDataError:
    row = int(np.argmin(valid))
    return InvalidDataError(
        f"row {row}, column {column.name!r}: expected {expected}, found {at(column, row)!r}"
    )


def _numbers(column: Column, expected: str) -> Floats:
    """Return a column as float64, with NaN for what is not a number."""
    kind = getattr(column.dtype, "kind", "O")
    if kind in "cmM":
        raise InvalidDataError(
            f"column {column.name!r}: expected {expected}, found {column.dtype} values"
        )
    if kind not in "buif":
        column = pd.to_numeric(column.astype(object), errors="coerce")
    return np.array(column.to_numpy(dtype=np.float64, na_value=np.nan))


def _values(column: Column) -> Floats:
    expected = "a finite number that is not negative"
    values = _numbers(column, expected)
    valid = np.isfinite(values) & (values >= 0)
    if not valid.all():
        raise _fault(column, valid, expected)
    return values


def _timestamps(column: Column) -> Integers:
    expected = "a whole number or a date"
    missing = column.isna().to_numpy()
    if missing.any():
        raise _fault(column, ~missing, expected)
    if pd.api.types.infer_dtype(column) in ("datetime64", "datetime", "date"):
        try:
            dates = pd.to_datetime(column, utc=True).dt.tz_localize(None).dt.as_unit("ns")
            return dates.to_numpy().astype(np.int64)
        except (ValueError, TypeError) as error:  # for example dates outside 1677..2262
            raise InvalidDataError(f"column {column.name!r}: {error}") from error
    if pd.api.types.is_integer_dtype(column.dtype):
        valid = (column <= np.iinfo(np.int64).max).to_numpy(dtype=bool)
        if not valid.all():
            raise _fault(column, valid, expected)
        return column.to_numpy(dtype=np.int64, copy=True)
    if pd.api.types.is_bool_dtype(column.dtype) or pd.api.types.is_string_dtype(column):
        raise _fault(
            column,
            np.zeros(len(column), dtype=bool),
            f"{expected} (pandas.to_datetime reads dates from text)",
        )
    numbers = _numbers(column, expected)
    # 2**63 is the smallest positive float64 that int64 cannot hold.
    valid = (np.abs(numbers) < 2.0**63) & (np.floor(numbers) == numbers)
    if not valid.all():
        raise _fault(column, valid, f"{expected} (use a finer unit for fractions)")
    return numbers.astype(np.int64)
