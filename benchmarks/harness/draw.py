"""Draw lists of distinct items, and items of clusters."""

from typing import Any

import numpy as np
import numpy.typing as npt

Integers = npt.NDArray[np.int64]


def first_distinct(drawn: Integers, length: int) -> Integers:
    """Return the first distinct items of each row; a row without enough of them ends with -1."""
    order = np.argsort(drawn, axis=1, kind="stable")
    ascending = np.take_along_axis(drawn, order, axis=1)
    repeated = np.zeros(drawn.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ascending[:, 1:] == ascending[:, :-1], axis=1)
    # An item stays where it was first drawn; its later draws move behind all other items.
    kept = np.argsort(repeated, axis=1, kind="stable")[:, :length]
    lists = np.take_along_axis(drawn, kept, axis=1)
    lists[np.take_along_axis(repeated, kept, axis=1)] = -1
    return lists


class Clusters:
    """Items in clusters, drawn in proportion to their popularity, 1 / (rank + 10)."""

    def __init__(self, rng: np.random.Generator, n_items: int, n_clusters: int) -> None:
        self.of_item = rng.integers(n_clusters, size=n_items)
        weights = 1.0 / (np.arange(n_items) + 10)
        self.popular = np.cumsum(weights)
        # Sorted by cluster, one search draws from any of them.
        self.order = np.argsort(self.of_item, kind="stable")
        self.sums = np.concatenate([[0.0], np.cumsum(weights[self.order])])
        self.bounds = np.searchsorted(self.of_item[self.order], np.arange(n_clusters + 1))

    def pick(self, rng: np.random.Generator, shape: Any) -> Integers:
        """Draw items of any cluster."""
        places = np.searchsorted(self.popular, rng.random(shape) * self.popular[-1], "right")
        return np.minimum(places, len(self.popular) - 1)

    def pick_in(self, rng: np.random.Generator, clusters: Integers, shape: Any) -> Integers:
        """Draw items of the given clusters."""
        first, last = self.bounds[clusters], self.bounds[clusters + 1]
        low, high = self.sums[first], self.sums[last]
        places = np.searchsorted(self.sums, low + rng.random(shape) * (high - low), "right") - 1
        return self.order[np.clip(places, first, last - 1)]
