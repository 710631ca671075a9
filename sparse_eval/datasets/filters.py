"""Which events to keep: conditions one after another, and how many events each drops."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.arguments import check_whole
from ..core.sorting import sort_pairs
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..core.types import Booleans, Floats


class Selection:
    """The events that have met all conditions so far.

    Attributes
    ----------
    kept : ndarray of bool
        Whether each event is kept.
    dropped : dict of str to int
        How many events each option dropped.
    """

    def __init__(self, users: NDArray[np.int32], items: NDArray[np.int32], values: Floats) -> None:
        self.users, self.items, self.values = users, items, values
        self.kept = np.ones(len(values), dtype=bool)
        self.dropped: dict[str, int] = {}

    def keep(self, option: str, condition: Booleans) -> None:
        """Drop the events that do not meet a condition; raise `InvalidDataError` if none is left.

        `condition` is about all events, whether they are still kept or not.
        """
        n_before = np.count_nonzero(self.kept)
        self.kept &= condition
        n_kept = np.count_nonzero(self.kept)
        self.dropped[option] = self.dropped.get(option, 0) + int(n_before - n_kept)
        if not n_kept:
            counts = ", ".join(f"{n:,} by {name}" for name, n in self.dropped.items())
            raise InvalidDataError(
                f"no interactions are left: {counts} were dropped; relax the conditions"
            )

    def keep_core(
        self, min_user_interactions: int | None, min_item_interactions: int | None
    ) -> None:
        """Drop users and items with too few partners, until all that are left have enough."""
        conditions = [
            (option, codes, check_whole(option, least, 1))
            for option, codes, least in (
                ("min_user_interactions", self.users, min_user_interactions),
                ("min_item_interactions", self.items, min_item_interactions),
            )
            if least is not None
        ]
        if not conditions:
            return
        # One kept event of each distinct (user, item) that has a value above 0.
        rows = np.flatnonzero(self.kept & (self.values > 0))
        n_items = int(self.items.max(initial=-1)) + 1
        order, _, starts = sort_pairs(self.users[rows], self.items[rows], n_items)
        chosen = np.zeros(len(self.kept), dtype=bool)
        chosen[rows[order[starts]]] = True
        while True:
            n_before = np.count_nonzero(self.kept)
            for option, codes, least in conditions:
                n_codes = int(codes.max(initial=-1)) + 1
                sizes = np.bincount(codes[chosen & self.kept], minlength=n_codes)
                self.keep(option, sizes[codes] >= least)
            if np.count_nonzero(self.kept) == n_before:
                return
