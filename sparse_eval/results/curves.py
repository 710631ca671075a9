"""The precision–recall curve."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from ..metrics import Hits

    Values = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["PrecisionRecall"]

#: Levels of recall at which precision is interpolated, as trec_eval does.
LEVELS = tuple(level / 10 for level in range(11))


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionRecall:
    """Precision and recall at every rank, averaged over users, and interpolated precision.

    Attributes
    ----------
    precision, recall : ndarray of float64, shape (k,)
        At the ranks 1 to k.
    levels, interpolated : ndarray of float64, shape (11,)
        Recall 0, 0.1, …, 1, and the mean over users of the largest precision at any rank down to
        k whose recall is at least that; 0 where it is not reached.
    average_precision : float
        Mean over users of the interpolated precision, averaged over each user's own levels 1/n,
        2/n, …, 1.
    n_users : int
        Users averaged over.
    """

    precision: Values
    recall: Values
    levels: Values
    interpolated: Values
    average_precision: float
    n_users: int

    @classmethod
    def of(cls, k: int, hits: Hits, n_relevant: Integers, users: Integers) -> PrecisionRecall:
        """Make the curve of some users from their hits; a user without relevant items counts 0."""
        counts = np.diff(hits.indptr)
        owners = np.repeat(np.arange(len(counts)), counts)
        counted = np.zeros(len(counts), bool)
        counted[users] = True
        kept = counted[owners]
        # what of a hit's number among its user's is known before any user is left out
        number = (np.arange(len(owners)) - hits.indptr[:-1][owners] + 1)[kept]
        owners, ranks = owners[kept], hits.ranks[: len(kept)][kept]
        n = np.maximum(n_relevant, 1).astype(np.float64)
        found = np.bincount(ranks, minlength=k + 1)[1:]
        shares = np.bincount(ranks, 1.0 / n[owners], k + 1)[1:]
        best = _largest_behind(owners, number / ranks)
        levels = np.array(LEVELS)
        interpolated = np.zeros(len(levels))
        for place, level in enumerate(levels):
            # the first hit that reaches the level; the tolerance is for 0.3 · 10 being below 3
            needed = np.maximum(np.ceil(level * n[owners] - 1e-9), 1)
            interpolated[place] = best[number == needed].sum() / len(users)
        return cls(
            np.cumsum(found) / np.arange(1, k + 1) / len(users),
            np.cumsum(shares) / len(users),
            levels,
            interpolated,
            float((best / n[owners]).sum() / len(users)),
            len(users),
        )

    def __repr__(self) -> str:
        return (
            f"<PrecisionRecall: ranks 1 to {len(self.precision)}, {self.n_users} users, "
            f"average precision {self.average_precision:.4f}>"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return ``precision`` and ``recall`` by ``rank``."""
        import pandas as pd

        ranks = pd.RangeIndex(1, len(self.precision) + 1, name="rank")
        return pd.DataFrame({"precision": self.precision, "recall": self.recall}, index=ranks)


def _largest_behind(owners: Integers, values: Values) -> Values:
    """For each entry, the largest value among it and those of the same owner behind it."""
    best = values.copy()
    last_of_owner = np.append(owners[1:] != owners[:-1], True)[: len(owners)]
    # Doubling steps: after step s an entry knows the s entries behind it.
    ends = np.flatnonzero(last_of_owner)
    end = ends[np.searchsorted(ends, np.arange(len(owners)))] if len(owners) else ends
    step = 1
    while step < len(best):
        ahead = np.minimum(np.arange(len(best)) + step, end)
        best = np.maximum(best, best[ahead])
        step *= 2
    return best
