"""`Plan`, how a metric is computed, and `MetricColumns`, the values of plans for each user."""

from __future__ import annotations

import math
import reprlib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.exact_sums import Moments
from ..errors import InvalidMetricError
from .propensity import Weights, weights_of
from .statistics import FULL_LIST

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.types import Floats, Integers
    from .conventions import Convention
    from .grammar import Metric
    from .registry import Definition


#: Averages that give one number for all users, a function of a ratio of sums.
OF_SUMS = frozenset(("micro", "geometric"))


class View(NamedTuple):
    """The items that a metric counts as relevant.

    Attributes
    ----------
    items : str
        Which of the relevant items count: "all", or a selection by `Aligned.of_items`.
    weights : Weights or None
        The weights of these items, if they are not the gains.
    judged : bool
        Whether items that were judged as not relevant are hits too.
    """

    items: str = "all"
    weights: Weights | None = None
    judged: bool = False


@dataclass(frozen=True)
class Plan:
    """A metric, its definition and the arguments of its formula."""

    metric: Metric
    definition: Definition
    arguments: dict[str, Any]

    @property
    def is_micro(self) -> bool:
        """Whether numerators and denominators are summed over users before they are divided."""
        return self.definition.is_ratio or self.arguments.get("average") in OF_SUMS

    def number_of(self, ratio: float) -> float:
        """Return the metric of all users, given the ratio of their sums."""
        return math.exp(ratio) if self.arguments.get("average") == "geometric" else ratio

    @property
    def of_everyone(self) -> bool:
        """Whether its formula has a value for users without relevant items too."""
        return self.definition.of_everyone or self.arguments.get("average") == "geometric"

    @property
    def items(self) -> str:
        """Which of the relevant items count: "all", or a selection by `Aligned.of_items`."""
        return str(self.arguments.get("items", "all")) if self.definition.by_item else "all"

    @property
    def weights(self) -> Weights | None:
        """How the relevant items are weighted, or None."""
        return weights_of(self.arguments)

    @property
    def uses(self) -> frozenset[str]:
        """The optional attributes of `Statistics` that its formula reads."""
        uses = frozenset(self.definition.uses)
        # For hits that are not listed, only their number is needed, unless they are weighted.
        return uses | {"total_gain"} if self.weights and "candidates" in uses else uses

    @property
    def uses_judged(self) -> bool:
        """Whether it distinguishes items judged as not relevant from unjudged items."""
        return "judged" in self.definition.uses

    @property
    def view(self) -> View:
        """The items that the metric counts as relevant."""
        return View(self.items, self.weights, self.uses_judged)

    @property
    def depth(self) -> int:
        """The last rank of a list that the formula reads.

        An estimate from sampled candidates also uses the ranks of relevant items below k.
        """
        return FULL_LIST if "population" in self.definition.uses else self.metric.k

    @property
    def is_exponential(self) -> bool:
        """Whether it needs the sums of 2^g − 1."""
        return self.arguments.get("gain") == "exp" or "exp" in self.definition.uses

    @cached_property
    def is_swept(self) -> bool:
        """Whether its formula is applied to the statistics of the sweep, not to whole lists."""
        return self.definition.over == "statistics"

    @cached_property
    def per_user(self) -> bool:
        """Whether there is a value for each user."""
        return self.definition.per_user and not self.is_micro

    @property
    def upper(self) -> float:
        """The largest possible value."""
        upper = self.definition.upper
        return upper(self.arguments) if callable(upper) else upper

    @property
    def inputs(self) -> frozenset[str]:
        """The inputs of `evaluate` without which it cannot be computed."""
        chosen = {
            option.needs[value]
            for option in self.definition.options
            if (value := self.arguments[option.name]) in option.needs
        }
        weights = self.weights
        beside = () if weights is None else (weights.needs,)
        return frozenset(chosen.union(self.definition.needs, beside))

    def counts_apart(self, convention: Convention) -> tuple[bool, bool]:
        """Return whether every list counts, and whether users without a list count 0.

        A convention makes both exceptions for some metrics.
        """
        over_lists = not self.is_swept and self.metric.name != "user_coverage"
        return (
            convention.lists_of_all and over_lists,
            self.metric.name in convention.without_list_zero,
        )


class MetricColumns(NamedTuple):
    """The values of some plans for each user, before any user is left out.

    Attributes
    ----------
    values : ndarray of float64, shape (n_plans, n_users)
        For a micro average, the numerators. NaN if the plan has only one number for all users.
    denominators : dict of int to ndarray of float64, shape (n_users,)
        The denominators of micro averages, by row.
    """

    values: Floats
    denominators: dict[int, Floats]

    @classmethod
    def empty(cls, plans: Sequence[Plan], n_users: int) -> MetricColumns:
        """Allocate the columns of `plans`."""
        micro = (row for row, plan in enumerate(plans) if plan.is_micro)
        return cls(np.empty((len(plans), n_users)), {row: np.empty(n_users) for row in micro})

    def store(self, row: int, first: int, last: int, value: object, metric: object) -> None:
        """Store the result of a metric's formula for the users from `first` to `last`."""
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

        Each sum is rounded once, so it does not depend on the order of the users. The mean is NaN
        without users.
        """
        above = self.moments(row, users)
        if row in self.denominators and above.n:
            return ratio_of(above, Moments.of(self.denominators[row][users], squares=False))
        return above.mean


def ratio_of(above: Moments, below: Moments) -> float:
    """Return the ratio of two sums, each rounded once; 0 / 0 is 0."""
    if math.isinf(above.sum) or math.isinf(below.sum):  # numbers near the largest float
        return above.mean / (below.mean or 1.0)
    return above.sum / (below.sum or 1.0)


def fits(value: object, shape: tuple[int, ...]) -> bool:
    """Return whether a value is real and has the given shape."""
    return isinstance(value, np.ndarray | np.number | int | float) and (
        np.shape(value) == shape and np.asarray(value).dtype.kind in "fiub"
    )


def _divide(above: Floats, below: Floats | float) -> Floats:
    """Divide; 0 / 0 is 0."""
    return np.divide(above, below, out=np.zeros(np.shape(above)), where=np.not_equal(below, 0))
