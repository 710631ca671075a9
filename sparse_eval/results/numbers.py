"""The numbers of each metric over all users: from their block, or from the totals of blocks."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np

from ..core.exact_sums import Moments
from ..errors import InvalidMetricError
from ..metrics.columns import ratio_of
from ..metrics.measure import value_of_lists
from .intervals import (
    N_GROUPS,
    Interval,
    interval_of_mean,
    interval_of_moments,
    interval_of_replicates,
    jackknife,
    rests_on_few,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import Floats, Integers
    from ..metrics.plan import Plan
    from ..metrics.request import Request
    from .block import BlockResult
    from .totals import ListCounts, ListSums, Ratios, Totals


class Numbers(ABC):
    """The numbers of each metric, given by its position, over the users that count for it."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self._replicates: dict[int, Floats] = {}

    @abstractmethod
    def value(self, row: int) -> float:
        """Return the mean, or the one number about all users."""

    @abstractmethod
    def moments(self, row: int) -> Moments:
        """Return the sums of the values of the users, empty where there are none."""

    def group_sizes(self, row: int) -> Integers:
        """Return the number of users that count in each group of the jackknife."""
        raise NotImplementedError

    def _interval_of_mean(self, row: int, level: float) -> Interval:
        raise NotImplementedError

    def _overall_of(self, row: int) -> Callable[[int | None], float]:
        """Return a function that computes a number about all users but those of a group."""
        raise NotImplementedError

    def count(self, row: int) -> int:
        """Return the number of users in the mean."""
        if self.request.plans[row].per_user:
            return self.moments(row).n
        return int(self.group_sizes(row).sum())

    def std(self, row: int) -> float:
        """Return the standard deviation of the users' values, with n − 1; NaN without any."""
        return self.moments(row).std if self.request.plans[row].per_user else math.nan

    def interval(self, row: int, mean: float, level: float) -> Interval:
        """Return the confidence interval."""
        if self.request.plans[row].per_user:
            return self._interval_of_mean(row, level)
        return interval_of_replicates(mean, self.replicates(row), level)

    def rests_on_few(self, row: int) -> bool:
        """Return whether too few users make up a mean for its interval to reach its level."""
        plan = self.request.plans[row]
        return plan.per_user and rests_on_few(self.moments(row), plan.definition.lower < 0)

    def replicates(self, row: int) -> Floats:
        """Return the jackknife replicates of a number about all users."""
        if row not in self._replicates:
            overall = self._overall_of(row)
            without = np.array([overall(group) for group in range(N_GROUPS)])
            self._replicates[row] = jackknife(self.value(row), without, self.group_sizes(row))
        return self._replicates[row]


class BlockNumbers(Numbers):
    """The numbers of a block of users whose lists were kept."""

    def __init__(self, block: BlockResult) -> None:
        super().__init__(block.request)
        self._block = block

    def value(self, row: int) -> float:
        """Return the mean, or the one number about all users."""
        if row in self._block.overall:
            return self._block.overall[row]
        return self._block.value_over(row, self._block.users_of(row))

    def count(self, row: int) -> int:
        """Return the number of users in the mean."""
        return len(self._block.users_of(row))

    def moments(self, row: int) -> Moments:
        """Return the sums of the values of the users, empty where there are none."""
        return self._block.moments(row)

    def group_sizes(self, row: int) -> Integers:
        """Return the number of users that count in each group of the jackknife."""
        groups = self._block.groups[self._block.users_of(row)]
        return np.bincount(groups, minlength=N_GROUPS)

    def _interval_of_mean(self, row: int, level: float) -> Interval:
        users = self._block.users_of(row)
        return interval_of_mean(self._block.columns.values[row, users], level)

    def _overall_of(self, row: int) -> Callable[[int | None], float]:
        block = self._block
        if self.request.plans[row].is_micro:
            return partial(_micro_average, self.request.plans[row], block.ratios(row))
        users = block.users_of(row)
        groups = block.groups[users]

        def overall(left_out: int | None) -> float:
            kept = users if left_out is None else users[groups != left_out]
            return block.value_over(row, kept) if len(kept) else math.nan

        return overall


class SavedNumber(NamedTuple):
    """A number about all users as it was saved, and its replicates, None where they were not."""

    value: float
    replicates: Floats | None


class TotalsNumbers(Numbers):
    """The numbers of merged blocks.

    Numbers about all users that were saved are not computed again, because that may take what is
    not at hand: the lists, or a metric that is registered elsewhere.
    """

    def __init__(self, request: Request, totals: Totals, saved: dict[int, SavedNumber]) -> None:
        super().__init__(request)
        self._totals = totals
        self._saved = saved

    def value(self, row: int) -> float:
        """Return the mean, or the one number about all users."""
        if self.request.plans[row].per_user:
            return self._totals.moments[row].mean
        return self._saved[row].value if row in self._saved else self._overall_of(row)(None)

    def moments(self, row: int) -> Moments:
        """Return the sums of the values of the users, empty where there are none."""
        return self._totals.moments[row]

    def group_sizes(self, row: int) -> Integers:
        """Return the number of users that count in each group of the jackknife."""
        if self.request.plans[row].is_micro:
            return np.array([above.n for above, _ in self._totals.ratios[row]])
        if row in self._totals.list_sums:
            return self._totals.list_sums[row].n_users
        return self._list_counts(row).n_users

    def replicates(self, row: int) -> Floats:
        """Return the jackknife replicates of a number about all users."""
        if row not in self._saved:
            return super().replicates(row)
        replicates = self._saved[row].replicates
        if replicates is not None:
            return replicates
        try:
            return super().replicates(row)
        except InvalidMetricError:  # of a baseline, whose replicates are not saved
            return np.empty(0)

    def _interval_of_mean(self, row: int, level: float) -> Interval:
        sample = self._totals.samples[row]
        if sample is not None:
            return interval_of_mean(sample, level)
        return interval_of_moments(self._totals.moments[row], level)

    def _overall_of(self, row: int) -> Callable[[int | None], float]:
        plan = self.request.plans[row]
        if plan.is_micro:
            return partial(_micro_average, plan, self._totals.ratios[row])
        if row in self._totals.list_sums:
            return partial(_of_sums, plan, self._totals.list_sums[row])
        return partial(_of_counts, plan, self._list_counts(row))

    def _list_counts(self, row: int) -> ListCounts:
        plan = self.request.plans[row]
        return self._totals.lists[(*plan.counts_apart(self.request.convention), plan.metric.k)]


def _micro_average(plan: Plan, ratios: Ratios, left_out: int | None) -> float:
    above, below = Moments(), Moments()
    for group, (numerators, denominators) in enumerate(ratios):
        if group != left_out:
            above += numerators
            below += denominators
    return plan.number_of(ratio_of(above, below)) if above.n else math.nan


def _of_sums(plan: Plan, sums: ListSums, left_out: int | None) -> float:
    combine = plan.definition.combine
    assert combine is not None  # noqa: S101 - there are no sums without it
    kept = np.arange(N_GROUPS) != left_out if left_out is not None else np.ones(N_GROUPS, bool)
    if not sums.n_users[kept].any():
        return math.nan
    return combine(sums.sums[kept].sum(axis=0), **plan.arguments)


def _of_counts(plan: Plan, counts: ListCounts, left_out: int | None) -> float:
    groups = [group for group in range(N_GROUPS) if group != left_out]
    lists = CountedLists(plan.metric.k, counts, groups)
    return value_of_lists(plan, lists) if lists.n_users or left_out is None else math.nan


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
