"""`Statistics`: the sums of the sweep and values derived from them, for accuracy metrics."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..core import elementary
from ..errors import InvalidDataError, InvalidMetricError
from ..kernels import hits as kernels
from ..kernels.hits import Hits, TiedHits
from ..kernels.statistics import Sums

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..core.types import Floats, Integers

#: The cut-off of a metric without one: the whole list.
FULL_LIST = 2**62


#: The attributes that are only computed if a metric has a word in `uses`, with this word.
_USES = {
    "dcg_exp": "exp",
    "idcg_exp": "exp",
    "candidates": "candidates",
    "all_gain": "total_gain",
    "all_hits": "hits",
    "tied_hits": "hits",
    "largest_gain": "hits",
    "judged_items": "judged",
    "largest_sum": "ideal_gain",
}


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Statistics(Sums):
    """Sums over each user's list down to one cut-off `k`.

    Every array has one entry for each user. The sums run over the ranks r <= k of the list. The
    gain is g, the hit h (1 if g > 0) and the discount d(r) = 1 / log2(r + 1). The ideal sums run
    over the first min(n, k) of the user's gains in descending order.

    Attributes
    ----------
    k : int
        The cut-off; `FULL_LIST` for the whole list.
    n_relevant : ndarray of int64
        n, the number of the user's relevant items.
    first_hit : ndarray of int64
        The rank of the first hit down to `k`, 0 without a hit.
    lengths : ndarray of int64
        The length of the whole list.
    hits, gain, dcg, dcg_binary : ndarray of float64
        Σ h, Σ g, Σ g·d(r), Σ h·d(r).
    idcg, idcg_binary : ndarray of float64
        The last two over the ideal list.
    precision_sum : ndarray of float64
        Σ h·(hits down to r) / r.
    reciprocal_sum, reciprocal_gain : ndarray of float64
        Σ h / r, Σ g / r.
    dcg_exp, idcg_exp : ndarray of float64
        Σ (2^g − 1)·d(r), and the same over the ideal list, if a metric uses "exp".
    candidates : ndarray of int64
        C, the number of items that could be recommended, if a metric uses "candidates".
    all_gain : ndarray of float64
        Σ g over all relevant items of the user, if a metric uses "total_gain".
    all_hits : Hits
        The hits down to the largest cut-off of all metrics, if a metric uses "hits". Formulas
        read `hits_of_list`, which ends at `k`.
    largest_gain : float
        The largest gain of the whole validation data, if a metric uses "hits".
    judged_items : ndarray of int64
        The number of the user's judged items, if a metric uses "judged".
    largest_sum : ndarray of float64
        Σ g over the ideal list, if a metric uses "ideal_gain".

    See Also
    --------
    Lists : The lists from which metrics of recommended items are computed.
    sparse_eval.register_metric : Register a formula over `Statistics` or `Lists`.
    """

    k: int
    n_relevant: Integers
    first_found: Integers  # the rank of the first hit down to the largest cut-off of all metrics
    lengths: Integers
    candidates: Integers
    all_gain: Floats
    all_hits: Hits
    largest_gain: float
    judged_items: Integers
    largest_sum: Floats

    def __init__(self, values: Mapping[str, Any]) -> None:
        vars(self).update(values)

    def __getattr__(self, name: str) -> NoReturn:
        if name not in _USES:
            raise AttributeError(name)
        raise InvalidMetricError(
            "a metric reads an attribute that is only computed for metrics that use it; register "
            f"it with uses=[{_USES[name]!r}]"
        )

    @cached_property
    def first_hit(self) -> Integers:
        """The rank of the first hit down to `k`, 0 without a hit."""
        return np.where(self.first_found <= self.k, self.first_found, 0)

    @property
    def list_length(self) -> Integers:
        """min(list length, k)."""
        return np.minimum(self.lengths, self.k)

    @property
    def any_hit(self) -> Floats:
        """1 for a user with a hit, else 0."""
        return (self.hits > 0).astype(np.float64)

    @property
    def reciprocal_rank(self) -> Floats:
        """1 / rank of the first hit, 0 without a hit."""
        first_hit = self.first_hit
        return np.where(first_hit > 0, 1.0 / np.maximum(first_hit, 1), 0.0)

    @property
    def step_sum(self) -> Floats:
        """1 + 2 + … + hits: the number of hits down to each hit, summed over hits."""
        return self.hits * (self.hits + 1.0) / 2.0

    @property
    def order_of_list(self) -> Floats:
        """The share of pairs of a hit and a miss in the list in which the hit comes first.

        It is 0 without a hit, and 1 without a miss.
        """
        hits, misses = self.hits, self.list_length - self.hits
        in_order = hits * self.list_length - self.rank_sum - hits * (hits - 1) / 2
        shares = np.where(hits > 0, 1.0, 0.0)
        return np.divide(in_order, hits * misses, out=shares, where=hits * misses > 0)

    @cached_property
    def hits_of_list(self) -> Hits:
        """The hits down to `k`, for a metric that uses "hits"."""
        indptr, ranks, gains = self.all_hits
        kept = ranks[: indptr[-1]] <= self.k
        if kept.all():
            return Hits(indptr, ranks, gains)
        before = np.concatenate((np.zeros(1, np.int64), np.cumsum(kept, dtype=np.int64)))
        entries = np.flatnonzero(kept)
        return Hits(before[indptr], ranks[entries], gains[entries])

    def hits_within(self, ranks: Integers) -> Floats:
        """Return the number of hits down to a given rank for each user, at most k."""
        return self._of_hits(kernels.count_within, np.minimum(ranks, self.k))

    @cached_property
    def rank_sum(self) -> Floats:
        """Σ h·r, or its expectation."""
        return self._sum_ranks(graded=False)

    @cached_property
    def gain_rank_sum(self) -> Floats:
        """Σ g·r, or its expectation."""
        return self._sum_ranks(graded=True)

    def _sum_ranks(self, *, graded: bool) -> Floats:
        return self._of_hits(kernels.sum_ranks, self.k, graded)

    @cached_property
    def gain_step_sum(self) -> Floats:
        """Σ g·(hits down to r)."""
        indptr, _, gains = self.hits_of_list
        sizes = np.diff(indptr)
        steps = np.arange(indptr[0], indptr[-1]) - np.repeat(indptr[:-1], sizes) + 1
        entries = slice(indptr[0], indptr[-1])
        rows = np.repeat(np.arange(len(sizes)), sizes)
        return np.bincount(rows, gains[entries] * steps, len(sizes)).astype(np.float64)

    def geometric_sum(self, p: float, graded: bool) -> Floats:
        """Σ h·p^(r − 1), or Σ g·p^(r − 1) if `graded`.

        References
        ----------
        Moffat and Zobel, "Rank-biased precision for measurement of retrieval effectiveness",
        ACM TOIS 27(1), 2008, doi:10.1145/1416950.1416952
        """
        return self._of_hits(kernels.sum_geometric, self.k, p, graded)

    def cascade_sum(self, largest: float) -> Floats:
        """Σ (1/r)·R(r)·Π (1 − R) over the hits above, R = (2^g − 1) / 2^largest.

        Raises `InvalidDataError` if a gain of the validation data is above `largest`.

        Parameters
        ----------
        largest : float
            The top of the scale of gains.

        References
        ----------
        Chapelle, Metzler, Zhang and Grinspan, "Expected reciprocal rank for graded relevance",
        CIKM 2009, doi:10.1145/1645953.1646033
        """
        if self.largest_gain > largest:
            raise InvalidDataError(
                f"the largest gain of the validation data is {self.largest_gain:g}, above "
                f"max={largest:g}; give the top of the scale of gains"
            )
        gains = self.hits_of_list.gains
        chances = elementary.power(2.0, gains - largest) - elementary.power(2.0, -largest)
        return self._of_hits(kernels.sum_cascade, self.k, chances)

    @cached_property
    def pairs(self) -> tuple[Floats, Floats]:
        """The numbers of concordant and discordant pairs of ranks with different gains."""
        concordant = np.empty(len(self.hits))
        discordant = np.empty(len(self.hits))
        kernels.count_pairs(self.hits_of_list, self.list_length, concordant, discordant)
        return concordant, discordant

    def _of_hits(self, kernel: Callable[..., None], *arguments: object) -> Floats:
        out = np.empty(len(self.hits))
        kernel(self.hits_of_list, *arguments, out)
        return out


class TiedStatistics(Statistics):
    """The expectations of `Statistics` if items with equal scores are in random order."""

    tied_hits: TiedHits

    def _sum_ranks(self, *, graded: bool) -> Floats:
        out = np.empty(len(self.hits))
        kernels.sum_tied_ranks(self.tied_hits, self.list_length, graded, out)
        return out
