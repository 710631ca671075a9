"""The expectation under random lists of the metrics of what is recommended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ..core.types import Floats, Integers, Items
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

    @cached_property
    def possible_hits(self) -> tuple[Integers, Items]:
        """The rows in `users`, and the items, of the relevant items that a list can hold."""
        indptr, items, gains = self.lists.relevant
        rows = np.repeat(np.arange(len(self.lists.users)), np.diff(indptr))
        possible = (gains > 0) & self.lists.eligible.contain(rows, items)
        return rows[possible], items[possible]

    def mean_of_hits(self, hit_values: Floats) -> Floats:
        """Return the expected mean over each list of a value of `possible_hits`, others being 0.

        It is 0 for an empty list.
        """
        sums = np.bincount(self.possible_hits[0], hit_values, len(self.lists.users))
        return np.where(self.depths > 0, sums / np.maximum(self.n_unseen, 1), 0.0)


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
        squared_sums = (random.sum_unseen(vectors) ** 2).sum(axis=1)
        squares = random.sum_unseen((vectors**2).sum(axis=1))
    elif similarity == "groups":
        groups = random.lists.group_vectors.tocsc()
        columns = (groups[:, [group]].toarray().ravel() for group in range(groups.shape[1]))
        squared_sums = sum(random.sum_unseen(column) ** 2 for column in columns)
        squares = random.sum_unseen(np.ones(groups.shape[0]))
    else:  # of items' users: every pair of what a user has seen would have to be compared
        return None
    cosines = squared_sums - squares  # of ordered pairs
    n = random.n_unseen
    values: Floats = 1.0 - cosines / (n * (n - 1))
    return values
