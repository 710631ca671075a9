"""The expectation under random lists of the metrics of what is recommended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from .eligible import are_in

if TYPE_CHECKING:
    from ..core.types import Floats, Integers
    from .lists import Lists


@dataclass(frozen=True)
class RandomLists:
    """Lists drawn from what each user can be recommended, every order equally likely.

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
        """The chance of an unseen item to be in the user's list."""
        return np.minimum(self.depths, self.n_unseen) / np.maximum(self.n_unseen, 1)

    def sum_unseen(self, item_values: Floats) -> Floats:
        """Return the sum of a value or vector of items over each user's unseen items."""
        return self.lists.eligible.sum_over_items(item_values)

    def over_users(self, user_values: Floats) -> Floats:
        """Return the sum of a value of users over those who can be recommended each item."""
        return self.lists.eligible.sum_over_users(user_values)

    def mean_of(self, item_values: Floats) -> Floats:
        """Return the expected mean of a value of items over each list."""
        return self.sum_unseen(item_values) / self.n_unseen


def coverage(random: RandomLists) -> float:
    certain = random.share >= 1.0  # the list holds every unseen item
    chance_of_none = np.log1p(-np.where(certain, 0.0, random.share))
    missed = np.exp(random.over_users(chance_of_none))
    missed[random.over_users(certain.astype(np.float64)) > 0.5] = 0.0
    return float(1.0 - missed.mean())


def user_coverage(random: RandomLists) -> float:
    return float((np.minimum(random.depths, random.n_unseen) > 0).mean())


def personalization(random: RandomLists) -> float:
    users = int(np.count_nonzero(random.share))
    if users < 2:
        return float("nan")
    counts = random.over_users(random.share)
    shared = (counts**2 - random.over_users(random.share**2)).sum() / 2
    return float(1.0 - shared / (users * (users - 1) / 2 * random.lists.k))


def popularity(random: RandomLists) -> Floats:
    return random.mean_of(random.lists.train.item_counts.astype(np.float64))


def diversity(random: RandomLists, similarity: str) -> Floats | None:
    if similarity == "vectors":
        vectors = random.lists.vectors
        assert vectors is not None  # noqa: S101 - the metric is refused without them
        squared_sums = (random.sum_unseen(vectors) ** 2).sum(axis=1)
        squares = random.sum_unseen((vectors**2).sum(axis=1))
    elif similarity == "groups":
        groups = random.lists.group_vectors.tocsc()
        columns = (groups[:, [group]].toarray().ravel() for group in range(groups.shape[1]))
        squared_sums = sum(random.sum_unseen(column) ** 2 for column in columns)
        squares = random.sum_unseen(np.ones(groups.shape[0]))
    else:
        return None
    cosines = squared_sums - squares  # of ordered pairs
    n = random.n_unseen
    values: Floats = 1.0 - cosines / (n * (n - 1))
    return values


def serendipity(random: RandomLists, form: str) -> Floats | None:
    if form != "ge":
        return None
    lists = random.lists
    popular = lists.popular_eligible
    rows = np.repeat(np.arange(len(lists.users)), popular.shape[1])
    expected = (rows * lists.n_items + popular.ravel())[popular.ravel() >= 0]
    indptr, items, gains = lists.relevant
    owners = np.repeat(np.arange(len(lists.users)), np.diff(indptr))
    owners, items = owners[gains > 0], items[gains > 0]
    is_expected = are_in(owners * lists.n_items + items, np.sort(expected))
    unexpected = owners[~is_expected & lists.eligible.contain(owners, items)]
    counts = np.bincount(unexpected, minlength=len(lists.users))
    return counts * random.share / lists.k
