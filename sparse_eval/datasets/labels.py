"""Encoding ids as 0..n-1, in an order that does not depend on the order of the rows."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

__all__ = ["at", "check_labels", "encode", "sort_labels", "text_labels", "vocabulary"]

# Leading zeros and plus signs would be lost in an int64: '007' and '7' are different ids.
_INTEGER = re.compile(r"(?:0|-?[1-9][0-9]{0,17})", re.ASCII)


def vocabulary() -> defaultdict[str, int]:
    """Return a dict that numbers its keys 0, 1, … in the order in which they are asked for."""
    return defaultdict(count().__next__)


def text_labels(labels: Sequence[str]) -> pd.Index[Any]:
    """Return ids read from text as an int64 index when all of them are integers, else as text."""
    if all(map(_INTEGER.fullmatch, labels)):
        return pd.Index(np.array(list(map(int, labels)), dtype=np.int64))
    return pd.Index(list(labels))


def sort_labels(labels: pd.Index[Any]) -> tuple[pd.Index[Any], NDArray[np.intp]]:
    """Sort distinct labels: numbers by value, text lexicographically, others by type and text.

    Returns
    -------
    (pandas.Index, ndarray)
        The sorted labels, and the place of each given label among them.
    """
    if pd.api.types.is_integer_dtype(labels.dtype):
        numbers = labels.to_numpy(dtype=np.uint64 if labels.max() > 2**63 - 1 else np.int64)
        order = np.argsort(numbers)
        result = pd.Index(numbers[order])
    else:
        values = labels.tolist()
        kinds = {type(value) for value in values}
        keys = values
        if not (kinds <= {int, float} or kinds == {str}):
            keys = [(type(value).__name__, str(value)) for value in values]
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
        result = labels.take(order)
    places = np.empty(len(order), dtype=np.intp)
    places[order] = np.arange(len(order))
    return result, places


def at(column: pd.Series[Any], row: int) -> object:
    """Return one value of a column as Python writes it: 1.5, not np.float64(1.5)."""
    return column.iloc[[row]].tolist()[0]


def check_labels(labels: pd.Index[Any] | Sequence[Hashable], role: str) -> pd.Index[Any]:
    """Return given labels as an index, after a check that they are present and distinct.

    Raises
    ------
    InvalidDataError
        When a label is missing or there twice.
    """
    index = labels if isinstance(labels, pd.Index) else pd.Index(list(labels))
    if index.hasnans:
        raise InvalidDataError(f"{role}s: label {int(np.argmax(index.isna()))} is missing")
    if not index.is_unique:
        twice = index[index.duplicated()][0]
        raise InvalidDataError(f"{role}s: the label {twice!r} is there twice; give each once")
    return index


def encode(
    column: pd.Series[Any], role: str, index: pd.Index[Any] | None = None
) -> tuple[NDArray[np.int32], pd.Index[Any]]:
    """Encode a column of ids.

    Parameters
    ----------
    column : pandas.Series
        Ids; a categorical is taken as already numbered, its unused categories are left out.
    role : str
        "user" or "item", for the messages.
    index : pandas.Index, optional
        The labels to encode with; default: the sorted distinct ids.

    Returns
    -------
    (ndarray of int32, pandas.Index)
        Code i stands for label i.

    Raises
    ------
    InvalidDataError
        When an id is missing, not hashable, outside `index`, or equal to an id of another type.
    """
    missing = column.isna().to_numpy()
    if missing.any():
        raise _missing(column, int(np.argmax(missing)), role)
    codes, labels = _factorize(column, role)
    blank = [code for code, label in enumerate(labels) if isinstance(label, str) and _blank(label)]
    if blank:
        raise _missing(column, int(np.argmax(np.isin(codes, blank))), role)
    if index is not None:
        places = index.get_indexer(labels)
        outside = places[codes] < 0
        if outside.any():
            row = int(np.argmax(outside))
            raise InvalidDataError(
                f"row {row}, column {column.name!r}: {at(column, row)!r} is not one of the "
                f"{len(index):,} given {role}s ({index.dtype} labels); leave the row out or add "
                "the label"
            )
        return places[codes].astype(np.int32), index
    result, places = sort_labels(labels)
    return places[codes].astype(np.int32), result


def _blank(label: str) -> bool:
    return not label or label.isspace()


def _missing(column: pd.Series[Any], row: int, role: str) -> InvalidDataError:
    return InvalidDataError(
        f"row {row}, column {column.name!r}: the {role} id is missing ({at(column, row)!r}); "
        "every interaction needs one"
    )


def _factorize(column: pd.Series[Any], role: str) -> tuple[NDArray[np.intp], pd.Index[Any]]:
    """Return numbers for the distinct ids in any order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy()
        used = np.bincount(codes, minlength=len(column.cat.categories)) > 0
        return (np.cumsum(used) - 1)[codes], column.cat.categories[used]
    if column.dtype == object and pd.api.types.infer_dtype(column) not in ("string", "integer"):
        return _factorize_objects(column, role)
    codes, labels = pd.factorize(column)
    if pd.api.types.is_float_dtype(labels.dtype):
        labels = labels + 0.0  # -0.0 and 0.0 are one id, whichever came first
    return codes.astype(np.intp), pd.Index(labels.tolist() if column.dtype == object else labels)


def _factorize_objects(column: pd.Series[Any], role: str) -> tuple[NDArray[np.intp], pd.Index[Any]]:
    """Do the same for ids of several types, where pandas would take 1, 1.0 and True for one."""
    numbers: defaultdict[tuple[type, Hashable], int] = defaultdict(count().__next__)
    codes = np.empty(len(column), dtype=np.intp)
    for row, value in enumerate(column.tolist()):
        label = value.item() if isinstance(value, np.generic) else value
        try:
            codes[row] = numbers[type(label), label]
        except TypeError:
            raise InvalidDataError(
                f"row {row}, column {column.name!r}: {label!r} cannot be a {role} id, "
                "because it is not hashable; expected text or a number"
            ) from None
    first: dict[Hashable, Hashable] = {}
    for _, label in numbers:
        if label in first:
            raise InvalidDataError(
                f"column {column.name!r}: the {role} ids {first[label]!r} and {label!r} are equal "
                "but of different types; convert the column to one type"
            )
        first[label] = label
    labels = np.empty(len(first), dtype=object)
    labels[:] = list(first)
    return codes, pd.Index(labels, dtype=object)
