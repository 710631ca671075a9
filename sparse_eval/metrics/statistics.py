"""What an accuracy metric is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ..errors import InvalidDataError, InvalidMetricError
from ..kernels import hits as kernels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Integers = NDArray[np.int64]

Made = TypeVar("Made")

__all__ = ["FULL_LIST", "Hits", "Statistics"]

#: The cut-off of a metric that is asked for without one: the whole list.
FULL_LIST = 2**62


class Hits(NamedTuple):
    """Every hit of some users, in the order of ranks.

    `ranks` and `gains` of user u are ``[indptr[u]:indptr[u + 1]]``.
    """

    indptr: Integers
    ranks: Integers
    gains: Values


@dataclass(frozen=True)
class Statistics:
    """Sums over each user's list down to one cut-off `k`.

    Every array has one entry for each user. With gain g, hit h (1 if g > 0), rank r and discount
    d(r) = 1 / log2(r + 1), the sums run over the ranks r <= k of the list; the ideal sums over
    the user's gains sorted downward, the first min(n, k) of them.

    Attributes
    ----------
    k : int
        The cut-off; `FULL_LIST` for the whole list.
    n_relevant : ndarray of int64
        n, the user's relevant items.
    first_hit : ndarray of int64
        Rank of the first hit in the whole list, 0 without one.
    lengths : ndarray of int64
        Length of the whole list.
    hits, gain, dcg, dcg_binary : ndarray of float64
        Σ h, Σ g, Σ g·d(r), Σ h·d(r).
    idcg, idcg_binary : ndarray of float64
        The last two over the ideal order.
    precision_sum : ndarray of float64
        Σ h·(hits down to r) / r.
    reciprocal_sum, reciprocal_gain : ndarray of float64
        Σ h / r, Σ g / r.
    raised_sums : tuple of two ndarray of float64, or None
        `dcg_exp` and `idcg_exp`; where a metric uses "exp".
    n_candidates : ndarray of int64 or None
        C, the items that could be recommended; where a metric uses "candidates".
    total_gain : ndarray of float64 or None
        Σ g over all relevant items of the user; where a metric uses "total_gain".
    all_hits : Hits or None
        Where a metric uses "hits": those of the whole list.
    largest_gain : float
        Of the whole validation data; 0 where no metric uses "hits".
    """

    k: int
    n_relevant: Integers
    first_hit: Integers
    lengths: Integers
    hits: Values
    gain: Values
    dcg: Values
    dcg_binary: Values
    idcg: Values
    idcg_binary: Values
    precision_sum: Values
    reciprocal_sum: Values
    reciprocal_gain: Values
    raised_sums: tuple[Values, Values] | None = None
    n_candidates: Integers | None = None
    total_gain: Values | None = None
    all_hits: Hits | None = None
    largest_gain: float = 0.0

    @property
    def dcg_exp(self) -> Values:
        """Σ (2^g − 1)·d(r), for a metric that uses "exp"."""
        return _declared(self.raised_sums, "exp")[0]

    @property
    def idcg_exp(self) -> Values:
        """The same over the ideal order."""
        return _declared(self.raised_sums, "exp")[1]

    @property
    def list_length(self) -> Integers:
        """min(list length, k)."""
        return np.minimum(self.lengths, self.k)

    @property
    def any_hit(self) -> Values:
        """1 for a user with a hit, else 0."""
        return (self.hits > 0).astype(np.float64)

    @property
    def reciprocal_rank(self) -> Values:
        """1 / rank of the first hit, 0 without one."""
        reached = (self.first_hit > 0) & (self.first_hit <= self.k)
        return np.where(reached, 1.0 / np.maximum(self.first_hit, 1), 0.0)

    @property
    def step_sum(self) -> Values:
        """1 + 2 + … + hits: each hit counted with the hits down to it."""
        return self.hits * (self.hits + 1.0) / 2.0

    @property
    def candidates(self) -> Integers:
        """`n_candidates`, for a metric that uses them."""
        return _declared(self.n_candidates, "candidates")

    @property
    def all_gain(self) -> Values:
        """`total_gain`, for a metric that uses it."""
        return _declared(self.total_gain, "total_gain")

    def hits_within(self, ranks: Integers) -> Values:
        """Count the hits down to a rank of each user's own, and down to k."""
        return self._of_hits(kernels.count_within, np.minimum(ranks, self.k))

    @cached_property
    def rank_sum(self) -> Values:
        """Σ h·r."""
        return self._of_hits(kernels.sum_ranks, self.k, False)

    @cached_property
    def gain_rank_sum(self) -> Values:
        """Σ g·r."""
        return self._of_hits(kernels.sum_ranks, self.k, True)

    def geometric_sum(self, p: float, graded: bool) -> Values:
        """Σ h·p^(r − 1), or Σ g·p^(r − 1) if `graded`."""
        return self._of_hits(kernels.sum_geometric, self.k, p, graded)

    def cascade_sum(self, largest: float) -> Values:
        """Σ (1/r)·R(r)·Π (1 − R) over the hits before, R = (2^g − 1) / 2^largest."""
        if self.largest_gain > largest:
            raise InvalidDataError(
                f"the largest gain of the validation data is {self.largest_gain:g}, above "
                f"max={largest:g}; give the top of the scale of gains"
            )
        return self._of_hits(kernels.sum_cascade, self.k, largest)

    @cached_property
    def pairs(self) -> tuple[Values, Values]:
        """Concordant and discordant pairs of places of the list, those with different gains."""
        concordant = np.empty(len(self.hits))
        discordant = np.empty(len(self.hits))
        hits = self._hits
        kernels.count_pairs(*hits, self.list_length, concordant, discordant)
        return concordant, discordant

    @property
    def _hits(self) -> Hits:
        return _declared(self.all_hits, "hits")

    def _of_hits(self, kernel: Any, *arguments: Any) -> Values:
        out = np.empty(len(self.hits))
        kernel(*self._hits, *arguments, out)
        return out


def _declared(value: Made | None, use: str) -> Made:
    if value is None:
        raise InvalidMetricError(
            f"a metric reads what is only made where it is used; register it with uses=[{use!r}]"
        )
    return value
