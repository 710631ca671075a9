"""The exact expectation of statistics and metrics under a random ranking.

If a formula is linear in the statistics, applying it to their expectations gives its own
expectation. So metrics need no second formula here, for any options and convention.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.hits import first_hit_chances
from .statistics import Statistics

if TYPE_CHECKING:
    from ..core.types import Floats, Integers


@dataclass(frozen=True)
class Chances:
    """The candidates that each user's random list of m items is drawn from.

    Attributes
    ----------
    n_candidates : ndarray of int64
        C, the number of candidates; all their orders are equally likely.
    depths : ndarray of int64
        m <= C, the length of the list.
    n_hits : ndarray of int64
        The number of candidates that are hits.
    gain, exp_gain : ndarray of float64
        The sums of g and of 2^g − 1 over the hits.
    discount_sum : ndarray of float64
        The sum of the discounts of ranks 1 to m.
    """

    n_candidates: Integers
    depths: Integers
    n_hits: Integers
    gain: Floats
    exp_gain: Floats
    discount_sum: Floats

    @cached_property
    def share(self) -> Floats:
        """The probability that a candidate is in the list, m / C."""
        return self.depths / np.maximum(self.n_candidates, 1)

    @cached_property
    def harmonic(self) -> Floats:
        """1 + 1/2 + … + 1/m."""
        deepest = int(self.depths.max(initial=0))
        sums = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, deepest + 1))))
        return sums[self.depths]

    def over(self, sums: Floats) -> Floats:
        """Return the expectation at a single rank of a quantity with these sums over candidates."""
        return sums / np.maximum(self.n_candidates, 1)

    @cached_property
    def first_hits(self) -> tuple[Floats, Floats]:
        """The probability of any hit, and the expected reciprocal rank of the first hit."""
        return chances_of_first(self.n_hits, self.n_candidates, self.depths)

    @cached_property
    def any_miss(self) -> Floats:
        """The probability that the list contains an item that is not a hit."""
        n_misses = self.n_candidates - self.n_hits
        return chances_of_first(n_misses, self.n_candidates, self.depths)[0]


def chances_of_first(
    n_hits: Integers, n_candidates: Integers, depths: Integers
) -> tuple[Floats, Floats]:
    """Return each list's probability of a hit, and the expected reciprocal rank of its first hit.

    A list is the first `depths` of `n_candidates` items in random order; `n_hits` of them are hits.
    """
    cases = np.stack((n_hits, n_candidates, depths))
    unique, inverse = np.unique(cases, axis=1, return_inverse=True)
    any_hit, reciprocal = np.empty(unique.shape[1]), np.empty(unique.shape[1])
    hits, candidates, depths = np.ascontiguousarray(unique)
    first_hit_chances(hits, candidates, depths, any_hit, reciprocal)
    return any_hit[inverse], reciprocal[inverse]


class ExpectedStatistics(Statistics):
    """The expectations of `Statistics` for a random ranking of each user's candidates."""

    chances: Chances

    @classmethod
    def of(cls, k: int, chances: Chances, **others: Any) -> ExpectedStatistics:
        """Compute the expectations at cut-off `k`.

        `others` are the attributes that do not depend on the order of the list. As in the formulas,
        `candidates` include relevant items that no list can hold.
        """
        c, m = chances, chances.depths
        n_hits = c.n_hits.astype(np.float64)
        # A hit at rank r has (r − 1)(n − 1)/(C − 1) hits above it.
        hits_above = (c.n_hits - 1) / np.maximum(c.n_candidates - 1, 1)
        precision_sum = c.over(n_hits) * (c.harmonic + hits_above * (m - c.harmonic))
        values = {
            "k": k,
            "first_found": np.zeros(len(m), np.int64),
            "lengths": m,
            "hits": n_hits * c.share,
            "gain": c.gain * c.share,
            "dcg": c.over(c.gain) * c.discount_sum,
            "dcg_binary": c.over(n_hits) * c.discount_sum,
            "precision_sum": precision_sum,
            "reciprocal_sum": c.over(n_hits) * c.harmonic,
            "reciprocal_gain": c.over(c.gain) * c.harmonic,
            "dcg_exp": c.over(c.exp_gain) * c.discount_sum,
            "chances": chances,
        }
        return cls(values | others)

    @property
    def any_hit(self) -> Floats:
        """The probability of a hit."""
        return self.chances.first_hits[0]

    @property
    def order_of_list(self) -> Floats:
        """The expectation: 1/2 for a list with hits and misses, 1 for a list with only hits."""
        hits_alone = np.where(self.chances.depths > 0, 1.0 - self.chances.any_miss, 0.0)
        return (self.any_hit + hits_alone) / 2

    @property
    def reciprocal_rank(self) -> Floats:
        """The expected reciprocal rank of the first hit."""
        return self.chances.first_hits[1]

    @property
    def step_sum(self) -> Floats:
        """E[h(h + 1) / 2], with hypergeometric h."""
        c, m = self.chances, self.chances.depths
        pairs = np.maximum(c.n_candidates * (c.n_candidates - 1), 1)
        steps: Floats = c.n_hits * (c.n_hits - 1) / pairs * (m * (m - 1)) / 2 + self.hits
        return steps

    def hits_within(self, ranks: Integers) -> Floats:
        """Return the expected number of hits down to a given rank for each user."""
        c = self.chances
        return c.over(c.n_hits.astype(np.float64)) * np.minimum(ranks, c.depths)

    @cached_property
    def rank_sum(self) -> Floats:
        """E[Σ h·r]."""
        c, m = self.chances, self.chances.depths
        return c.over(c.n_hits.astype(np.float64)) * (m * (m + 1) / 2)

    @cached_property
    def gain_rank_sum(self) -> Floats:
        """E[Σ g·r]."""
        c, m = self.chances, self.chances.depths
        return c.over(c.gain) * (m * (m + 1) / 2)

    def geometric_sum(self, p: float, graded: bool) -> Floats:
        """E[Σ h·p^(r − 1)], or E[Σ g·p^(r − 1)] if `graded`."""
        c = self.chances
        total = c.gain if graded else c.n_hits.astype(np.float64)
        powers: Floats = -np.expm1(c.depths * np.log(p)) / (1 - p)
        return c.over(total) * powers
