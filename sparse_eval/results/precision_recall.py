"""Precision and recall at every rank, averaged over users."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core.arguments import check_whole
from ..errors import InvalidDataError
from ..metrics.measure import collect_hits

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import Floats
    from .measured_block import Measured

#: The last rank of a curve, at most.
MAX_RANKS = 10_000_000

#: Levels of recall at which precision is interpolated, as trec_eval does.
LEVELS = tuple(level / 10 for level in range(11))


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionRecall:
    """Precision and recall at every rank, and interpolated precision, averaged over users.

    Interpolated precision at a level of recall is the largest precision at any rank, down to k,
    with at least that recall. It is 0 if there is no such rank.

    Attributes
    ----------
    precision, recall : ndarray of float64, shape (k,)
        At ranks 1 to k.
    levels : ndarray of float64, shape (11,)
        Recall 0, 0.1, …, 1, the levels of trec_eval.
    interpolated : ndarray of float64, shape (11,)
        Mean over users of the interpolated precision at `levels`.
    average_precision : float
        Mean over users of the interpolated precision, averaged over each user's own levels 1/n,
        2/n, …, 1, where n is the user's number of relevant items.
    n_users : int
        Number of users averaged over.
    """

    precision: Floats
    recall: Floats
    levels: Floats
    interpolated: Floats
    average_precision: float
    n_users: int

    def __repr__(self) -> str:
        return (
            f"<PrecisionRecall: ranks 1 to {len(self.precision)}, {self.n_users} "
            f"{'user' if self.n_users == 1 else 'users'}, average precision "
            f"{self.average_precision:.4f}>"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with columns ``precision`` and ``recall``, indexed by ``rank``."""
        import pandas as pd

        ranks = pd.RangeIndex(1, len(self.precision) + 1, name="rank")
        return pd.DataFrame({"precision": self.precision, "recall": self.recall}, index=ranks)


def precision_recall(block: Measured, k: int | None) -> PrecisionRecall:
    """Return the curve that `Evaluation.precision_recall` describes."""
    import pandas as pd

    rankings = block.aligned.rankings
    if rankings.last_positions is not None:
        raise InvalidDataError(
            'lists with ties="average" have no certain positions; use ties="item"'
        )
    k = max(int(rankings.lengths.max(initial=0)), 1) if k is None else k
    check_whole("k", k, 1, MAX_RANKS)
    hits = collect_hits(block.aligned, k)
    n_users = block.n_counted
    counts = np.diff(hits.indptr)
    owners = np.repeat(np.arange(len(counts)), counts)
    kept = block.counted[owners]
    # The number of each hit among its user's hits, before users are left out.
    number = (np.arange(len(owners)) - hits.indptr[:-1][owners] + 1)[kept]
    owners, ranks = owners[kept], hits.ranks[: len(kept)][kept]
    n = np.maximum(block.n_relevant, 1).astype(np.float64)
    hits_at_rank = np.bincount(ranks, minlength=k + 1)[1:]
    shares = np.bincount(ranks, 1.0 / n[owners], k + 1)[1:]
    # For each hit, the largest precision at its rank and the ranks of its user's later hits.
    later = pd.Series((number / ranks)[::-1]).groupby(owners[::-1])
    best = later.cummax().to_numpy()[::-1]
    levels = np.array(LEVELS)
    interpolated = np.zeros(len(levels))
    for i, level in enumerate(levels):
        # The number of the first hit that reaches the level. Due to the tolerance, a product just
        # above a whole number does not need one more hit.
        needed = np.maximum(np.ceil(level * n[owners] - 1e-9), 1)
        interpolated[i] = best[number == needed].sum() / n_users
    return PrecisionRecall(
        np.cumsum(hits_at_rank) / np.arange(1, k + 1) / n_users,
        np.cumsum(shares) / n_users,
        levels,
        interpolated,
        float((best / n[owners]).sum() / n_users),
        n_users,
    )
