"""Mergeable partial results of a block of users.

Everything in them is a whole number, or is sorted by user in the end, so that blocks can be merged
in any order to the same bits, however the users were cut. Their size does not depend on the number
of users, unless the values of users are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..core.exact_sums import Moments
from ..errors import InvalidDataError
from ..metrics.random_baseline import RandomSums, RandomTotals
from .intervals import FEWEST_FOR_T

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.types import AnyArray, Booleans, Floats, Hashes, Integers
    from .candidates import CandidateCounts
    from .counts import FirstRanks, SeenCounts


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
        ties decided their rank. None where the model ordered the list itself.
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

    def merge(self, other: Retrieval) -> Retrieval:
        """Return the counts over the users of both, of the same model."""

        def add(a: int | None, b: int | None) -> int | None:
            return None if a is None else a + (b or 0)

        return self._replace(
            n_seen=self.n_seen + other.n_seen,
            n_tied=add(self.n_tied, other.n_tied),
            n_cold_users=add(self.n_cold_users, other.n_cold_users),
            n_unknown_users=self.n_unknown_users + other.n_unknown_users,
            n_unknown_items=self.n_unknown_items + other.n_unknown_items,
        )


class MergeKey(NamedTuple):
    """What evaluations must agree in to be merged.

    `n_items`, `items` (a digest of their labels), `largest_gain` and `side_data` (a digest of what
    is known about the items) are None where no metric depends on them. `propensities` has a digest
    of each input by which hits are weighted; None where an older version did not write them.
    """

    metrics: tuple[str, ...]
    convention: str
    no_relevant: str
    n_items: int | None
    items: str | None
    largest_gain: float | None
    side_data: str | None
    version: str
    corrected: str | None = None
    seen: str = "exclude"
    propensities: dict[str, str] | None = None
    without_list: str = "zero"

    def check(self, other: MergeKey) -> None:
        """Raise unless both are the same."""
        for name, ours, theirs in zip(self._fields, self, other, strict=True):
            if ours != theirs:
                a, b = (", ".join(x) if isinstance(x, tuple) else x for x in (ours, theirs))
                raise InvalidDataError(
                    f"evaluations with different {name} cannot be merged: {a} and {b}; evaluate "
                    "all blocks alike"
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
                "give all of them labels of one type"
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
        """Return whether every user of this block comes after those of the other."""
        return type(self.first) is type(other.last) and self.first > other.last  # type: ignore[operator]


@dataclass(frozen=True, eq=False)
class UserValues:
    """The values of each user.

    Attributes
    ----------
    users : ndarray
        Labels or row numbers.
    counted : ndarray of bool
        Whether the user is evaluated.
    n_relevant : ndarray of int64
        Number of relevant items.
    fingerprints : ndarray of uint64
        A hash of the relevant items and their gains.
    columns : ndarray of float64, shape (n_metrics, n_users)
        The metrics that have a value for each user.
    """

    users: AnyArray
    counted: Booleans
    n_relevant: Integers
    fingerprints: Hashes
    columns: Floats

    @classmethod
    def concatenate(cls, blocks: Sequence[UserValues]) -> UserValues:
        """Return the values of all blocks, in the order of the users."""
        arrays = [
            np.concatenate([getattr(block, each.name) for block in blocks], axis=-1)
            for each in fields(cls)
        ]
        users = arrays[0]
        if not (users[1:] > users[:-1]).all():
            order = np.argsort(users, kind="stable")
            arrays = [array[..., order] for array in arrays]
        return cls(*arrays)


def _same_arrays(one: object, other: object) -> bool:
    """Return whether all arrays of two instances of a dataclass are equal, NaN included."""
    pairs = zip(vars(one).values(), vars(other).values(), strict=True)
    return all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


@dataclass(frozen=True, eq=False)
class ListCounts:
    """The counts from which numbers about all lists are computed, for each group of users.

    Attributes
    ----------
    n_users, n_listed : ndarray of int64, shape (n_groups,)
        Number of users, and of those who have a list.
    item_counts : ndarray of int64, shape (n_groups, n_items)
        How often each item is in a list.
    """

    n_users: Integers
    n_listed: Integers
    item_counts: Integers

    def merge(self, other: ListCounts) -> ListCounts:
        """Return the counts of the lists of both."""
        return ListCounts(
            self.n_users + other.n_users,
            self.n_listed + other.n_listed,
            self.item_counts + other.item_counts,
        )


@dataclass(frozen=True, eq=False)
class ListSums:
    """What `Definition.combine` makes a number about all lists of, for each group of users.

    Attributes
    ----------
    n_users : ndarray of int64, shape (n_groups,)
        Number of users.
    sums : ndarray of int64, shape (n_groups, ...)
        What the formula of the metric returns, added up over the users.
    """

    n_users: Integers
    sums: Integers

    def merge(self, other: ListSums) -> ListSums:
        """Return the sums over the users of both."""
        return ListSums(self.n_users + other.n_users, self.sums + other.sums)


def _merged(one: Any, other: Any) -> Any:
    """Return the counts of both blocks, or None unless both have some."""
    return one.merge(other) if one and other else None


#: The sums of numerators and of denominators of a micro average, for each group of users.
Ratios: TypeAlias = "tuple[tuple[Moments, Moments], ...]"


@dataclass(frozen=True, eq=False)
class Totals:
    """Exact sums over the users of a block.

    Attributes
    ----------
    key : MergeKey
    span : Span
    n_counted, n_without_list : int
        Users that count in the means; users with relevant items and no list.
    moments : tuple of Moments
        For each metric the sums of the users' values, empty where it has none.
    samples : tuple of ndarray or None
        The values themselves while they are too few for an interval from their sums.
    ratios : dict of int to tuple
        Of micro averages, by the position of the metric.
    lists : dict of tuple to ListCounts
        By the exceptions that the convention makes (`Plan.counts_apart`), and the cut-off.
    retrieval : Retrieval or None
    random : tuple or None
        The random baseline of each metric, once it was computed.
    seen : SeenCounts or None
        What the users have in train, where it is known.
    candidates : CandidateCounts or None
        What the candidates were, where they were given.
    list_sums : dict of int to ListSums
        By the position of the metric.
    first_ranks : FirstRanks or None
        The first ranks of the lists; None if there are no lists or a model made them.
    """

    key: MergeKey
    span: Span
    n_counted: int
    n_without_list: int
    moments: tuple[Moments, ...]
    samples: tuple[Floats | None, ...]
    ratios: dict[int, Ratios]
    lists: dict[tuple[bool, bool, int], ListCounts]
    retrieval: Retrieval | None = None
    random: RandomTotals | None = None
    seen: SeenCounts | None = None
    candidates: CandidateCounts | None = None
    list_sums: dict[int, ListSums] = field(default_factory=dict)
    first_ranks: FirstRanks | None = None

    def merge(self, other: Totals) -> Totals:
        """Return the totals of the users of both, which must be different users."""
        self.key.check(other.key)
        ways = [
            (one.retrieval and one.retrieval.via, one.candidates and one.candidates.kind)
            for one in (self, other)
        ]
        if ways[0] != ways[1]:
            raise InvalidDataError(
                "the lists were made in different ways, or of different candidates: "
                f"{ways[0]} and {ways[1]}; evaluate all blocks alike"
            )
        return Totals(
            self.key,
            self.span.merge(other.span),
            self.n_counted + other.n_counted,
            self.n_without_list + other.n_without_list,
            tuple(a + b for a, b in zip(self.moments, other.moments, strict=True)),
            tuple(
                None
                if a is None or b is None or len(a) + len(b) >= FEWEST_FOR_T
                else np.concatenate([a, b])
                for a, b in zip(self.samples, other.samples, strict=True)
            ),
            {
                row: tuple(
                    (a + c, b + d) for (a, b), (c, d) in zip(ratios, other.ratios[row], strict=True)
                )
                for row, ratios in self.ratios.items()
            },
            {key: counts.merge(other.lists[key]) for key, counts in self.lists.items()},
            _merged(self.retrieval, other.retrieval),
            # As far as it is made of sums over users.
            tuple(
                a.merge(b) if isinstance(a, RandomSums) and isinstance(b, RandomSums) else None
                for a, b in zip(self.random, other.random, strict=True)
            )
            if self.random and other.random
            else None,
            _merged(self.seen, other.seen),
            _merged(self.candidates, other.candidates),
            {row: sums.merge(other.list_sums[row]) for row, sums in self.list_sums.items()},
            _merged(self.first_ranks, other.first_ranks) or self.first_ranks or other.first_ranks,
        )

    def equals(self, other: Totals) -> bool:
        """Return whether both are about the same users, with the same sums."""
        return (
            self.span == other.span
            and self.key == other.key
            and self.n_counted == other.n_counted
            and self.n_without_list == other.n_without_list
            and self.retrieval == other.retrieval
            and self.seen == other.seen
            and self.candidates == other.candidates
            and all(map(Moments.equals, self.moments, other.moments))
            and all(
                a.equals(c) and b.equals(d)
                for row, ratios in self.ratios.items()
                for (a, b), (c, d) in zip(ratios, other.ratios[row], strict=True)
            )
            and all(_same_arrays(counts, other.lists[key]) for key, counts in self.lists.items())
            and all(
                _same_arrays(sums, other.list_sums[row]) for row, sums in self.list_sums.items()
            )
        )


class Part(NamedTuple):
    """The totals of a block, and the values of its users where they are kept."""

    totals: Totals
    values: UserValues | None = None

    @property
    def span(self) -> Span:
        """Which users it holds."""
        return self.totals.span

    def equals(self, other: Part) -> bool:
        """Return whether both have the same totals, and the same values where both have them."""
        if self.values is None or other.values is None:
            return self.totals.equals(other.totals)
        values = (UserValues.concatenate([each]) for each in (self.values, other.values))
        return self.totals.equals(other.totals) and _same_arrays(*values)


def merge_parts(parts: Iterable[Part]) -> Part:
    """Merge the parts of different users as they come, so that no more than their sum is held.

    That users are different is checked by `distinct_parts`. Their values are kept if each part has
    them.
    """
    totals: Totals | None = None
    values: list[UserValues | None] = []
    for part in parts:
        values.append(part.values)
        totals = part.totals if totals is None else totals.merge(part.totals)
    if totals is None:
        raise InvalidDataError("there is no block of users; there is nothing to evaluate")
    kept = [each for each in values if each is not None]
    return Part(totals, UserValues.concatenate(kept) if len(kept) == len(values) else None)


def distinct_parts(parts: Iterable[Part]) -> list[Part]:
    """Return parts in the order of their users, each once, or raise if two share users.

    A part that is there twice, because a block was evaluated again, is taken once.
    """
    distinct: list[Part] = []
    given = [part for part in parts if part.span.n]
    for part in given:
        given[0].span.check_types(part.span)
    for part in sorted(given, key=lambda part: part.span):
        previous = distinct[-1] if distinct else None
        if previous is None or previous.span != part.span:
            distinct.append(part)
            continue
        if not previous.equals(part):
            raise InvalidDataError(
                f"the users from {part.span.first!r} to {part.span.last!r} were evaluated "
                "twice, with different results; keep one of the two, or, if users of the same "
                "row numbers are others, label them, as Relevance.from_csr(m, users=...) does"
            )
        if previous.values is None:
            distinct[-1] = part
    if not all(part.span.starts_after(before.span) for before, part in pairwise(distinct)):
        _check_users_distinct(distinct)
    return distinct


def _check_users_distinct(parts: list[Part]) -> None:
    """Raise if parts whose spans overlap share users, or may share some."""
    known = [part.values.users for part in parts if part.values is not None]
    if len(known) == len(parts):
        users = np.sort(np.concatenate(known))
        repeated = np.flatnonzero(users[1:] == users[:-1])
        if not len(repeated):
            return
        raise InvalidDataError(
            f"user {users[repeated[:1]].tolist()[0]!r} is in two blocks that are not the same "
            f"({len(repeated)} users are); give each user to one block, and label users that are "
            "not numbered together, as Relevance.from_csr(m, users=...) does"
        )
    spans = [part.span for part in parts]
    one, two = next(
        (a, b) for number, b in enumerate(spans) for a in spans[:number] if not b.starts_after(a)
    )
    raise InvalidDataError(
        f"two blocks, of {one.n} users from {one.first!r} to {one.last!r} and of {two.n} from "
        f"{two.first!r} to {two.last!r}, may hold the same users, which cannot be told without "
        "their values; label users that are not numbered together, cut blocks in the order of the "
        "users, or keep the values with keep='values'"
    )
