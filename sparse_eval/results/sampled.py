"""Tell lists that rank a few sampled candidates of each user from lists of the best of all items.

Both look alike, a few items of a large catalogue. But for the former only the few items are the
candidates, which what is computed from the number of candidates does not know.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..inputs.candidates import mark_seen
from ..inputs.training import take_rows

if TYPE_CHECKING:
    from ..core.types import Booleans, Integers
    from ..metrics.aligned import Aligned

#: Fewer users may all have their relevant items in a list of the best by chance, and lists that are
#: shorter on average are of the best items, rather than of candidates for a ranking.
FEWEST_USERS, SHORTEST = 20, 20

#: The share of the catalogue that the longest list may hold.
MOST_LISTED = 0.5

#: What is said where the lists are such rankings.
NOTE = (
    "every list holds all relevant items of its user among few others, as where candidates are "
    "sampled; random, lift, auc and percentile_rank take all items of the catalogue for the "
    "candidates; give candidates=, those that each user's list ranks"
)

#: Users that are looked at first: mostly one of them lacks a relevant item.
_FIRST = 1000


class SampledLists(NamedTuple):
    """Counts over users whose lists all hold every relevant item, and little of the catalogue.

    Attributes
    ----------
    n_users : int
        Evaluated users with relevant items.
    n_listed : int
        Items in their lists.
    n_late : int
        Relevant items in the second half of their list, behind as many items as are relevant.
        Lists of the best items that lack none of the relevant ones have these at the top.
    """

    n_users: int
    n_listed: int
    n_late: int

    def merge(self, other: SampledLists) -> SampledLists:
        """Return the counts over the users of both."""
        return SampledLists(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def is_certain(self) -> bool:
        """Whether the lists can hardly be anything but rankings of a few candidates."""
        enough = self.n_users >= FEWEST_USERS and self.n_listed >= SHORTEST * self.n_users
        return enough and self.n_late > 0


def find_sampled(aligned: Aligned, counted: Booleans) -> SampledLists | None:
    """Return the counts, or None if a list lacks a relevant item, has gaps or is long."""
    rankings, relevance = aligned.rankings, aligned.relevance
    n_relevant = relevance.n_relevant
    users = np.flatnonzero(counted & (n_relevant > 0))
    lengths = rankings.lengths[users]
    complete = lengths == np.diff(rankings.indptr)[users]
    fits = (lengths >= n_relevant[users]) & (lengths <= MOST_LISTED * aligned.side_data.n_items)
    if not (complete & fits).all():
        return None
    n_late = 0
    for some in (users[:_FIRST], users[_FIRST:]):
        late = _count_late(aligned, some)
        if late is None:
            return None
        n_late += late
    return SampledLists(len(users), int(lengths.sum()), n_late)


def _count_late(aligned: Aligned, users: Integers) -> int | None:
    """Count the late relevant items of some users; None if one of theirs is not listed."""
    bounds, items = take_rows(aligned.rankings.indptr, users, aligned.rankings.items)
    relevance = aligned.relevance
    starts, relevant = take_rows(relevance.indptr, users, relevance.items)
    kept = np.flatnonzero(take_rows(relevance.indptr, users, relevance.gains)[1] > 0)
    starts, relevant = np.searchsorted(kept, starts), relevant[kept]
    is_hit = mark_seen(bounds, items, starts, relevant)
    if np.count_nonzero(is_hit) < len(relevant):
        return None
    lengths, n_relevant = np.diff(bounds), np.diff(starts)
    owners = np.repeat(np.arange(len(users)), lengths)[is_hit]
    ranks = np.flatnonzero(is_hit) + 1 - bounds[owners]
    is_late = ranks > np.maximum(lengths / 2, n_relevant)[owners]
    return int(np.count_nonzero(is_late))
