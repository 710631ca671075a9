"""`MergedEvaluation`: an evaluation of blocks of users, added up."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NoReturn, cast

import numpy as np

from ..core.exact_sums import Moments
from ..core.versions import installed_version
from ..errors import InvalidDataError, InvalidMetricError
from ..metrics.measure import (
    Plan,
    Setting,
    Sums,
    counts_apart,
    make_lists,
    needs_catalogue,
    needs_largest_gain,
    ratio_of,
)
from .evaluation import Evaluation
from .intervals import (
    MANY,
    Interval,
    check_level,
    interval_around,
    interval_of_mean,
    interval_of_moments,
)
from .parts import (
    N_GROUPS,
    ListCounts,
    Part,
    Ratios,
    Retrieval,
    Rows,
    Span,
    Terms,
    add_parts,
    check_apart,
    digest_of_labels,
    jackknife,
    marks,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pandas as pd
    from numpy.typing import NDArray

    from ..metrics import Convention, Metric
    from .saved import SavedEvaluation

    Integers = NDArray[np.int64]

__all__ = ["MergedEvaluation", "merge", "part_of", "reduce_block"]


class MergedEvaluation(Evaluation):
    """Every metric of users who were evaluated in blocks.

    It has the means, standard deviations and intervals of an `Evaluation`, to the same bits
    however the users were cut into blocks and in whatever order these were merged, but not the
    lists; and the values of each user only if they were kept (``per_user=True``). What would need
    what was not kept raises `InvalidDataError`. Numbers about all users together, such as coverage
    and micro averages, have intervals from a jackknife over 20 groups of users instead of a
    bootstrap.

    Attributes
    ----------
    parts : tuple of Part
        What is added up, each about other users, in the order of the users.
    plans : tuple of Plan
        What was asked for, in that order, and how it is computed.
    """

    parts: tuple[Part, ...]

    def __init__(
        self, parts: Iterable[Part], plans: tuple[Plan, ...], convention: Convention
    ) -> None:
        kept = tuple(check_apart(parts))
        self.__dict__.update(
            parts=kept, plans=plans, _rules=convention, total=add_parts(kept), baselines={}
        )
        if self.total.n_counted == 0:
            raise InvalidDataError(
                f"nobody counts: none of the {self.total.span.n} users has a relevant item (a "
                "stored value above 0)"
                if convention.without_list != "exclude"
                else "nobody counts: no user has both a relevant item and a list, which "
                f"convention={convention.name!r} asks for"
            )

    total: Part
    _rules: Convention

    def merge(self, *others: Evaluation) -> MergedEvaluation:
        return merge((self, *others))

    @property
    def overall(self) -> dict[Metric, float]:
        """The metrics that have one number for all users."""
        return {
            plan.metric: self._value(row)
            for row, plan in enumerate(self.plans)
            if not plan.definition.per_user
        }

    @property
    def retrieval(self) -> Retrieval | None:
        """How a model's rankings came about."""
        return self.total.retrieval

    @property
    def no_relevant(self) -> Literal["exclude", "zero", "judged"]:
        """What was done with users without relevant items."""
        return cast(Literal["exclude", "zero", "judged"], self.total.terms.no_relevant)

    @property
    def rules(self) -> Convention:
        return self._rules

    @property
    def n_users(self) -> int:
        return self.total.n_counted

    @property
    def n_skipped(self) -> int:
        return self.total.span.n - self.total.n_counted

    @property
    def n_without_list(self) -> int:
        return self.total.n_without_list

    @property
    def setting(self) -> Setting:
        """Not there: raises `InvalidDataError`."""
        raise _without_lists()

    def by(self, groups: Any, bands: int = 4) -> pd.DataFrame:
        """Not there: raises `InvalidDataError`."""
        raise _without_lists()

    @cached_property
    def _snapshot(self) -> SavedEvaluation:
        """What is saved and reported, as far as it needs no lists."""
        taken = self._saved(
            {},
            {
                "by": {},
                "precision_recall": None,
                "concentration": None,
                "examples": [],
                "inputs": {},
            },
        )
        for row in taken.content["metrics"].values():
            row |= {"random": None, "random_se": None, "lift": None}
        return taken

    @property
    def rows(self) -> Rows:
        """The values of each user, in the order of the users.

        Raises
        ------
        InvalidDataError
            If they were not kept.
        """
        if self.total.rows is None:
            raise InvalidDataError(
                "the values of the users were not kept; evaluate with per_user=True"
            )
        return self.total.rows

    @cached_property
    def sums(self) -> Sums:
        columns = np.full((len(self.plans), len(self.rows.users)), np.nan)
        columns[[row for row, plan in enumerate(self.plans) if plan.per_user]] = self.rows.columns
        return Sums(columns, {})

    @property
    def n_relevant(self) -> Integers:
        """Relevant items of each user."""
        return self.rows.n_relevant

    @property
    def counted(self) -> NDArray[np.bool_]:
        return self.rows.counted

    @property
    def fingerprints(self) -> NDArray[np.uint64]:
        return self.rows.fingerprints

    @cached_property
    def users(self) -> pd.Index[Any] | None:
        """The users' labels, None where they are the row numbers from 0 on."""
        import pandas as pd

        users = self.rows.users
        if users.dtype.kind in "iu" and np.array_equal(users, np.arange(len(users))):
            return None
        index: pd.Index[Any] = pd.Index(users)
        return index

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """Return the table to print.

        Parameters
        ----------
        level : float
            Of the intervals, between 0 and 1.

        Returns
        -------
        pandas.DataFrame
            One row for each metric: ``mean``, ``std``, ``ci_low``, ``ci_high``, ``interval``,
            ``n_users`` and ``n_skipped`` as of `Evaluation.summary`; but ``interval`` is
            "jackknife" for metrics without values for each user. What a random ranking would
            give is not known without the lists.

        Raises
        ------
        InvalidDataError
            If `level` is not between 0 and 1.
        """
        import pandas as pd

        level = check_level(level)
        rows = []
        for row, plan in enumerate(self.plans):
            std = self.total.moments[row].std if plan.per_user else math.nan
            mean, n_users = self._value(row), self._count(row)
            interval = self._interval(row, mean, level)
            rows.append((mean, std, *interval, n_users, self.total.span.n - n_users))
        columns = ["mean", "std", "ci_low", "ci_high", "interval", "n_users", "n_skipped"]
        return pd.DataFrame(rows, index=pd.Index(self.names, name="metric"), columns=columns)

    def __repr__(self) -> str:
        return super().__repr__().replace("Evaluation", "MergedEvaluation", 1)

    def _count(self, row: int) -> int:
        if self.plans[row].per_user:
            return self.total.moments[row].n
        return int(self._group_sizes(row).sum())

    def _value(self, row: int) -> float:
        if self.plans[row].per_user:
            return self.total.moments[row].mean
        return self._overall(row, None)

    def _interval(self, row: int, mean: float, level: float) -> Interval:
        if not self.plans[row].per_user:
            found = interval_around(mean, self._replicates_of(row), level)
            return found._replace(method="jackknife") if found.method != "none" else found
        few = self.total.few[row]
        if few is not None:
            return interval_of_mean(few, level)
        return interval_of_moments(self.total.moments[row], level)

    def _replicates_of(self, row: int) -> NDArray[np.float64]:
        if row not in self._replicates:
            without = np.array([self._overall(row, group) for group in range(N_GROUPS)])
            value, sizes = self._overall(row, None), self._group_sizes(row)
            self._replicates[row] = jackknife(value, without, sizes)
        return self._replicates[row]

    def _group_sizes(self, row: int) -> Integers:
        if self.plans[row].is_micro:
            return np.array([above.n for above, _ in self.total.ratios[row]])
        return self._lists_of(row).n_users

    def _lists_of(self, row: int) -> ListCounts:
        plan = self.plans[row]
        return self.total.lists[(*counts_apart(self.rules, plan), plan.metric.k)]

    def _overall(self, row: int, left_out: int | None) -> float:
        """Return a number about all users, or about those who are not in a group."""
        plan = self.plans[row]
        kept = [group for group in range(N_GROUPS) if group != left_out]
        if plan.is_micro:
            above, below = Moments(), Moments()
            for group in kept:
                above += self.total.ratios[row][group][0]
                below += self.total.ratios[row][group][1]
            return ratio_of(above, below) if above.n else math.nan
        counts = self._lists_of(row)
        found = _Counted(
            plan.metric.k,
            int(counts.n_users[kept].sum()),
            int(counts.n_listed[kept].sum()),
            self._item_counts(row, left_out),
        )
        return found.apply(plan)

    def _item_counts(self, row: int, left_out: int | None) -> Integers:
        counts = self._lists_of(row).item_counts
        every: Integers = counts.sum(axis=0)
        return every if left_out is None else every - counts[left_out]

    def _counted(self, plan: Plan | None = None) -> NDArray[np.bool_]:
        return self.rows.counted.copy()

    @property
    def columns(self) -> NDArray[np.float64]:
        return self.rows.columns


def _without_lists() -> InvalidDataError:
    return InvalidDataError(
        "the lists were not kept, because the users were evaluated in blocks; evaluate in memory "
        "the users whose lists are wanted"
    )


class _Counted:
    """What `Lists` has that counts of items are enough for."""

    def __init__(self, k: int, n_users: int, n_listed: int, item_counts: Integers) -> None:
        self.k = k
        self.n_users = n_users
        self.n_listed = n_listed
        self.item_counts = item_counts
        self.n_items = len(item_counts)

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidMetricError(
            f"a number about all lists reads their {name}, and can only be computed of lists that "
            "are in memory together: of blocks it may read k, n_users, n_listed, n_items and "
            "item_counts"
        )

    def apply(self, plan: Plan) -> float:
        """Return the metric of all users together."""
        if self.n_users == 0:
            return math.nan
        return float(plan.definition.formula(self, **plan.arguments))


def merge(evaluations: Iterable[Evaluation]) -> MergedEvaluation:
    """Return several evaluations as one; see `Evaluation.merge`."""
    given = list(evaluations)
    for one in given:
        if not isinstance(one, Evaluation):
            raise InvalidDataError(
                f"a {type(one).__name__} cannot be merged; expected what evaluate returns"
            )
    merged = [one if isinstance(one, MergedEvaluation) else reduce_block(one) for one in given]
    parts = [part for one in merged for part in one.parts]
    return MergedEvaluation(parts, merged[0].plans, merged[0].rules)


def reduce_block(
    evaluation: Evaluation, *, first_row: int = 0, per_user: bool = True
) -> MergedEvaluation:
    """Return an evaluation without its lists.

    Parameters
    ----------
    evaluation : Evaluation
        Of some users.
    first_row : int
        The number of the first of them, where they have no labels.
    per_user : bool
        Whether to keep the values of each user.
    """
    part = part_of(evaluation, first_row=first_row, per_user=per_user)
    return MergedEvaluation([part], evaluation.plans, evaluation.setting.convention)


def part_of(evaluation: Evaluation, *, first_row: int = 0, per_user: bool = True) -> Part:
    """Return what is kept of the evaluation of a block; see `reduce_block`."""
    setting, plans, sums = evaluation.setting, evaluation.plans, evaluation.sums
    users = _labels(evaluation.users, len(evaluation.n_relevant), first_row)
    numbers = marks(users)
    groups = (numbers % np.uint64(N_GROUPS)).astype(np.int64)
    moments: list[Moments] = []
    few: list[NDArray[np.float64] | None] = []
    ratios: dict[int, Ratios] = {}
    lists: dict[tuple[bool, bool, int], ListCounts] = {}
    for row, plan in enumerate(plans):
        counting = evaluation._users(row)
        values = sums.columns[row, counting] if plan.per_user else np.empty(0)
        moments.append(Moments.of(values))
        few.append(values if len(values) < MANY else None)
        if plan.is_micro:
            below = sums.denominators[row]
            of_groups = [counting[groups[counting] == group] for group in range(N_GROUPS)]
            ratios[row] = tuple(
                (sums.moments(row, mine), Moments.of(below[mine], squares=False))
                for mine in of_groups
            )
        elif not plan.definition.per_user:
            key = (*counts_apart(setting.convention, plan), plan.metric.k)
            if key not in lists:
                lists[key] = _count_lists(setting, plan.metric.k, counting, groups)
    span = Span(0, 0, 0, 0)
    if len(users):
        mark = int(numbers.sum(dtype=np.uint64))
        first, last = (min(users), max(users)) if users.dtype == object else _ends(users)
        span = Span(first, last, len(users), mark)
    kept = (evaluation.counted, evaluation.n_relevant)
    return Part(
        Terms(
            tuple(evaluation.names),
            setting.convention.name,
            evaluation.no_relevant,
            setting.context.n_items if needs_catalogue(plans) else None,
            _digest_of_items(setting) if needs_catalogue(plans) else None,
            setting.largest_gain if needs_largest_gain(plans) else None,
            setting.context.digest if any(plan.needs for plan in plans) else None,
            installed_version(),
        ),
        span,
        evaluation.n_users,
        evaluation.n_without_list,
        tuple(moments),
        tuple(few),
        ratios,
        lists,
        Rows(users, *kept, evaluation.fingerprints, evaluation.columns) if per_user else None,
        evaluation.retrieval,
    )


def _labels(labels: pd.Index[Any] | None, n_users: int, first_row: int) -> NDArray[Any]:
    """Return what users are known by, in an array of int64 or of text."""
    if labels is None:
        return np.arange(first_row, first_row + n_users)
    array = labels.to_numpy()
    if array.dtype.kind in "iu" and not (array.dtype.kind == "u" and (array >= 2**63).any()):
        return array.astype(np.int64)
    listed = labels.tolist()
    if listed and all(type(label) is int and -(2**63) <= label < 2**63 for label in listed):
        return np.array(listed, np.int64)
    if all(isinstance(label, str) for label in listed):
        return np.array(list(map(str, listed)), object)
    raise InvalidDataError(
        "users whose evaluations are merged need labels that are all text, or all whole numbers "
        "of 64 bits; make them so, as with map(str, labels)"
    )


def _digest_of_items(setting: Setting) -> str | None:
    """Return 16 hexadecimal digits that tell the labels of the catalogue, None without labels."""
    sides = (setting.relevance.items_index, setting.rankings.items_index)
    labels = max((index for index in sides if index is not None), key=len, default=None)
    return None if labels is None else digest_of_labels(labels.to_numpy())


def _ends(numbers: NDArray[Any]) -> tuple[int, int]:
    return int(numbers.min()), int(numbers.max())


def _count_lists(setting: Setting, k: int, users: Integers, groups: Integers) -> ListCounts:
    n_users, n_listed = np.zeros((2, N_GROUPS), np.int64)
    item_counts = np.zeros((N_GROUPS, setting.context.n_items), np.int64)
    for group in range(N_GROUPS):
        lists = make_lists(setting, k, users[groups[users] == group])
        n_users[group], n_listed[group] = lists.n_users, lists.n_listed
        item_counts[group] = lists.item_counts
    return ListCounts(n_users, n_listed, item_counts)
