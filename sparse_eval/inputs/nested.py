"""Convert mappings by user, and lists in columns, to tables with a row for each item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.arrays import describe
from ..errors import InvalidDataError
from .axes import Axis, order_of

if TYPE_CHECKING:
    from ..core.types import Items


def rows_by_user(given: Mapping[Any, Any], name: str, column: Literal["score", "gain"]) -> Any:
    """Return a frame with a row for each item of a user.

    Parameters
    ----------
    given : mapping
        For each user a list of items, best first, or a mapping of items to numbers.
    name : str
        Its name in messages.
    column : {"score", "gain"}
        The meaning of the numbers. The ranks of lists are in the column "rank".
    """
    import pandas as pd

    users: list[Any] = []
    items: list[Any] = []
    numbers: list[Any] = []
    are_mappings = set()
    for user, row in given.items():
        has_no_order = column == "score" and isinstance(row, Set)
        if isinstance(row, str | bytes) or not isinstance(row, Iterable) or has_no_order:
            raise InvalidDataError(
                f"{name} of user {user!r} is {describe(row)}; expected a list of items, or a "
                "mapping of items to numbers",
                user=user,
            )
        listed = list(row)
        users += [user] * len(listed)
        items += listed
        numbers += row.values() if isinstance(row, Mapping) else range(1, len(listed) + 1)
        are_mappings.add(isinstance(row, Mapping))
    if len(are_mappings) > 1:
        raise InvalidDataError(
            f"{name} has lists of items for some users and mappings for others; use only one of "
            "them"
        )
    ids = {"user": pd.Series(users, dtype=object), "item": pd.Series(items, dtype=object)}
    if True in are_mappings:
        return pd.DataFrame({**ids, column: np.array(numbers, float)})
    return pd.DataFrame({**ids, "rank": np.array(numbers, int)})


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
        items = Axis.of(list(dict.fromkeys(flat)), "ids")
        items = items.take(order_of(items))
        codes = items.locate(flat)
    table: Items = np.full((len(lists), max(sizes)), -1, np.int64)
    table[np.arange(max(sizes)) < np.array(sizes)[:, None]] = codes
    return table, items


def of_series(given: Any) -> Any:
    """Return a Series of pandas, with a list or mapping for each user, as a mapping by user."""
    is_series = type(given).__module__.partition(".")[0] == "pandas" and hasattr(given, "to_dict")
    return given.to_dict() if is_series and not hasattr(given, "columns") else given
