"""Estimates of metrics of the whole catalogue from ranks among sampled candidates.

Sample m items without replacement from the n − 1 items other than a relevant item at rank r of n.
The relevant item is above all but r̃ − 1 of them, where r̃ − 1 is hypergeometric. A metric f(r) is
estimated by a function of r̃, chosen as in [1]_:

- "unbiased": f at an unbiased estimate of the rank, 1 + (n − 1)·(r̃ − 1) / m;
- "bias_variance": the function that minimizes the squared bias plus γ times the variance of the
  estimate, averaged over equally likely ranks, with γ = 0.01.

References
----------
.. [1] W. Krichene and S. Rendle, "On Sampled Metrics for Item Recommendation", KDD 2020.
   doi:10.1145/3394486.3403226
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import InvalidDataError, InvalidMetricError
from .registry import never
from .statistics import Statistics

if TYPE_CHECKING:
    from ..core.types import Floats, Integers
    from ..inputs.candidates import Estimator
    from .conventions import Convention
    from .plan import Plan
    from .random_baseline import ExpectedStatistics

#: The weight of the variance, as chosen by Krichene and Rendle.
GAMMA = 0.01

#: Users have seen different numbers of items. For catalogues above the first number, estimates are
#: tabulated and interpolated. The table has numbers of items whose logarithms to base 2 are
#: multiples of 1 / 16.
_EXACT, _PER_OCTAVE = 4096, 16

#: The number of probabilities computed at once.
_CELLS = 1 << 22

#: The attributes that formulas may read for the one relevant item of each user.
_USES = {"hits", "candidates", "total_gain", "exp"}


def check_corrected(plans: tuple[Plan, ...], convention: Convention) -> None:
    """Raise `InvalidMetricError` if no estimate is defined for a metric or the convention."""
    if convention.name != "standard":
        raise InvalidMetricError(
            "candidates.corrected() needs our definitions of metrics, not the definitions of "
            f"{convention.name}. Omit convention=, or corrected()"
        )
    for plan in plans:
        is_mean = plan.weights is None and plan.is_swept and plan.per_user
        is_mean &= _USES.issuperset(plan.definition.uses)
        try:
            if is_mean:
                _values(plan, np.ones(1), np.ones(1, np.int64))
        except InvalidMetricError:  # it reads more than the rank
            is_mean = False
        if not is_mean:
            raise InvalidMetricError(
                f"candidates.corrected() is not defined for {plan.metric}, which is not a mean of "
                "a function of the rank of one relevant item; omit it",
                metric=plan.metric,
            )


def correct(plans: tuple[Plan, ...], corrected: Estimator) -> tuple[Plan, ...]:
    """Return plans that estimate the metrics of the whole catalogue."""
    of_all = _Tables(plans)
    return tuple(
        replace(plan, definition=_definition(plan, row, of_all, corrected))
        for row, plan in enumerate(plans)
    )


def _definition(plan: Plan, row: int, of_all: _Tables, corrected: Estimator) -> Any:
    def estimate(ranks: Floats, sizes: Integers, populations: Integers) -> Floats:
        if corrected == "unbiased":
            scaled = 1.0 + (populations - 1) * (ranks - 1) / np.maximum(sizes, 1)
            return _values(plan, scaled, populations)
        return of_all.estimates(row, ranks, sizes, populations)

    def formula(s: Statistics, **_: Any) -> Floats:
        sizes, populations = s.candidates - 1, s.population
        ranks = _check_ranks(s, sizes)
        values = np.full(len(ranks), np.nan)
        known = (s.n_relevant == 1) & (ranks > 0)
        parts = (ranks[known].astype(np.float64), sizes[known], populations[known])
        values[known] = estimate(*parts)
        missed = (s.n_relevant == 1) & (ranks == 0)  # as if the item were last
        last = populations[missed]
        values[missed] = _values(plan, last.astype(np.float64), last)
        return values

    def expected(s: ExpectedStatistics, **_: Any) -> Floats:
        sizes, populations = s.candidates - 1, s.population
        total, count = np.zeros((2, len(sizes)))
        for place in range(int(sizes.max(initial=-1)) + 1):
            reached = sizes >= place
            ranks = np.full(np.count_nonzero(reached), place + 1.0)
            total[reached] += estimate(ranks, sizes[reached], populations[reached])
            count += reached
        # No list can hold a seen item, so that it is missed, as in the formula.
        last = _values(plan, populations.astype(np.float64), populations)
        return np.where(s.chances.n_hits > 0, total / count, last)

    uses = tuple(dict.fromkeys((*plan.definition.uses, "candidates", "population", "hits")))
    new = replace(
        plan.definition.formula,
        function=formula,
        expected=expected,
        averages_ties=never,
        by_item=plan.items != "all",
    )
    return replace(plan.definition, formula=new, uses=uses, range=(-np.inf, np.inf))


def _check_ranks(s: Statistics, sizes: Integers) -> Integers:
    """Return the rank of each user's relevant item, 0 if no list can hold it, or raise."""
    if (s.n_relevant > 1).any() or (s.gain[s.hits > 0] != 1.0).any():
        raise InvalidDataError(
            "a user has several relevant items, or one of another gain than 1, and "
            "candidates.corrected() is defined for one of gain 1; hold out one of each user, as "
            "se.split.leave_k_out does, or leave it out"
        )
    has_one = s.n_relevant == 1
    if (has_one & (sizes < 1)).any():
        raise InvalidDataError(
            "a user has no candidate other than the relevant item, so its rank in the catalogue is "
            "unknown. Remove such users, or omit corrected()"
        )
    if (has_one & (s.first_hit == 0) & (s.lengths < sizes)).any():
        raise InvalidDataError(
            "a list ends above the relevant item of its user, and candidates.corrected() needs its "
            "rank among all candidates; give whole lists, or a model to evaluate_model"
        )
    return s.first_hit


class _OneHit(Statistics):
    """Statistics of a list with one relevant item of gain 1, at any rank, whole or not."""

    rank: Floats

    @classmethod
    def at(cls, rank: Floats, k: int, n_items: Integers) -> _OneHit:
        """Return the statistics of whole rankings of `n_items` items each."""
        hit = (rank <= k).astype(np.float64)
        values = dict.fromkeys(("hits", "gain"), hit)
        values |= dict.fromkeys(("dcg", "dcg_exp", "dcg_binary"), hit / np.log2(rank + 1.0))
        values |= dict.fromkeys(("precision_sum", "reciprocal_sum", "reciprocal_gain"), hit / rank)
        ones = dict.fromkeys(("idcg", "idcg_exp", "idcg_binary", "all_gain"), np.ones(len(rank)))
        others = {
            "k": k, "rank": rank, "first_found": np.ceil(rank).astype(np.int64),
            "n_relevant": np.ones(len(rank), np.int64), "lengths": n_items,
            "candidates": n_items, "largest_gain": 1.0,
        }  # fmt: skip
        return cls(values | ones | others)

    @property
    def reciprocal_rank(self) -> Floats:
        return np.asarray(self.hits / self.rank)

    def hits_within(self, ranks: Integers) -> Floats:
        return np.asarray(self.rank <= np.minimum(ranks, self.k), np.float64)

    def _sum_ranks(self, *, graded: bool) -> Floats:
        return np.asarray(self.hits * self.rank)

    def geometric_sum(self, p: float, graded: bool) -> Floats:
        return np.asarray(self.hits * p ** (self.rank - 1))

    def cascade_sum(self, largest: float) -> Floats:
        return np.asarray(self.hits / self.rank / 2.0**largest)


def _values(plan: Plan, rank: Floats, n_items: Integers) -> Floats:
    """Return a metric's values for users with one relevant item at a rank among `n_items`."""
    statistics = _OneHit.at(rank, plan.metric.k, n_items)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = plan.compute(statistics)
    if isinstance(value, tuple):
        value = value[0] / value[1]
    values: Floats = np.broadcast_to(np.asarray(value, np.float64), len(rank))
    return values


class _Tables:
    """The estimates of "bias_variance" of several metrics, by rank among the candidates."""

    def __init__(self, plans: tuple[Plan, ...]) -> None:
        self.plans = plans
        self.tables: dict[tuple[int, int], Floats] = {}

    def estimates(self, row: int, ranks: Floats, sizes: Integers, populations: Integers) -> Floats:
        """Return the estimates of a metric for ranks among `sizes` + 1 candidates."""
        values = np.empty(len(ranks))
        cases, inverse = np.unique(np.stack((sizes, populations)), axis=1, return_inverse=True)
        for case, (m, n) in enumerate(cases.T.tolist()):
            chosen = np.flatnonzero(inverse.ravel() == case)
            places = ranks[chosen].astype(np.int64) - 1
            values[chosen] = self._between(n, min(m, n - 1))[row, np.minimum(places, n - 1)]
        return values

    def _between(self, n: int, m: int) -> Floats:
        """Return the tables of all metrics, shape (n_metrics, m + 1)."""
        if n <= _EXACT:
            return self._table(n, m)
        place = math.log2(n) * _PER_OCTAVE
        low = math.floor(place)
        nodes = [round(2 ** (node / _PER_OCTAVE)) for node in (low, low + 1)]
        share = place - low
        return (1 - share) * self._table(nodes[0], m) + share * self._table(nodes[1], m)

    def _table(self, n: int, m: int) -> Floats:
        if (n, m) not in self.tables:
            ranks = np.arange(1, n + 1)
            everyone = np.full(n, n)
            values = np.stack(
                [_values(plan, ranks.astype(np.float64), everyone) for plan in self.plans]
            )
            self.tables[n, m] = minimal_estimates(values, m)
        return self.tables[n, m]


def minimal_estimates(values: Floats, m: int, gamma: float = GAMMA) -> Floats:
    """Return the estimates with the least squared bias + γ·variance for equally likely ranks.

    Parameters
    ----------
    values : ndarray of float64, shape (n_metrics, n)
        The values of metrics at each rank.
    m : int
        The number of sampled items.
    gamma : float
        γ; 0 minimizes only the bias.

    Returns
    -------
    ndarray of float64, shape (n_metrics, m + 1)
        The estimate of each metric for each rank among the candidates.
    """
    from scipy.linalg import lu_factor, lu_solve  # imported here, because few calls need it

    n = values.shape[1]
    gram, moments = np.zeros((m + 1, m + 1)), np.zeros((len(values), m + 1))
    step = max(_CELLS // (m + 1), 1)
    for first in range(0, n, step):
        last = min(first + step, n)
        chances = rank_chances(first, last, n, m)
        gram += chances.T @ chances
        for moment, value in zip(moments, values, strict=True):
            moment += chances.T @ value[first:last]
    # All ranks among the candidates are equally likely.
    system = (1 - gamma) * gram + gamma * np.eye(m + 1) * (n / (m + 1))
    factors = lu_factor(system)
    # Solve one by one: if solved together, the last bits of a metric would depend on the others.
    return np.stack([lu_solve(factors, moment) for moment in moments])


def rank_chances(first: int, last: int, n: int, m: int) -> Floats:
    """Return the probability of each rank among the candidates, given the rank among all n items.

    The rows are the ranks ``first + 1`` to `last` of n; the shape is (last − first, m + 1). The
    distribution is hypergeometric.
    """
    logs = _log_factorials(n)
    above = np.arange(first, last)[:, None]
    below = n - 1 - above
    j = np.arange(m + 1)
    possible = (j <= above) & (m - j <= below)
    a, b = np.where(possible, above - j, 0), np.where(possible, below - (m - j), 0)
    log_chance = logs[above] - logs[j] - logs[a] + logs[below] - logs[m - j] - logs[b]
    log_chance -= logs[n - 1] - logs[m] - logs[n - 1 - m]
    chances: Floats = np.exp(np.where(possible, log_chance, -np.inf))
    return chances


@lru_cache(maxsize=8)
def _log_factorials(n: int) -> Floats:
    """Return log 0!, log 1!, …, log n!."""
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, n + 1)))))
    logs.flags.writeable = False
    return logs
