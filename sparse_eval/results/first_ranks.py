"""The smallest rank of all lists; lists without a rank 1 are usually a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..inputs.candidates import mark_seen

if TYPE_CHECKING:
    from ..metrics.aligned import Aligned


class FirstRanks(NamedTuple):
    """The first ranks of the lists of some users.

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
        """Return the first ranks of the users of both."""
        return FirstRanks(min(self.smallest, other.smallest), self.has_others or other.has_others)

    @property
    def are_late(self) -> bool:
        """Whether no list has a rank 1, though the lists hold more than hits."""
        return self.smallest > 1 and self.has_others


def find_first_ranks(aligned: Aligned) -> FirstRanks | None:
    """Return the first ranks of the lists, None if there are no lists."""
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
