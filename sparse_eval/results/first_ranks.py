"""The smallest rank of all lists: lists that begin at another rank are mostly a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..inputs.candidates import mark_seen

if TYPE_CHECKING:
    from ..metrics.aligned import Aligned


class FirstRanks(NamedTuple):
    """Where the lists of some users begin.

    Attributes
    ----------
    smallest : int
        The smallest rank of any item.
    has_others : bool
        Whether the lists hold items that the validation data do not store. Lists of hits only have
        exact ranks and need not have a rank 1.
    """

    smallest: int
    has_others: bool

    def merge(self, other: FirstRanks) -> FirstRanks:
        """Return where the lists of the users of both begin."""
        return FirstRanks(min(self.smallest, other.smallest), self.has_others or other.has_others)

    @property
    def are_late(self) -> bool:
        """Whether no list has a rank 1, though the lists hold more than hits."""
        return self.smallest > 1 and self.has_others


def find_first_ranks(aligned: Aligned) -> FirstRanks | None:
    """Return where the lists begin, None without any."""
    rankings, relevance = aligned.rankings, aligned.relevance
    starts = rankings.indptr[:-1][np.diff(rankings.indptr) > 0]
    if not len(starts):
        return None
    if rankings.gapped_positions is None:
        return FirstRanks(1, True)
    smallest = int(rankings.gapped_positions[starts].min())
    if smallest == 1:
        return FirstRanks(1, True)
    stored = mark_seen(rankings.indptr, rankings.items, relevance.indptr, relevance.items)
    return FirstRanks(smallest, not stored.all())
