"""The distinct pairs of interactions, which splits divide."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from scipy import sparse

from ...core.arguments import check_whole
from ...core.csr import coordinates, summed_csr
from ...core.hashing import splitmix64
from ...core.labelled import labels_of
from ...errors import InvalidDataError
from ..interactions import Interactions
from .holdout import Holdout

if TYPE_CHECKING:
    from ...core.types import (
        AnyArray,
        Booleans,
        CSRMatrix,
        Hashes,
        Integers,
        Labels,
        SparseInput,
    )

#: The most pairs of a user that can be held out, and the most folds.
MAX_COUNT = 2**31 - 1


class HasMatrix(Protocol):
    """`Interactions`, or anything else with a matrix of users × items."""

    def matrix(self) -> SparseInput:
        """Return the matrix."""


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The distinct pairs of interactions, in the order of a canonical CSR matrix."""

    matrix: CSRMatrix
    rows: Integers
    users: Labels | None
    items: Labels | None

    @classmethod
    def of(cls, interactions: HasMatrix | SparseInput) -> Pairs:
        """Return the pairs of interactions or of a matrix."""
        users = items = None
        matrix: CSRMatrix
        if isinstance(interactions, Interactions):
            matrix, users, items = interactions.matrix(), interactions.users, interactions.items
        else:
            given = interactions.matrix() if hasattr(interactions, "matrix") else interactions
            if not sparse.issparse(given):
                raise InvalidDataError(
                    f"expected Interactions or a scipy sparse matrix, found {type(given).__name__}"
                )
            users, items = labels_of(given)
            matrix = summed_csr(*coordinates(given))
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        return cls(matrix, rows, users, items)

    @property
    def sizes(self) -> Integers:
        """Number of pairs of each user."""
        return np.asarray(np.diff(self.matrix.indptr), np.int64)

    def random_order(self, seed: int) -> Integers:
        """Return the position of each pair among those of its user, in a random order."""
        keys = hashes(seed, self.rows, self.matrix.indices)
        return order_within(self.rows, keys)

    def hold_out_first(self, counts: Integers, positions: Integers) -> Holdout:
        """Hold out a number of pairs of each user, the first by their positions."""
        return self.hold_out(positions < counts[self.rows])

    def hold_out(self, mask: Booleans) -> Holdout:
        """Hold out the pairs that a mask selects."""
        return Holdout(self._select(~mask), self._select(mask), self.users, self.items)

    def _select(self, mask: Booleans) -> CSRMatrix:
        matrix = self.matrix
        n_before = np.concatenate([[0], np.cumsum(mask)])
        parts = (matrix.data[mask], matrix.indices[mask], n_before[matrix.indptr])
        selected: CSRMatrix = sparse.csr_matrix(parts, shape=matrix.shape)
        return selected


def order_within(rows: Integers, keys: AnyArray) -> Integers:
    """Return the position of each pair among those of its user, sorted by `keys`.

    `rows` are the users, ascending. Pairs with equal keys stay in their order.
    """
    order = np.lexsort((keys, rows))  # it is stable
    positions = np.empty(len(order), dtype=np.int64)
    positions[order] = np.arange(len(order)) - np.searchsorted(rows, rows)
    return positions


def hashes(seed: int, *columns: AnyArray) -> Hashes:
    """Hash the rows of columns of codes.

    Drawing from a generator would make each pair depend on all pairs before it. Each step is one
    to one, so that two items of a user never get the same hash.
    """
    check_whole("seed", seed, 0)
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)
    for column in columns:
        state = splitmix64(state ^ column.astype(np.uint64))
    return state


def check_fraction(name: str, fraction: object) -> None:
    """Raise unless a share is between 0 and 1, both excluded."""
    if (
        not isinstance(fraction, int | float | np.number)
        or isinstance(fraction, bool)
        or not math.isfinite(fraction)
        or not 0 < fraction < 1
    ):
        raise InvalidDataError(
            f"{name}: expected a number between 0 and 1, both excluded, found {fraction!r}"
        )
