"""`Evaluated`: the numbers of some users, read from a block with its lists or from merged parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.files import replacing
from ..core.parquet import write_parquet
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.axes import Axis
from .intervals import (
    N_GROUPS,
    Interval,
    interval_of_mean,
    interval_of_moments,
    interval_of_replicates,
    jackknife,
    rests_on_few,
)
from .parts import Part, merge_parts
from .scores import Scores

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import Booleans, Floats, Hashes, Integers, PathLike
    from ..metrics import Metric
    from ..metrics.request import Request
    from .measured import Measured
    from .parts import CandidateCounts, FirstRanks, Retrieval, SeenCounts, UserValues


class PerUser(Scores):
    """The values of each user, as far as they were kept."""

    _part: Measured | Part

    @property
    def has_values(self) -> bool:
        """Whether the values of each user are kept."""
        return self._part.values is not None

    @property
    def _values(self) -> Measured | UserValues:
        if self._part.values is None:
            raise InvalidDataError(
                "the values of the users were not kept; evaluate with keep='values'"
            )
        return self._part.values

    @property
    def users(self) -> Axis | None:
        """The users' labels, None where they are the row numbers from 0 on."""
        return self._values.labels

    @property
    def counted(self) -> Booleans:
        """Whether each user counts in the means, shape (n_users,)."""
        return self._values.counted

    @property
    def n_relevant(self) -> Integers:
        """Number of relevant items of each user."""
        return self._values.n_relevant

    @property
    def n_seen(self) -> Integers | None:
        """Number of training items of each user; None where it is not known."""
        return self._values.n_seen

    @property
    def fingerprints(self) -> Hashes:
        """A hash of each user's relevant items and their gains."""
        return self._values.fingerprints

    @property
    def columns(self) -> Floats:
        """The metrics that have a value for each user, shape (n_metrics, n_users)."""
        return self._values.columns

    @property
    def all_users(self) -> Axis:
        """The users' labels, or their row numbers where there are none."""
        return Axis.numbers(len(self.counted)) if self.users is None else self.users

    @property
    def evaluated_users(self) -> Axis:
        """The labels of the users that count in the means, or their row numbers."""
        return self.all_users[self.counted]

    @property
    def per_user(self) -> pd.DataFrame:
        """One row for each user (index ``user``: label or row number).

        One column for each metric that has a value for each user; NaN for a user that is left
        out.
        """
        import pandas as pd  # not needed to evaluate, and slower to import than evaluating is

        names = [name for name in self.names if self.is_per_user(name)]
        index = self.all_users.index.rename("user")
        # A copy, which pandas takes by itself from version 3 on.
        return pd.DataFrame(self.columns.T, index=index, columns=names, copy=True)

    def to_csv(self, path: PathLike) -> None:
        """Write `per_user` as CSV, every value in full.

        Raises
        ------
        OutputError
            If the file cannot be written.
        """
        with replacing(path) as temporary:
            self.per_user.to_csv(temporary)

    def to_parquet(self, path: PathLike) -> None:
        """Write `per_user` as Parquet.

        Raises
        ------
        InvalidDataError
            If the users' labels are of types that Parquet has no common one for.
        OutputError
            If the file cannot be written.
        """
        with replacing(path) as temporary:
            write_parquet(self.per_user, temporary, index=True)

    def values(self, name: str | Metric) -> Floats:
        """Return one metric of every user.

        Parameters
        ----------
        name : str or Metric
            In any spelling that means a metric which was evaluated.

        Returns
        -------
        ndarray of float64, shape (n_users,)
            NaN for a user that is left out. Read-only.

        Raises
        ------
        InvalidMetricError
            If the metric is unknown, was not evaluated, or has no values for single users.
        InvalidDataError
            If the values of the users were not kept.
        """
        row = self._row_of(name)
        plans = self.request.plans
        if not plans[row].per_user:
            raise InvalidMetricError(
                f"{plans[row].metric} is one number for all users together; read it as "
                f"ev[{str(plans[row].metric)!r}]",
                metric=plans[row].metric,
            )
        column: Floats = self.columns[sum(plan.per_user for plan in plans[:row])]
        column.flags.writeable = False
        return column


class Evaluated(PerUser):
    """Every metric of some users, each user's values and the lists, as far as these were kept.

    Numbers are the same to the last bit, whatever they are read from.
    """

    def __init__(
        self, request: Request, measured: Measured | None, parts: tuple[Part, ...]
    ) -> None:
        super().__init__(request)
        self._measured, self._given = measured, parts
        if measured is not None:
            self._part = measured
        else:
            self._part = parts[0] if len(parts) == 1 else merge_parts(parts)
        self._known_replicates: dict[int, Floats] = {}
        if self.n_users:
            return
        if request.without_list != "exclude" or (measured and not measured.n_relevant.any()):
            raise InvalidDataError(
                f"none of the {self.n_skipped} users has a relevant item (a stored value above 0)"
            )
        raise InvalidDataError(
            f"no user counts with convention={self.convention!r} and without_list="
            f"{request.without_list!r}: none of them has both a relevant item and a list"
        )

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, in the order in which they were requested."""
        return self.request.metrics

    @property
    def retrieval(self) -> Retrieval | None:
        """How the rankings were made, None where they were given."""
        return self._part.retrieval

    @property
    def n_users(self) -> int:
        """Number of users that count in the means."""
        return self._part.n_counted

    @property
    def n_skipped(self) -> int:
        """Number of users left out: without a relevant item, or as the convention says."""
        measured = self._measured
        n_users = self._part.span.n if measured is None else len(measured.n_relevant)
        return n_users - self.n_users

    @property
    def n_without_list(self) -> int:
        """Number of users with relevant items and no list.

        Each counts 0 in every mean, unless the convention leaves them out.
        """
        return self._part.n_without_list

    @property
    def n_cold(self) -> int | None:
        """Number of evaluated users without training data; None where train is not known."""
        return None if self.seen is None else self.seen.n_cold

    @property
    def n_relevant_seen(self) -> int | None:
        """Number of relevant items that their user has in train; None where it is not known."""
        return None if self.seen is None else self.seen.n_relevant

    @property
    def n_listed_seen(self) -> int | None:
        """Number of listed items that their user has in train; None where it is not known."""
        return None if self.seen is None else self.seen.n_listed

    @property
    def seen(self) -> SeenCounts | None:
        """These three, and the number of relevant items; None where train is not known."""
        return self._part.seen

    @property
    def candidates(self) -> CandidateCounts | None:
        """What the candidates were, None where they were all items that users had not seen."""
        return self._part.candidates

    @property
    def propensities(self) -> dict[str, str]:
        """A digest of each input by which hits are weighted, "train" or "propensity"."""
        propensities: dict[str, str] = self._part.key["propensities"]
        return propensities

    @property
    def first_ranks(self) -> FirstRanks | None:
        """The first ranks of the lists; None if there are no lists or a model made them."""
        return self._part.first_ranks

    @property
    def has_lists(self) -> bool:
        """Whether the lists, and the values of each user, are kept in memory."""
        return self._measured is not None

    @property
    def n_users_of(self) -> dict[str, int]:
        """Number of users in the mean of each metric: fewer where it is undefined for some."""
        return {name: self._count(row) for row, name in enumerate(self.names)}

    def mean(self) -> dict[str, float]:
        """Return the mean of every metric over the evaluated users, or its one number.

        Returns
        -------
        dict of str to float
            By canonical name, in the order in which they were requested. Each sum is rounded once,
            so that it does not depend on the order of the users. NaN for a metric that is defined
            for none of them.
        """
        return {name: self._value(row) for row, name in enumerate(self.names)}

    def replicates(self, name: str | Metric) -> Floats:
        """Return jackknife replicates of a number about all users together.

        Parameters
        ----------
        name : str or Metric
            One without values for single users, such as coverage or a micro average.

        Returns
        -------
        ndarray of float64
            One for each group of users, with the standard error as their standard deviation. Groups
            are made of a hash of the users' labels, so that what two evaluations of the same users
            return is paired. Empty if there are too few users for as many groups.

        Raises
        ------
        InvalidMetricError
            If the metric is unknown, was not evaluated, or has values for single users.
        """
        row = self._row_of(name)
        if self.request.plans[row].per_user:
            raise InvalidMetricError(
                f"{self.request.plans[row].metric} has a value for each user; see ev.values",
                metric=self.request.plans[row].metric,
            )
        return self._replicates(row)

    def _value(self, row: int) -> float:
        if self.request.plans[row].per_user:
            return self._part.moments[row].mean
        if row in self._part.saved:
            return self._part.saved[row].value
        return self._part.number(self.request, row)

    def _count(self, row: int) -> int:
        if self.request.plans[row].per_user:
            return self._part.moments[row].n
        return int(self._part.group_sizes(self.request, row).sum())

    def _std(self, row: int) -> float:
        return self._part.moments[row].std

    def _interval(self, row: int, mean: float, level: float) -> Interval:
        if not self.request.plans[row].per_user:
            return interval_of_replicates(mean, self._replicates(row), level)
        sample = self._part.samples[row]
        if sample is not None:
            return interval_of_mean(sample, level)
        return interval_of_moments(self._part.moments[row], level)

    def _rests_on_few(self, row: int) -> bool:
        plan = self.request.plans[row]
        return plan.per_user and rests_on_few(self._part.moments[row], plan.definition.lower < 0)

    def _replicates(self, row: int) -> Floats:
        saved = self._part.saved.get(row)
        if saved is not None and saved.replicates is not None:
            return saved.replicates
        if row not in self._known_replicates:
            part, request = self._part, self.request
            try:
                without = [part.number(request, row, group) for group in range(N_GROUPS)]
            except InvalidMetricError:
                if saved is None:
                    raise
                return np.empty(0)  # of a baseline, whose replicates are not saved
            sizes = part.group_sizes(request, row)
            self._known_replicates[row] = jackknife(self._value(row), np.array(without), sizes)
        return self._known_replicates[row]

    @property
    def leaves_candidates_out(self) -> bool:
        """Whether full rankings of different lengths are counted against the whole catalogue.

        As those of unseen items, where no training data say which items were seen.
        """
        block = self._measured
        if block is None or block.aligned.side_data.training is not None:
            return False
        if block.aligned.side_data.candidates is not None:
            return False
        if not any("candidates" in plan.definition.uses for plan in self.request.plans):
            return False
        lengths = block.aligned.rankings.lengths[block.counted]
        n_items = block.aligned.side_data.n_items
        least, most = lengths.min(), lengths.max()
        return bool(least < most and least < n_items and 2 * lengths.mean() > n_items)
