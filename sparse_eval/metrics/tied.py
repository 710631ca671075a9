"""The expectation of statistics over random orders of tied items."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..kernels.hits import sum_tied_ranks
from .statistics import Statistics, declared

if TYPE_CHECKING:
    from ..core.types import Floats, Integers


class TiedHits(NamedTuple):
    """Every hit of a block of users that may be in the list.

    A hit has each rank from that in `ranks` to that in `last_ranks` with the same probability.
    """

    indptr: Integers
    ranks: Integers
    gains: Floats
    last_ranks: Integers


@dataclass(frozen=True)
class TiedStatistics(Statistics):
    """The expectations of `Statistics` where items of equal score are in random order."""

    tied_hits: TiedHits | None = field(default=None, kw_only=True)

    @cached_property
    def rank_sum(self) -> Floats:
        """E[Σ h·r]."""
        return self._expected_rank_sum(graded=False)

    @cached_property
    def gain_rank_sum(self) -> Floats:
        """E[Σ g·r]."""
        return self._expected_rank_sum(graded=True)

    def _expected_rank_sum(self, *, graded: bool) -> Floats:
        out = np.empty(len(self.hits))
        sum_tied_ranks(*declared(self.tied_hits, "hits"), self.list_length, graded, out)
        return out
