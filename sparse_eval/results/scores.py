"""`Scores`: the numbers of some users, as tables, comparisons, charts and the page read them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING

from ..errors import InvalidMetricError
from ..metrics import parse
from .candidates import name_among
from .summary import LEVEL, summarize

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    import pandas as pd

    from ..core.types import Floats
    from ..metrics import Metric
    from ..metrics.plan import Plan
    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from .intervals import Interval
    from .parts import CandidateCounts


class Requested(ABC):
    """The metrics that were computed, by name."""

    def __init__(self, request: Request) -> None:
        self.request = request

    @property
    @abstractmethod
    def candidates(self) -> CandidateCounts | None:
        """What the candidates were, None where they were all items that users had not seen."""

    @property
    def names(self) -> list[str]:
        """The canonical names of the metrics."""
        return list(self.request.names)

    def shown(self, name: str) -> str:
        """Return a metric's name as people read it: ``hit_rate@10 (1+99)`` among candidates."""
        kind = None if self.candidates is None else self.candidates.kind
        return name_among(name, kind, self.request.corrected)

    def is_per_user(self, name: str | Metric) -> bool:
        """Return whether a metric has a value for each user."""
        return self._plan(name).per_user

    def higher_is_better(self, name: str | Metric) -> bool:
        """Return whether a larger value of a metric is the better one."""
        return self._plan(name).definition.higher_is_better

    def _plan(self, name: str | Metric) -> Plan:
        return self.request.plans[self._row_of(name)]

    def _row_of(self, name: str | Metric) -> int:
        spelling = str(name)
        if spelling not in self._by_name:  # mostly it is spelt as it is printed
            parsed = parse(spelling, self.request.convention.options)
            spelling = str(parsed[0]) if len(parsed) == 1 else ""
        if spelling not in self._by_name:
            raise InvalidMetricError(
                f"{str(name)!r} was not evaluated; there are {', '.join(self.names)}", metric=name
            )
        return self._by_name[spelling]

    @cached_property
    def _by_name(self) -> dict[str, int]:
        rows = {self.shown(name): row for row, name in enumerate(self.names)}
        return rows | {name: row for row, name in enumerate(self.names)}


class Scores(Requested):
    """Every metric of some users: what tables, charts and the page show."""

    @property
    @abstractmethod
    def n_users(self) -> int:
        """Number of users that count in the means."""

    @property
    @abstractmethod
    def n_skipped(self) -> int:
        """Number of users left out: without a relevant item, or as the convention says."""

    @property
    @abstractmethod
    def n_cold(self) -> int | None:
        """Number of evaluated users without training data; None where train is not known."""

    @property
    @abstractmethod
    def has_values(self) -> bool:
        """Whether the values of each user are kept."""

    @property
    @abstractmethod
    def record(self) -> dict[str, Any]:
        """What the page shows with the numbers, see `sparse_eval.results.record`."""

    @property
    def baselines(self) -> Mapping[str, Scores]:
        """Evaluations of simple rankings of the same users, by name."""
        return {}

    @property
    def _random(self) -> RandomTotals | None:
        """The value of each metric under random rankings, None where it is not known."""
        return None

    @property
    def convention(self) -> str:
        """The name of the convention, "standard" where none was given."""
        return self.request.convention.name

    @property
    def no_relevant(self) -> str:
        """What becomes of users without relevant items: "exclude", "zero" or "judged"."""
        return self.request.no_relevant

    @abstractmethod
    def values(self, name: str | Metric) -> Floats:
        """Return one metric of every user."""

    def __getitem__(self, name: str | Metric) -> float:
        """Return the mean of a metric over the evaluated users, or its one number."""
        return self._value(self._row_of(name))

    def _summarize(self, level: float = LEVEL) -> pd.DataFrame:
        """Return the summary without a warning of few users, if nobody reads its intervals."""
        return summarize(self, self._random, level)

    # The numbers of a metric, which is given by its position.

    @abstractmethod
    def _value(self, row: int) -> float:
        """Return the mean, or the one number about all users."""

    @abstractmethod
    def _count(self, row: int) -> int:
        """Return the number of users in the mean."""

    @abstractmethod
    def _std(self, row: int) -> float:
        """Return the standard deviation of the users' values, with n − 1; NaN without any."""

    @abstractmethod
    def _interval(self, row: int, mean: float, level: float) -> Interval:
        """Return the confidence interval."""

    def _rests_on_few(self, _: int) -> bool:
        """Return whether too few users make up a mean for its interval to reach its level."""
        return False
