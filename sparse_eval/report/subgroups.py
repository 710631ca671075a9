"""Differences between two evaluations in subgroups of their users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..results.intervals import Interval, interval_of_mean
from ..results.segments import by_activity

if TYPE_CHECKING:
    from ..results import Evaluation

_BANDS = 4

#: An interval over fewer users would be too wide to be of use.
MIN_USERS = 10


class SubgroupDifference(NamedTuple):
    """The mean difference of a metric in one subgroup, and how many users each side wins."""

    group: str
    n_users: int
    difference: float
    interval: Interval
    wins: int
    ties: int
    losses: int


def subgroup_differences(
    a: Evaluation, b: Evaluation, metric: str, by: Literal["seen", "relevant"]
) -> list[SubgroupDifference]:
    """Compare a metric in bands of about equally many users.

    Parameters
    ----------
    a, b : Evaluation
        Evaluations that `sparse_eval.compare` accepts.
    metric : str
        A metric with a value for each user.
    by : {"seen", "relevant"}
        Whether users are grouped by their number of training items or of relevant items.

    Returns
    -------
    list of SubgroupDifference
        a less b, with a 95 % interval if there are 10 users or more; a wins where it is better.
        Empty if the number of training items is unknown.
    """
    tables = [ev.record.table for ev in (a, b) if ev.record.table is not None]
    if len(tables) < 2 or by not in tables[0]:
        return []
    users = tables[0].index[a.counted].intersection(tables[1].index[b.counted], sort=False)
    values_a, values_b = (table.loc[users, metric].to_numpy() for table in tables)
    defined = ~(np.isnan(values_a) | np.isnan(values_b))
    counts = tables[0].loc[users, by].to_numpy()[defined]
    differences = (values_a - values_b)[defined]
    segments = by_activity(counts, np.ones(len(counts), bool), _BANDS)
    rows = []
    for code, name in enumerate(segments.names):
        inside = differences[segments.codes == code]
        if len(inside):
            better = inside if a.higher_is_better(metric) else -inside
            rows.append(
                SubgroupDifference(
                    name,
                    len(inside),
                    float(inside.mean()),
                    interval_of_mean(inside if len(inside) >= MIN_USERS else inside[:0], 0.95),
                    int((better > 0).sum()),
                    int((better == 0).sum()),
                    int((better < 0).sum()),
                )
            )
    return rows
