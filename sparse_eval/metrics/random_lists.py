"""The expectation under random lists of the metrics of what is recommended."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

if TYPE_CHECKING:
    from ..core.types import Booleans, Floats, Integers
    from .lists import Lists


@dataclass(frozen=True)
class RandomLists:
    """Lists drawn from the items that each user has not seen, every order equally likely.

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
    def _seen(self) -> sparse.csr_matrix:
        """Users × items, 1 where the user has seen the item."""
        lists = self.lists
        shape = (len(lists.users), lists.n_items)
        if lists.training is None:
            return sparse.csr_matrix(shape)
        bounds, items = lists.training.seen(lists.users)
        return sparse.csr_matrix((np.ones(len(items)), items, bounds), shape=shape)

    @property
    def keys_of_seen(self) -> Integers:
        """User · N + item of every seen item."""
        rows = np.repeat(np.arange(len(self.lists.users)), np.diff(self._seen.indptr))
        keys: Integers = rows * self.lists.n_items + self._seen.indices
        return keys

    @cached_property
    def n_unseen(self) -> Integers:
        """The number of items that each list is drawn from."""
        unseen: Integers = self.lists.n_items - np.diff(self._seen.indptr)
        return unseen

    @cached_property
    def share(self) -> Floats:
        """The chance of an unseen item to be in the user's list."""
        return np.minimum(self.depths, self.n_unseen) / np.maximum(self.n_unseen, 1)

    def sum_unseen(self, item_values: Floats) -> Floats:
        """Return the sum of a value or vector of items over each user's unseen items."""
        total: Floats = item_values.sum(axis=0) - self._seen @ item_values
        return total

    def over_users(self, user_values: Floats) -> Floats:
        """Return the sum of a value of users over those who have not seen each item."""
        total: Floats = user_values.sum() - self._seen.T @ user_values
        return total

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


def novelty(random: RandomLists) -> Floats:
    return random.mean_of(random.lists.train.item_novelty)


def diversity(random: RandomLists, similarity: str) -> Floats | None:
    if similarity != "vectors":
        return None
    vectors = random.lists.vectors
    assert vectors is not None  # noqa: S101 - the metric is refused without them
    squares = random.sum_unseen((vectors**2).sum(axis=1))
    cosines = (random.sum_unseen(vectors) ** 2).sum(axis=1) - squares  # of ordered pairs
    n = random.n_unseen
    values: Floats = 1.0 - cosines / (n * (n - 1))
    return values


def serendipity(random: RandomLists, form: str) -> Floats | None:
    if form != "ge":
        return None
    lists, training = random.lists, random.lists.train
    popular = training.popular_unseen(lists.users, lists.k)
    rows = np.repeat(np.arange(len(lists.users)), popular.shape[1])
    expected = (rows * lists.n_items + popular.ravel())[popular.ravel() >= 0]
    indptr, items, gains = lists.relevant
    owners = np.repeat(np.arange(len(lists.users)), np.diff(indptr))
    relevant = (owners * lists.n_items + items)[gains > 0]
    unexpected = relevant[~(_is_in(relevant, expected) | _is_in(relevant, random.keys_of_seen))]
    counts = np.bincount(unexpected // lists.n_items, minlength=len(lists.users))
    return counts * random.share / lists.k


def _is_in(ascending: Integers, keys: Integers) -> Booleans:
    """Return which ascending keys are among `keys`; `np.isin` took five times as long."""
    mask = np.zeros(len(ascending) + 1, bool)
    positions = np.searchsorted(ascending, keys)
    mask[positions[np.append(ascending, -1)[positions] == keys]] = True
    return mask[:-1]
