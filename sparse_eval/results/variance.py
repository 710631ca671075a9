"""The variance of cross-validated means, from users, folds and seeds.

A value y of user u in fold f by the model of seed s is taken for the sum of random effects ::

    y[u, f, s] = mean + users[u] + folds[f] + seeds[f, s] + user_folds[u, f] + residual[u, f, s]

Users are crossed with folds; seeds are nested in folds, as each fold trains models of its own.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .intervals import NO_INTERVAL, Interval, student
from .paired_tests import two_sided

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.types import Booleans, Floats


class Error(NamedTuple):
    """The variance of a pooled mean, and its degrees of freedom."""

    variance: float
    freedom: float

    def interval(self, mean: float, level: float) -> Interval:
        """Return Student's interval around a mean."""
        if not math.isfinite(self.variance) or not math.isfinite(mean):
            return NO_INTERVAL
        low, high = student(level, self.freedom) * math.sqrt(self.variance) + mean
        return Interval(float(low), float(high), "pooled")

    def p_value(self, mean: float) -> float:
        """Return the two-sided p-value of a mean under the hypothesis that it is 0."""
        if not math.isfinite(self.variance) or not math.isfinite(mean):
            return math.nan
        if self.variance == 0:
            return float(mean == 0)
        return two_sided(mean / math.sqrt(self.variance), self.freedom)


UNKNOWN = Error(math.nan, math.nan)


class Cells:
    """The values of one metric, or their differences between two models, by user, fold and seed.

    Parameters
    ----------
    values : ndarray of float64, shape (n_users, n_folds, n_seeds)
        NaN where a user has no value.
    """

    def __init__(self, values: Floats) -> None:
        there = ~np.isnan(values)
        has: Booleans = np.logical_or.reduce(there, axis=2)
        rows: Booleans = np.logical_or.reduce(has, axis=1)
        folds: Booleans = np.logical_or.reduce(has, axis=0)
        values, there, has = values[rows][:, folds], there[rows][:, folds], has[rows][:, folds]
        self._values, self._there, self._has = values, there, has
        self.n_users, self.n_folds, self.n_seeds = values.shape
        self._by_fold = _mean(values, there, 2)  # the seeds averaged, NaN without any
        #: Whether each of the users that were given has a value.
        self.rows = rows
        #: The value of each user who has any, shape (n_users,): seeds are averaged, then folds.
        self.users = _mean(self._by_fold, has, 1)
        #: The number of users in each fold.
        self._sizes = has.sum(axis=0)
        self._fold_means = _mean(self._by_fold, has, 0)
        #: Smaller variances are rounding errors.
        self._least = 1e-24 * float(np.nanmax(np.square(values), initial=0.0))

    def spread(self) -> Floats:
        """Return the value of each user who was given, NaN for those without any."""
        values = np.full(len(self.rows), np.nan)
        values[self.rows] = self.users
        return values

    @property
    def mean(self) -> float:
        """The mean over users; NaN without any."""
        return float(self.users.mean()) if self.n_users else math.nan

    def error(self, ratio: float) -> Error:
        r"""Return the variance of the mean.

        Parameters
        ----------
        ratio : float
            Held-out pairs by training pairs, the mean over folds.

        Notes
        -----
        The variance among users divided by their number, which holds all that differs from user to
        user, and with several folds ::

            (1 / K + n_test / n_train) * variance of the folds' means

        Nadeau and Bengio's corrected variance [1]_, as folds share training data; of that variance
        what users alone explain is taken off, as it is in the first part. With one fold, seeds take
        the place of folds, which share nothing: 1 / S. Where users are in some folds only, a fold
        has the weight of its users, and 1 / K is the sum of the squared weights. Degrees of
        freedom are Satterthwaite's [2]_.

        References
        ----------
        .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning
           52, 2003, pp. 239-281. doi:10.1023/A:1024068626366
        .. [2] F. E. Satterthwaite, "An approximate distribution of estimates of variance
           components", Biometrics Bulletin 2(6), 1946, pp. 110-114. doi:10.2307/3002019
        """
        if self.n_users < 2:
            return UNKNOWN
        parts = [(float(self.users.var(ddof=1)) / self.n_users, self.n_users - 1)]
        if self.n_folds > 1:
            in_folds = self._coefficients()[-1]
            by_fold = self._user_folds()
            noise = float(np.mean(1 / self._sizes)) * by_fold
            if in_folds:
                noise += in_folds * self._variance_of_users(by_fold)
            runs = max(float(self._fold_means.var(ddof=1)) - noise, 0.0)
            squares = float(np.square(self._weights()).sum())
            parts.append(((squares + ratio) * runs, self.n_folds - 1))
        elif self.n_seeds > 1:
            noise = self._residual() / self.n_users
            means = _mean(self._values, self._there, 0)  # of each seed
            runs = max(float(means.var(axis=1, ddof=1).mean()) - noise, 0.0)
            parts.append((runs / self.n_seeds, self.n_seeds - 1))
        return add_variances(parts)

    def _variance_of_users(self, by_fold: float) -> float:
        r"""Return the variance of the random effects of users, where they are in some folds only.

        Notes
        -----
        The method of moments: the variances of the users' and of the folds' means are set equal to
        their expectations [1]_, both of which are sums of the effects of users and of folds.

        References
        ----------
        .. [1] S. R. Searle, G. Casella and C. E. McCulloch, "Variance Components", Wiley, 1992,
           chapters 4 and 5. doi:10.1002/9780470316856
        """
        shares, in_users, in_folds = self._coefficients()
        users, _ = np.linalg.solve(
            [[1.0, in_users], [in_folds, 1.0]],
            [
                float(self.users.var(ddof=1)) - shares * by_fold,
                float(self._fold_means.var(ddof=1)) - float(np.mean(1 / self._sizes)) * by_fold,
            ],
        )
        variance = max(float(users), 0.0)
        return 0.0 if variance < self._least else variance

    def _weights(self) -> Floats:
        """Return the weight of each fold in the mean."""
        folds_of_user = self._has.sum(axis=1)
        weights: Floats = (self._has / folds_of_user[:, None]).sum(axis=0) / self.n_users
        return weights

    def _coefficients(self) -> tuple[float, float, float]:
        """Return what is not 1 in the expectations where users are not in all folds.

        Of users × folds in the variance of the users' means; of the folds in the same; and of the
        users in the variance of the folds' means. The last two are 0 where all are in all folds.
        """
        shares = float(np.mean(1 / self._has.sum(axis=1)))
        squares = float(np.square(self._weights()).sum())
        in_users = (shares - squares) * self.n_users / (self.n_users - 1)
        together = (self._has / self._sizes).sum(axis=1)
        both = float(np.square(together).sum()) / self.n_folds
        in_folds = (float((1 / self._sizes).sum()) - both) / (self.n_folds - 1)
        if self._has.all():
            return 1 / self.n_folds, 0.0, 0.0
        return shares, in_users, in_folds

    def _user_folds(self) -> float:
        """Return the mean square of users × folds; 0 if no user is in two folds."""
        within = self._by_fold - self._fold_means
        within -= _mean(within, self._has, 1)[:, None]
        freedom = int(self._has.sum()) - self.n_users - (self.n_folds - 1)
        return float(np.nansum(np.square(within))) / freedom if freedom > 0 else 0.0

    def _residual(self) -> float:
        """Return the mean square of users × seeds within folds, of which there are two or more."""
        within = self._values - self._by_fold[:, :, None]
        complete: Booleans = np.logical_and.reduce(self._there, axis=2)
        within = np.where(complete[:, :, None], within, np.nan)
        within -= _mean(within, ~np.isnan(within), 0)
        freedom = (int(complete.sum()) - self.n_folds) * (self.n_seeds - 1)
        return float(np.nansum(np.square(within))) / freedom if freedom > 0 else 0.0


def error_of_numbers(numbers: Floats, replicates: Floats, ratio: float) -> Error:
    """Return the variance of the mean of numbers about all users together.

    Parameters
    ----------
    numbers : ndarray of float64, shape (n_folds, n_seeds)
        Such as coverage.
    replicates : ndarray of float64, shape (n_replicates,)
        The means of their jackknife replicates over folds and seeds; empty if there are none.
    ratio : float
        As in `Cells.error`, which says more.

    Returns
    -------
    Error
        What varies with the users is in the jackknife's variance and in that of folds, or of seeds,
        so that intervals are rather too wide. Unknown without replicates.
    """
    if len(replicates) < 2 or not np.isfinite(numbers).all():
        return UNKNOWN
    parts = [(float(replicates.var(ddof=1)), len(replicates) - 1)]
    n_folds, n_seeds = numbers.shape
    if n_folds > 1:
        runs = float(numbers.mean(axis=1).var(ddof=1))
        parts.append(((1 / n_folds + ratio) * runs, n_folds - 1))
    elif n_seeds > 1:
        parts.append((float(numbers.var(ddof=1)) / n_seeds, n_seeds - 1))
    return add_variances(parts)


def add_variances(parts: Sequence[tuple[float, float]]) -> Error:
    """Return the sum of variances, with Satterthwaite's degrees of freedom."""
    variance = sum(part for part, _ in parts)
    below = sum(part**2 / freedom for part, freedom in parts)
    return Error(variance, variance**2 / below if below else float(parts[0][1]))


def _mean(values: Floats, there: Booleans, axis: int) -> Floats:
    """Return means over the values that are there, NaN where none is."""
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    means: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means
