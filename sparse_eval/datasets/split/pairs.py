"""The distinct pairs of interactions, which splits divide."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from scipy import sparse

from ...core.arguments import check_whole
from ...core.csr import coordinates, plain_matrix, sorted_csr, summed_csr
from ...core.hashing import splitmix64
from ...core.mistaken import describe
from ...core.sorting import order_within
from ...core.threads import for_blocks, for_each
from ...errors import InvalidDataError, SparseEvalError
from ...inputs.labelled import labels_of
from ...inputs.scan import engine_of
from ..interactions import Interactions
from ..load import load
from .holdout import Holdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.types import (
        AnyArray,
        Booleans,
        CSRMatrix,
        Hashes,
        Integers,
        PathLike,
        SparseInput,
    )
    from ...inputs.axes import Axis
    from ...inputs.scan import FrameLike

#: The most pairs of a user that can be held out, and the most folds.
MAX_COUNT = 2**31 - 1


class HasMatrix(Protocol):
    """`Interactions`, or anything else with a matrix of users × items."""

    def matrix(self) -> SparseInput:
        """Return the matrix."""


#: What is split at random.
Divisible: TypeAlias = "HasMatrix | SparseInput | FrameLike | PathLike"


def open_interactions(given: Any) -> Any:
    """Return the interactions in a frame or at a path; anything else is kept as it is."""
    if not isinstance(given, str | os.PathLike) and engine_of(given) is None:
        return given
    try:
        return load(given)
    except SparseEvalError as error:
        if error.argument not in ("user", "item", "value", "timestamp"):
            raise
        raise InvalidDataError(
            str(error),
            argument=error.argument,
            column=error.column,
            hint=f"se.datasets.load(…, {error.argument}=…) takes it, and a split what that returns",
        ) from None


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """The distinct pairs of interactions, in the order of a canonical CSR matrix."""

    matrix: CSRMatrix
    users: Axis | None
    items: Axis | None

    @classmethod
    def of(cls, interactions: Divisible) -> Pairs:
        """Return the pairs of interactions, of a table of them, or of a matrix."""
        users = items = None
        matrix: CSRMatrix
        interactions = open_interactions(interactions)
        if isinstance(interactions, Interactions):
            matrix, users, items = interactions.matrix(), interactions.users, interactions.items
        else:
            given = interactions.matrix() if hasattr(interactions, "matrix") else interactions
            if not sparse.issparse(plain_matrix(given)):
                raise InvalidDataError(
                    "expected Interactions, a frame, a path or a scipy sparse matrix, found "
                    f"{describe(given)}"
                )
            users, items = labels_of(given)
            matrix = summed_csr(*coordinates(given))
        return cls(matrix, users, items)

    @property
    def sizes(self) -> Integers:
        """Number of pairs of each user."""
        return np.asarray(np.diff(self.matrix.indptr), np.int64)

    def of_users(self, numbers: Integers) -> Integers:
        """Return the number of its user for each pair."""
        return np.repeat(numbers, self.sizes)

    def random_order(self, seed: int) -> Integers:
        """Return the position of each pair among those of its user, in a random order."""
        bounds, items = self.matrix.indptr, self.matrix.indices
        keys = np.empty(len(items), np.uint64)
        states = hashes(seed, np.arange(len(bounds) - 1))

        def hash_items(first: int, last: int) -> None:
            chosen = slice(bounds[first], bounds[last])
            of_pairs = np.repeat(states[first:last], np.diff(bounds[first : last + 1]))
            keys[chosen] = splitmix64(of_pairs ^ items[chosen].astype(np.uint64))

        for_blocks(hash_items, len(states))
        return order_within(bounds, keys)

    def hold_out_first(self, counts: Integers, positions: Integers) -> Holdout:
        """Hold out a number of pairs of each user, the first by their positions."""
        return self.hold_out(positions < self.of_users(counts))

    def hold_out(self, mask: Booleans) -> Holdout:
        """Hold out the pairs that a mask selects."""
        train, validation = self.select((~mask, mask))
        return Holdout(train, validation, self.users, self.items)

    def select(self, masks: Sequence[Booleans]) -> list[CSRMatrix]:
        """Return a matrix of the pairs that each mask selects."""
        whole = self.matrix
        parts = (whole.indptr, whole.indices, whole.data, whole.shape)
        return for_each(lambda mask: sorted_csr(*parts, chosen=mask), masks)


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
