"""`Scores`: the numbers of an evaluation, of each user and of all of them together."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.files import replacing
from ..core.parquet import write_parquet
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.axes import Axis
from ..metrics import parse
from .candidates import name_among
from .numbers import BlockNumbers, Numbers, TotalsNumbers
from .totals import Part, merge_parts

if TYPE_CHECKING:
    import pandas as pd

    from ..core.types import Booleans, Floats, Hashes, Integers, PathLike
    from ..metrics import Metric
    from ..metrics.plan import Plan
    from ..metrics.request import Request
    from .block import BlockResult
    from .candidates import CandidateCounts
    from .counts import FirstRanks, SeenCounts
    from .numbers import SavedNumber
    from .totals import Retrieval, Totals, UserValues


class Counts:
    """What was evaluated, and how many users and items there are.

    They are those of a block of users whose lists were kept, or of parts of blocks that were
    merged.
    """

    def __init__(
        self,
        request: Request,
        block: BlockResult | None = None,
        parts: tuple[Part, ...] | None = None,
        saved: dict[int, SavedNumber] | None = None,
    ) -> None:
        self.request = request
        self._block = block
        self._saved = saved or {}  # numbers about all users that totals do not give
        if parts is not None:
            self._parts = parts
        if self.n_users:
            return
        if request.without_list != "exclude" or (block is not None and not block.n_relevant.any()):
            raise InvalidDataError(
                f"none of the {self.n_skipped} users has a relevant item (a stored value above 0)"
            )
        raise InvalidDataError(
            f"no user counts with convention={self.convention!r} and without_list="
            f"{request.without_list!r}: none of them has both a relevant item and a list"
        )

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        """What is merged with others, each part about other users, in their order."""
        assert self._block is not None  # noqa: S101 - otherwise parts were given
        return (self._block.part(per_user=True),)

    @cached_property
    def _merged(self) -> Part:
        if len(self._parts) == 1:
            return self._parts[0]
        return merge_parts(self._parts)

    @property
    def _totals(self) -> Totals:
        return self._merged.totals

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """The metrics, in the order in which they were requested."""
        return self.request.metrics

    @property
    def names(self) -> list[str]:
        """The canonical names of the metrics."""
        return list(self.request.names)

    @property
    def convention(self) -> str:
        """The name of the convention, "standard" where none was given."""
        return self.request.convention.name

    @property
    def no_relevant(self) -> str:
        """What becomes of users without relevant items: "exclude", "zero" or "judged"."""
        return self.request.no_relevant

    @property
    def retrieval(self) -> Retrieval | None:
        """How the rankings were made, None where they were given."""
        return self._totals.retrieval if self._block is None else self._block.retrieval

    @property
    def n_users(self) -> int:
        """Number of users that count in the means."""
        if self._block is not None:
            return int(np.count_nonzero(self._block.counted()))
        return self._totals.n_counted

    @property
    def n_skipped(self) -> int:
        """Number of users left out: without a relevant item, or as the convention says."""
        if self._block is not None:
            return len(self._block.n_relevant) - self.n_users
        return self._totals.span.n - self._totals.n_counted

    @property
    def n_without_list(self) -> int:
        """Number of users with relevant items and no list.

        Each counts 0 in every mean, unless the convention leaves them out.
        """
        if self._block is not None:
            return self._block.n_without_list
        return self._totals.n_without_list

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
        return self._totals.seen if self._block is None else self._block.seen

    @property
    def candidates(self) -> CandidateCounts | None:
        """What the candidates were, None where they were all items that users had not seen."""
        return self._totals.candidates if self._block is None else self._block.candidates

    @property
    def propensities(self) -> dict[str, str]:
        """A digest of each input by which hits are weighted, "train" or "propensity"."""
        if self._block is not None:
            return self._block.propensities
        return self._totals.key.propensities or {}

    def shown(self, name: str) -> str:
        """Return a metric's name as people read it: ``hit_rate@10 (1+99)`` among candidates."""
        kind = None if self.candidates is None else self.candidates.kind
        return name_among(name, kind, self.request.corrected)

    @property
    def has_lists(self) -> bool:
        """Whether the lists, and the values of each user, are kept in memory."""
        return self._block is not None

    @property
    def leaves_candidates_out(self) -> bool:
        """Whether full rankings of different lengths are counted against the whole catalogue.

        As those of unseen items, where no training data say which items were seen.
        """
        block = self._block
        if block is None or block.aligned.side_data.training is not None:
            return False
        if block.aligned.side_data.candidates is not None:
            return False
        if not any("candidates" in plan.definition.uses for plan in self.request.plans):
            return False
        lengths = block.aligned.rankings.lengths[block.counted()]
        n_items = block.aligned.side_data.n_items
        least, most = lengths.min(), lengths.max()
        return bool(least < most and least < n_items and 2 * lengths.mean() > n_items)

    @property
    def first_ranks(self) -> FirstRanks | None:
        """The first ranks of the lists; None if there are no lists or a model made them."""
        return self._totals.first_ranks if self._block is None else self._block.first_ranks


class Scores(Counts):
    """Every metric of some users: what is printed, compared and saved.

    They come from a block of users whose lists were kept, or from parts of blocks that were merged.
    Numbers are the same to the last bit either way.
    """

    @cached_property
    def _numbers(self) -> Numbers:
        if self._block is not None:
            return BlockNumbers(self._block)
        return TotalsNumbers(self.request, self._totals, self._saved)

    @property
    def _values(self) -> UserValues:
        if self._merged.values is None:
            raise InvalidDataError(
                "the values of the users were not kept; evaluate with keep='values'"
            )
        return self._merged.values

    @property
    def n_users_of(self) -> dict[str, int]:
        """Number of users in the mean of each metric: fewer where it is undefined for some."""
        return {name: self._numbers.count(row) for row, name in enumerate(self.names)}

    @cached_property
    def users(self) -> Axis | None:
        """The users' labels, None where they are the row numbers from 0 on."""
        if self._block is not None:
            return self._block.labels
        users = self._values.users
        if users.dtype.kind in "iu" and np.array_equal(users, np.arange(len(users))):
            return None
        return Axis.unchecked(users)

    @property
    def counted(self) -> Booleans:
        """Whether each user counts in the means, shape (n_users,)."""
        return self._values.counted if self._block is None else self._block.counted()

    @property
    def n_relevant(self) -> Integers:
        """Number of relevant items of each user."""
        return self._values.n_relevant if self._block is None else self._block.n_relevant

    @property
    def fingerprints(self) -> Hashes:
        """A hash of each user's relevant items and their gains."""
        return self._values.fingerprints if self._block is None else self._block.fingerprints

    @property
    def columns(self) -> Floats:
        """The metrics that have a value for each user, shape (n_metrics, n_users)."""
        return self._values.columns if self._block is None else self._block.per_user_values

    @property
    def per_user(self) -> pd.DataFrame:
        """One row for each user (index ``user``: label or row number).

        One column for each metric that has a value for each user; NaN for a user that is left
        out.
        """
        import pandas as pd  # not needed to evaluate, and slower to import than evaluating is

        columns = self.columns
        users = self.users
        index = pd.RangeIndex(columns.shape[1]) if users is None else users.index
        names = [name for name in self.names if self.is_per_user(name)]
        # A copy, which pandas takes by itself from version 3 on.
        return pd.DataFrame(columns.T, index=index.rename("user"), columns=names, copy=True)

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

    def is_per_user(self, name: str | Metric) -> bool:
        """Return whether a metric has a value for each user."""
        return self._plan(name).per_user

    def higher_is_better(self, name: str | Metric) -> bool:
        """Return whether a larger value of a metric is the better one."""
        return self._plan(name).definition.higher_is_better

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

    def __getitem__(self, name: str | Metric) -> float:
        """Return the mean of a metric over the evaluated users, or its one number."""
        return self._numbers.value(self._row_of(name))

    def mean(self) -> dict[str, float]:
        """Return the mean of every metric over the evaluated users, or its one number.

        Returns
        -------
        dict of str to float
            By canonical name, in the order in which they were requested. Each sum is rounded once,
            so that it does not depend on the order of the users. NaN for a metric that is defined
            for none of them.
        """
        return {name: self._numbers.value(row) for row, name in enumerate(self.names)}

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
        return self._numbers.replicates(row)

    def _plan(self, name: str | Metric) -> Plan:
        return self.request.plans[self._row_of(name)]

    def _row_of(self, name: str | Metric) -> int:
        spelling = str(name)
        if spelling not in self._rows:  # mostly it is spelt as it is printed
            parsed = parse(spelling, self.request.convention.options)
            spelling = str(parsed[0]) if len(parsed) == 1 else ""
        if spelling not in self._rows:
            raise InvalidMetricError(
                f"{str(name)!r} was not evaluated; there are {', '.join(self.names)}", metric=name
            )
        return self._rows[spelling]

    @cached_property
    def _rows(self) -> dict[str, int]:
        rows = {self.shown(name): row for row, name in enumerate(self.names)}
        return rows | {name: row for row, name in enumerate(self.names)}
