"""Columns of metric values, one row of numbers for each metric and one entry for each user."""

from __future__ import annotations

import math
import reprlib
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.exact_sums import Moments
from ..errors import InvalidMetricError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.types import Floats, Integers
    from .plan import Plan


class MetricColumns(NamedTuple):
    """The values of some plans for each user, before any user is left out.

    Attributes
    ----------
    values : ndarray of float64, shape (n_plans, n_users)
        The numerators where the plan is a micro average; NaN where it has one number for all users.
    denominators : dict of int to ndarray of float64, shape (n_users,)
        Of the micro averages, by row.
    """

    values: Floats
    denominators: dict[int, Floats]

    @classmethod
    def empty(cls, plans: Sequence[Plan], n_users: int) -> MetricColumns:
        """Allocate the columns of `plans`."""
        micro = (row for row, plan in enumerate(plans) if plan.is_micro)
        return cls(np.empty((len(plans), n_users)), {row: np.empty(n_users) for row in micro})

    def store(self, row: int, first: int, last: int, value: object, metric: object) -> None:
        """Store what the formula of a metric returned for the users from `first` to `last`."""
        size = last - first
        if isinstance(value, tuple) and len(value) == 2:
            above, below = value
            if fits(above, (size,)) and (fits(below, ()) or fits(below, (size,))):
                if row in self.denominators:
                    self.values[row, first:last], self.denominators[row][first:last] = above, below
                else:
                    self.values[row, first:last] = _divide(above, below)
                return
        elif row not in self.denominators and fits(value, (size,)):
            self.values[row, first:last] = np.asarray(value)
            return
        raise InvalidMetricError(
            f"the formula of metric {metric} returned {reprlib.repr(value)} for {size} users; "
            "expected a real number for each, or a pair of numerators and denominators, which "
            "average=micro needs",
            metric=metric,
        )

    def moments(
        self, row: int, users: Integers | slice = slice(None), *, squares: bool = False
    ) -> Moments:
        """Sum the values of some users, or their numerators."""
        return Moments.of(self.values[row, users], squares=squares)

    def mean(self, row: int, users: Integers | slice = slice(None)) -> float:
        """Return the mean over some users, or the ratio of sums of a micro average.

        Each sum is rounded once, so that it does not depend on the order of the users. NaN without
        users.
        """
        above = self.moments(row, users)
        if row in self.denominators and above.n:
            return ratio_of(above, Moments.of(self.denominators[row][users], squares=False))
        return above.mean


def ratio_of(above: Moments, below: Moments) -> float:
    """Return the ratio of two sums, each rounded once; 0 / 0 is 0."""
    if math.isinf(above.sum) or math.isinf(below.sum):  # of numbers near the largest float
        return above.mean / (below.mean or 1.0)
    return above.sum / (below.sum or 1.0)


def fits(value: object, shape: tuple[int, ...]) -> bool:
    """Return whether a value is real and has the given shape."""
    return isinstance(value, np.ndarray | np.number | int | float) and (
        np.shape(value) == shape and np.asarray(value).dtype.kind in "fiub"
    )


def _divide(above: Floats, below: Floats | float) -> Floats:
    """Divide; 0 / 0 is 0."""
    ratio: Floats = above / below
    if isinstance(below, np.ndarray):
        ratio[below == 0] = 0.0
    elif below == 0:
        ratio[:] = 0.0
    return ratio
