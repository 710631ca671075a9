"""Propensities that are given: the chance of each item to be observed where it is relevant."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.hashing import fingerprints
from ..errors import InvalidDataError
from .axes import Axis
from .item_data import as_numbers, as_series, by_item, check_keyed, item_name

if TYPE_CHECKING:
    from typing import Self

    from ..core.types import AnyArray, Booleans, Floats


def as_propensity(propensity: Any, n_items: int, labels: Axis | None) -> tuple[Floats, Axis | None]:
    """Return propensities in the order of the items, and the labels of all items.

    Raises
    ------
    InvalidDataError
        If an item has none, or one that is no number above 0 and at most 1.
    """
    chances, labels = by_item(propensity, "propensity", n_items, labels)
    chances = as_numbers(chances, "propensity", 1, "a number for each item")
    wrong = ~((chances > 0) & (chances <= 1))
    if wrong.any():
        item = int(np.flatnonzero(wrong)[0])
        raise InvalidDataError(
            f"propensity of item {item_name(item, labels)} is {chances[item]}; expected numbers "
            "above 0 and at most 1"
        )
    return chances, labels


def digest_by_item(values: AnyArray, labels: Axis | None) -> str:
    """Return 16 hexadecimal digits that identify numbers by item, whatever their order.

    Items with a 0 do not count: some evaluations know more of them than others.
    """
    items = np.flatnonzero(values)
    if labels is not None and len(labels) < len(values):
        labels = None
    (digest,) = fingerprints(
        np.array([0, len(items)]),
        items,
        values[items],
        None if labels is None else labels.item_keys,
    )
    return f"{int(digest):016x}"


@dataclass(frozen=True, eq=False)
class KeyedPropensity:
    """Propensities by id, for blocks of tables that number items in their own ways.

    Attributes
    ----------
    labels : Axis
    values : ndarray of float64
    digest : str
        As from `digest_by_item`.
    """

    labels: Axis
    values: Floats
    digest: str

    @classmethod
    def of(cls, propensity: Any) -> Self:
        """Check propensities by item.

        Raises
        ------
        InvalidDataError
            As from `as_propensity`, or if they are not keyed by item.
        """
        check_keyed(propensity, "propensity")
        if isinstance(propensity, Mapping):
            propensity = as_series(propensity)
        values, labels = as_propensity(propensity, 0, Axis.unchecked(propensity.index))
        assert labels is not None  # noqa: S101 - they are keyed
        return cls(labels, values, digest_by_item(values, labels))

    def union(self, items: AnyArray) -> AnyArray:
        """Return these items and all that have a propensity, sorted."""
        labels = self.labels.to_numpy()
        if items.dtype != object and self.labels.is_integer:
            labels = labels.astype(items.dtype)
        elif items.dtype != object or not self.labels.is_text:
            return items  # ids of another type, which `of_items` refuses
        union: AnyArray = np.union1d(items, labels.astype(items.dtype))
        return union

    def of_items(self, ids: AnyArray, used: Booleans) -> Floats:
        """Return those of some items, 1 for an item that is not used.

        Raises
        ------
        InvalidDataError
            If an item that is used has none.
        """
        places = self.labels.locate(ids)
        missing = np.flatnonzero(used & (places < 0))
        if len(missing):
            raise InvalidDataError(
                f"propensity has no entry for item {ids[missing[:1]].tolist()[0]!r}; give every "
                "item of the tables one",
                argument="propensity",
            )
        chances: Floats = np.where(places < 0, 1.0, self.values[places])
        return chances
