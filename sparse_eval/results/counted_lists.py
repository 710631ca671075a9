"""`CountedLists`: what counts alone say of the lists of many users."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from ..errors import InvalidMetricError
from ..metrics.measure import value_of_lists

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.types import Integers
    from ..metrics.plan import Plan
    from .totals import ListCounts


class CountedLists:
    """The attributes of `Lists` for which counts of users and items are enough."""

    def __init__(self, k: int, n_users: int, n_listed: int, item_counts: Integers) -> None:
        self.k = k
        self.n_users = n_users
        self.n_listed = n_listed
        self.item_counts = item_counts
        self.n_items = len(item_counts)

    @classmethod
    def of_groups(cls, k: int, counts: ListCounts, groups: Sequence[int]) -> CountedLists:
        """Return the counts of some groups of users."""
        rows = list(groups)
        return cls(
            k,
            int(counts.n_users[rows].sum()),
            int(counts.n_listed[rows].sum()),
            counts.item_counts[rows].sum(axis=0),
        )

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidMetricError(
            f"a number about all lists reads their {name}, and can only be computed of lists that "
            "are in memory together: of blocks it may read k, n_users, n_listed, n_items and "
            "item_counts"
        )

    def apply(self, plan: Plan) -> float:
        """Return a metric of all these users together."""
        return value_of_lists(plan, self)
