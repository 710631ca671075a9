"""`CountedLists`: what counts alone say of the lists of many users."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ..errors import InvalidMetricError

if TYPE_CHECKING:
    from .totals import ListCounts


class CountedLists:
    """The attributes of `Lists` for which counts of users and items are enough."""

    def __init__(self, k: int, counts: ListCounts, groups: list[int]) -> None:
        self.k = k
        self.n_users = int(counts.n_users[groups].sum())
        self.n_listed = int(counts.n_listed[groups].sum())
        self.item_counts = counts.item_counts[groups].sum(axis=0)
        self.n_items = len(self.item_counts)

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidMetricError(
            f"a number about all lists reads their {name}, and can only be computed of lists that "
            "are in memory together: of blocks it may read k, n_users, n_listed, n_items and "
            "item_counts"
        )
