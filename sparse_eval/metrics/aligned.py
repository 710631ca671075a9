"""`Aligned`: what every formula reads of a block; `Lists`: its view of recommended items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from ..core.csr import are_in, find_entries, indptr_from_counts, take_rows
from ..errors import InvalidDataError
from ..inputs.eligible import eligible_items
from ..kernels.catalogue import (
    count_listed,
    count_unseen_candidates,
)
from ..kernels.structures import Rows
from .plan import propensities

if TYPE_CHECKING:
    from ..core.types import Booleans, Floats, Integers, Items
    from ..inputs.candidates import Candidates
    from ..inputs.data import SideData
    from ..inputs.eligible import Eligible
    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..inputs.training import Training
    from .conventions import Convention
    from .plan import View, Weights


@dataclass(frozen=True)
class Lists:
    """The first k items of the lists of a block of users, and side data of items.

    Attributes
    ----------
    k : int
        The cut-off; `FULL_LIST` for whole lists.
    users : ndarray of int64, shape (n_users,)
        Row numbers of the users.
    rankings : tuple of ndarray
        (indptr, items) of all users, best first; `indptr` and `items` are the arrays of `users`.
    n_items : int
        N, the number of items in the catalogue.
    relevance : tuple of ndarray
        (indptr, items, gains) of all users; `relevant` has the arrays of `users`.
    training : Training or None
        For a metric that needs "train".
    groups : csr_matrix of float64, shape (n_items, n_groups), or None
        For a metric that needs "item_groups": each item's shares of the groups, which sum to 1.
    vectors : ndarray of float64, shape (n_items, width), or None
        For a metric that needs "item_vectors": vectors of length 1, or 0 for a vector of zeros.
    candidates : Candidates or None
        The items that can be recommended, if these are not the whole catalogue.

    See Also
    --------
    Statistics : The sums from which accuracy metrics are computed.
    sparse_eval.register_metric : Register a formula over `Lists` or `Statistics`.
    """

    k: int
    users: Integers
    rankings: tuple[Integers, Items]
    n_items: int
    relevance: tuple[Integers, Items, Floats]
    training: Training | None = None
    groups: Any = None  # not None for a metric that needs them
    vectors: Any = None
    candidates: Candidates | None = None

    @cached_property
    def group_members(self) -> sparse.csr_matrix:
        """Items × groups, 1 if the item is in the group."""
        members = self.groups.copy()
        members.data = (members.data > 0).astype(np.float64)
        members.eliminate_zeros()
        return members

    @cached_property
    def group_vectors(self) -> sparse.csr_matrix:
        """`groups` with rows of length 1."""
        scale = sparse.diags_array(1 / np.sqrt(row_sums(self.groups, power=2)))
        return sparse.csr_matrix(scale @ self.groups)

    @cached_property
    def eligible(self) -> Eligible:
        """The items that could be in the list of each of `users`."""
        seen = None if self.training is None else self.training.seen(self.users)
        return eligible_items(self.n_items, seen, self.candidates, self.users)

    @property
    def train(self) -> Training:
        """`training`, for a metric that needs "train"."""
        assert self.training is not None  # noqa: S101 - the metric is refused without it
        return self.training

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.users)

    @cached_property
    def n_listed(self) -> int:
        """The number of users whose list is not empty."""
        return int(np.count_nonzero(self.lengths))

    @cached_property
    def lengths(self) -> Integers:
        """The number of items in each list."""
        return np.minimum(np.diff(self.rankings[0])[self.users], self.k)

    @cached_property
    def indptr(self) -> Integers:
        """Where each user's list starts and ends in `items`, shape (n_users + 1,)."""
        return indptr_from_counts(self.lengths)

    @cached_property
    def items(self) -> Items:
        """Item ids, user by user, best first."""
        indptr, items = self.rankings
        return take_rows(indptr, self.users, items, limit=self.k)[1]

    @cached_property
    def relevant(self) -> tuple[Integers, Items, Floats]:
        """(indptr, items, gains) of the same users; items ascend within a user."""
        indptr, items, gains = self.relevance
        return (*take_rows(indptr, self.users, items), take_rows(indptr, self.users, gains)[1])

    @cached_property
    def rows(self) -> Integers:
        """For each of `items`, the index of its user in `users`."""
        return np.repeat(np.arange(len(self.users)), self.lengths)

    @cached_property
    def gains(self) -> Floats:
        """The gain of each of `items` for its user, 0 if it is not relevant."""
        indptr, items, gains = self.relevant
        entries = find_entries(self.rows, self.items, indptr, items, self.n_items)
        return np.append(gains, 0.0)[entries]

    @cached_property
    def ranks(self) -> Integers:
        """The 1-based rank of each of `items`."""
        return np.arange(1, len(self.items) + 1) - np.repeat(self.indptr[:-1], self.lengths)

    @cached_property
    def item_counts(self) -> Integers:
        """The number of lists that contain each item of the catalogue."""
        counts = np.zeros(self.n_items, np.int64)
        count_listed(*self.rankings, self.k, self.users, counts)  # fast, for bootstraps
        return counts

    @cached_property
    def picks(self) -> sparse.csr_matrix:
        """Users × items, 1 if the item is in the user's list."""
        return self.picked(self.indptr, self.items)

    def picked(self, indptr: Integers, items: Items) -> sparse.csr_matrix:
        """Return users × items, 1 for the given items of the same users."""
        shape = (len(self.users), self.n_items)
        return sparse.csr_matrix((np.ones(len(items)), items, indptr), shape=shape)

    def mean_of(self, item_values: Floats) -> Floats:
        """Return the mean of a value of items over each list, NaN for an empty list."""
        sums = np.bincount(self.rows, item_values[self.items], len(self.users))
        means: Floats = sums / self.lengths
        return means


@dataclass(frozen=True)
class RandomLists:
    """Random lists from the items that can be recommended to each user, in random order.

    Attributes
    ----------
    lists : Lists
        The users and side data; its lists are empty.
    depths : ndarray of int64
        The length of each random list.
    """

    lists: Lists
    depths: Integers

    @cached_property
    def n_unseen(self) -> Integers:
        """The number of items that each list is drawn from."""
        return self.lists.eligible.counts

    @cached_property
    def share(self) -> Floats:
        """The probability that an unseen item is in the user's list."""
        return np.minimum(self.depths, self.n_unseen) / np.maximum(self.n_unseen, 1)

    def sum_unseen(self, item_values: Floats) -> Floats:
        """Return the sum of a value or vector of items over each user's unseen items."""
        return self.lists.eligible.sum_over_items(item_values)

    def over_users(self, user_values: Floats) -> Floats:
        """Return for each item the sum of a value over the users it can be recommended to."""
        return self.lists.eligible.sum_over_users(user_values)

    def mean_of(self, item_values: Floats) -> Floats:
        """Return the expected mean of a value of items over each list."""
        return self.sum_unseen(item_values) / self.n_unseen

    @cached_property
    def possible_hits(self) -> tuple[Integers, Items]:
        """The relevant items that a list can hold: rows in `users`, and items."""
        indptr, items, gains = self.lists.relevant
        rows = np.repeat(np.arange(len(self.lists.users)), np.diff(indptr))
        possible = (gains > 0) & self.lists.eligible.contain(rows, items)
        return rows[possible], items[possible]

    def mean_of_hits(self, hit_values: Floats) -> Floats:
        """Return the expected mean over each list of a value of `possible_hits`.

        The value of other items is 0, and so is the mean of an empty list.
        """
        sums = np.bincount(self.possible_hits[0], hit_values, len(self.lists.users))
        return np.where(self.depths > 0, sums / np.maximum(self.n_unseen, 1), 0.0)


def row_sums(matrix: Floats | sparse.csr_matrix, power: int) -> Floats:
    """Return the sum of a power of the entries of each row of a dense or sparse matrix."""
    powers = matrix.power(power) if isinstance(matrix, sparse.csr_matrix) else matrix**power
    sums: Floats = np.asarray(powers.sum(axis=1)).ravel()
    return sums


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
    order : ndarray of int or None
        The numbers that the items have in the inputs; None if these are the same.
    """

    rankings: Rankings
    relevance: Relevance
    side_data: SideData
    convention: Convention
    weights: Floats | None = None
    listed: Booleans | None = None
    order: Integers | None = None

    @classmethod
    def in_label_order(
        cls,
        rankings: Rankings,
        relevance: Relevance,
        side_data: SideData,
        convention: Convention,
        listed: Booleans | None = None,
    ) -> Aligned:
        """Return both sides with items in the order of their labels, if they have some.

        So equally popular items, random lists and the terms of sums are in one order, however
        the inputs number the items.
        """
        labels = side_data.items
        if labels is None or labels.order is None:
            return cls(rankings, relevance, side_data, convention, listed=listed)
        n_items = side_data.n_items
        order = np.append(labels.order, np.arange(len(labels), n_items))
        numbers = np.empty(n_items, np.int64)
        numbers[order] = np.arange(n_items)
        ordered = labels.take(labels.order)
        sides: list[Any] = [
            side.renumbered(numbers, max(n, len(labels)), ordered if n <= len(labels) else None)
            for side, n in ((rankings, rankings.shape[1]), (relevance, relevance.shape[1]))
        ]
        side_data = side_data.renumbered(order, numbers, ordered)
        lists, truth = sides
        return cls(lists, truth, side_data, convention, listed=listed, order=order)

    def as_given(self, rankings: Rankings) -> Rankings:
        """Return lists with the numbers that items have in the inputs."""
        labels = rankings.items_index
        if self.order is None or labels is None:
            return rankings
        numbers = np.argsort(self.order[: len(labels)])
        return rankings.renumbered(self.order, rankings.shape[1], labels.take(numbers))

    @property
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
        if self.convention.zeros == "hit" and not binary:
            return np.where(gains > 0, gains, 1.0), False
        return gains, binary

    @cached_property
    def relevant_gains(self) -> Floats:
        """The gain or weight of each stored item, 0 if it is not relevant."""
        if self.weights is None:
            return self.relevance.gains
        return np.where(self.relevance.gains > 0, self.weights, 0.0)

    def count_candidates(self, first: int, last: int) -> Integers:
        """Count the items that can be recommended to each of the users from `first` to `last`.

        These are the items of the catalogue, or the user's candidates. Seen items are excluded
        unless they may be recommended again. Items that are relevant or in the list always count.
        """
        side_data, users = self.side_data, np.arange(first, last)
        if side_data.candidates is None:
            return self._count_in_catalogue(first, last)
        own = self.eligible_items(users, seen=self.convention.whole_catalogue)
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

    def _count_in_catalogue(self, first: int, last: int) -> Integers:
        """Count the same items if no candidates are given."""
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

    def eligible_items(self, users: Integers, *, seen: bool = False) -> Eligible:
        """Return the items that can be recommended to some users, with `seen` also seen items."""
        side_data, training = self.side_data, self.side_data.training
        excluded = None if seen or training is None else training.seen(users)
        return eligible_items(side_data.n_items, excluded, side_data.candidates, users)

    @cached_property
    def eligible(self) -> Eligible:
        """The items that can be recommended to each user."""
        return self.eligible_items(np.arange(self.n_users))

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

        Raises `InvalidDataError` if the item at one of these positions is unknown.
        """
        rankings, relevance, side_data = self.rankings, self.relevance, self.side_data
        positions, n_listed = rankings.gapped_positions, np.diff(rankings.indptr)
        if positions is not None:
            n_listed = np.diff(indptr_from_counts(positions <= k)[rankings.indptr])
        incomplete = users[n_listed[users] < np.minimum(rankings.lengths[users], k)]
        if len(incomplete):
            user = incomplete[0]
            raise InvalidDataError(
                f"the list of user {user} has positions without an item; metrics of "
                "recommended items need complete lists",
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
