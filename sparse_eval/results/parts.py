"""`Part`: the results of a block of users, which merge with the parts of other users.

Everything in it is a whole number, or is sorted by user in the end. Any blocks of users, merged in
any order, therefore give the same bits. Its size does not depend on the number of users, unless the
values of users are kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from ..core.exact_sums import Moments
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.axes import Axis
from ..inputs.candidates import is_sampled
from ..metrics.measure import ratio_of, value_of_lists
from ..metrics.random_baseline import Expectation, RandomTotals
from .intervals import FEWEST_FOR_T, N_GROUPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.types import AnyArray, Booleans, Floats, Hashes, Integers
    from ..metrics.plan import Plan
    from ..metrics.request import Request


class Retrieval(NamedTuple):
    """How the rankings of a model were made.

    Attributes
    ----------
    via : {"held_out_ranks", "full_ranks", "top_k", "recommend"}
        The way, see `evaluate_model`.
    n_seen : int
        Relevant items that their users had seen in training, which no list can hold.
    n_tied : int or None
        Relevant items in the lists whose score another candidate has too, so that the rule for
        ties decided their rank. None if the model ordered the list itself.
    n_cold_users, n_cold_items : int or None
        Users with relevant items, and items, whose factors are all zero.
    n_unknown_users, n_unknown_items : int
        Users with relevant items, and relevant items, that the model does not know at all.
    """

    via: str
    n_seen: int
    n_tied: int | None = None
    n_cold_users: int | None = None
    n_cold_items: int | None = None
    n_unknown_users: int = 0
    n_unknown_items: int = 0


class SeenCounts(NamedTuple):
    """Counts over users with known training data.

    Attributes
    ----------
    n_cold : int
        Evaluated users without training data; explicit zeros are none.
    n_relevant : int
        Relevant items that their user has in train, explicit zeros included.
    n_listed : int
        Listed items that their user has in train, likewise.
    n_held_out : int
        Relevant items in all.
    """

    n_cold: int
    n_relevant: int
    n_listed: int
    n_held_out: int


class CandidateCounts(NamedTuple):
    """Counts over users whose candidates were given.

    Attributes
    ----------
    kind : str
        From `sample_negatives` or `read_negatives`: "1+99" with one relevant item of each user, or
        "n+99" with several; otherwise "candidates".
    n_users : int
        Evaluated users.
    n_candidates : int
        Their candidates that they have not seen.
    n_relevant : int
        Relevant items that are no candidates of their user.
    n_listed : int
        Listed items that are none.
    n_held_out : int
        Relevant items in all.
    checksum : int
        Of all users' candidates.
    """

    kind: str
    n_users: int
    n_candidates: int
    n_relevant: int
    n_listed: int
    n_held_out: int
    checksum: int

    @property
    def is_sampled(self) -> bool:
        """Whether they are known to be a sample of the catalogue."""
        return is_sampled(self.kind)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that identify the candidates of these users."""
        return f"{self.checksum % 2**64:016x}"

    def to_dict(self) -> dict[str, int | str]:
        """Return the counts and the digest by name."""
        return {**dict(zip(self._fields[:-1], self, strict=False)), "digest": self.digest}


#: Facts about the model, or about all candidates, which are the same for all users.
_SHARED = ("via", "kind", "n_cold_items")


def added(one: Any, other: Any) -> Any:
    """Return counts or sums over the users of both, None unless both are known."""
    if one is None or other is None or Expectation in (type(one), type(other)):
        return None
    if isinstance(one, dict):
        return {key: added(value, other[key]) for key, value in one.items()}
    if not isinstance(one, tuple):
        return one + other
    names = getattr(one, "_fields", range(len(one)))
    sums = [
        a if name in _SHARED else added(a, b) for name, a, b in zip(names, one, other, strict=True)
    ]
    return type(one)._make(sums) if hasattr(one, "_make") else tuple(sums)


class FirstRanks(NamedTuple):
    """The first ranks of the lists of some users.

    Attributes
    ----------
    smallest : int
        The smallest rank of any item.
    has_others : bool
        Whether the lists hold items that the validation data do not store. Lists of hits only have
        exact ranks and need not have a rank 1.
    """

    smallest: int
    has_others: bool

    def merge(self, other: FirstRanks) -> FirstRanks:
        """Return the first ranks of the users of both."""
        return FirstRanks(min(self.smallest, other.smallest), self.has_others or other.has_others)


#: Attributes that must be equal to merge evaluations, by name.
MergeKey: TypeAlias = "dict[str, Any]"


def _check_alike(ours: MergeKey, theirs: MergeKey) -> None:
    for name, one in ours.items():
        other = theirs.get(name)
        if one != other:
            a, b = (", ".join(x) if isinstance(x, tuple) else x for x in (one, other))
            raise InvalidDataError(
                f"these evaluations cannot be merged, because their {name} differ: {a} and {b}. "
                "Evaluate all blocks with the same inputs and options"
            )


class Span(NamedTuple):
    """Which users a block holds: the first and last label or row number, how many, and a checksum.

    The checksum is the sum of the users' hashes.
    """

    first: int | str
    last: int | str
    n: int
    checksum: int

    def check_types(self, other: Span) -> None:
        """Raise if users are text in one block and numbers in the other."""
        if type(self.first) is not type(other.first):
            raise InvalidDataError(
                f"users are {self.first!r}, … in one block and {other.first!r}, … in another; "
                "use labels of one type for all"
            )

    def merge(self, other: Span) -> Span:
        """Return the span of the users of both."""
        if not self.n or not other.n:
            return self if self.n else other
        self.check_types(other)
        return Span(
            min(self.first, other.first),
            max(self.last, other.last),
            self.n + other.n,
            (self.checksum + other.checksum) % 2**64,
        )

    def starts_after(self, other: Span) -> bool:
        """Return whether all users of this block come after the users of the other."""
        return type(self.first) is type(other.last) and self.first > other.last  # type: ignore[operator]


#: The arrays of `UserValues` that every block has.
_ARRAYS = ("user_ids", "counted", "n_relevant", "fingerprints", "columns")


@dataclass(frozen=True, eq=False)
class UserValues:
    """The values of each user.

    Attributes
    ----------
    user_ids : ndarray
        Labels or row numbers.
    counted : ndarray of bool
        Whether the user is evaluated.
    n_relevant : ndarray of int64
        Number of relevant items.
    fingerprints : ndarray of uint64
        A hash of the relevant items and their gains.
    columns : ndarray of float64, shape (n_metrics, n_users)
        The metrics that have a value for each user.
    n_seen : ndarray of int64 or None
        Number of training items, of saved evaluations if it is known.
    labelled : bool or None
        Whether the users have labels; None if they do unless they are numbers from 0 on.
    """

    user_ids: AnyArray
    counted: Booleans
    n_relevant: Integers
    fingerprints: Hashes
    columns: Floats
    n_seen: Integers | None = None
    labelled: bool | None = None

    @cached_property
    def labels(self) -> Axis | None:
        """The users' labels, None if they are the row numbers from 0 on."""
        users = self.user_ids
        is_plain = users.dtype.kind in "iu" and np.array_equal(users, np.arange(len(users)))
        labelled = not is_plain if self.labelled is None else self.labelled
        return Axis.unchecked(users) if labelled else None

    @classmethod
    def concatenate(cls, blocks: Sequence[UserValues]) -> UserValues:
        """Return the values of all blocks, in the order of the users."""
        arrays: list[Any] = [
            np.concatenate([getattr(block, name) for block in blocks], axis=-1) for name in _ARRAYS
        ]
        users = arrays[0]
        if not (users[1:] > users[:-1]).all():
            order = np.argsort(users, kind="stable")
            arrays = [array[..., order] for array in arrays]
        return cls(*arrays)


class ListSums(NamedTuple):
    """The sums behind numbers about all lists, for each group of users.

    Attributes
    ----------
    n_users, n_listed : ndarray of int64, shape (n_groups,)
        Number of users, and of those who have a list.
    sums : ndarray of int64, shape (n_groups, ...)
        How often each item is in a list; for a metric with `Formula.combine`, its formula's
        result added up over the users.
    """

    n_users: Integers
    n_listed: Integers
    sums: Integers


#: The key of the sums of lists. It has the exceptions of the convention (`Plan.exceptions`), the
#: cut-off, and the position of a metric with its own sums, or -1.
ListKey: TypeAlias = "tuple[bool, bool, int, int]"


def list_key(request: Request, row: int) -> ListKey:
    """Return the key for the sums of a number about all lists."""
    plan = request.plan_of(row)
    own = -1 if plan.definition.formula.combine is None else row
    return (*plan.exceptions(request.convention), plan.metric.k, own)


#: The sums of numerators and of denominators of a micro average, for each group of users.
Ratios: TypeAlias = "tuple[tuple[Moments, Moments], ...]"


#: The attributes of a part that are sums over users, `random` as far as it is made of these.
_SUMS = (
    "n_counted", "n_without_list", "moments", "ratios", "lists", "retrieval", "seen", "candidates",
    "random",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Part:
    """The results of a block of users: exact sums, and the values of users.

    Attributes
    ----------
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
    """

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

    def number(self, request: Request, row: int, left_out: int | None = None) -> float:
        """Return a number about all users, or about all but those of a group."""
        plan = request.plan_of(row)
        if plan.is_micro:
            return micro_average(plan, self.ratios[row], left_out)
        kept = [group for group in range(N_GROUPS) if group != left_out]
        n_users, n_listed, sums = (
            of[kept].sum(axis=0) for of in self.lists[list_key(request, row)]
        )
        if not n_users and (left_out is not None or plan.definition.formula.combine):
            return math.nan
        if plan.definition.formula.combine is not None:
            return plan.definition.formula.combine(sums, **plan.arguments)
        return value_of_lists(plan, _CountedLists(plan.metric.k, int(n_users), int(n_listed), sums))

    def group_sizes(self, request: Request, row: int) -> Integers:
        """Return the number of users that count in each group of the jackknife."""
        if row in self.ratios:
            return np.array([above.n for above, _ in self.ratios[row]])
        return self.lists[list_key(request, row)].n_users

    def merge(self, other: Part) -> Part:
        """Return the sums over the users of both, which must be different users."""
        _check_alike(self.key, other.key)
        sums = {name: added(getattr(self, name), getattr(other, name)) for name in _SUMS}
        one, two = self.first_ranks, other.first_ranks
        return Part(
            self.key,
            self.span.merge(other.span),
            samples=tuple(
                None
                if a is None or b is None or len(a) + len(b) >= FEWEST_FOR_T
                else np.concatenate([a, b])
                for a, b in zip(self.samples, other.samples, strict=True)
            ),
            first_ranks=one.merge(two) if one and two else one or two,
            has_hits=self.has_hits or other.has_hits,
            **sums,
        )

    def equals(self, other: Part) -> bool:
        """Return whether both have the same sums, and the same values if both have them."""
        names = ("key", "span", *(name for name in _SUMS if name != "random"))
        if not all(_same(getattr(self, name), getattr(other, name)) for name in names):
            return False
        if self.values is None or other.values is None:
            return True
        one, two = (UserValues.concatenate([values]) for values in (self.values, other.values))
        return all(_same(getattr(one, name), getattr(two, name)) for name in _ARRAYS)


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
