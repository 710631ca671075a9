"""Confidence intervals of means, and of numbers about all users together; their default level."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.exact_sums import Moments
from ..core.formatting import numbers

if TYPE_CHECKING:
    from ..core.types import Floats, Integers

#: The level of the intervals that people read in tables and histories; headings say so too.
LEVEL = 0.95

#: From this number of users on, Student's interval has its nominal coverage in simulations with
#: skewed metrics, and the slower bootstrap is not needed.
FEWEST_FOR_T = 200

#: Bootstrap samples of a mean over fewer users.
RESAMPLES = 4999

#: The smallest effective number of users for which the interval of a mean (nearly) has its nominal
#: coverage in simulations of sparse lists.
FEWEST_EFFECTIVE = 10

#: Groups that users are put into, by a hash of their label, for the jackknife.
N_GROUPS = 20

#: Numbers drawn at once.
_AT_ONCE = 1 << 21


class Interval(NamedTuple):
    """A confidence interval.

    Attributes
    ----------
    low, high : float
        NaN if there is none.
    method : {"t", "bca", "jackknife", "none"}
        Student's; bias-corrected and accelerated bootstrap; Student's with the standard error of a
        jackknife over groups of users. None with too few users or numbers out of range.
    """

    low: float
    high: float
    method: str

    def within(self, value: float, ends: tuple[float, float]) -> Interval:
        """Return the part of the interval of `value` that is possible, given a metric's range.

        The expected value is in it, so that the coverage is the same.
        """
        low, high = min(ends[0], value), max(ends[1], value)  # a rounded value may be outside
        return Interval(max(self.low, low), min(self.high, high), self.method)

    def text(self) -> str:
        """Return both ends as text, "none" without an interval."""
        return "none" if self.method == "none" else " to ".join(numbers(self.low, self.high))


NO_INTERVAL = Interval(math.nan, math.nan, "none")


@lru_cache(maxsize=64)
def student(level: float, freedom: float) -> Floats:
    """Return both ends of Student's interval around 0; cached, as comparisons repeat them."""
    # The same bits as stats.t.interval; importing scipy.stats takes longer than a summary.
    from scipy.special import stdtrit

    ends: Floats = stdtrit(freedom, [(1 - level) / 2, (1 + level) / 2])
    ends.flags.writeable = False
    return ends


def interval_of_mean(values: Floats, level: float) -> Interval:
    """Return the interval of a mean: Student's for many values, a BCa bootstrap for few.

    Parameters
    ----------
    values : ndarray of float64, shape (n,)
        Finite.
    level : float
        Such as 0.95.

    Returns
    -------
    Interval
        Of no width if all values are equal.

    References
    ----------
    .. [1] Efron, B. (1987). Better Bootstrap Confidence Intervals. Journal of the American
       Statistical Association 82(397), 171-185. doi:10.1080/01621459.1987.10478410
    """
    if len(values) < 2:
        return NO_INTERVAL
    if len(values) >= FEWEST_FOR_T:
        return interval_of_moments(Moments.of(values), level)
    if values.min() == values.max():
        mean = Moments.of(values, squares=False).mean
        return Interval(mean, mean, "bca")

    from scipy import stats

    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        # Of numbers near the largest float, or nearly all equal: there is no interval then.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        low, high = stats.bootstrap(
            (np.sort(values),),  # so that the order of the users does not matter
            np.mean,
            n_resamples=RESAMPLES,
            batch=max(_AT_ONCE // len(values), 1),
            confidence_level=level,
            method="BCa",
            rng=np.random.default_rng(0),
        ).confidence_interval
    return _finite_interval(low, high, "bca")


def interval_of_moments(moments: Moments, level: float) -> Interval:
    """Return Student's interval of a mean, from sums only."""
    error = moments.std / math.sqrt(moments.n) if moments.n else math.nan
    return interval_around(moments.mean, error, moments.n - 1, level, "t")


def interval_around(
    value: float, error: float, freedom: float, level: float, method: str
) -> Interval:
    """Return Student's interval around a number with a standard error, if both are known."""
    if not math.isfinite(value) or not math.isfinite(error):
        return NO_INTERVAL
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = student(level, freedom) * error + value
    return _finite_interval(low, high, method)


def two_sided(value: float, error: float, freedom: float) -> float:
    """Return the two-sided p-value of Student's t of a number with a standard error."""
    # The same bits as stats.t.sf; importing scipy.stats takes longer than most comparisons.
    from scipy.special import stdtr

    if not math.isfinite(value) or not math.isfinite(error):
        return math.nan
    return float(2 * stdtr(freedom, -abs(value / error)) if error else value == 0)


def one_sided(value: float, error: float, freedom: float) -> float:
    """Return the p-value of a number under the hypothesis that it is not above 0."""
    from scipy.special import stdtr

    if not math.isfinite(value) or not math.isfinite(error):
        return math.nan
    return float(stdtr(freedom, -value / error) if error else value <= 0)


def _finite_interval(low: float, high: float, method: str) -> Interval:
    if not np.isfinite([low, high]).all():
        return NO_INTERVAL
    return Interval(float(low), float(high), method)


def rests_on_few(moments: Moments, is_signed: bool) -> bool:
    """Return whether too few users make up a mean for its interval to reach its level.

    The effective number of users is (Σ x)² / Σ x² [1]_. It is the number of all users if their
    values are equal, and of the users with a hit if values are 0 or 1. The sums are exact, so the
    answer is the same for users in blocks. Values that may be negative count as one user each.

    References
    ----------
    .. [1] L. Kish, "Survey Sampling", Wiley, 1965, section 11.7.
    """
    if moments.n < 2 or moments.non_finite:
        return False  # there is no interval
    if moments.n < FEWEST_EFFECTIVE:
        return True
    least = max(FEWEST_EFFECTIVE * moments.squares, 1)  # 0 if nobody has a hit
    return not is_signed and moments.total**2 < least


def interval_of_replicates(value: float, replicates: Floats, level: float) -> Interval:
    """Return the interval around a number with the standard deviation of its replicates."""
    if len(replicates) < 2 or not np.isfinite(replicates).all():
        return NO_INTERVAL
    error = float(replicates.std(ddof=1))
    return interval_around(value, error, len(replicates) - 1, level, "jackknife")


def jackknife(value: float, without: Floats, sizes: Integers) -> Floats:
    """Return replicates of a number whose standard deviation is its standard error.

    Parameters
    ----------
    value : float
        A number about all users.
    without : ndarray of float64, shape (n_groups,)
        The same number without each group of users.
    sizes : ndarray of int64, shape (n_groups,)
        The number of users in each group.

    Returns
    -------
    ndarray of float64, shape (n_groups,)
        Those of two evaluations of the same users are paired. Empty if a group has no users.

    Notes
    -----
    The delete-a-group jackknife for groups of unequal sizes [1]_. Groups are the same for the same
    users in any blocks, unlike samples drawn with replacement. A sample drawn with replacement also
    has fewer distinct users, and so fewer distinct recommended items.

    References
    ----------
    .. [1] Busing, F. M. T. A., Meijer, E. and van der Leeden, R. (1999). Delete-m Jackknife for
       Unequal m. Statistics and Computing 9, 3-8. doi:10.1023/A:1008800423698
    """
    if not (sizes > 0).all():
        return np.empty(0)
    n_groups = len(sizes)
    times = sizes.sum() / sizes
    center = n_groups * value - ((1 - 1 / times) * without).sum()
    pseudovalues = times * value - (times - 1) * without
    scaled = (pseudovalues - center) * np.sqrt((n_groups - 1) / (n_groups * (times - 1)))
    return np.asarray(value + scaled)
