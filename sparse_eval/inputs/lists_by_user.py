"""Convert mappings by user, and lists in columns, to tables with a row for each item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.arrays import describe
from ..errors import InvalidDataError
from .axes import as_labels, encode

if TYPE_CHECKING:
    from ..core.types import Items
    from .axes import Axis


def rows_by_user(given: Mapping[Any, Any], name: str, column: Literal["score", "gain"]) -> Any:
    """Return a frame with a row for each item of a user.

    Parameters
    ----------
    given : mapping
        For each user a list of items, best first; or numbers of items, as a mapping, as pairs
        ``[(item, number), …]``, or as a Series whose index has the items.
    name : str
        Its name in messages.
    column : {"score", "gain"}
        The meaning of the numbers. The ranks of lists are in the column "rank".
    """
    import pandas as pd

    users: list[Any] = []
    items: list[Any] = []
    numbers: list[Any] = []
    are_numbered = set()
    for user, row in given.items():
        has_no_order = column == "score" and isinstance(row, Set)
        if isinstance(row, str | bytes) or not isinstance(row, Iterable) or has_no_order:
            raise InvalidDataError(
                f"{name} of user {user!r} is {describe(row)}; expected a list of items, or a "
                "mapping of items to numbers",
                user=user,
            )
        listed, values = _numbered(row, f"{name} of user {user!r}")
        users += [user] * len(listed)
        items += listed
        numbers += range(1, len(listed) + 1) if values is None else values
        are_numbered |= {values is not None} if listed else set()
    if len(are_numbered) > 1:
        raise InvalidDataError(
            f"{name} has lists of items for some users, and items with numbers for others; use "
            "only one of them"
        )
    ids = {"user": pd.Series(users, dtype=object), "item": pd.Series(items, dtype=object)}
    if True in are_numbered:
        return pd.DataFrame({**ids, column: pd.Series(numbers, dtype=object)})
    return pd.DataFrame({**ids, "rank": np.array(numbers, int)})


def _numbered(row: Iterable[Any], name: str) -> tuple[list[Any], list[Any] | None]:
    """Return the items of a user, and their numbers, None for a list of only items.

    Raises `InvalidDataError` if numbers could be items as well.
    """
    if isinstance(row, Mapping):
        return list(row), list(row.values())
    if hasattr(row, "index") and hasattr(row, "dtype"):  # a Series of pandas
        series: Any = row
        index, values = series.index.tolist(), series.tolist()
        if not values:
            return [], None
        has_items = not (hasattr(series.index, "step") and index == list(range(len(index))))
        if not all(map(_is_number, values)) or (not has_items and all(map(_is_whole, values))):
            return values, None
        if has_items and not all(map(_is_whole, [*index, *values])):
            return index, values
        raise InvalidDataError(
            f"{name} is a Series of numbers, which could be items or scores; pass .tolist() of "
            "items, or .to_dict() of scores with items as the index"
        )
    listed = list(row)
    if not (listed and all(isinstance(pair, tuple) and len(pair) == 2 for pair in listed)):
        return listed, None
    items, numbers = map(list, zip(*listed, strict=True))
    if not all(map(_is_number, numbers)):
        return listed, None
    if any(_is_number(item) and not _is_whole(item) for item in items) or all(
        map(_is_whole, [*items, *numbers])
    ):
        raise InvalidDataError(
            f"{name} has pairs of numbers, such as {listed[0]!r}; pass a mapping of items to "
            "numbers, which shows which of them are items"
        )
    return items, numbers


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer)


def pad_lists(lists: Any) -> tuple[Any, Axis | None]:
    """Return lists as an array of item numbers padded with -1, and the items' labels.

    Lists of whole numbers have no labels. Anything but a sequence of sequences is kept as it is.
    """
    if not (
        isinstance(lists, list | tuple)
        and lists
        and all(isinstance(row, Sequence | np.ndarray) for row in lists)
        and not any(isinstance(row, str | bytes) for row in lists)
    ):
        return lists, None
    if any(getattr(row, "ndim", 1) > 1 for row in lists):
        raise InvalidDataError(
            "ids is a pair of arrays, such as the ids and scores from recommend; pass only the ids"
        )
    sizes = [len(row) for row in lists]
    flat = list(chain.from_iterable(lists))
    numbers = all(isinstance(item, int | np.integer) for item in flat)
    if numbers and len(set(sizes)) == 1:
        return lists, None
    items = None
    codes: Any = flat
    if not numbers:
        import pyarrow as pa

        (codes,), items = encode([pa.array(as_labels(flat, "ids"))])
    table: Items = np.full((len(lists), max(sizes)), -1, np.int64)
    table[np.arange(max(sizes)) < np.array(sizes)[:, None]] = codes
    return table, items


def of_series(given: Any) -> Any:
    """Return a Series of pandas, with a list or mapping for each user, as a mapping by user."""
    is_series = type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "to_dict")
    if not is_series or hasattr(given, "columns"):
        return given
    if not given.index.is_unique:
        user = given.index[given.index.duplicated()].tolist()[0]
        raise InvalidDataError(f"the Series has several lists of user {user!r}", user=user)
    return given.to_dict()
