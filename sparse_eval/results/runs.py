"""`Runs`: what several models reach on several folds with several seeds, pooled by user."""

from __future__ import annotations

import math
from functools import cached_property, reduce
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..inputs.candidates import GIVEN
from .parts import CandidateCounts, added
from .scores import Requested
from .variance import Cells, Error, error_of_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pandas as pd

    from ..core.types import Booleans, Floats, Integers
    from ..inputs.axes import Axis
    from ..metrics.request import Request
    from .evaluated import Evaluated


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
    """A training: of which model, on which fold, from 1 on, and with which seed."""

    model: str
    fold: int
    seed: int

    @property
    def name(self) -> str:
        """The run in words."""
        return f"{self.model}, fold {self.fold}, seed {self.seed}"


class RunValues(NamedTuple):
    """What is kept of the evaluation of a run.

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
        What the candidates were, None for all items.
    """

    users: Axis
    columns: Floats
    numbers: tuple[float, ...]
    replicates: dict[str, Floats]
    candidates: CandidateCounts | None = None

    @classmethod
    def of(cls, evaluation: Evaluated) -> RunValues:
        """Return what is kept of an evaluation."""
        overall = [name for name in evaluation.names if not evaluation.is_per_user(name)]
        return cls(
            evaluation.evaluated_users,
            evaluation.columns[:, evaluation.counted],
            tuple(evaluation.mean().values()),
            {name: evaluation.replicates(name) for name in overall},
            evaluation.candidates,
        )


class Runs(Requested):
    """What several models reach on several folds with several seeds.

    Parameters
    ----------
    request : Request
        What was computed of each.
    folds : sequence of Fold
    values : mapping of Run to RunValues
        Of every model on every fold, on each with as many seeds.

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
        super().__init__(request)
        self.folds = tuple(folds)
        self._values = dict(values)
        self.models = tuple(dict.fromkeys(run.model for run in values))
        self.n_seeds = len(self._runs_of(self.models[0], 1))

    @property
    def n_users(self) -> int:
        """The number of users that were evaluated on any fold."""
        return len(self._users)

    @cached_property
    def candidates(self) -> CandidateCounts | None:
        """What the candidates of all folds were, None for all items."""
        of_folds = {run.fold: values.candidates for run, values in self._values.items()}
        counts = [one for one in of_folds.values() if one is not None]
        if not counts:
            return None
        kinds = {one.kind for one in counts}
        kind = kinds.pop() if len(kinds) == 1 else GIVEN
        return reduce(added, (one._replace(kind=kind) for one in counts))

    @property
    def table(self) -> pd.DataFrame:
        """One row for each run.

        Columns: ``model``, ``fold``, from 1 on, and ``seed``;
        ``cut``, if the folds are split by time; ``n_train`` and ``n_validation``, the numbers of
        pairs; ``n_users`` that were evaluated; the mean of every metric, called
        ``hit_rate@10 (1+99)`` and the like among candidates.
        """
        import pandas as pd

        rows = []
        for run, values in self._values.items():
            fold = self.folds[run.fold - 1]
            cut = {} if fold.cut is None else {"cut": fold.cut}
            sizes = {"n_train": fold.n_train, "n_validation": fold.n_validation}
            numbers = dict(zip(map(self.shown, self.names), values.numbers, strict=True))
            rows.append(run._asdict() | cut | sizes | {"n_users": len(values.users)} | numbers)
        return pd.DataFrame(rows)

    def cells(self, model: str, name: str) -> Floats:
        """Return the values of a metric, shape (n_users, n_folds, n_seeds), NaN where none is."""
        column = [name for name in self.names if self.is_per_user(name)].index(name)
        values = np.full((self.n_users, len(self.folds), self.n_seeds), np.nan)
        for fold in range(len(self.folds)):
            for seed, run in enumerate(self._runs_of(model, fold + 1)):
                values[self._rows[run], fold, seed] = self._values[run].columns[column]
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
    def _users(self) -> Axis:
        """Everybody who was evaluated, in the order of the folds."""
        distinct: list[Axis] = []
        for values in self._values.values():
            if not any(values.users.equals(users) for users in distinct):
                distinct.append(values.users)
        everybody = distinct[0]
        for users in distinct[1:]:
            _, everybody = everybody.union(users)
        return everybody

    @cached_property
    def _rows(self) -> dict[Run, Integers]:
        """The places of each run's users among all."""
        rows: dict[Run, Integers] = {}
        known: list[tuple[Axis, Integers]] = []
        for run, values in self._values.items():
            same = (places for users, places in known if users.equals(values.users))
            places = next(same, None)
            if places is None:
                places = self._users.locate(values.users)
                known.append((values.users, places))
            rows[run] = places
        return rows

    def _runs_of(self, model: str, fold: int) -> list[Run]:
        return [run for run in self._values if run.model == model and run.fold == fold]

    def estimate(self, model: str, name: str) -> Estimate:
        """Return the pooled mean of a metric, and its variance."""
        if self.is_per_user(name):
            return self._pooled(self.cells(model, name))
        return self._of_numbers(*self.numbers(model, name))

    def difference(self, a: str, b: str, name: str) -> Estimate:
        """Return the pooled mean of the differences between two models, user by user."""
        if self.is_per_user(name):
            return self._pooled(self.cells(a, name) - self.cells(b, name))
        (one, of_one), (two, of_two) = self.numbers(a, name), self.numbers(b, name)
        replicates = of_one - of_two if len(of_one) == len(of_two) else np.empty(0)
        return self._of_numbers(one - two, replicates)

    def means(self, a: str, b: str, name: str) -> tuple[float, float]:
        """Return the pooled means of two models, where both have values."""
        if not self.is_per_user(name):
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
        for run, rows in self._rows.items():
            if run.model == model:
                evaluated[rows] = True
        return evaluated

    def notes(self) -> list[str]:
        """Return in words how values are pooled."""
        n_folds, n_seeds = len(self.folds), self.n_seeds
        if n_folds == n_seeds == 1:
            return ["of one fold and one seed; what others would give is not known"]
        what = [f"{n} {noun}s" for n, noun in ((n_folds, "fold"), (n_seeds, "seed")) if n > 1]
        notes = [f"{' and '.join(what)}, averaged for each user"]
        if n_folds > 1:
            notes[0] += "; the variance of the folds is corrected, as they share training data"
            notes[0] += " (Nadeau and Bengio, 2003)"
        else:
            notes.append("one fold: what other splits would give is not known")
        return notes


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
