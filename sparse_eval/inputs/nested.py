"""Convert mappings by user, and lists in columns, to tables with a row for each item."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.arrays import column_names, describe
from ..errors import InvalidDataError
from .axes import Axis, order_of
from .columns import role_of
from .tables import engine_of

if TYPE_CHECKING:
    import pyarrow as pa

    from ..core.types import Items

#: A column for the items at one rank, such as "rec_1".
_NUMBERED = re.compile(r"(?P<stem>.*?)_?(?P<number>[0-9]+)")


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


def rows_of_columns(frame: Any) -> pa.Table | None:
    """Return lists that are in one column, or in a column for each rank, as a row for each item.

    Returns None for a frame with a row for each item.
    """
    import pyarrow as pa

    engine, names = engine_of(frame), column_names(frame)
    users = [name for name in names if role_of(name) == "user"]
    is_by_item = any(role_of(name) in ("rank", "score") for name in names)
    if engine in (None, "dask", "pyspark") or len(users) != 1 or is_by_item:
        return None
    others = [name for name in names if name not in users]
    wide = _wide(others)
    if engine == "pandas":
        first = frame.iloc[:1].to_numpy().flat
        if not wide and not any(isinstance(cell, list | tuple | np.ndarray) for cell in first):
            return None  # without converting all rows
        try:
            table = pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowException, OverflowError) as error:
            raise InvalidDataError(
                f"the lists cannot be read ({error}); give ids of one type, a row for each item, "
                "or a mapping of users to lists"
            ) from error
    elif engine == "polars":
        frame = frame.lazy()
        if not wide and not any(kind.is_nested() for kind in frame.collect_schema().dtypes()):
            return None  # without collecting it, as its reader does
        table = pa.table(frame.collect())
    else:
        table = pa.table(frame)
    user = _plain(table.column(users[0]))
    if wide:
        return _of_wide(user, [_plain(table.column(name)) for name in wide])
    lists = [name for name in others if hasattr(table.schema.field(name).type, "value_field")]
    return _of_lists(user, table.column(lists[0])) if len(lists) == 1 else None


def _wide(names: list[str]) -> list[str]:
    """Return columns that are numbered without a gap, by number."""
    by_stem: dict[str, list[tuple[int, str]]] = {}
    for name in names:
        if match := _NUMBERED.fullmatch(name):
            by_stem.setdefault(match["stem"], []).append((int(match["number"]), name))
    for _, named in sorted(by_stem.items()):  # rec_1, … before score_1, …, in any order
        numbered = sorted(named)
        first = numbered[0][0]
        if len(numbered) > 1 and [number for number, _ in numbered] == list(
            range(first, first + len(numbered))
        ):
            return [name for _, name in numbered]
    return []


def _plain(column: Any) -> Any:
    """Return a column of a type that Arrow can take rows of."""
    import pyarrow as pa
    from pyarrow import types

    dtype = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_string_view(dtype):
        dtype = pa.large_string()
    if types.is_dictionary(column.type):
        column = column.cast(pa.dictionary(pa.int32(), dtype))
    return column.cast(dtype)


def _of_lists(user: Any, lists: Any) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    sizes = pc.list_value_length(lists).fill_null(0).to_numpy()
    users = user.take(pa.array(np.repeat(np.arange(len(sizes)), sizes)))
    ranks = np.arange(1, len(users) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return pa.table({"user": users, "item": pc.list_flatten(lists), "rank": ranks})


def _of_wide(user: Any, columns: list[Any]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = []
    for rank, column in enumerate(columns, start=1):
        part = pa.table({"user": user, "item": column, "rank": np.full(len(column), rank)})
        parts.append(part.filter(pc.invert(pc.is_null(column, nan_is_null=True))))
    return pa.concat_tables(parts, promote_options="permissive")
