"""The events of interactions with timestamps, which splits by time divide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from ...core.csr import indptr_from_counts, sorted_csr
from ...core.sorting import gather, move_by_value, order_within, sort_pairs
from ...core.threads import for_each
from ...errors import InvalidDataError
from ...inputs.cells import UNDATED
from ..times import Clock
from .holdout import Holdout
from .pairs import open_interactions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ...core.types import Booleans, CSRMatrix, Floats, Integers
    from ..interactions import Interactions
    from .holdout import LeftOut

#: What to do with held-out events whose pair is known from before.
Repeats = Literal["drop", "keep"]
REPEATS: tuple[Repeats, ...] = get_args(Repeats)


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events with times, sorted by pair of user and item, and within a pair by value.

    Attributes
    ----------
    interactions : Interactions
        Where they come from.
    bounds : ndarray of int64, shape (n_users + 1,)
        Where the events of each user start and end.
    items, values, times : ndarray, shape (n,)
        Their item codes, values and times; at least one time is not `UNDATED`.
    starts : ndarray of int64, shape (n_pairs,)
        Where the events of each pair start.
    """

    interactions: Interactions
    bounds: Integers
    items: NDArray[np.int32]
    values: Floats
    times: Integers
    starts: Integers

    @classmethod
    def of(cls, interactions: Interactions, function: str) -> Events:
        """Return the events, or raise `InvalidDataError` in the name of a function of `split`."""
        interactions = open_interactions(interactions)
        times = getattr(interactions, "timestamps", None)
        if times is None:
            raise InvalidDataError(
                f"{function} needs interactions with timestamps, found "
                f"{type(interactions).__name__} without; load them with timestamp=, or use "
                "split.random"
            )
        if not (times != UNDATED).any():
            raise InvalidDataError(
                f"{function} needs events with dates, found none; use split.random"
            )
        users, items = interactions.user_codes, interactions.item_codes
        order, items, starts = sort_pairs(users, items, interactions.n_items)
        values = gather(interactions.values, order)
        if len(starts) < len(order):
            entries, places = move_by_value(starts, values)
            values[places], order[places] = values[entries], order[entries]
        bounds = indptr_from_counts(np.bincount(users, minlength=interactions.n_users))
        return cls(interactions, bounds, items, values, gather(times, order), starts)

    @property
    def first(self) -> Integers:
        """The time of the first event of each pair."""
        if len(self.starts) == len(self):
            return self.times
        return np.asarray(np.minimum.reduceat(self.times, self.starts), np.int64)

    def last_of_pairs(self, chosen: Booleans) -> Integers:
        """Return the time of the last chosen event of each pair, `UNDATED` without any."""
        times = np.where(chosen, self.times, UNDATED)
        return np.asarray(np.maximum.reduceat(times, self.starts), np.int64)

    @property
    def pair_bounds(self) -> Integers:
        """Where the pairs of each user start and end."""
        return np.searchsorted(self.starts, self.bounds)

    @property
    def pair_positions(self) -> Integers:
        """The position of each pair among those of its user, by the time of the first event."""
        return positions_by_time(self.pair_bounds, self.first)

    def of_events(self, pairs: NDArray[Any]) -> NDArray[Any]:
        """Return for each event what is given for each pair."""
        if len(self.starts) == len(self):
            return pairs
        return np.repeat(pairs, np.diff(self.starts, append=len(self)))

    def in_pairs(self, chosen: Booleans) -> Booleans:
        """Return which pairs have a chosen event."""
        if len(self.starts) == len(self):
            return chosen
        return np.asarray(np.logical_or.reduceat(chosen, self.starts), bool)

    def __len__(self) -> int:
        return len(self.times)

    def clock(self, **given: object) -> Clock:
        """Return the clock of the times, for options with times and durations by their names."""
        return Clock.of(self.times, self.interactions.time_unit, given.items())

    def before(self, end: int, start: int | None = None) -> Booleans:
        """Return which events are before `end` and, if they have a date, not before `start`."""
        chosen: Booleans = (self.times < end) | (self.times == UNDATED)
        if start is not None:
            chosen &= (self.times >= start) | (self.times == UNDATED)
        return chosen

    def from_on(self, start: int, end: int | None = None) -> Booleans:
        """Return which events are at `start` or later, and before `end`."""
        chosen: Booleans = (self.times >= start) & (self.times != UNDATED)
        if end is not None:
            chosen &= self.times < end
        return chosen

    def divide(
        self,
        parts: Sequence[Booleans],
        left_out: LeftOut,
        cut: np.datetime64 | int | None = None,
        fold_in: Booleans | None = None,
    ) -> Holdout:
        """Return the split whose parts are the given events: train, validation, maybe test."""
        train, validation, *test = for_each(self._matrix, parts)
        return Holdout(
            train,
            validation,
            self.interactions.users,
            self.interactions.items,
            test=test[0] if test else None,
            fold_in=None if fold_in is None else self._matrix(fold_in),
            cut=cut,
            left_out=left_out,
        )

    def _matrix(self, chosen: Booleans) -> CSRMatrix:
        shape = self.interactions.shape
        return sorted_csr(self.bounds, self.items, self.values, shape, self.starts, chosen)


def positions_by_time(bounds: Integers, times: Integers) -> Integers:
    """Return the position of each pair among those of its user, undated pairs first."""
    dates = times != UNDATED
    if dates.any() and not dates.all():
        # So far from all dates, `UNDATED` would leave few bits to sort those by.
        times = np.where(dates, times, times[dates].min() - 1)
    return order_within(bounds, times)


def first_of_users(bounds: Integers, chosen: Booleans, times: Integers) -> Integers:
    """Return the earliest time of the chosen pairs of each user, the largest int64 without any."""
    pairs = np.flatnonzero(chosen)
    starts = np.searchsorted(pairs, bounds)
    some = starts[1:] > starts[:-1]
    earliest = np.full(len(some), np.iinfo(np.int64).max)
    if len(pairs):
        earliest[some] = np.minimum.reduceat(times[pairs], starts[:-1][some])
    return earliest
