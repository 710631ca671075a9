"""`Aligned`: the lists and relevant items of the same users, together with side data."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.csr import indptr_from_counts
from ..errors import InvalidDataError
from ..kernels.catalogue import count_unseen_candidates
from ..kernels.structures import Rows
from .eligible import are_in, eligible_items
from .lists import Lists
from .propensity import propensities

if TYPE_CHECKING:
    from ..core.types import Booleans, Floats, Integers, Items
    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..inputs.side_data import SideData
    from .conventions import Convention
    from .eligible import Eligible
    from .plan import View
    from .propensity import Weights


@dataclass(frozen=True, eq=False)
class Aligned:
    """The input of formulas: lists and relevance with the same rows and columns.

    Attributes
    ----------
    rankings : Rankings
    relevance : Relevance
    side_data : SideData
    convention : Convention
        The rules for which candidates and stored items count.
    weights : ndarray of float64 or None
        The weight of each stored item as a hit, if it is not the item's gain.
    listed : ndarray of bool or None
        Whether each user had a list before items were removed from it.
    """

    rankings: Rankings
    relevance: Relevance
    side_data: SideData
    convention: Convention
    weights: Floats | None = None
    listed: Booleans | None = None

    @cached_property
    def has_list(self) -> Booleans:
        """Whether each user has a list, even if none of its items counts."""
        return self.rankings.lengths > 0 if self.listed is None else self.listed

    @property
    def n_users(self) -> int:
        """The number of rows of lists and relevance."""
        return len(self.relevance.indptr) - 1

    @property
    def largest_gain(self) -> float:
        """The largest gain of the whole validation data."""
        if self.side_data.largest_gain is not None:
            return self.side_data.largest_gain
        return float(self.relevance.gains.max(initial=0.0))

    @cached_property
    def hit_gains(self) -> tuple[Floats, bool]:
        """The gain of each stored item as a hit in a list, and whether all of them are 1."""
        if self.weights is not None:
            return self.weights, False
        gains, binary = self.relevance.gains, self.relevance.binary
        if self.convention.stored_zeros and not binary:
            return np.where(gains > 0, gains, 1.0), False
        return gains, binary

    @cached_property
    def relevant_gains(self) -> Floats:
        """The gain or weight of each stored item, 0 if it is not relevant."""
        if self.weights is None:
            return self.relevance.gains
        return np.where(self.relevance.gains > 0, self.weights, 0.0)

    @cached_property
    def n_candidates(self) -> Integers:
        """The number of candidates of every user, see `count_candidates`."""
        return self.count_candidates(0, self.n_users)

    def count_candidates(self, first: int, last: int) -> Integers:
        """Count the items that can be recommended to each of the users from `first` to `last`.

        These are the items of the catalogue, or the user's candidates. Seen items are excluded
        unless they may be recommended again. Items that are relevant or in the list always count.
        """
        side_data, users = self.side_data, np.arange(first, last)
        if side_data.candidates is None:
            return self.count_population(first, last)
        own = eligible_items(side_data.n_items, self._seen(users), side_data.candidates, users)
        lists = self.rankings.part(first, last)
        relevant = self.relevance.part(first, last)
        gains = self.hit_gains[0][slice(*self.relevance.indptr[[first, last]])]
        relevant = relevant.keep(gains > 0)
        keys = [
            np.repeat(users - first, np.diff(side.indptr)) * side_data.n_items + side.items
            for side in (lists, relevant)
        ]
        rows, items = np.divmod(np.unique(np.concatenate(keys)), side_data.n_items)
        beyond = rows[~own.contain(rows, items)]
        return own.counts + np.bincount(beyond, minlength=last - first)

    def count_population(self, first: int, last: int) -> Integers:
        """Count the same items in the whole catalogue, ignoring any given candidates."""
        training, n_items = self.side_data.training, self.side_data.n_items
        counts = np.full(last - first, n_items, np.int64)
        if training is None or training.allows_seen or self.convention.whole_catalogue:
            return counts
        seen, relevant, lists = (
            Rows(each.indptr[first : last + 1], each.items)
            for each in (training, self.relevance, self.rankings)
        )
        count_unseen_candidates(seen, relevant, self.hit_gains[0], lists, n_items, counts)
        return counts

    def _seen(self, users: Integers) -> tuple[Integers, Items] | None:
        """Return the items to exclude from the candidates of some users, None if there are none."""
        training = self.side_data.training
        return None if training is None or self.convention.whole_catalogue else training.seen(users)

    @cached_property
    def eligible(self) -> Eligible | None:
        """The eligible items of each user, None if no candidates are given."""
        candidates = self.side_data.candidates
        if candidates is None:
            return None
        everyone = np.arange(self.n_users)
        return eligible_items(self.side_data.n_items, self._seen(everyone), candidates, everyone)

    @cached_property
    def n_drawn(self) -> Integers:
        """The number of items that each random list is drawn from.

        Without `candidates`, this includes relevant items that were seen, as in `n_candidates`.
        """
        return self.n_candidates if self.eligible is None else self.eligible.counts

    @cached_property
    def drawn_hits(self) -> Booleans:
        """Whether each stored item would be a hit, and a random list can hold it."""
        is_hit: Booleans = self.hit_gains[0] > 0
        if self.eligible is None:
            return is_hit
        rows = np.repeat(np.arange(self.n_users), np.diff(self.relevance.indptr))
        return is_hit & self.eligible.contain(rows, self.relevance.items)

    def with_relevant(self, kept: Booleans) -> Aligned:
        """Return the lists together with only some entries of the relevance."""
        return replace(self, relevance=self.relevance.keep(kept))

    def of(self, view: View) -> Aligned:
        """Return the lists together with the items that a metric counts as relevant."""
        part = self.of_items(view.items)
        if view.judged:
            return replace(part, weights=np.where(part.relevance.gains > 0, 2.0, 1.0))
        return part if view.weights is None else part._weighted(view.weights)

    def _weighted(self, weights: Weights) -> Aligned:
        """Return the lists together with relevant items weighted by inverse propensities."""
        relevance, gains = self.relevance, self.hit_gains[0]
        inverse = 1.0 / propensities(weights, self.side_data)[relevance.items]
        hit_weights = np.where(gains > 0, inverse, 0.0)
        if weights.kind == "snips":
            rows = np.repeat(np.arange(self.n_users), np.diff(relevance.indptr))
            is_relevant = relevance.gains > 0
            sums = np.bincount(rows, inverse * is_relevant, self.n_users)
            counts = np.bincount(rows, is_relevant, self.n_users)
            scale = np.divide(counts, sums, out=np.zeros(self.n_users), where=counts > 0)
            hit_weights *= scale[rows]
        if weights.graded:
            hit_weights *= gains
        if not weights.ideal:
            return replace(self, weights=hit_weights)
        return replace(
            self,
            relevance=replace(
                relevance, gains=np.where(relevance.gains > 0, inverse, 0.0), binary=False
            ),
            convention=replace(self.convention, ideal="relevant"),
            weights=hit_weights,
        )

    def of_items(self, items: str) -> Aligned:
        """Return the lists together with the relevant items that a metric is about.

        Parameters
        ----------
        items : {"all", "repeat", "explore"}
            All relevant items, or only those that the user has or has not interacted with in
            training.
        """
        if items == "all":
            return self
        training, relevance = self.side_data.training, self.relevance
        assert training is not None  # noqa: S101 - the metric is refused without it
        users = np.arange(self.n_users)
        bounds, known = training.history(users)
        n_items = max(self.side_data.n_items, relevance.shape[1])
        keys = np.repeat(users, np.diff(bounds)) * n_items + known  # ascending
        relevant = np.repeat(users, np.diff(relevance.indptr)) * n_items + relevance.items
        is_repeat = are_in(relevant, keys)
        return self.with_relevant(is_repeat if items == "repeat" else ~is_repeat)

    def lists(self, k: int, users: Integers) -> Lists:
        """Return the first `k` items of the lists of some users.

        Raises
        ------
        InvalidDataError
            If the item at one of these positions is unknown.
        """
        rankings, relevance, side_data = self.rankings, self.relevance, self.side_data
        positions, n_listed = rankings.gapped_positions, np.diff(rankings.indptr)
        if positions is not None:
            n_listed = np.diff(indptr_from_counts(positions <= k)[rankings.indptr])
        incomplete = users[n_listed[users] < np.minimum(rankings.lengths[users], k)]
        if len(incomplete):
            user = incomplete[0]
            raise InvalidDataError(
                f"the list of user {user} has positions without an item; metrics of what is "
                "recommended need complete lists",
                user=user,
            )
        return Lists(
            k,
            users,
            (rankings.indptr, rankings.items),
            side_data.n_items,
            (relevance.indptr, relevance.items, relevance.gains),
            side_data.training,
            side_data.groups,
            side_data.vectors,
            side_data.candidates,
        )
