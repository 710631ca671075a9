"""A cross-validated model as an `Evaluation`, so that the page and the charts can show it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.exact_sums import Moments
from ..core.versions import installed_version
from ..results.evaluation import Evaluation
from ..results.numbers import Numbers
from ..results.record import Record
from ..results.totals import MergeKey, Part, Span, Totals, UserValues

if TYPE_CHECKING:
    from ..core.types import Floats
    from ..results.intervals import Interval
    from .cross_validation import CrossValidation


class _PooledNumbers(Numbers):
    """The pooled numbers of a model, with intervals that know of folds and seeds."""

    def __init__(self, cv: CrossValidation, model: str) -> None:
        super().__init__(cv.request)
        self._estimates = [cv.estimate(model, name) for name in cv.names]

    def value(self, row: int) -> float:
        """Return the mean, or the mean of the numbers about all users."""
        return self._estimates[row].mean

    def moments(self, row: int) -> Moments:
        """Return the sums of the users' pooled values, empty where there are none."""
        users = self._estimates[row].users
        return Moments.of(np.zeros(0) if users is None else users)

    def count(self, row: int) -> int:
        """Return the number of users in the mean."""
        return self._estimates[row].n_users

    def interval(self, row: int, mean: float, level: float) -> Interval:
        """Return the pooled interval."""
        return self._estimates[row].error.interval(mean, level)

    def rests_on_few(self, row: int) -> bool:
        """Return False: the interval depends on folds and seeds too."""
        return False

    def replicates(self, row: int) -> Floats:
        """Return nothing: folds and seeds have no jackknife."""
        return np.empty(0)


def pooled_evaluation(cv: CrossValidation, model: str) -> Evaluation:
    """Return the pooled values of a model as an evaluation."""
    numbers = _PooledNumbers(cv, model)
    table = cv.per_user(model)
    n_users = len(table)
    values = UserValues(
        table.index.to_numpy(),
        np.ones(n_users, bool),
        np.zeros(n_users, np.int64),
        np.zeros(n_users, np.uint64),
        np.ascontiguousarray(table.to_numpy(np.float64).T),
    )
    request = cv.request
    key = MergeKey(
        request.names, request.convention.name, request.no_relevant, None, None, None, None,
        installed_version(), without_list=request.without_list,
    )  # fmt: skip
    totals = Totals(
        key,
        Span(0, max(n_users - 1, 0), n_users, 0),
        n_users,
        0,
        tuple(map(numbers.moments, range(len(request.names)))),
        (None,) * len(request.names),
        {},
        {},
        candidates=cv.candidates,
    )
    evaluation = Evaluation(request, parts=[Part(totals, values)])
    evaluation.__dict__["_numbers"] = numbers
    content, users = evaluation.record
    about = {"folds": [fold._asdict() for fold in cv.folds], "seeds": cv.n_seeds}
    shown = None if users is None else users.drop(columns=["relevant", "fingerprint"])
    evaluation.__dict__["record"] = Record(content | {"about": about}, shown)
    return evaluation
