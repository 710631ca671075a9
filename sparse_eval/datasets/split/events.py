"""The events that splits divide: of interactions, frames, files and matrices."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from ...core.arguments import check_whole
from ...core.csr import (
    gather,
    indptr_from_counts,
    order_within,
    sorted_csr,
    sorted_entries,
    summed_csr,
)
from ...core.hashing import splitmix64
from ...core.threads import for_blocks, for_each
from ...errors import InvalidDataError, SparseEvalError
from ...inputs.column_values import UNDATED
from ...inputs.labelled import LabelledMatrix, labels_of
from ...inputs.tables import engine_of
from ..interactions import Interactions
from ..load import load
from ..times import Clock
from .holdout import Holdout, LeftOut

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ...core.types import Booleans, Floats, Hashes, Integers, PathLike, SparseInput
    from ...inputs.axes import Axis
    from ...inputs.column_values import TimeUnit
    from ...inputs.tables import FrameLike

#: What to do with held-out events whose pair is known from before.
Repeats = Literal["drop", "keep"]
REPEATS: tuple[Repeats, ...] = get_args(Repeats)

#: The most pairs of a user that can be held out, and the most folds.
MAX_COUNT = 2**31 - 1

#: Inputs of random splits.
Divisible: TypeAlias = "Interactions | SparseInput | FrameLike | PathLike"


@dataclass(frozen=True, eq=False)
class SortedEvents:
    """Events sorted by pair of user and item, and within a pair by value.

    Attributes
    ----------
    axes : tuple of Axis or None
        The labels of the users and of the items.
    shape : tuple of int
        The numbers of users and items.
    bounds : ndarray of int64, shape (n_users + 1,)
        Where the events of each user start and end.
    items, values : ndarray, shape (n,)
        Their item codes and values.
    starts : ndarray of int64, shape (n_pairs,)
        Where the events of each pair start.
    times : ndarray of int64, shape (n,)
        Their times, not all `UNDATED`; empty if a split does not need them.
    unit : {"s", "ms", "us", "ns"} or None
        The unit of the times, if the source gives it.
    """

    axes: tuple[Axis | None, Axis | None]
    shape: tuple[int, int]
    bounds: Integers
    items: NDArray[np.int32]
    values: Floats
    starts: Integers
    times: Integers
    unit: TimeUnit | None

    @classmethod
    def of(cls, given: Divisible, function: str | None = None) -> SortedEvents:
        """Return the events, with times if a function of `split` is named that needs them.

        Raises `InvalidDataError` if there are no events, or no times; errors about times name the
        function.
        """
        given = _opened(given)
        times: Any = getattr(given, "timestamps", None)
        if function is not None and (times is None or not (times != UNDATED).any()):
            raise InvalidDataError(
                f"{function} needs timestamps, but this {type(given).__name__} has none; load it "
                "with timestamp=, or use split.random",
                argument="timestamp",
            )
        if isinstance(given, Interactions):
            axes: tuple[Axis | None, Axis | None] = (given.users, given.items)
        else:
            matrix = given.matrix() if hasattr(given, "matrix") else given
            axes, given = labels_of(matrix), Interactions._of_matrix(matrix)
        shape = given.shape
        users, items, values = given.user_codes, given.item_codes, given.values
        if function is None:  # pairs are divided whole, so that their events can be summed first
            matrix = summed_csr(users, items, values, shape)
            rows = (matrix.indptr, matrix.indices, matrix.data)
            return cls(axes, shape, *rows, np.arange(matrix.nnz), np.empty(0, np.int64), None)
        bounds, items, values, starts, order = sorted_entries(users, items, values, shape)
        return cls(
            axes, shape, bounds, items, values, starts, gather(times, order), given.time_unit
        )

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def pair_bounds(self) -> Integers:
        """Where the pairs of each user start and end."""
        return np.searchsorted(self.starts, self.bounds)

    @cached_property
    def sizes(self) -> Integers:
        """The number of pairs of each user."""
        return np.diff(self.pair_bounds)

    def of_users(self, numbers: Integers) -> Integers:
        """Repeat the number of each user for its pairs."""
        return np.repeat(numbers, self.sizes)

    def of_events(self, pairs: NDArray[Any]) -> NDArray[Any]:
        """Repeat the value of each pair for its events."""
        if len(self.starts) == len(self):
            return pairs
        return np.repeat(pairs, np.diff(self.starts, append=len(self)))

    def in_pairs(self, chosen: Booleans) -> Booleans:
        """Return a mask of the pairs with a chosen event."""
        return np.asarray(np.logical_or.reduceat(chosen, self.starts), bool)

    def count(self, pairs: Booleans) -> Integers:
        """Return the number of chosen pairs of each user."""
        return np.diff(indptr_from_counts(pairs.astype(np.int64))[self.pair_bounds])

    def random_order(self, seed: int) -> Integers:
        """Return the position of each pair among its user's pairs, in a random order.

        Each pair must have exactly one event, as for data without times.
        """
        bounds, items = self.bounds, self.items
        keys = np.empty(len(items), np.uint64)
        states = hashes(seed, np.arange(len(bounds) - 1))

        def hash_items(first: int, last: int) -> None:
            chosen = slice(bounds[first], bounds[last])
            of_pairs = np.repeat(states[first:last], np.diff(bounds[first : last + 1]))
            keys[chosen] = splitmix64(of_pairs ^ items[chosen].astype(np.uint64))

        for_blocks(hash_items, len(states))
        return order_within(bounds, keys)

    @cached_property
    def first(self) -> Integers:
        """The time of the first event of each pair."""
        return np.asarray(np.minimum.reduceat(self.times, self.starts), np.int64)

    def last_of_pairs(self, chosen: Booleans) -> Integers:
        """Return the time of the last chosen event of each pair, `UNDATED` without any."""
        times = np.where(chosen, self.times, UNDATED)
        return np.asarray(np.maximum.reduceat(times, self.starts), np.int64)

    def positions(self, times: Integers) -> Integers:
        """Return the position of each pair among its user's pairs by time, undated ones first."""
        return order_within(self.pair_bounds, times)

    def first_of_users(self, chosen: Booleans, times: Integers) -> Integers:
        """Return for each event the earliest time of its user's chosen pairs.

        It is the largest int64 if there are none.
        """
        pairs = np.flatnonzero(chosen)
        starts = np.searchsorted(pairs, self.pair_bounds)
        some = starts[1:] > starts[:-1]
        earliest = np.full(len(some), np.iinfo(np.int64).max)
        if len(pairs):
            earliest[some] = np.minimum.reduceat(times[pairs], starts[:-1][some])
        return np.repeat(earliest, np.diff(self.bounds))

    def clock(self, **given: object) -> Clock:
        """Return the clock of the times, for options with times and durations by their names."""
        return Clock.of(self.times, self.unit, given.items())

    def before(self, end: int, start: int | None = None) -> Booleans:
        """Return a mask of the events before `end`, without dated events before `start`."""
        chosen: Booleans = (self.times < end) | (self.times == UNDATED)
        if start is not None:
            chosen &= (self.times >= start) | (self.times == UNDATED)
        return chosen

    def from_on(self, start: int, end: int | None = None) -> Booleans:
        """Return a mask of the events at `start` or later, and before `end`."""
        chosen: Booleans = (self.times >= start) & (self.times != UNDATED)
        if end is not None:
            chosen &= self.times < end
        return chosen

    def hold_out(self, pairs: Booleans) -> Holdout:
        """Return the split that holds out the given pairs."""
        held_out = self.of_events(pairs)
        return self.divide((~held_out, held_out))

    def divide(
        self,
        parts: Sequence[Booleans],
        left_out: LeftOut = LeftOut(),  # noqa: B008 - immutable
        times: Sequence[tuple[np.datetime64 | int, np.datetime64 | int]] = (),
        fold_in: Booleans | None = None,
    ) -> Holdout:
        """Return the split whose parts are the given events: train, validation, maybe test.

        `times` has the end of each part but the last of a split by time, and the next part's start.
        """
        given = parts if fold_in is None else [*parts, fold_in]
        entries = self.bounds, self.items, self.values, self.shape, self.starts
        matrices: list[Any] = for_each(lambda chosen: sorted_csr(*entries, chosen), given)
        for number, ends in enumerate(times):
            matrices[number] = LabelledMatrix(matrices[number], None, None, None, *ends)
        train, validation, *test = matrices[: len(parts)]
        return Holdout(
            train,
            validation,
            *self.axes,
            test=test[0] if test else None,
            fold_in=None if fold_in is None else matrices[-1],
            cut=times[0][1] if times else None,
            left_out=left_out,
        )


def _opened(given: Any) -> Any:
    """Return the interactions of a frame or path, anything else as it is."""
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


def hashes(seed: int, codes: Integers) -> Hashes:
    """Hash codes of users or items.

    Drawing from a generator would make each pair depend on all pairs before it. Each step is one
    to one, so that two items of a user never get the same hash.
    """
    check_whole("seed", seed, 0)
    state = np.random.SeedSequence(seed).generate_state(1, np.uint64).astype(np.uint64)
    return splitmix64(state ^ codes.astype(np.uint64))
