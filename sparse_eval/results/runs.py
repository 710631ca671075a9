"""`Runs`: the results of several models on folds and with seeds, pooled by user."""

from __future__ import annotations

import math
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..inputs.candidates import GIVEN
from .intervals import interval_around, two_sided
from .parts import CandidateCounts, added
from .scores import Requested

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from ..core.types import Booleans, Floats, Integers
    from ..inputs.axes import Axis
    from ..metrics.request import Request
    from .intervals import Interval


class Fold(NamedTuple):
    """A split that models were trained and evaluated on.

    Attributes
    ----------
    train, validation : str
        A digest of each part.
    n_train, n_validation : int
        Their numbers of pairs.
    cut : str or None
        Where the validation period begins, if it is a split by time.
    candidates : str or None
        A digest of the candidates, if they were given.
    """

    train: str
    validation: str
    n_train: int
    n_validation: int
    cut: str | None = None
    candidates: str | None = None


class Run(NamedTuple):
    """A training, identified by its model, fold (from 1) and seed."""

    model: str
    fold: int
    seed: int

    @property
    def name(self) -> str:
        """The run in words."""
        return f"{self.model}, fold {self.fold}, seed {self.seed}"


class RunValues(NamedTuple):
    """The values of the evaluation of a run.

    Attributes
    ----------
    users : Axis
        Labels or row numbers of the evaluated users.
    columns : ndarray of float64, shape (n_metrics, n_users)
        The metrics that have a value for each user.
    numbers : tuple of float
        The mean of every metric, or its one number.
    replicates : dict of str to ndarray
        Jackknife replicates of the metrics about all users together.
    candidates : CandidateCounts or None
        The kind and number of candidates, None for all items.
    """

    users: Axis
    columns: Floats
    numbers: tuple[float, ...]
    replicates: dict[str, Floats]
    candidates: CandidateCounts | None = None

    @classmethod
    def of(cls, evaluation: Any) -> RunValues:
        """Return the values to keep of an evaluation."""
        overall = [name for name in evaluation.names if not evaluation._is_per_user(name)]
        return cls(
            evaluation._evaluated_users,
            evaluation._values.columns[:, evaluation._values.counted],
            tuple(evaluation.mean().values()),
            {name: evaluation._replicates(evaluation._row_of(name)) for name in overall},
            evaluation._candidates,
        )


class Runs(Requested):
    """The values of several models on several folds with several seeds.

    Parameters
    ----------
    request : Request
        The metrics of each evaluation.
    folds : sequence of Fold
    values : mapping of Run to RunValues
        For every model and fold, with the same number of seeds for each.

    Attributes
    ----------
    models : tuple of str
        The names of the models.
    n_seeds : int
        The number of seeds on each fold.
    """

    def __init__(
        self, request: Request, folds: Sequence[Fold], values: Mapping[Run, RunValues]
    ) -> None:
        super().__init__(request, _all_candidates(values))
        self.folds = tuple(folds)
        self._values = dict(values)
        self.models = tuple(dict.fromkeys(run.model for run in values))
        self.n_seeds = len(self._runs_of(self.models[0], 1))

    @property
    def n_users(self) -> int:
        """The number of users that were evaluated on any fold."""
        return len(self._matched[0])

    @property
    def table(self) -> pd.DataFrame:
        """One row for each run.

        Columns: ``model``, ``fold``, from 1 on, and ``seed``; ``cut``, if the folds are split by
        time; ``n_train`` and ``n_validation``, the numbers of pairs; ``n_users`` evaluated. The
        mean of every metric follows, called ``hit_rate@10 (1+99)`` and the like among candidates.
        """
        import pandas as pd

        rows = []
        for run, values in self._values.items():
            fold = self.folds[run.fold - 1]
            cut = {} if fold.cut is None else {"cut": fold.cut}
            sizes = {"n_train": fold.n_train, "n_validation": fold.n_validation}
            numbers = dict(zip(map(self._shown, self.names), values.numbers, strict=True))
            rows.append(run._asdict() | cut | sizes | {"n_users": len(values.users)} | numbers)
        return pd.DataFrame(rows)

    def cells(self, model: str, name: str) -> Floats:
        """Return the values of a metric, shape (n_users, n_folds, n_seeds), NaN if none is."""
        column = [name for name in self.names if self._is_per_user(name)].index(name)
        values = np.full((self.n_users, len(self.folds), self.n_seeds), np.nan)
        for fold in range(len(self.folds)):
            for seed, run in enumerate(self._runs_of(model, fold + 1)):
                values[self._matched[1][run], fold, seed] = self._values[run].columns[column]
        return values

    def numbers(self, model: str, name: str) -> tuple[Floats, Floats]:
        """Return a metric about all users, shape (n_folds, n_seeds), and its mean replicates."""
        row = self.names.index(name)
        runs = [self._runs_of(model, fold + 1) for fold in range(len(self.folds))]
        numbers = np.array([[self._values[run].numbers[row] for run in fold] for fold in runs])
        replicates = [self._values[run].replicates[name] for fold in runs for run in fold]
        if len({len(one) for one in replicates}) > 1:  # too few users on some folds
            return numbers, np.empty(0)
        return numbers, np.mean(replicates, axis=0)

    @cached_property
    def ratio(self) -> float:
        """Held-out pairs by training pairs, the mean over folds."""
        return float(np.mean([fold.n_validation / max(fold.n_train, 1) for fold in self.folds]))

    @cached_property
    def _matched(self) -> tuple[Axis, dict[Run, Integers]]:
        """All evaluated users, in the order of the folds, and the rows of each run's users."""
        distinct: list[Axis] = []  # most runs are of the same users
        of_run = {}
        for run, values in self._values.items():
            same = (n for n, users in enumerate(distinct) if values.users.equals(users))
            of_run[run] = next(same, len(distinct))
            if of_run[run] == len(distinct):
                distinct.append(values.users)
        everybody = reduce(lambda users, more: users.union(more)[1], distinct)
        places = [everybody.locate(users) for users in distinct]
        return everybody, {run: places[number] for run, number in of_run.items()}

    def _runs_of(self, model: str, fold: int) -> list[Run]:
        return [run for run in self._values if run.model == model and run.fold == fold]

    def estimate(self, model: str, name: str) -> Estimate:
        """Return the pooled mean of a metric, and its variance."""
        if self._is_per_user(name):
            return self._pooled(self.cells(model, name))
        return self._of_numbers(*self.numbers(model, name))

    def difference(self, a: str, b: str, name: str, factor: float = 1.0) -> Estimate:
        """Return the pooled mean of a less b, or a multiple of b, user by user."""
        if self._is_per_user(name):
            return self._pooled(self.cells(a, name) - factor * self.cells(b, name))
        (one, of_one), (two, of_two) = self.numbers(a, name), self.numbers(b, name)
        replicates = of_one - factor * of_two if len(of_one) == len(of_two) else np.empty(0)
        return self._of_numbers(one - factor * two, replicates)

    def means(self, a: str, b: str, name: str) -> tuple[float, float]:
        """Return the pooled means of two models, where both have values."""
        if not self._is_per_user(name):
            one, two = (float(self.numbers(model, name)[0].mean()) for model in (a, b))
            return one, two
        cells = self.cells(a, name), self.cells(b, name)
        undefined = np.isnan(cells[0]) | np.isnan(cells[1])
        one, two = (Cells(np.where(undefined, np.nan, each)).mean for each in cells)
        return one, two

    def _pooled(self, values: Floats) -> Estimate:
        cells = Cells(values)
        error = cells.error(self.ratio)
        return Estimate(cells.mean, error, cells.n_users, cells.users)

    def _of_numbers(self, numbers: Floats, replicates: Floats) -> Estimate:
        error = error_of_numbers(numbers, replicates, self.ratio)
        return Estimate(float(numbers.mean()), error, self.n_users)

    def n_users_of(self, model: str) -> int:
        """Return the number of users of a model that were evaluated on any fold."""
        return int(np.count_nonzero(self._evaluated(model)))

    def left_out(self) -> dict[str, int]:
        """Return the number of users of each model that not all models have."""
        evaluated = {model: self._evaluated(model) for model in self.models}
        common = np.logical_and.reduce(list(evaluated.values()))
        return {model: int((own & ~common).sum()) for model, own in evaluated.items()}

    def _evaluated(self, model: str) -> Booleans:
        evaluated = np.zeros(self.n_users, bool)
        for run, rows in self._matched[1].items():
            if run.model == model:
                evaluated[rows] = True
        return evaluated

    def notes(self) -> list[str]:
        """Return in words how values are pooled."""
        n_folds, n_seeds = len(self.folds), self.n_seeds
        if n_folds == n_seeds == 1:
            return ["one fold and one seed: the variation over folds and seeds is unknown"]
        what = [f"{n} {noun}s" for n, noun in ((n_folds, "fold"), (n_seeds, "seed")) if n > 1]
        notes = [f"{' and '.join(what)}, averaged for each user"]
        if n_folds > 1:
            notes[0] += "; the variance of the folds is corrected, as they share training data"
            notes[0] += " (Nadeau and Bengio, 2003)"
        else:
            notes.append("one fold: the variation over splits is unknown")
        return notes


def _all_candidates(values: Mapping[Run, RunValues]) -> CandidateCounts | None:
    """Return the candidates of all folds, None for all items."""
    of_folds = {run.fold: one.candidates for run, one in values.items()}
    counts = [one for one in of_folds.values() if one is not None]
    if not counts:
        return None
    kinds = {one.kind for one in counts}
    kind = kinds.pop() if len(kinds) == 1 else GIVEN
    return reduce(added, (one._replace(kind=kind) for one in counts))


class Estimate(NamedTuple):
    """A pooled mean.

    Attributes
    ----------
    mean : float
    error : Error
        Its variance and degrees of freedom.
    n_users : int
        How many users it is the mean of, or about.
    users : ndarray of float64, shape (n,), or None
        The pooled value of each user who has any; None for a metric about all users together.
    """

    mean: float
    error: Error
    n_users: int
    users: Floats | None = None

    @property
    def std(self) -> float:
        """The standard deviation of the users' pooled values."""
        if self.users is None or len(self.users) < 2:
            return math.nan
        return float(self.users.std(ddof=1))


class Error(NamedTuple):
    """The variance of a pooled mean, and its degrees of freedom."""

    variance: float
    freedom: float

    def interval(self, mean: float, level: float) -> Interval:
        """Return Student's interval around a mean."""
        return interval_around(mean, math.sqrt(self.variance), self.freedom, level, "pooled")

    def p_value(self, mean: float) -> float:
        """Return the two-sided p-value of a mean under the hypothesis that it is 0."""
        return two_sided(mean, math.sqrt(self.variance), self.freedom)


UNKNOWN = Error(math.nan, math.nan)


class Cells:
    """The values of one metric, or their differences between two models, by user, fold and seed.

    Parameters
    ----------
    values : ndarray of float64, shape (n_users, n_folds, n_seeds)
        NaN if a user has no value.
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

        Nadeau and Bengio's corrected variance [1]_, as folds share training data. The variance that
        users explain is subtracted, because the first part has it already. With one fold, seeds
        take the place of folds, which share nothing: 1 / S. Where users are in some folds only, a
        fold has the weight of its users, and 1 / K is the sum of the squared weights. Degrees of
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
        r"""Return the variance of the random effects of users, if they are in some folds only.

        Notes
        -----
        The method of moments: the variances of the users' and of the folds' means are set equal to
        their expectations [1]_. Both expectations are sums of the effects of users and of folds.

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
        """Return the coefficients other than 1 in the expectations.

        They are needed if users are not in all folds.

        Of users × folds, and of the folds, in the variance of the users' means. Of the users in the
        variance of the folds' means. The last two are 0 where all are in all folds.
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
        """Return the mean square of users × seeds within at least two folds."""
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
        As in `Cells.error`, which explains it.

    Returns
    -------
    Error
        The users' variation is in the jackknife's variance and also in the variance of folds or
        seeds, so intervals are rather too wide. Unknown without replicates.
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
    """Return means over the values that exist, NaN without any."""
    counts = there.sum(axis=axis)
    sums = np.where(there, values, 0.0).sum(axis=axis)
    means: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means
