"""Groups of users, and bands of items, by which an evaluation is broken down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..errors import InvalidDataError

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

__all__ = ["Segments", "by_activity", "by_label", "by_popularity"]


class Segments(NamedTuple):
    """A division: `names` in their order, and the place in it of each user or item, -1 for none."""

    names: list[Any]
    codes: Integers


def by_label(groups: Any, n_users: int, users: pd.Index[Any] | None, counted: Any) -> Segments:
    """Group users by a label for each: in order, or keyed by user."""
    import pandas as pd

    if isinstance(groups, Mapping):
        groups = pd.Series(list(groups.values()), index=pd.Index(list(groups)), dtype=object)
    if isinstance(groups, pd.Series):
        if groups.index.has_duplicates:
            twice = groups.index[groups.index.duplicated()].tolist()[0]
            raise InvalidDataError(f"groups name user {twice!r} twice; give each user one group")
        values = groups.reindex(pd.RangeIndex(n_users) if users is None else users)
    else:
        listed = list(groups) if hasattr(groups, "__len__") else []
        if len(listed) != n_users or isinstance(groups, np.ma.MaskedArray):
            raise InvalidDataError(
                f"groups have {len(listed)} plain entries for {n_users} users; give one for each, "
                "or key them by user"
            )
        column = np.empty(n_users, object)
        column[:] = listed
        values = pd.Series(column)
    try:
        codes, names = pd.factorize(values, sort=False, use_na_sentinel=True)
    except (TypeError, ValueError):
        raise InvalidDataError(
            "groups hold labels that cannot be hashed; expected one text or number for each user"
        ) from None
    lacking = (codes < 0) & counted
    if lacking.any():
        row = int(np.flatnonzero(lacking)[0])
        user = row if users is None else users.tolist()[row]
        raise InvalidDataError(
            f"user {user!r} has no group ({int(lacking.sum())} evaluated users lack one); give "
            "each one, such as 'unknown'"
        )
    labels = list(names)
    if any(isinstance(label, tuple) for label in labels):  # pandas would take them apart
        raise InvalidDataError(
            "groups hold tuples; expected one text or number for each user, such as 'b/1'"
        )
    try:
        order = sorted(range(len(labels)), key=labels.__getitem__)
    except TypeError:  # labels of several types: in the order they come
        order = list(range(len(labels)))
    place = np.empty(len(names) + 1, np.int64)
    place[order] = np.arange(len(names))
    place[-1] = -1
    return Segments([labels[i] for i in order], place[codes])


def by_activity(counts: Integers, counted: Any, n_bands: int) -> Segments:
    """Group users by their training items: those without any, and bands of about as many users."""
    return _bands(counts, np.ones(len(counts)) * counted, n_bands, "cold", "items")


def by_popularity(counts: Integers, n_bands: int) -> Segments:
    """Group items by their training users: bands of about as many interactions."""
    return _bands(counts, counts.astype(np.float64), n_bands, "cold", "users")


def _bands(
    counts: Integers, weights: NDArray[np.float64], n_bands: int, none: str, unit: str
) -> Segments:
    """Cut counts above 0 into bands of about equal weight; equal counts stay together."""
    codes = np.zeros(len(counts), np.int64)
    warm = np.flatnonzero((counts > 0) & (weights > 0))
    order = warm[np.argsort(counts[warm], kind="stable")]
    names = [none]
    if len(order):
        reached = np.cumsum(weights[order])
        share = (reached - weights[order] / 2) / reached[-1]
        bands = np.minimum((share * n_bands).astype(np.int64), n_bands - 1)
        levels, first = np.unique(counts[order], return_index=True)
        band_of_level = bands[first]
        kept, band_of_level = np.unique(band_of_level, return_inverse=True)
        for band in range(len(kept)):
            mine = levels[band_of_level == band]
            low, high = int(mine.min()), int(mine.max())
            names.append(f"{low} {unit}" if low == high else f"{low}–{high} {unit}")
        level = np.clip(np.searchsorted(levels, counts), 0, len(levels) - 1)
        codes = np.where(counts > 0, band_of_level[level] + 1, 0)
    return Segments(names, codes)
