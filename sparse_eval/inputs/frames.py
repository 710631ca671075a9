"""Columns of frames of pandas: ranks, scores and the gains of events, checked."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.arguments import check_number
from ..core.csr import MAX_ITEMS
from ..core.mistaken import describe
from ..core.sorting import sort_pairs
from ..errors import InvalidDataError
from .scores import check_exact

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..core.types import AnyArray, Floats
    from ..datasets import Interactions
    from .axes import Axis


def order_values(df: pd.DataFrame, user: str, item: str, column: Any, *, whole: bool) -> Floats:
    """Return a column of ranks (`whole`) or scores, or raise; the first bad row is named."""
    from ..datasets.columns import column_of

    given = column_of(df, column)
    if given.dtype.kind not in "biuf":
        raise InvalidDataError(f"column {column!r} holds {given.dtype}; expected numbers")
    if not whole and given.dtype.kind in "iu":
        kind = np.uint64 if given.dtype.kind == "u" else np.int64
        check_exact(given.dropna().to_numpy(kind))
    values: Floats = given.to_numpy(np.float64, na_value=np.nan)
    valid = np.isfinite(values)
    if whole:
        valid &= (values >= 1) & (values <= MAX_ITEMS) & (values == np.floor(values))
    if not valid.all():
        row = int(np.flatnonzero(~valid)[0])
        expected = "a whole number of at least 1" if whole else "a finite number"
        raise InvalidDataError(
            f"row {row} of the frame, column {column!r} (user {df[user].iloc[row]!r}, item "
            f"{df[item].iloc[row]!r}): expected {expected}, found {values[row]:g}",
            row=row,
        )
    return values


def check_ranks_once(rows: AnyArray, ranks: Floats, users: Axis) -> None:
    """Raise if a user has a rank twice."""
    order = np.lexsort((ranks, rows))
    twice = (np.diff(rows[order]) == 0) & (np.diff(ranks[order]) == 0)
    if twice.any():
        first, second = order[int(twice.argmax())], order[int(twice.argmax()) + 1]
        raise InvalidDataError(
            f"rows {min(first, second)} and {max(first, second)} of the frame give user "
            f"{users[rows[first]]!r} the rank {ranks[first]:g} twice; a rank can be taken once",
            user=users[rows[first]],
        )


def event_gains(df: pd.DataFrame, user: str, event: Any, gains: Mapping[Any, float]) -> Floats:
    """Return the gain of each row's event."""
    from ..datasets.columns import column_of
    from ..datasets.labels import at, encode

    if not hasattr(gains, "items"):
        raise InvalidDataError(
            f"gains is {describe(gains)}; expected a mapping of events to gains, such as "
            "{'view': 1, 'purchase': 3}",
            argument="gains",
        )
    worth = {name: check_number(f"gains[{name!r}]", gain, 0) for name, gain in gains.items()}
    column = column_of(df, event)

    codes, index = encode(column, "event")
    names = index.tolist()
    unknown = [code for code, name in enumerate(names) if name not in worth]
    if unknown:
        row = int(np.isin(codes, unknown).argmax())
        raise InvalidDataError(
            f"row {row} of the frame, column {event!r} (user {at(df[user], row)!r}): the event "
            f"{names[codes[row]]!r} has no gain; add it to gains, with 0 if it is worth nothing, "
            "or leave such rows out",
            row=row,
        )
    return np.array([worth[name] for name in names], np.float64)[codes]


def largest_of_pairs(pairs: Interactions) -> Interactions:
    """Return each (user, item) once, with the largest of its values."""
    order, _, starts = sort_pairs(pairs.user_codes, pairs.item_codes, pairs.n_items)
    once = order[starts]
    return replace(
        pairs,
        user_codes=pairs.user_codes[once],
        item_codes=pairs.item_codes[once],
        values=np.maximum.reduceat(pairs.values[order], starts),
    )
