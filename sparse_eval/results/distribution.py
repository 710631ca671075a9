"""How users differ: quantiles of their values, the worst share of them, and users who lose."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..core.arguments import check_fraction, check_number
from ..core.exact_sums import Moments
from ..errors import InvalidDataError, InvalidMetricError
from .clusters import check_same_requests
from .intervals import interval_around
from .matching import check_alike, shared_users
from .segments import Segments, bands_of, segmentations

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd

    from ..core.types import Booleans, Floats, Integers
    from ..inputs.axes import Axis
    from ..metrics import Metric
    from .intervals import Interval
    from .partial_results import Part
    from .segments import UserSegments


def describe_distribution(
    values: Floats,
    higher_is_better: bool,
    quantiles: Iterable[float],
    worst: Iterable[float],
    level: float,
    ends: tuple[float, float] = (-math.inf, math.inf),
) -> pd.DataFrame:
    """Return the table that `Evaluation.distribution` describes; `ends` are those of values."""
    import pandas as pd

    level = check_fraction("level", level)
    ordered = np.sort(values[~np.isnan(values)])
    if not len(ordered):
        raise InvalidDataError("no user has a value of the metric; evaluate users who do")
    rows: dict[tuple[str, float], tuple[float, ...]] = {}
    for share in quantiles:
        value = float(np.quantile(ordered, check_fraction("quantiles", share)))
        rows["quantile", share] = (value, *quantile_interval(ordered, share, level))
    sign = 1 if higher_is_better else -1
    signed = min(sign * ends[0], sign * ends[1]), max(sign * ends[0], sign * ends[1])
    for share in worst:
        mean, interval = worst_mean(np.sort(sign * ordered), check_fraction("worst", share), level)
        low, high, _ = interval.within(mean, signed)
        rows["worst", share] = (sign * mean, *sorted((sign * low, sign * high)))
    index = pd.MultiIndex.from_tuples(list(rows), names=["statistic", "share"])
    return pd.DataFrame(list(rows.values()), index, ["value", "ci_low", "ci_high"])


def quantile_interval(ordered: Floats, share: float, level: float) -> Floats:
    """Return both ends of the interval of a quantile, from ascending values; NaN without one.

    The ranks of the ends are those of the exact binomial interval, which are mostly between two
    whole numbers. Values are interpolated there.
    """
    from scipy.special import bdtrik

    n, tail = len(ordered), (1 + level) / 2
    ranks = n - bdtrik(tail, n, 1 - share), 1 + bdtrik(tail, n, share)
    ends: Floats = np.interp(ranks, np.arange(1, n + 1), ordered, left=math.nan, right=math.nan)
    return ends


def worst_mean(ordered: Floats, share: float, level: float) -> tuple[float, Interval]:
    """Return the mean of the lowest share of ascending values, and its interval.

    It is the mean of ``v - max(v - x, 0) / share`` over the values x, where v is the quantile. The
    quantile itself varies, so that the variance is averaged over its approximate distribution: a
    binomial one at five ranks. With v at one rank only, equal values give intervals that are too
    narrow. Only the values below v spread, so they alone count as degrees of freedom, as in a
    trimmed mean.
    """
    n, spread = len(ordered), math.sqrt(len(ordered) * share * (1 - share))
    ranks = np.clip(np.ceil(n * share + spread * np.arange(-2, 3)), 1, n).astype(np.int64)
    at_ranks = [Moments.of(v - np.maximum(v - ordered, 0) / share) for v in ordered[ranks - 1]]
    mean = at_ranks[2].mean
    variance = np.average([moments.std**2 for moments in at_ranks], weights=[1, 4, 6, 4, 1])
    error = math.sqrt(variance / (n - 1 / share)) if share * n > 1 else math.nan
    return mean, interval_around(mean, error, share * n - 1, level, "t")


def paired(part: Part, other: Part, metric: str | Metric) -> tuple[Floats, Integers, Axis]:
    """Return the differences of the users that two evaluations share, their rows, and labels.

    Raises
    ------
    InvalidDataError
        As from `compare`.
    InvalidMetricError
        If one of them does not have the metric, or has no values of it for each user.
    """
    both = {"this": part, "other": other}
    name = part.request.names[part.row_of(metric)]
    check_alike(both, [name])
    check_same_requests(name, both)
    shared = shared_users(both)
    a, b = (one.values_of(name)[rows] for one, rows in zip(both.values(), shared.rows, strict=True))
    defined = ~np.isnan(a - b)
    return (a - b)[defined], shared.rows[0][defined], shared.users[defined]


def count_losers(
    part: Part,
    other: Part,
    metric: str | Metric,
    margin: float,
    by: UserSegments | Literal["activity"] | None,
    level: float,
) -> pd.DataFrame:
    """Return the table that `Evaluation.losers` describes."""
    import pandas as pd
    from scipy.stats import binomtest

    level, margin = check_fraction("level", level), check_number("margin", margin, 0)
    differences, rows, users = paired(part, other, metric)
    losses = -differences if part.traits_of(metric).higher_is_better else differences
    loses = exceed(losses, margin)
    if by is None:
        columns = [Segments(["all"], np.zeros(len(users), np.int64))]
    elif isinstance(by, str) and by == "activity":
        columns = [activity_of(part, rows)]
    else:
        columns = segmentations(by, users)
    table = []
    for column in columns:
        for code, segment in enumerate(column.names):
            members = loses[column.codes == code]
            if len(members):
                n_losers = int(members.sum())
                ends = binomtest(n_losers, len(members)).proportion_ci(level, method="wilson")
                where = (column.title, segment, len(members))
                table.append((*where, n_losers, n_losers / len(members), *ends))
    names = ["by", "segment", "n_users", "losers", "share", "ci_low", "ci_high"]
    return pd.DataFrame(table, columns=names).drop(columns=["by", "segment"] if by is None else [])


def exceed(losses: Floats, margin: float) -> Booleans:
    """Return whether each loss is above a margin, but for its rounding error."""
    exceeds: Booleans = losses > margin * (1 + 1e-9)  # 0.8 − 0.7 is not more than 0.1
    return exceeds


def activity_of(part: Part, rows: Integers) -> Segments:
    """Divide the users in some rows into four bands by their number of training items."""
    n_seen = part.per_user.n_seen
    if n_seen is None:
        raise InvalidMetricError("by='activity' needs train: give train= to the evaluation")
    bands = bands_of(n_seen[rows], np.ones(len(rows)), 4, "items")
    return bands._replace(title="activity")
