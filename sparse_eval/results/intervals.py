"""How sure a number is: confidence intervals, from `scipy.stats`."""

from __future__ import annotations

import math
import warnings
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.exact_sums import Moments
from ..core.threads import for_blocks
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike, NDArray

    Values = NDArray[np.float64]

__all__ = [
    "MANY",
    "Interval",
    "check_level",
    "interval_around",
    "interval_of_mean",
    "interval_of_moments",
    "replicate",
]

#: From so many users on, Student's interval covers a mean as often as it says, as simulations with
#: skewed metrics show, and the bootstrap costs time.
MANY = 200

#: Resamples of a mean over fewer, and of a number about all users together.
RESAMPLES = 4999
REPLICATES = 100

#: Numbers drawn at once.
_AT_ONCE = 1 << 21


class Interval(NamedTuple):
    """A confidence interval.

    Attributes
    ----------
    low, high : float
        NaN where there is none.
    method : {"t", "bca", "bootstrap", "none"}
        Student's; bias-corrected and accelerated bootstrap; Student's with the standard error of
        bootstrap replicates; or none, with fewer than two users or numbers out of range.
    """

    low: float
    high: float
    method: str


NOWHERE = Interval(math.nan, math.nan, "none")


def check_level(level: float) -> float:
    """Return a confidence level, or raise `InvalidDataError` if it is not between 0 and 1."""
    if isinstance(level, bool) or not isinstance(level, int | float) or not 0 < level < 1:
        raise InvalidDataError(f"level is {level!r}; expected a number between 0 and 1, as 0.95")
    return float(level)


@lru_cache(maxsize=64)
def student(level: float, freedom: int) -> Values:
    """Return both ends of Student's interval around 0; comparisons ask for the same ones again."""
    from scipy import stats

    ends: Values = np.array(stats.t.interval(level, freedom))
    ends.flags.writeable = False
    return ends


def interval_of_mean(values: Values, level: float) -> Interval:
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
    """
    from scipy import stats

    if len(values) < 2:
        return NOWHERE
    if len(values) >= MANY:
        return interval_of_moments(Moments.of(values), level)
    if values.min() == values.max():
        mean = Moments.of(values, squares=False).mean
        return Interval(mean, mean, "bca")
    with warnings.catch_warnings(), np.errstate(over="ignore", invalid="ignore"):
        # Of numbers near the largest float, or nearly all equal: there is no interval then.
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)
        low, high = stats.bootstrap(
            (np.sort(values),),  # so that the order of the users is no matter
            np.mean,
            n_resamples=RESAMPLES,
            batch=max(_AT_ONCE // len(values), 1),
            confidence_level=level,
            method="BCa",
            rng=np.random.default_rng(0),
        ).confidence_interval
    return _sound(low, high, "bca")


def interval_of_moments(moments: Moments, level: float) -> Interval:
    """Return Student's interval of a mean, for which sums are enough."""
    if moments.n < 2:
        return NOWHERE
    error = moments.std / math.sqrt(moments.n)
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = student(level, moments.n - 1) * error + moments.mean
    return _sound(low, high, "t")


def _sound(low: float, high: float, method: str) -> Interval:
    if not np.isfinite([low, high]).all():
        return NOWHERE
    return Interval(float(low), float(high), method)


def replicate(statistic: Callable[[NDArray[np.int64]], ArrayLike], n_users: int) -> Values:
    """Compute numbers about all users together for samples of them, drawn with replacement.

    Two numbers about the same users, in the same order, are computed for the same samples, so
    that their replicates can be paired.

    Parameters
    ----------
    statistic : callable
        One number or several, of how many times each user was drawn.
    n_users : int
        At least 1.

    Returns
    -------
    ndarray of float64, shape (REPLICATES,) or (REPLICATES, numbers)
    """
    found: list[ArrayLike] = [0.0] * REPLICATES

    def work(first: int, last: int) -> None:
        for number in range(first, last):
            rng = np.random.default_rng([0, number])  # whichever thread draws it
            drawn = rng.integers(n_users, size=n_users)
            found[number] = statistic(np.bincount(drawn, minlength=n_users))

    for_blocks(work, REPLICATES, block=1)
    return np.array(found, np.float64)


def interval_around(value: float, replicates: Values, level: float) -> Interval:
    """Return the interval around a number with the standard error of its replicates.

    Not their percentiles: a sample drawn with replacement has fewer distinct users, and so
    recommends fewer distinct items, than the users have.
    """
    from scipy import stats

    if len(replicates) < 2 or not np.isfinite(replicates).all():
        return NOWHERE
    error = float(replicates.std(ddof=1))
    if error == 0:
        return Interval(value, value, "bootstrap")
    low, high = stats.t.interval(level, len(replicates) - 1, value, error)
    return Interval(float(low), float(high), "bootstrap")
