"""The events of interactions with timestamps, which splits by time divide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core.csr import sort_pairs, summed_csr
from ...errors import InvalidDataError
from ..times import UNDATED, Clock
from .holdout import Holdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...core.types import Booleans, CSRMatrix, Integers
    from ..interactions import Interactions
    from .holdout import LeftOut


@dataclass(frozen=True, slots=True, eq=False)
class Events:
    """Events with times, and the distinct pairs of user and item that they are of.

    Attributes
    ----------
    interactions : Interactions
        Where they come from.
    times : ndarray of int64, shape (n,)
        Their times; at least one is not `UNDATED`.
    pairs : ndarray of int64, shape (n,)
        The number of the pair of each event. Pairs are numbered by user, then by item.
    users, first : ndarray of int64, shape (n_pairs,)
        The user and the time of the first event of each pair.
    """

    interactions: Interactions
    times: Integers
    pairs: Integers
    users: Integers
    first: Integers

    @classmethod
    def of(cls, interactions: Interactions, function: str) -> Events:
        """Return the events, or raise `InvalidDataError` in the name of a function of `split`."""
        times = getattr(interactions, "timestamps", None)
        if times is None:
            raise InvalidDataError(
                f"{function} needs Interactions with timestamps, found "
                f"{type(interactions).__name__} without; load them with timestamp=, or use "
                "split.random"
            )
        if not (times != UNDATED).any():
            raise InvalidDataError(
                f"{function} needs events with dates, found none; use split.random"
            )
        order, starts = sort_pairs(
            interactions.user_codes, interactions.item_codes, interactions.n_items
        )
        pairs = np.empty(len(order), np.int64)
        pairs[order] = np.repeat(np.arange(len(starts)), np.diff(starts, append=len(order)))
        users = interactions.user_codes[order[starts]].astype(np.int64)
        return cls(interactions, times, pairs, users, np.minimum.reduceat(times[order], starts))

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
        self, parts: Sequence[Booleans], left_out: LeftOut, cut: np.datetime64 | int | None = None
    ) -> Holdout:
        """Return the split whose parts are the given events: train, validation, maybe test."""
        train, validation, *test = map(self._matrix, parts)
        return Holdout(
            train,
            validation,
            self.interactions.users,
            self.interactions.items,
            test=test[0] if test else None,
            cut=cut,
            left_out=left_out,
        )

    def _matrix(self, chosen: Booleans) -> CSRMatrix:
        data = self.interactions
        arrays = (data.user_codes[chosen], data.item_codes[chosen], data.values[chosen])
        return summed_csr(*arrays, data.shape)
