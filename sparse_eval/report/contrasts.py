"""Who wins and who loses: two evaluations, group by group of their users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..results.intervals import Interval, interval_of_mean
from ..results.segments import by_activity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..results.saved import SavedEvaluation

__all__ = ["FEWEST", "Contrast", "contrasts"]

_BANDS = 4

#: Of fewer users than this there is no interval: whatever it is, it would tell nothing.
FEWEST = 10


class Contrast(NamedTuple):
    """Two evaluations of one group of users: their mean difference, and for how many."""

    group: str
    n_users: int
    difference: float
    interval: Interval
    wins: int
    ties: int
    losses: int


def contrasts(
    a: SavedEvaluation, b: SavedEvaluation, metric: str, by: Literal["seen", "relevant"]
) -> list[Contrast]:
    """Compare a metric in bands of about as many users each.

    Parameters
    ----------
    a, b : SavedEvaluation
        Comparable, see `sparse_eval.compare`.
    metric : str
        One with a value for each user.
    by : {"seen", "relevant"}
        What divides the users: their number of training items, or of relevant items.

    Returns
    -------
    list of Contrast
        The difference is a less b, with its 95 % interval, none for fewer than 10 users; a wins
        where it is better. Empty if it is not known what users had seen.
    """
    if by not in a.table:
        return []
    users = a.table.index[a.counted].intersection(b.table.index[b.counted], sort=False)
    mine, theirs = (one.table.loc[users, metric].to_numpy() for one in (a, b))
    both = ~(np.isnan(mine) | np.isnan(theirs))
    counts = a.table.loc[users, by].to_numpy()[both]
    difference = (mine - theirs)[both]
    better = difference if a.higher_is_better(metric) else -difference
    segments = by_activity(counts, np.ones(len(counts), bool), _BANDS)
    found = []
    for code, name in enumerate(segments.names):
        rows = segments.codes == code
        if rows.any():
            found.append(
                Contrast(
                    name,
                    int(rows.sum()),
                    float(difference[rows].mean()),
                    _interval(difference[rows]),
                    int((better[rows] > 0).sum()),
                    int((better[rows] == 0).sum()),
                    int((better[rows] < 0).sum()),
                )
            )
    return found


def _interval(differences: NDArray[np.float64]) -> Interval:
    return interval_of_mean(differences if len(differences) >= FEWEST else differences[:0], 0.95)
