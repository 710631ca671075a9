"""What every search of items by the products of factors has: checked factors, and exact scores."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.threads import for_blocks
from ..errors import InvalidDataError
from ..kernels.exact import score_held_out
from .factors import check_factors
from .ranker import Ranker

if TYPE_CHECKING:
    from ..core.types import Integers, SparseInput
    from ..kernels.structures import HeldOut


class FactorRanker(Ranker):
    """The base class of searches by the products of factors; the options are those of `Ranker`."""

    def __init__(
        self,
        user_factors: object,
        item_factors: object,
        seen: SparseInput | None = None,
        *,
        num_threads: int | None = None,
        **options: Any,
    ) -> None:
        (self.user_factors, self.user_norms), (self.item_factors, self.item_norms) = check_factors(
            user_factors, item_factors, num_threads
        )
        shape = (len(self.user_factors), len(self.item_factors))
        super().__init__(shape, "factors", seen, num_threads=num_threads, **options)
        self.largest = float(self.item_norms[self.candidates].max())
        if not self.largest * float(self.user_norms.max(initial=0.0)) < 8e307:
            raise InvalidDataError(
                f"factors are so large (a user's of length {self.user_norms.max():g}, an item's "
                f"of {self.largest:g}) that a score could overflow; scale them down"
            )
        self.lock = Lock()  # guards what the threads share
        self.n_products = np.zeros(1, np.int64)
        self.cold_users = 0

    def score_held_out(self, rows: Integers, held_out: HeldOut) -> None:
        """Score and sort the held-out items of the users in `rows`."""
        factors = (self.user_factors, self.item_factors)
        longest = int(np.diff(held_out.indptr).max(initial=0))

        def score(first: int, last: int) -> None:
            space = np.empty(longest, np.int32), np.empty(longest + 7)
            score_held_out(first, last, rows, *factors, held_out, *space)

        for_blocks(score, len(rows), self.threads)
