"""Encoding user and item ids as 0..n-1, independently of the order of the rows."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pandas as pd

from ..errors import InvalidDataError
from ..inputs.axes import Axis

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from numpy.typing import NDArray

    from ..core.types import AnyArray

#: A column of a frame; pandas has no narrower type for a series of any values.
Column: TypeAlias = "pd.Series[Any]"

# Leading zeros and plus signs would be lost in an int64: '007' and '7' are different ids.
_INTEGER = re.compile(r"(?:0|-?[1-9][0-9]{0,18})", re.ASCII)


def vocabulary() -> defaultdict[str, int]:
    """Return a dict that numbers its keys 0, 1, … in the order in which they are looked up."""
    return defaultdict(count().__next__)


def text_labels(labels: Sequence[str]) -> pd.Index[Any]:
    """Return ids that were read as text: an int64 index if all are integers, otherwise text."""
    if all(map(_INTEGER.fullmatch, labels)):
        numbers = list(map(int, labels))
        if not numbers or (min(numbers) >= -(2**63) and max(numbers) < 2**63):
            return pd.Index(np.array(numbers, dtype=np.int64))
    return pd.Index(list(labels))


def sort_labels(labels: pd.Index[Any]) -> tuple[Axis, NDArray[np.intp]]:
    """Return distinct labels in order, and the position of each given label in that order.

    Numbers are sorted by value, text lexicographically, and others by type and text.
    """
    if pd.api.types.is_integer_dtype(labels.dtype):
        numbers = labels.to_numpy(dtype=np.uint64 if labels.max() > 2**63 - 1 else np.int64)
        order = np.argsort(numbers)
        result: pd.Index[Any] = pd.Index(numbers[order])
    else:
        values = labels.tolist()
        types = {type(value) for value in values}
        keys = values
        if not (types <= {int, float} or types == {str}):
            keys = [(type(value).__name__, str(value)) for value in values]
        order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
        result = labels.take(order)
    positions = np.empty(len(order), dtype=np.intp)
    positions[order] = np.arange(len(order))
    return Axis.unchecked(result), positions


def at(column: Column, row: int) -> object:
    """Return one value of a column as a Python object: 1.5, not np.float64(1.5)."""
    return column.iloc[[row]].tolist()[0]


def check_labels(labels: Axis | Sequence[Hashable], role: str) -> Axis:
    """Return given labels, or raise if one is missing or repeated."""
    return Axis.of(labels, f"{role}s")


def encode(column: Column, role: str, index: Axis | None = None) -> tuple[NDArray[np.int32], Axis]:
    """Return the codes of a column of ids and their labels: code i stands for label i.

    The labels are those of `index`, by default the sorted distinct ids. The categories of a
    categorical column are used as they are, except unused ones. Raise `InvalidDataError` if an id
    is missing, not in `index`, or equal to an id of another type.
    """
    missing = column.isna().to_numpy()
    if missing.any():
        raise _missing_id(column, int(np.argmax(missing)), role)
    codes, labels = _factorize(column, role)
    blank = [
        code
        for code, label in enumerate(labels.tolist())
        if isinstance(label, str) and not label.strip()
    ]
    if blank:
        raise _missing_id(column, int(np.argmax(np.isin(codes, blank))), role)
    if index is None:
        index, positions = sort_labels(labels)
    else:
        positions = index.locate(labels)
        unknown = positions[codes] < 0
        if unknown.any():
            row = int(np.argmax(unknown))
            raise InvalidDataError(
                f"row {row}, column {column.name!r}: {at(column, row)!r} is not one of the "
                f"{len(index):,} given {role}s ({', '.join(map(repr, index[:1]))}, …); leave the "
                "row out or add the label"
            )
    return positions[codes].astype(np.int32), index


def _missing_id(column: Column, row: int, role: str) -> InvalidDataError:
    return InvalidDataError(
        f"row {row}, column {column.name!r}: the {role} id is missing ({at(column, row)!r}); "
        "every interaction needs one"
    )


def _factorize(column: Column, role: str) -> tuple[NDArray[np.intp], pd.Index[Any]]:
    """Return codes and the distinct ids, in any order."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy()
        used = np.bincount(codes, minlength=len(column.cat.categories)) > 0
        return (np.cumsum(used) - 1)[codes], column.cat.categories[used]
    if column.dtype == object and pd.api.types.infer_dtype(column) not in ("string", "integer"):
        return _factorize_objects(column, role)
    codes, labels = pd.factorize(column)
    if pd.api.types.is_float_dtype(labels.dtype):
        labels = labels + 0.0  # -0.0 and 0.0 are one id, whichever comes first
    return codes.astype(np.intp), pd.Index(labels.tolist() if column.dtype == object else labels)


def _factorize_objects(column: Column, role: str) -> tuple[NDArray[np.intp], pd.Index[Any]]:
    """Factorize ids of several types, among which pandas would not tell 1, 1.0 and True apart."""
    numbers: defaultdict[tuple[type, Hashable], int] = defaultdict(count().__next__)
    codes = np.empty(len(column), dtype=np.intp)
    for row, value in enumerate(column.tolist()):
        label = value.item() if isinstance(value, np.generic) else value
        try:
            codes[row] = numbers[type(label), label]
        except TypeError:
            raise InvalidDataError(
                f"row {row}, column {column.name!r}: {label!r} cannot be an id, because it is not "
                "hashable; expected text or a number",
                row=row,
            ) from None
    distinct: dict[Hashable, Hashable] = {}
    for _, label in numbers:
        if label in distinct:
            raise InvalidDataError(
                f"column {column.name!r}: the {role} ids {distinct[label]!r} and {label!r} are "
                "equal but of different types; convert the column to one type"
            )
        distinct[label] = label
    labels = np.empty(len(distinct), dtype=object)
    labels[:] = list(distinct)
    return codes, pd.Index(labels, dtype=object)


def label_array(name: str, labels: Axis) -> AnyArray:
    """Return labels as an array that NumPy stores without pickle.

    Raises
    ------
    InvalidDataError
        If they are neither all text nor all int64.
    """
    if labels.dtype == np.int64:
        return labels.to_numpy()
    texts = labels.tolist()
    if all(isinstance(text, str) for text in texts):
        array = np.array(texts, dtype=np.str_)
        if array.tolist() == texts:  # NumPy drops trailing NUL characters
            return array
    raise InvalidDataError(
        f"{name}: only labels that are all text or all int64 can be saved, and text without a null "
        f"character at its end; rename them first, for example with {name}.map(str)"
    )
