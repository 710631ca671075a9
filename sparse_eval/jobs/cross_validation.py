"""`CrossValidation`: what `cross_validate` returns."""

from __future__ import annotations

import html
import math
from itertools import product
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core.arguments import check_fraction
from ..core.exact_sums import Moments
from ..core.files import as_path
from ..core.formatting import number, text_table
from ..errors import InvalidDataError, InvalidFileError
from ..results.comparison import compare
from ..results.details import make_record
from ..results.intervals import LEVEL
from ..results.runs import Cells, Fold, Run, Runs, RunValues
from ..results.scores import Scores
from .ledger import INPUTS, Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import pandas as pd

    from ..core.types import Floats, PathLike
    from ..metrics import Metric
    from ..results.comparison import Comparison
    from ..results.intervals import Interval

#: The kind of job, after which the file of its ledger is named, and the slot of its last row.
JOB, FINISHED = "cross_validation", "finished"


class CrossValidation(Runs):
    """What several models reach on several folds with several seeds.

    Printed, and in a notebook, it is a table of the pooled means and their intervals.

    Users are the unit: the seeds of a model are averaged for each user and fold, then the folds
    that the user is in, however many these are. So every user counts once, with `split.k_fold`,
    where users are in every fold with other items, and with `split.rolling`, where they are in
    those periods in which they did something new.

    Attributes
    ----------
    models : tuple of str
        The names of the models.
    folds : tuple of Fold
        The splits: a digest of their parts, and the sizes of these.
    n_seeds : int
        The number of seeds on each fold.
    names : list of str
        The metrics.

    See Also
    --------
    cross_validate : Make one.
    """

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """Return every pooled number in full; ``print(cv)`` shows fewer.

        Parameters
        ----------
        level : float
            Of the intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row for each metric and model (index ``metric``, ``model``):

            - ``mean``, over users;
            - ``std`` of the users' pooled values, with n − 1;
            - ``ci_low``, ``ci_high``: the interval of the mean over users, folds and seeds like
              these, and ``interval``, its kind: "pooled" or "none". Its variance is that of users,
              and with several folds Nadeau and Bengio's corrected one of folds [1]_;
            - ``error``: the standard error, and ``freedom``, Satterthwaite's degrees of freedom;
            - ``n_users``; with candidates ``candidates``, what they are.

            Metrics about all users together, such as coverage, are averaged over folds and seeds;
            the part of the users in their error is a jackknife's.

        Raises
        ------
        InvalidDataError
            If `level` is not between 0 and 1.

        References
        ----------
        .. [1] C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning
           52, 2003, pp. 239-281. doi:10.1023/A:1024068626366
        """
        import pandas as pd

        level = check_fraction("level", level)
        among = {} if self.candidates is None else {"candidates": self.candidates.kind}
        index = pd.MultiIndex.from_product((self.names, self.models), names=["metric", "model"])
        rows = []
        for name, model in index:
            one = self.estimate(model, name)
            interval = one.error.interval(one.mean, level)
            error = math.sqrt(one.error.variance)
            rows.append((one.mean, one.std, *interval, error, one.error.freedom, one.n_users))
        columns = ("mean", "std", "ci_low", "ci_high", "interval", "error", "freedom", "n_users")
        return pd.DataFrame(rows, index, columns).assign(**among)

    def per_user(self, model: str) -> pd.DataFrame:
        """Return the pooled values of each user, a column for each metric that has them.

        Raises
        ------
        InvalidDataError
            If there is no such model.
        """
        import pandas as pd

        self._check_models([model])
        columns = {
            name: Cells(self.cells(model, name)).spread()
            for name in self.names
            if self.is_per_user(name)
        }
        frame = pd.DataFrame(columns, index=self._matched[0].index.rename("user"))
        return frame.dropna(how="all")

    def compare(
        self,
        metrics: str | Iterable[str] | None = None,
        *,
        correction: Literal["holm", "bonferroni", "bh", "none"] = "holm",
        level: float = 0.95,
    ) -> Comparison:
        """Compare the models pair by pair, as ``se.compare(cv)`` does.

        Parameters
        ----------
        metrics, correction, level
            As in `sparse_eval.compare`.

        Returns
        -------
        Comparison
            Differences are pooled by user, as the values are. Their variance has a part for users
            and one for folds, which share training data, or for seeds if there is one fold; see
            `summary`.

        Raises
        ------
        InvalidDataError
            As from `sparse_eval.compare`, or if there is only one model.
        """
        return compare(self, metrics, correction=correction, level=level)

    def select(self, models: Sequence[str]) -> CrossValidation:
        """Return the same of some of the models, in the order given.

        Raises
        ------
        InvalidDataError
            If there is no such model.
        """
        self._check_models(models)
        values = {
            run: values
            for model in models
            for run, values in self._values.items()
            if run.model == model
        }
        return CrossValidation(self.request, self.folds, values)

    def _check_models(self, models: Sequence[str]) -> None:
        unknown = [model for model in models if model not in self.models]
        if unknown or not models:
            raise InvalidDataError(f"there are no models {unknown}, but {', '.join(self.models)}")

    @classmethod
    def load(cls, folder: PathLike) -> CrossValidation:
        """Read what a finished `cross_validate` left in its folder.

        Parameters
        ----------
        folder : str or Path
            The `out` of `cross_validate`.

        Returns
        -------
        CrossValidation
            With all numbers, to the last bit.

        Raises
        ------
        InvalidFileError
            If the folder is not that of a finished cross-validation, or a file in it cannot be
            read or was changed.
        """
        path = as_path(folder) / f"{JOB}.jsonl"
        if not path.exists():
            raise InvalidFileError("does not exist; cross_validate(out=folder) writes it", path)
        ledger = Ledger(path, JOB)
        if FINISHED not in ledger.rows:
            raise InvalidFileError(
                "is of a cross-validation that is not finished; call cross_validate again with "
                "the same data and this folder, and it continues",
                path,
            )
        settings: dict[str, Any] = ledger.rows[INPUTS]
        folds, values = [], {}
        for fold in range(1, ledger.rows[FINISHED]["folds"] + 1):
            row = ledger.rows[f"fold {fold}"]
            folds.append(Fold(*(row[name] for name in Fold._fields)))
            for run in runs_of_fold(fold, settings["models"], settings["seeds"]):
                evaluation = ledger.evaluation(run.name)
                values[run] = RunValues.of(evaluation)
        return cls(evaluation.request, folds, values)

    def __repr__(self) -> str:
        return f"<{self._heading()}>\n{self._table('simple')}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._heading())}</p>{self._table('html')}"

    def _heading(self) -> str:
        counts = [(len(self.folds), "fold"), (self.n_seeds, "seed"), (self.n_users, "user")]
        sizes = ", ".join(f"{n:,} {noun}{'' if n == 1 else 's'}" for n, noun in counts if n)
        return f"CrossValidation of {', '.join(self.models)}: {sizes}"

    def _table(self, style: str) -> str:
        rows = []
        for name, model in product(self.names, self.models):
            mean, error, *_ = self.estimate(model, name)
            interval = error.interval(mean, LEVEL).text()
            rows.append([self.shown(name), model, number(mean) or "none", interval])
        headings = ["metric", "model", "mean", "95 % interval"]
        return text_table(rows, headings, ["left", "left", "decimal", "left"], style)


class PooledModel(Scores):
    """The pooled numbers of a model, for the page and the charts."""

    def __init__(self, cv: CrossValidation, model: str) -> None:
        super().__init__(cv.request, cv.candidates)
        self._cv = cv
        self._estimates = [cv.estimate(model, name) for name in cv.names]
        self._table = cv.per_user(model)
        self.n_users = len(self._table)

    @property
    def record(self) -> dict[str, Any]:
        """The folds and the number of seeds."""
        folds = [fold._asdict() for fold in self._cv.folds]
        return make_record(None) | {"about": {"folds": folds, "seeds": self._cv.n_seeds}}

    def values(self, name: str | Metric) -> Floats:
        """Return the pooled value of each user."""
        return self._table[self.names[self._row_of(name)]].to_numpy()

    def _value(self, row: int) -> float:
        return self._estimates[row].mean

    def _count(self, row: int) -> int:
        return self._estimates[row].n_users

    def _std(self, row: int) -> float:
        users = self._estimates[row].users
        return Moments.of(np.zeros(0) if users is None else users).std

    def _interval(self, row: int, mean: float, level: float) -> Interval:
        return self._estimates[row].error.interval(mean, level)


def runs_of_fold(fold: int, models: Iterable[str], seeds: Sequence[int]) -> Iterator[Run]:
    """Yield the runs of a fold, by model, then by seed.

    Fold 1 has the seeds that are given, and each other fold seeds of its own, as many further on as
    the given ones span: models of one seed start alike, and would be lucky together on all folds.
    """
    step = max(seeds) - min(seeds) + 1
    for model in models:
        for seed in seeds:
            yield Run(model, fold, seed + (fold - 1) * step)
