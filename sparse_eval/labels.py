"""Labels of users and items: any hashable ids outside, row and column numbers inside."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from .errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

__all__ = ["encode", "require_columns"]


def encode(ids: pd.Series[Any], name: str) -> tuple[NDArray[np.int64], pd.Index[Any]]:
    """Give numbers to the distinct ids of a column.

    Parameters
    ----------
    ids : pandas.Series
        Any hashable values.
    name : str
        What the column is called in an error.

    Returns
    -------
    codes : ndarray of int64
        For each row the place of its id in `labels`.
    labels : pandas.Index
        The distinct ids in order: numbers by value, text alphabetically, mixed types by the name
        of the type and then as text. The order of the rows has no influence.

    Raises
    ------
    InvalidDataError
        If an id is missing or cannot be hashed. The row is named.
    """
    missing = ids.isna().to_numpy()
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        raise InvalidDataError(f"column {name!r} has no id in row {row}; every row needs one")
    try:
        codes, distinct = pd.factorize(ids)
    except TypeError:
        row, value = next((i, v) for i, v in enumerate(ids) if not _is_hashable(v))
        raise InvalidDataError(
            f"column {name!r}, row {row} is a {type(value).__name__}; expected an id that can be "
            "hashed, such as a string or a number"
        ) from None
    labels = pd.Index(distinct)
    try:
        order = labels.argsort()
    except TypeError:  # types that have no order among each other
        keys = [(type(label).__name__, str(label)) for label in labels]
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    return place[codes], labels[order]


def require_columns(df: pd.DataFrame, columns: Iterable[Any]) -> None:
    """Raise `InvalidDataError` unless `df` is a frame that has `columns`."""
    if not isinstance(df, pd.DataFrame):
        raise InvalidDataError(f"expected a pandas.DataFrame, got a {type(df).__name__}")
    for column in columns:
        if column not in df.columns:
            near = difflib.get_close_matches(str(column), [str(c) for c in df.columns], n=1)
            hint = f"did you mean {near[0]!r}?" if near else "name the column to use"
            raise InvalidDataError(
                f"the frame has no column {column!r}, only {list(map(str, df.columns))}; {hint}"
            )


def _is_hashable(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
