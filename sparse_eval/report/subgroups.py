"""Differences between two evaluations in subgroups of their users."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..core.exact_sums import Moments
from ..errors import InvalidDataError
from ..results.comparison import compare
from ..results.intervals import (
    NO_INTERVAL,
    interval_of_difference,
    interval_of_moments,
    student,
)
from ..results.paired_tests import correct
from ..results.segments import by_activity, segmentations

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pandas as pd

    from ..results import Evaluation
    from ..results.segments import UserSegments

_BANDS = 4

#: What the axis of known groups counts.
UNITS = {"activity": "training items of the user", "popularity": "training users of the item"}

#: An interval over fewer users would be too wide to be of use.
MIN_USERS = 10


class GroupMean(NamedTuple):
    """The mean of a metric in a group of users or items, and its 95 % interval, NaN if unknown."""

    group: str
    mean: float
    low: float
    high: float


def subgroup_differences(
    a: Evaluation, b: Evaluation, metric: str, by: Literal["seen", "relevant"]
) -> list[dict[str, Any]]:
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
    list of dict
        ``group``, ``n_users``, ``difference``, a less b, its 95 % interval (``low``, ``high``,
        ``method``) if there are 10 users or more, ``wins``, ``ties``, ``losses``: where a is
        better, equal or worse.
        Empty if the number of training items is unknown.
    """
    if not (a.has_values and b.has_values):
        return []
    counts = a.n_seen if by == "seen" else a.n_relevant
    if counts is None:
        return []
    own, other = (ev.per_user[metric] for ev in (a, b))
    differences = (own - other.reindex(own.index)).dropna()
    counts = counts[own.index.get_indexer(differences.index)]
    segments = by_activity(counts, np.ones(len(counts), bool), _BANDS)
    rows = []
    for code, name in enumerate(segments.names):
        inside = differences.to_numpy()[segments.codes == code]
        if len(inside):
            better = inside if a.higher_is_better(metric) else -inside
            enough = len(inside) >= MIN_USERS
            interval = interval_of_difference(inside, 0.95) if enough else NO_INTERVAL
            rows.append(
                {
                    "group": name,
                    "n_users": len(inside),
                    "difference": float(inside.mean()),
                    **interval._asdict(),
                    "wins": int((better > 0).sum()),
                    "ties": int((better == 0).sum()),
                    "losses": int((better < 0).sum()),
                }
            )
    return rows


class Groups(NamedTuple):
    """The means of a metric by group, what divides them, and how many users are in no group."""

    label: str
    means: list[GroupMean]
    n_without: int = 0


def groups_of(ev: Evaluation, groups: Any, metric: str) -> Groups:
    """Return the means of a metric by group, with 95 % intervals for 10 users or more.

    `groups` is as in `sparse_eval.plots.by_group`. Groups without a value are left out.
    """
    if isinstance(groups, str) and groups in UNITS:
        rows = ev.record["by"].get(groups, [])
        own = [row for row in rows if row["metric"] == metric and row["mean"] is not None]
        return Groups(UNITS[groups], list(map(_group_mean, own)))
    column, *more = segmentations(groups, ev.evaluated_users)
    if more:
        titles = ", ".join(each.title for each in (column, *more))
        raise InvalidDataError(f"groups have the columns {titles}; give one of them")
    values = ev.values(metric)[ev.counted]
    means = []
    for code, name in enumerate(column.names):
        inside = values[column.codes == code]
        moments = Moments.of(inside[~np.isnan(inside)])
        if moments.n:
            enough = moments.n >= MIN_USERS
            interval = interval_of_moments(moments, 0.95) if enough else NO_INTERVAL
            means.append(GroupMean(name, moments.mean, interval.low, interval.high))
    return Groups(column.title, means, int((column.codes < 0).sum()))


def _group_mean(row: dict[str, Any]) -> GroupMean:
    half = math.nan
    if row["std"] is not None and row["n_users"] >= MIN_USERS:
        error = row["std"] / math.sqrt(row["n_users"])
        half = float(student(0.95, row["n_users"] - 1)[1]) * error
    return GroupMean(row["group"], row["mean"], row["mean"] - half, row["mean"] + half)


def segment_differences(
    evaluations: Mapping[str, Evaluation], metric: str, by: UserSegments, **options: Any
) -> tuple[pd.DataFrame, list[str]]:
    """Compare the first evaluation with each other one by segment of the users.

    Parameters
    ----------
    evaluations : mapping of str to Evaluation
        Two or more.
    metric : str
        A metric with a value for each user.
    by : mapping, Series, DataFrame, other table or path
        As in `sparse_eval.compare`.
    options
        Of `sparse_eval.compare`. The correction is over all rows of the table.

    Returns
    -------
    table : pandas.DataFrame
        As that of a `Comparison`.
    notes : list of str
        How many users are in no segment.
    """
    import pandas as pd

    (first, ev), *others = evaluations.items()
    correction = options.pop("correction")
    comparisons = [
        compare({first: ev, name: other}, metric, by=by, correction="none", **options)
        for name, other in others
    ]
    table = pd.concat([one.table for one in comparisons], ignore_index=True)
    table["p_corrected"] = correct(table["p"].to_numpy(), correction)
    # A correction makes no p-value smaller: what was not significant before is not so now.
    table["better"] = table["better"].where(table["p_corrected"] < 0.05, "")
    return table, list(dict.fromkeys(note for one in comparisons for note in one.notes))
