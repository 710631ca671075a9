"""A cross-validated model, for the page and the charts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.exact_sums import Moments
from ..results.record import make_record
from ..results.scores import Scores

if TYPE_CHECKING:
    from ..core.types import Floats
    from ..metrics import Metric
    from ..results.intervals import Interval
    from ..results.parts import CandidateCounts
    from .cross_validation import CrossValidation


class PooledModel(Scores):
    """The pooled numbers of a model, with intervals that know of folds and seeds."""

    n_skipped, n_cold, has_values = 0, None, True

    def __init__(self, cv: CrossValidation, model: str) -> None:
        super().__init__(cv.request)
        self._cv = cv
        self._estimates = [cv.estimate(model, name) for name in cv.names]
        self._table = cv.per_user(model)

    @property
    def candidates(self) -> CandidateCounts | None:
        """What the candidates of all folds were, None for all items."""
        return self._cv.candidates

    @property
    def n_users(self) -> int:
        """The number of users that were evaluated on any fold."""
        return len(self._table)

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
