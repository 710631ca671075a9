"""Group users by label or activity, and items by popularity."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidDataError
from ..inputs.axes import Axis
from ..inputs.tables import exports_rows
from .label_table import label_table

if TYPE_CHECKING:
    from ..core.types import Booleans, Floats, Integers


class Segments(NamedTuple):
    """Groups, by name; `codes` has the index of each user's or item's group, -1 for none."""

    names: list[Any]
    codes: Integers


def by_label(groups: Any, n_users: int, users: Axis | None, counted: Booleans) -> Segments:
    """Group users by a label for each, given in order, keyed by user, or in a table by user."""
    import pandas as pd

    if isinstance(groups, Mapping):
        groups = pd.Series(list(groups.values()), index=pd.Index(list(groups)), dtype=object)
    named = Axis.numbers(n_users) if users is None else users
    if exports_rows(groups) or isinstance(groups, pd.DataFrame | Path):
        table = label_table(groups, "user", argument="groups", column="group")
        if len(table.columns) > 1:
            raise InvalidDataError(
                f"groups have the columns {', '.join(map(repr, table.columns))}; give one of them",
                argument="groups",
            )
        # As in comparisons, users match if they are the same as text.
        groups = table.iloc[:, 0].set_axis(table.index.map(str))
        named = Axis.unchecked(list(map(str, named)))
    if isinstance(groups, pd.Series):
        if groups.index.has_duplicates:
            user = groups.index[groups.index.duplicated()].tolist()[0]
            raise InvalidDataError(f"groups name user {user!r} twice; give each user one group")
        values = groups.reindex(named.index)
    else:
        entries = list(groups) if hasattr(groups, "__len__") else []
        if len(entries) != n_users or isinstance(groups, np.ma.MaskedArray):
            raise InvalidDataError(
                f"groups have {len(entries)} plain entries for {n_users} users; give one for each, "
                "or key them by user",
                argument="groups",
            )
        column = np.empty(n_users, object)
        column[:] = entries
        values = pd.Series(column)
    codes, names = pd.factorize(values, sort=False, use_na_sentinel=True)
    missing = np.flatnonzero((codes < 0) & counted)
    if len(missing):
        row = int(missing[0])
        user = row if users is None else users[row]
        raise InvalidDataError(
            f"user {user!r} has no group (evaluated users without one: {len(missing)}); give each "
            "a group, such as 'unknown'",
            user=user,
        )
    labels = list(names)
    order = list(range(len(labels)))
    with suppress(TypeError):  # labels of several types stay in order of appearance
        order = sorted(order, key=labels.__getitem__)
    ranks = np.empty(len(names) + 1, np.int64)
    ranks[order] = np.arange(len(names))
    ranks[-1] = -1
    return Segments([labels[i] for i in order], ranks[codes])


def by_activity(counts: Integers, counted: Booleans, n_bands: int) -> Segments:
    """Group users by their training items: none ("cold"), and bands of about equally many users."""
    return _bands(counts, np.ones(len(counts)) * counted, n_bands, "items")


def by_popularity(counts: Integers, n_bands: int) -> Segments:
    """Group items by their training users: none, and bands of about equally many interactions."""
    return _bands(counts, counts.astype(np.float64), n_bands, "users")


def _bands(counts: Integers, weights: Floats, n_bands: int, unit: str) -> Segments:
    """Divide counts above 0 into bands of about equal weight; equal counts stay together."""
    codes = np.zeros(len(counts), np.int64)
    warm = np.flatnonzero((counts > 0) & (weights > 0))
    order = warm[np.argsort(counts[warm], kind="stable")]
    names = ["cold"]
    if len(order):
        cumulative = np.cumsum(weights[order])
        shares = (cumulative - weights[order] / 2) / cumulative[-1]
        bands = np.minimum((shares * n_bands).astype(np.int64), n_bands - 1)
        levels, first = np.unique(counts[order], return_index=True)
        used, band_of_level = np.unique(bands[first], return_inverse=True)
        for band in range(len(used)):
            inside = levels[band_of_level == band]
            low, high = int(inside.min()), int(inside.max())
            names.append(f"{low} {unit}" if low == high else f"{low}–{high} {unit}")
        level = np.clip(np.searchsorted(levels, counts), 0, len(levels) - 1)
        codes = np.where(counts > 0, band_of_level[level] + 1, 0)
    return Segments(names, codes)
