"""What is counted of lists: what their users have seen, and at which ranks they begin."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.threads import for_blocks
from ..inputs.candidates import mark_seen
from ..kernels.catalogue import count_seen
from ..kernels.structures import Rows

if TYPE_CHECKING:
    from ..core.types import Booleans
    from ..metrics.aligned import Aligned


class SeenCounts(NamedTuple):
    """Counts over users, of which there are training data.

    Attributes
    ----------
    n_cold : int
        Evaluated users without training data; explicit zeros are none.
    n_relevant : int
        Relevant items that their user has in train, explicit zeros included.
    n_listed : int
        Listed items that their user has in train, likewise.
    n_held_out : int
        Relevant items in all.
    """

    n_cold: int
    n_relevant: int
    n_listed: int
    n_held_out: int

    def merge(self, other: SeenCounts) -> SeenCounts:
        """Return the counts over the users of both."""
        return SeenCounts(*(a + b for a, b in zip(self, other, strict=True)))


def seen_counts(aligned: Aligned, counted: Booleans) -> SeenCounts | None:
    """Count over all users, `counted` being those that are evaluated; None without train."""
    training = aligned.side_data.training
    if training is None:
        return None
    rankings, relevance = aligned.rankings, aligned.relevance
    n_items = max(rankings.shape[1], relevance.shape[1], training.n_items)
    relevant, listed = np.empty((2, aligned.n_users), np.int64)

    def count(first: int, last: int) -> None:
        bounds = slice(first, last + 1)
        seen, wanted, lists = (
            Rows(each.indptr[bounds], each.items) for each in (training, relevance, rankings)
        )
        outs = relevant[first:last], listed[first:last]
        count_seen(seen, wanted, relevance.gains, lists, n_items, *outs)

    for_blocks(count, aligned.n_users)
    is_cold = training.user_counts[: aligned.n_users] == 0
    return SeenCounts(
        int(np.count_nonzero(counted & is_cold)),
        int(relevant.sum()),
        int(listed.sum()),
        int(np.count_nonzero(relevance.gains > 0)),
    )


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
