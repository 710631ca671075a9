"""`Counts`: what was evaluated, of how many users and items."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..errors import InvalidDataError
from .candidates import name_among
from .totals import Part, merge_parts

if TYPE_CHECKING:
    from ..metrics import Metric
    from ..metrics.request import Request
    from .block import BlockResult
    from .candidates import CandidateCounts
    from .first_ranks import FirstRanks
    from .numbers import SavedNumber
    from .seen import SeenCounts
    from .totals import Retrieval, Totals


class Counts:
    """What was evaluated, and how many users and items there are.

    They are those of a block of users whose lists were kept, or of parts of blocks that were
    merged.
    """

    def __init__(
        self,
        request: Request,
        block: BlockResult | None = None,
        parts: tuple[Part, ...] | None = None,
        saved: dict[int, SavedNumber] | None = None,
    ) -> None:
        self.request = request
        self._block = block
        self._saved = saved or {}  # numbers about all users that totals do not give
        if parts is not None:
            self._parts = parts
        if self.n_users:
            return
        if request.without_list != "exclude" or (block is not None and not block.n_relevant.any()):
            raise InvalidDataError(
                f"none of the {self.n_skipped} users has a relevant item (a stored value above 0)"
            )
        raise InvalidDataError(
            f"no user counts with convention={self.convention!r} and without_list="
            f"{request.without_list!r}: none of them has both a relevant item and a list"
        )

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        """What is merged with others, each part about other users, in their order."""
        assert self._block is not None  # noqa: S101 - otherwise parts were given
        return (self._block.part(per_user=True),)

    @cached_property
    def _merged(self) -> Part:
        if len(self._parts) == 1:
            return self._parts[0]
        return merge_parts(self._parts)

    @property
    def _totals(self) -> Totals:
        return self._merged.totals

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, in the order in which they were requested."""
        return self.request.metrics

    @property
    def names(self) -> list[str]:
        """The canonical names of the metrics."""
        return list(self.request.names)

    @property
    def convention(self) -> str:
        """The name of the convention, "standard" where none was given."""
        return self.request.convention.name

    @property
    def no_relevant(self) -> str:
        """What becomes of users without relevant items: "exclude", "zero" or "judged"."""
        return self.request.no_relevant

    @property
    def retrieval(self) -> Retrieval | None:
        """How the rankings were made, None where they were given."""
        return self._totals.retrieval if self._block is None else self._block.retrieval

    @property
    def n_users(self) -> int:
        """Number of users that count in the means."""
        if self._block is not None:
            return int(np.count_nonzero(self._block.counted()))
        return self._totals.n_counted

    @property
    def n_skipped(self) -> int:
        """Number of users left out: without a relevant item, or as the convention says."""
        if self._block is not None:
            return len(self._block.n_relevant) - self.n_users
        return self._totals.span.n - self._totals.n_counted

    @property
    def n_without_list(self) -> int:
        """Number of users with relevant items and no list.

        Each counts 0 in every mean, unless the convention leaves them out.
        """
        if self._block is not None:
            return self._block.n_without_list
        return self._totals.n_without_list

    @property
    def n_cold(self) -> int | None:
        """Number of evaluated users without training data; None where train is not known."""
        return None if self.seen is None else self.seen.n_cold

    @property
    def n_relevant_seen(self) -> int | None:
        """Number of relevant items that their user has in train; None where it is not known."""
        return None if self.seen is None else self.seen.n_relevant

    @property
    def n_listed_seen(self) -> int | None:
        """Number of listed items that their user has in train; None where it is not known."""
        return None if self.seen is None else self.seen.n_listed

    @property
    def seen(self) -> SeenCounts | None:
        """These three, and the number of relevant items; None where train is not known."""
        return self._totals.seen if self._block is None else self._block.seen

    @property
    def candidates(self) -> CandidateCounts | None:
        """What the candidates were, None where they were all items that users had not seen."""
        return self._totals.candidates if self._block is None else self._block.candidates

    @property
    def propensities(self) -> dict[str, str]:
        """A digest of each input by which hits are weighted, "train" or "propensity"."""
        if self._block is not None:
            return self._block.propensities
        return self._totals.key.propensities or {}

    def shown(self, name: str) -> str:
        """Return a metric's name as people read it: ``hit_rate@10 (1+99)`` among candidates."""
        kind = None if self.candidates is None else self.candidates.kind
        return name_among(name, kind, self.request.corrected)

    @property
    def has_lists(self) -> bool:
        """Whether the lists, and the values of each user, are kept in memory."""
        return self._block is not None

    @property
    def leaves_candidates_out(self) -> bool:
        """Whether full rankings of different lengths are counted against the whole catalogue.

        As those of unseen items, where no training data say which items were seen.
        """
        block = self._block
        if block is None or block.aligned.side_data.training is not None:
            return False
        if block.aligned.side_data.candidates is not None:
            return False
        if not any("candidates" in plan.definition.uses for plan in self.request.plans):
            return False
        lengths = block.aligned.rankings.lengths[block.counted()]
        n_items = block.aligned.side_data.n_items
        least, most = lengths.min(), lengths.max()
        return bool(least < most and least < n_items and 2 * lengths.mean() > n_items)

    @property
    def first_ranks(self) -> FirstRanks | None:
        """The first ranks of the lists; None if there are no lists or a model made them."""
        return self._totals.first_ranks if self._block is None else self._block.first_ranks
