"""`Part`: the results of some users, which merge with the results of other users.

Everything in it is a whole number, or is sorted by user in the end. Any blocks of users, merged in
any order, therefore give the same bits. Its size does not depend on the number of users, unless the
values of users are kept.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias, TypeVar

import numpy as np

from ..core.exact_sums import Moments
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.candidates import name_among
from ..metrics import Metric, parse
from ..metrics.measure import ratio_of, value_of_lists
from ..metrics.random_baseline import RandomSums
from .counts import CandidateCounts, FirstRanks, ListSums, Retrieval, SeenCounts, Span
from .intervals import (
    FEWEST_EFFECTIVE,
    FEWEST_FOR_T,
    N_GROUPS,
    interval_of_mean,
    interval_of_moments,
    interval_of_replicates,
    jackknife,
    rests_on_few,
)
from .user_values import ARRAYS, RequestValues, UserValues

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.types import Floats, Integers
    from ..metrics.plan import Plan
    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request, Traits
    from .intervals import Interval

Counts = TypeVar("Counts", Retrieval, SeenCounts, CandidateCounts)

#: Attributes that must be equal to merge evaluations, by name.
MergeKey: TypeAlias = "dict[str, Any]"

#: The key of the sums of lists. It has the exceptions of the convention (`Plan.exceptions`), the
#: cut-off, and the position of a metric with its own sums, or -1.
ListKey: TypeAlias = "tuple[bool, bool, int, int]"

#: The sums of numerators and of denominators of a micro average, for each group of users.
Ratios: TypeAlias = "tuple[tuple[Moments, Moments], ...]"


class SavedNumber(NamedTuple):
    """A number about all users, the number of users in it, and its jackknife replicates.

    It is not computed again, because that may take the lists or a formula that is not registered.
    The replicates of a baseline are None.
    """

    value: float
    n_users: int
    replicates: Floats | None


@dataclass(frozen=True, eq=False)
class Part:
    """The results of some users: exact sums, the numbers made of them, and the values of users.

    Methods take the position of a metric in the request, see `row_of`.

    Attributes
    ----------
    request : Request
        The metrics and their rules.
    key : MergeKey
    span : Span
    n_counted, n_without_list : int
        Users that count in the means; users with relevant items and no list.
    moments : tuple of Moments
        For each metric the sums of the users' values, empty if it has none.
    samples : tuple of ndarray or None
        The values themselves while they are too few for an interval from their sums.
    ratios : dict of int to tuple
        Of micro averages, by the position of the metric.
    lists : dict of tuple to ListSums
        By `list_key`.
    retrieval : Retrieval or None
    seen : SeenCounts or None
        Counts of the users' training data, if known.
    candidates : CandidateCounts or None
        Counts of the candidates, if they were given.
    first_ranks : FirstRanks or None
        The first ranks of the lists; None if there are no lists or a model made them.
    random : tuple or None
        The random baseline of each metric, once it was computed.
    values : UserValues or None
        The values of the users, if they are kept.
    has_hits : bool
        Whether a list has a relevant item, as far as the cut-offs reach.
    saved : dict of int to SavedNumber
        Numbers that are not computed again, by the position of the metric: about all users of a
        saved evaluation, and weighted means.
    requests : RequestValues or None
        The values of requests, if users have several.
    """

    request: Request
    key: MergeKey
    span: Span
    n_counted: int
    n_without_list: int
    moments: tuple[Moments, ...]
    samples: tuple[Floats | None, ...]
    ratios: dict[int, Ratios]
    lists: dict[ListKey, ListSums]
    retrieval: Retrieval | None
    seen: SeenCounts | None
    candidates: CandidateCounts | None
    first_ranks: FirstRanks | None
    random: RandomTotals | None = None
    values: UserValues | None = None
    has_hits: bool = True
    saved: Mapping[int, SavedNumber] = field(default_factory=dict)
    requests: RequestValues | None = None

    @property
    def n_users(self) -> int:
        """The number of users, whether or not they count."""
        return self.span.n

    @property
    def is_weighted(self) -> bool:
        """Whether users have several requests, or weights."""
        return "average" in self.key

    @property
    def n_cold(self) -> int | None:
        """The number of evaluated users without training data, None if it is not known."""
        return None if self.seen is None else self.seen.n_cold

    @property
    def per_user(self) -> UserValues:
        """The values of the users, or an error if they were not kept."""
        if self.values is None:
            raise InvalidDataError(
                "the values of the users were not kept; evaluate with keep='values'"
            )
        return self.values

    # Metrics by name.

    def row_of(self, name: str | Metric) -> int:
        """Return the position of a metric, in any spelling, or raise if it was not evaluated."""
        if not isinstance(name, str | Metric):
            raise InvalidMetricError(f"metric is {name!r}; expected one name, such as 'ndcg@10'")
        names, spelling = self.request.names, str(name).removesuffix(self._among)
        if spelling not in names:  # mostly it is spelt as it is printed
            parsed = parse(spelling, self.request.convention.options)
            spelling = str(parsed[0]) if len(parsed) == 1 else ""
        if spelling not in names:
            raise InvalidMetricError(
                f"{str(name)!r} was not evaluated; the metrics are {', '.join(names)}", metric=name
            )
        return names.index(spelling)

    def has(self, name: str | Metric) -> bool:
        """Return whether a metric was evaluated."""
        with suppress(InvalidMetricError):
            return self.row_of(name) >= 0
        return False

    def traits_of(self, name: str | Metric) -> Traits:
        """Return the properties of a metric."""
        return self.request.traits[self.row_of(name)]

    def shown(self, name: str) -> str:
        """Return a metric's display name, such as ``hit_rate@10 (1+99)`` among candidates."""
        return name + self._among

    @cached_property
    def _among(self) -> str:
        return "" if self.candidates is None else name_among("", self.candidates.kind)

    def values_of(self, name: str | Metric) -> Floats:
        """Return one metric of every user, see `Evaluation.values`."""
        column: Floats = self.per_user.columns[self.number_of(name)]
        column.flags.writeable = False
        return column

    def weights_of(self, name: str | Metric) -> Floats | None:
        """Return the weight of every user in the mean of a metric; None if all count the same."""
        return self.per_user.weights_of(self.number_of(name))

    def number_of(self, name: str | Metric) -> int:
        """Return the position of a metric among those that have a value for each user."""
        row, traits = self.row_of(name), self.request.traits
        shown = self.request.names[row]
        if not traits[row].per_user:
            raise InvalidMetricError(
                f"{shown} is one number for all users together; read it as ev[{shown!r}]",
                metric=self.request.metrics[row],
            )
        return sum(one.per_user for one in traits[:row])

    # The numbers of a metric.

    def sums(self, row: int) -> Moments:
        """Return the sums of the users' values, empty if there are none."""
        return self.moments[row]

    def sample(self, row: int) -> Floats | None:
        """Return the users' values while they are too few for an interval from their sums."""
        return self.samples[row]

    def value(self, row: int) -> float:
        """Return the mean, or the one number about all users."""
        if row in self.saved:
            return self.saved[row].value
        return self.sums(row).mean if self.request.traits[row].per_user else self.overall(row)

    def count(self, row: int) -> int:
        """Return the number of users in the mean."""
        if row in self.saved:
            return self.saved[row].n_users
        if self.request.traits[row].per_user:
            return self.sums(row).n
        return int(self.group_sizes(row).sum())

    def std(self, row: int) -> float:
        """Return the standard deviation of the users' values, with n − 1; NaN without any."""
        return self.sums(row).std

    def interval(self, row: int, level: float) -> Interval:
        """Return the confidence interval, within the range of the metric."""
        value, sample = self.value(row), self.sample(row)
        if not self.request.traits[row].per_user:
            interval = interval_of_replicates(value, self.replicates(row), level)
        elif sample is not None:
            interval = interval_of_mean(sample, level)
        else:
            interval = interval_of_moments(self.sums(row), level)
        return interval.within(value, self.request.range_of(row))

    def rests_on_few(self, row: int) -> bool:
        """Return whether too few users make up a mean for its interval to reach its level."""
        traits = self.request.traits[row]
        if not traits.per_user:
            return False
        weights = None if self.values is None else self.weights_of(self.request.names[row])
        if weights is not None and np.square(weights.sum()) < (
            FEWEST_EFFECTIVE * np.square(weights).sum()
        ):
            return True
        return rests_on_few(self.sums(row), traits.lower < 0)

    def replicates(self, row: int) -> Floats:
        """Return the jackknife replicates of a number about all users."""
        if row not in self._replicates:
            without = [self.overall(row, group) for group in range(N_GROUPS)]
            sizes = self.group_sizes(row)
            self._replicates[row] = jackknife(self.value(row), np.array(without), sizes)
        return self._replicates[row]

    @cached_property
    def _replicates(self) -> dict[int, Floats]:
        return {
            row: number.replicates
            for row, number in self.saved.items()
            if number.replicates is not None
        }

    def overall(self, row: int, left_out: int | None = None) -> float:
        """Compute a number about all users, or about all but those of a group."""
        plan = self.request.plan_of(row)
        if plan.is_micro:
            return micro_average(plan, self.ratios[row], left_out)
        kept = [group for group in range(N_GROUPS) if group != left_out]
        n_users, n_listed, sums = (
            of[kept].sum(axis=0) for of in self.lists[list_key(self.request, row)]
        )
        if not n_users and (left_out is not None or plan.definition.formula.combine):
            return math.nan
        if plan.definition.formula.combine is not None:
            return plan.definition.formula.combine(sums, **plan.arguments)
        return value_of_lists(plan, _CountedLists(plan.metric.k, int(n_users), int(n_listed), sums))

    def group_sizes(self, row: int) -> Integers:
        """Return the number of users that count in each group of the jackknife."""
        if row in self.ratios:
            return np.array([above.n for above, _ in self.ratios[row]])
        return self.lists[list_key(self.request, row)].n_users

    # Parts of other users.

    def computed(self, *, per_user: bool = True) -> Part:
        """Return the part without lists, and without the users' values unless `per_user`."""
        return self if per_user else replace(self, values=None)

    def merge(self, other: Part) -> Part:
        """Return the sums over the users of both, which must be different users."""
        _check_alike(self.key, other.key)
        one, two = self.first_ranks, other.first_ranks
        return Part(
            self.request,
            self.key,
            self.span.merge(other.span),
            self.n_counted + other.n_counted,
            self.n_without_list + other.n_without_list,
            moments=tuple(map(add, self.moments, other.moments)),
            samples=tuple(map(_joined_sample, self.samples, other.samples)),
            ratios={row: _added(sums, other.ratios[row]) for row, sums in self.ratios.items()},
            lists={key: sums.merge(other.lists[key]) for key, sums in self.lists.items()},
            retrieval=_merged(self.retrieval, other.retrieval),
            seen=_merged(self.seen, other.seen),
            candidates=_merged(self.candidates, other.candidates),
            first_ranks=one.merge(two) if one and two else one or two,
            random=_merged_random(self.random, other.random),
            has_hits=self.has_hits or other.has_hits,
        )

    def equals(self, other: Part) -> bool:
        """Return whether both have the same sums, and the same values if both have them."""
        if not all(_same(getattr(self, name), getattr(other, name)) for name in _COMPARED):
            return False
        if self.values is None or other.values is None:
            return True
        one, two = (UserValues.concatenate([values]) for values in (self.values, other.values))
        return all(_same(getattr(one, name), getattr(two, name)) for name in ARRAYS)


#: The attributes of a part that are equal if it is about the same users.
_COMPARED = (
    "key", "span", "n_counted", "n_without_list", "moments", "ratios", "lists", "retrieval", "seen",
    "candidates",
)  # fmt: skip


def list_key(request: Request, row: int) -> ListKey:
    """Return the key for the sums of a number about all lists."""
    plan = request.plan_of(row)
    own = -1 if plan.definition.formula.combine is None else row
    return (*plan.exceptions(request.convention), plan.metric.k, own)


def _check_alike(ours: MergeKey, theirs: MergeKey) -> None:
    for name, one in ours.items():
        other = theirs.get(name)
        if one != other:
            a, b = (", ".join(x) if isinstance(x, tuple) else x for x in (one, other))
            raise InvalidDataError(
                f"these evaluations cannot be merged, because their {name} differ: {a} and {b}. "
                "Evaluate all blocks with the same inputs and options"
            )


def _merged(one: Counts | None, other: Counts | None) -> Counts | None:
    """Return the counts over the users of both, None unless both are known."""
    return None if one is None or other is None else one.merge(other)


def _joined_sample(one: Floats | None, other: Floats | None) -> Floats | None:
    if one is None or other is None or len(one) + len(other) >= FEWEST_FOR_T:
        return None
    return np.concatenate([one, other])


def _added(one: Ratios, other: Ratios) -> Ratios:
    """Return the sums of micro averages over the users of both."""
    pairs = zip(one, other, strict=True)
    return tuple((a + c, b + d) for (a, b), (c, d) in pairs)


def _merged_random(one: RandomTotals | None, other: RandomTotals | None) -> RandomTotals | None:
    """Return the random baselines of the users of both, as far as they are sums."""
    if one is None or other is None:
        return None
    return tuple(
        a.merge(b) if isinstance(a, RandomSums) and isinstance(b, RandomSums) else None
        for a, b in zip(one, other, strict=True)
    )


def _same(one: Any, other: Any) -> bool:
    """Return whether two values are equal, with NaN equal to NaN."""
    if one is None or other is None:
        return one is other
    if isinstance(one, np.ndarray):
        return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other or (one != one and other != other))


def micro_average(plan: Plan, ratios: Ratios, left_out: int | None) -> float:
    """Return a micro average of all users, or without the users of one group."""
    kept = [pair for group, pair in enumerate(ratios) if group != left_out]
    above, below = (sum(moments, Moments()) for moments in zip(*kept, strict=True))
    return plan.number_of(ratio_of(above, below)) if above.n else math.nan


class _CountedLists:
    """The attributes of `Lists` that counts of users and items provide."""

    def __init__(self, k: int, n_users: int, n_listed: int, item_counts: Integers) -> None:
        self.k, self.n_users, self.n_listed = k, n_users, n_listed
        self.item_counts, self.n_items = item_counts, len(item_counts)

    def __getattr__(self, name: str) -> NoReturn:
        raise InvalidMetricError(
            f"a metric with per_user=False reads lists.{name}, which is not available in blocks. "
            "Use only k, n_users, n_listed, n_items and item_counts, or evaluate in memory"
        )


def merge_parts(parts: Iterable[Part]) -> Part:
    """Merge the parts of different users as they come, so that no more than their sum is held.

    That users are different is checked by `distinct_parts`. Their values are kept if each part has
    them.
    """
    merged: Part | None = None
    values: list[UserValues | None] = []
    for part in parts:
        values.append(part.values)
        merged = part if merged is None else merged.merge(part)
    if merged is None:
        raise InvalidDataError(
            "the inputs contain no users, so there is nothing to evaluate. Check that users= and "
            "the tables are not empty"
        )
    if len(values) == 1:
        return merged
    kept = [each for each in values if each is not None]
    every = len(kept) == len(values)
    return replace(merged, values=UserValues.concatenate(kept) if every else None)


def distinct_parts(parts: Iterable[Part]) -> list[Part]:
    """Return parts in the order of their users, each once, or raise if two share users.

    A part that is there twice, because a block was evaluated again, is taken once.
    """
    given = [part for part in parts if part.span.n]
    if len(given) > 1 and any(part.is_weighted for part in given):
        raise InvalidDataError(
            "evaluations of requests or with weights cannot be merged; evaluate them as one"
        )
    for part in given:
        given[0].span.check_types(part.span)
    distinct: list[Part] = []
    for part in sorted(given, key=lambda part: (part.span, part.values is None)):
        if not (distinct and distinct[-1].equals(part)):
            distinct.append(part)
    if not all(part.span.starts_after(before.span) for before, part in pairwise(distinct)):
        _check_users_distinct(distinct)
    return distinct


def _check_users_distinct(parts: list[Part]) -> None:
    """Raise if parts whose spans overlap share users, or may share some."""
    known = [part.values.user_ids for part in parts if part.values is not None]
    if len(known) == len(parts):
        users = np.sort(np.concatenate(known))
        repeated = np.flatnonzero(users[1:] == users[:-1])
        if not len(repeated):
            return
        raise InvalidDataError(
            f"user {users[repeated[:1]].tolist()[0]!r} is in two different blocks "
            f"({len(repeated)} users are). Put each user into one block, and label users that are "
            "numbered separately, with Relevance.from_csr(m, users=...)"
        )
    spans = [part.span for part in parts]
    one, two = next(
        (a, b) for number, b in enumerate(spans) for a in spans[:number] if not b.starts_after(a)
    )
    raise InvalidDataError(
        f"two blocks, of {one.n} users from {one.first!r} to {one.last!r} and of {two.n} from "
        f"{two.first!r} to {two.last!r}, may contain the same users, which cannot be checked "
        "without their values. Label users that are numbered separately, cut blocks in the order "
        "of the users, or keep the values with keep='values'"
    )
