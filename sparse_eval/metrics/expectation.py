"""What a random ranking gives on average, exactly.

A formula that is linear in the statistics gives, applied to their expectations, its own. So a
metric needs no second formula here, whatever its options and the convention.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ..kernels.chance import first_hit_chances
from .statistics import Statistics

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["Chances", "ExpectedStatistics"]


@dataclass(frozen=True)
class Chances:
    """What each user's random list of `depths` places is drawn from.

    Attributes
    ----------
    n_candidates : ndarray of int64
        C; every order of them is equally likely.
    depths : ndarray of int64
        m <= C, the length of the list.
    n_hits : ndarray of int64
        Items among them that are hits.
    gain, exp_gain : ndarray of float64
        Sums of their g and 2^g − 1.
    discount_sum : ndarray of float64
        Of the ranks 1 to m.
    """

    n_candidates: Integers
    depths: Integers
    n_hits: Integers
    gain: Values
    exp_gain: Values
    discount_sum: Values

    @cached_property
    def share(self) -> Values:
        """Chance of a candidate to be in the list, m / C."""
        return self.depths / np.maximum(self.n_candidates, 1)

    @cached_property
    def harmonic(self) -> Values:
        """1 + 1/2 + … + 1/m."""
        deepest = int(self.depths.max(initial=0))
        sums = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, deepest + 1))))
        return sums[self.depths]

    def over(self, sums: Values) -> Values:
        """Return `sums` over candidates as the expectation at a single place."""
        return sums / np.maximum(self.n_candidates, 1)

    @cached_property
    def first_hits(self) -> tuple[Values, Values]:
        """Chance of any hit, and expected reciprocal rank of the first."""
        cases = np.stack((self.n_hits, self.n_candidates, self.depths))
        unique, inverse = np.unique(cases, axis=1, return_inverse=True)
        any_hit, reciprocal = np.empty(unique.shape[1]), np.empty(unique.shape[1])
        hits, candidates, depths = np.ascontiguousarray(unique)
        first_hit_chances(hits, candidates, depths, any_hit, reciprocal)
        return any_hit[inverse], reciprocal[inverse]


@dataclass(frozen=True)
class ExpectedStatistics(Statistics):
    """The expectations of `Statistics` for a random ranking of each user's candidates."""

    chances: Chances | None = None

    @classmethod
    def of(
        cls, k: int, n_relevant: Integers, ideal: tuple[Values, ...], chances: Chances, **known: Any
    ) -> ExpectedStatistics:
        """Make them for cut-off `k`; `ideal` are the three ideal sums, which nothing changes."""
        c, m = chances, chances.depths
        n_hits = c.n_hits.astype(np.float64)
        # A hit at rank r has (r − 1)(n − 1)/(C − 1) others above it.
        others = (c.n_hits - 1) / np.maximum(c.n_candidates - 1, 1)
        precision_sum = c.over(n_hits) * (c.harmonic + others * (m - c.harmonic))
        return cls(
            k=k,
            n_relevant=n_relevant,
            first_hit=np.zeros(len(m), np.int64),
            lengths=m,
            hits=n_hits * c.share,
            gain=c.gain * c.share,
            dcg=c.over(c.gain) * c.discount_sum,
            dcg_binary=c.over(n_hits) * c.discount_sum,
            idcg=ideal[0],
            idcg_binary=ideal[2],
            precision_sum=precision_sum,
            reciprocal_sum=c.over(n_hits) * c.harmonic,
            reciprocal_gain=c.over(c.gain) * c.harmonic,
            raised_sums=(c.over(c.exp_gain) * c.discount_sum, ideal[1]),
            n_candidates=c.n_candidates,
            chances=chances,
            **known,
        )

    @property
    def _of(self) -> Chances:
        assert self.chances is not None  # noqa: S101 - `of` sets it
        return self.chances

    @property
    def any_hit(self) -> Values:
        """Chance of a hit."""
        return self._of.first_hits[0]

    @property
    def reciprocal_rank(self) -> Values:
        """Expected reciprocal rank of the first hit."""
        return self._of.first_hits[1]

    @property
    def step_sum(self) -> Values:
        """E[h(h + 1) / 2], h being hypergeometric."""
        c, m = self._of, self._of.depths
        pairs = np.maximum(c.n_candidates * (c.n_candidates - 1), 1)
        steps: Values = c.n_hits * (c.n_hits - 1) / pairs * (m * (m - 1)) / 2 + self.hits
        return steps

    def hits_within(self, ranks: Integers) -> Values:
        """Expect so many hits down to a rank of each user's own."""
        c = self._of
        return c.over(c.n_hits.astype(np.float64)) * np.minimum(ranks, c.depths)

    @cached_property
    def rank_sum(self) -> Values:
        """E[Σ h·r]."""
        c, m = self._of, self._of.depths
        return c.over(c.n_hits.astype(np.float64)) * (m * (m + 1) / 2)

    @cached_property
    def gain_rank_sum(self) -> Values:
        """E[Σ g·r]."""
        c, m = self._of, self._of.depths
        return c.over(c.gain) * (m * (m + 1) / 2)

    def geometric_sum(self, p: float, graded: bool) -> Values:
        """E[Σ h·p^(r − 1)], or of g."""
        c = self._of
        total = c.gain if graded else c.n_hits.astype(np.float64)
        powers: Values = -np.expm1(c.depths * np.log(p)) / (1 - p)
        return c.over(total) * powers
