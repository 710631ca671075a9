"""Parts: what is kept of the evaluation of a block of users, so that blocks can be added up.

Everything in a part is a whole number, or is sorted by user in the end, so that parts can be added
in any order to the same bits, whatever the blocks were. Their size does not depend on the number
of users, unless their rows are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.exact_sums import Moments
from ..core.hashing import scattered
from ..errors import InvalidDataError
from .intervals import MANY

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Integers = NDArray[np.int64]

__all__ = [
    "N_GROUPS",
    "ListCounts",
    "Part",
    "Ratios",
    "Retrieval",
    "Rows",
    "Span",
    "Terms",
    "Total",
    "add_in_order",
    "add_parts",
    "check_apart",
    "digest_of_labels",
    "jackknife",
    "marks",
]

#: Groups that users are put into, by a number made of their label, to say how sure a number about
#: all of them is: it is computed without each group in turn.
N_GROUPS = 20


class Retrieval(NamedTuple):
    """How the rankings of a model came about.

    Attributes
    ----------
    via : {"held_out_ranks", "top_k", "recommend"}
        The way, see `evaluate_model`.
    n_seen : int
        Relevant items that their users had seen already, which no list can hold.
    n_tied : int or None
        Relevant items in the lists whose score another candidate has too, so that the rule for
        ties decided about the rank. None where the model's own order was taken.
    n_cold_users, n_cold_items : int or None
        Users with relevant items, and items, whose factors are all zero.
    """

    via: str
    n_seen: int
    n_tied: int | None = None
    n_cold_users: int | None = None
    n_cold_items: int | None = None

    def with_users_of(self, other: Retrieval) -> Retrieval:
        """Return what holds for the users of both, of the same model."""
        return self._replace(
            n_seen=self.n_seen + other.n_seen,
            n_tied=None if self.n_tied is None else self.n_tied + (other.n_tied or 0),
            n_cold_users=(
                None if self.n_cold_users is None else self.n_cold_users + (other.n_cold_users or 0)
            ),
        )


class Terms(NamedTuple):
    """What parts have to agree in.

    `n_items`, `items`, a digest of their labels, `largest_gain` and `inputs`, a digest of what is
    known of items, are None where nothing depends on them.
    """

    metrics: tuple[str, ...]
    convention: str
    no_relevant: str
    n_items: int | None
    items: str | None
    largest_gain: float | None
    inputs: str | None
    version: str


class Span(NamedTuple):
    """Which users a part is about: the first and last of their labels or row numbers, how many
    they are, and the sum of a number made of each.
    """  # noqa: D205

    first: int | str
    last: int | str
    n: int
    mark: int

    def check_alike(self, other: Span) -> None:
        """Refuse text in one and numbers in the other."""
        if type(self.first) is not type(other.first):
            raise InvalidDataError(
                f"users are {self.first!r}, … in one block and {other.first!r}, … in another; "
                "give all of them labels of one type"
            )

    def with_users_of(self, other: Span) -> Span:
        """Return the span of the users of both."""
        if not self.n or not other.n:
            return self if self.n else other
        self.check_alike(other)
        return Span(
            min(self.first, other.first),
            max(self.last, other.last),
            self.n + other.n,
            (self.mark + other.mark) % 2**64,
        )


@dataclass(frozen=True, eq=False)
class Rows:
    """The values of each user.

    Attributes
    ----------
    users : ndarray
        Labels or row numbers.
    counted : ndarray of bool
    n_relevant : ndarray of int64
    fingerprints : ndarray of uint64
    columns : ndarray of float64, shape (n_metrics, n_users)
        The metrics that have a value for each user.
    """

    users: NDArray[Any]
    counted: NDArray[np.bool_]
    n_relevant: Integers
    fingerprints: NDArray[np.uint64]
    columns: NDArray[np.float64]

    @classmethod
    def joined(cls, several: Sequence[Rows]) -> Rows:
        """Return the rows of all, in the order of the users."""
        arrays = [
            np.concatenate([getattr(rows, one.name) for rows in several], axis=-1)
            for one in fields(cls)
        ]
        users = arrays[0]
        if not (users[1:] > users[:-1]).all():
            order = np.argsort(users, kind="stable")
            arrays = [array[..., order] for array in arrays]
        return cls(*arrays)

    def equals(self, other: Rows) -> bool:
        """Say whether both have the same values of the same users, in any order."""
        ours, theirs = Rows.joined([self]), Rows.joined([other])
        return all(
            np.array_equal(
                getattr(ours, one.name), getattr(theirs, one.name), equal_nan=one.name == "columns"
            )
            for one in fields(self)
        )


@dataclass(frozen=True, eq=False)
class ListCounts:
    """What the numbers about all lists are computed from, for each group of users.

    Attributes
    ----------
    n_users, n_listed : ndarray of int64, shape (n_groups,)
        Users, and those who have a list.
    item_counts : ndarray of int64, shape (n_groups, n_items)
        How often each item is in a list.
    """

    n_users: Integers
    n_listed: Integers
    item_counts: Integers

    def equals(self, other: ListCounts) -> bool:
        """Say whether all counts are the same."""
        return all(
            np.array_equal(getattr(self, one.name), getattr(other, one.name))
            for one in fields(self)
        )

    def __add__(self, other: ListCounts) -> ListCounts:
        return ListCounts(
            self.n_users + other.n_users,
            self.n_listed + other.n_listed,
            self.item_counts + other.item_counts,
        )


#: The sums of numerators and of denominators of a micro average, for each group of users.
Ratios = tuple[tuple[Moments, Moments], ...]


@dataclass(frozen=True, eq=False)
class Part:
    """Sums over a block of users.

    Attributes
    ----------
    terms : Terms
    span : Span
    n_counted, n_without_list : int
        Users that count in the means; users with relevant items and no list.
    moments : tuple of Moments
        For each metric the users' values, or nothing where it has none.
    few : tuple of ndarray or None
        The values themselves as long as they are few, when their sums are not enough.
    ratios : dict of int to tuple
        Of micro averages, by the place of the metric.
    lists : dict of tuple to ListCounts
        By what is counted: the way the convention counts, and the cut-off.
    rows : Rows or None
        Where they are kept.
    retrieval : Retrieval or None
    """

    terms: Terms
    span: Span
    n_counted: int
    n_without_list: int
    moments: tuple[Moments, ...]
    few: tuple[NDArray[np.float64] | None, ...]
    ratios: dict[int, Ratios]
    lists: dict[tuple[bool, bool, int], ListCounts]
    rows: Rows | None
    retrieval: Retrieval | None

    def __add__(self, other: Part) -> Part:
        """Return the part of the users of both, which must be others; rows are left out."""
        if self.terms != other.terms:
            name, ours, theirs = next(
                (name, a, b)
                for name, a, b in zip(Terms._fields, self.terms, other.terms, strict=True)
                if a != b
            )
            shown = [", ".join(x) if isinstance(x, tuple) else x for x in (ours, theirs)]
            raise InvalidDataError(
                f"evaluations with different {_TOLD[name]} cannot be merged: {shown[0]} and "
                f"{shown[1]}; evaluate all blocks alike"
            )
        both = self.retrieval, other.retrieval
        if (both[0] and both[0].via) != (both[1] and both[1].via):
            raise InvalidDataError(
                f"the lists came about in different ways, {both[0] and both[0].via} and "
                f"{both[1] and both[1].via}; evaluate all blocks alike"
            )
        return Part(
            self.terms,
            self.span.with_users_of(other.span),
            self.n_counted + other.n_counted,
            self.n_without_list + other.n_without_list,
            tuple(a + b for a, b in zip(self.moments, other.moments, strict=True)),
            tuple(
                None
                if a is None or b is None or len(a) + len(b) >= MANY
                else np.concatenate([a, b])
                for a, b in zip(self.few, other.few, strict=True)
            ),
            {
                row: tuple(
                    (a + c, b + d) for (a, b), (c, d) in zip(ratios, other.ratios[row], strict=True)
                )
                for row, ratios in self.ratios.items()
            },
            {key: counts + other.lists[key] for key, counts in self.lists.items()},
            None,
            both[0].with_users_of(both[1]) if both[0] and both[1] else None,
        )

    def equals(self, other: Part) -> bool:
        """Say whether both are about the same users, with the same sums and rows, if both have."""
        return (
            self.span == other.span
            and self.terms == other.terms
            and self.n_counted == other.n_counted
            and self.n_without_list == other.n_without_list
            and self.retrieval == other.retrieval
            and all(map(Moments.equals, self.moments, other.moments))
            and all(
                a.equals(c) and b.equals(d)
                for row, ratios in self.ratios.items()
                for (a, b), (c, d) in zip(ratios, other.ratios[row], strict=True)
            )
            and all(counts.equals(other.lists[key]) for key, counts in self.lists.items())
            and (self.rows is None or other.rows is None or self.rows.equals(other.rows))
        )


_TOLD = {
    "metrics": "metrics",
    "convention": "conventions",
    "no_relevant": "no_relevant",
    "n_items": "numbers of items",
    "items": "labels of items",
    "largest_gain": "largest gains",
    "inputs": "train, item_groups or item_vectors",
    "version": "versions of sparse_eval",
}


class Total:
    """Parts as they are added up, so that no more than their sum is held."""

    def __init__(self) -> None:
        self.part: Part | None = None
        self._rows: list[Rows | None] = []

    def add(self, part: Part) -> None:
        """Take in the part of other users, which nobody checks here: see `check_apart`."""
        self._rows.append(part.rows)
        self.part = replace(part, rows=None) if self.part is None else self.part + part

    def whole(self) -> Part:
        """Return the part of all users, with rows if each part had them."""
        if self.part is None:
            raise InvalidDataError("there is no block of users; there is nothing to evaluate")
        kept = [rows for rows in self._rows if rows is not None]
        if len(kept) < len(self._rows):
            return self.part
        return replace(self.part, rows=Rows.joined(kept))


def add_parts(parts: Iterable[Part]) -> Part:
    """Return the part of all users together, who have to be others in each."""
    total = Total()
    for part in parts:
        total.add(part)
    return total.whole()


def add_in_order(parts: Iterable[Part]) -> list[Part]:
    """Return as few parts as can be added up without knowing who their users are.

    Parts that come in the order of their users are added as they come, and need no memory of
    their own. One that does not, because users have labels in no order, begins another sum.
    """
    totals: list[Total] = []
    for part in parts:
        if not part.span.n:
            continue
        before = totals[-1].part if totals else None
        if before is None or not _follows(part.span, before.span):
            totals.append(Total())
        totals[-1].add(part)
    return [total.whole() for total in totals]


def _follows(span: Span, before: Span) -> bool:
    return type(span.first) is type(before.last) and span.first > before.last  # type: ignore[operator]


def check_apart(parts: Iterable[Part]) -> list[Part]:
    """Return parts in the order of their users, each once, or raise where two share users.

    A part that is there twice, because a block was evaluated again, is taken once.
    """
    kept: list[Part] = []
    given = [part for part in parts if part.span.n]
    for part in given:
        given[0].span.check_alike(part.span)
    for part in sorted(given, key=lambda part: part.span):
        before = kept[-1] if kept else None
        if before is not None and before.span == part.span:
            if not before.equals(part):
                raise InvalidDataError(
                    f"the users from {part.span.first!r} to {part.span.last!r} were evaluated "
                    "twice, with different results; keep one of the two, or, if users of the same "
                    "row numbers are others, label them, as Relevance.from_csr(m, users=...) does"
                )
            if before.rows is None:
                kept[-1] = part
            continue
        kept.append(part)
    reached = None
    for part in kept:
        if reached is not None and part.span.first <= reached.span.last:  # type: ignore[operator]
            _check_rows_apart(kept)
            break
        if reached is None or part.span.last > reached.span.last:  # type: ignore[operator]
            reached = part
    return kept


def _check_rows_apart(parts: list[Part]) -> None:
    """Raise if users of parts whose spans overlap are the same, or may be."""
    rows = [part.rows for part in parts]
    known = [one.users for one in rows if one is not None]
    if len(known) == len(rows):
        users = np.sort(np.concatenate(known))
        twice = np.flatnonzero(users[1:] == users[:-1])
        if not len(twice):
            return
        raise InvalidDataError(
            f"user {users[twice[:1]].tolist()[0]!r} is in two blocks that are not the same "
            f"({len(twice)} users are); give each user to one block, and label users that are "
            "not numbered together, as Relevance.from_csr(m, users=...) does"
        )
    spans = [part.span for part in parts]
    one, two = next(
        (a, b)
        for place, b in enumerate(spans)
        for a in spans[:place]
        if b.first <= a.last  # type: ignore[operator]
    )
    raise InvalidDataError(
        f"two blocks, of {one.n} users from {one.first!r} to {one.last!r} and of {two.n} from "
        f"{two.first!r} to {two.last!r}, may hold the same users, which cannot be told without "
        "their rows; label users that are not numbered together, cut blocks in the order of the "
        "users, or keep the rows with per_user=True"
    )


def marks(users: NDArray[Any]) -> NDArray[np.uint64]:
    """Return a number for each user, made of its label or row number; the same everywhere."""
    if users.dtype.kind in "iu":
        return scattered(users.astype(np.int64, copy=False).view(np.uint64))
    from pandas.util import hash_array  # only where users are text

    return hash_array(users.astype(object), categorize=False)


def digest_of_labels(labels: NDArray[Any]) -> str:
    """Return 16 hexadecimal digits that tell labels, in their order."""
    if labels.dtype.kind in "iu":
        data = labels.astype("<i8").tobytes()
    else:
        data = "\n".join(f"{type(one).__name__} {one!r}" for one in labels.tolist()).encode()
    return sha256(data).hexdigest()[:16]


def jackknife(value: float, without: NDArray[np.float64], sizes: Integers) -> NDArray[np.float64]:
    """Return numbers whose standard deviation is the standard error of `value`.

    Parameters
    ----------
    value : float
        A number about all users.
    without : ndarray of float64, shape (n_groups,)
        The same without each group of them.
    sizes : ndarray of int64, shape (n_groups,)
        Users of each group.

    Returns
    -------
    ndarray of float64, shape (n_groups,)
        Empty where a group is. Of two evaluations of the same users they can be paired.

    Notes
    -----
    The delete-a-group jackknife for groups of unequal sizes: Busing, Meijer and van der Leeden,
    1999, Statistics and Computing 9. Groups are the same for the same users, however they were cut
    into blocks, which samples drawn with replacement are not.
    """
    if not (sizes > 0).all():
        return np.empty(0)
    n_groups = len(sizes)
    times = sizes.sum() / sizes
    center = n_groups * value - ((1 - 1 / times) * without).sum()
    pseudo = times * value - (times - 1) * without
    scaled = (pseudo - center) * np.sqrt((n_groups - 1) / (n_groups * (times - 1)))
    return np.asarray(value + scaled)
