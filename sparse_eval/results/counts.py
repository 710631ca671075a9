"""Counts over the users of a block, which add up to the counts over all users."""

from __future__ import annotations

from operator import add
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..errors import InvalidDataError
from ..inputs.candidates import is_sampled

if TYPE_CHECKING:
    from ..core.types import AnyArray, Hashes, Integers


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
    n_unknown_pairs : int
        Pairs of a user and such an item.
    """

    via: str
    n_seen: int
    n_tied: int | None = None
    n_cold_users: int | None = None
    n_cold_items: int | None = None
    n_unknown_users: int = 0
    n_unknown_items: int = 0
    n_unknown_pairs: int = 0

    def merge(self, other: Retrieval) -> Retrieval:
        """Return the counts over the users of both, who have the same model."""
        return Retrieval(
            self.via,
            self.n_seen + other.n_seen,
            _sum_of_known(self.n_tied, other.n_tied),
            _sum_of_known(self.n_cold_users, other.n_cold_users),
            self.n_cold_items,
            self.n_unknown_users + other.n_unknown_users,
            self.n_unknown_items + other.n_unknown_items,
            self.n_unknown_pairs + other.n_unknown_pairs,
        )


def _sum_of_known(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


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

    def merge(self, other: SeenCounts) -> SeenCounts:
        """Return the counts over the users of both."""
        return SeenCounts(*map(add, self, other))


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

    def merge(self, other: CandidateCounts) -> CandidateCounts:
        """Return the counts over the users of both, who have candidates of the same kind."""
        return CandidateCounts(self.kind, *map(add, self[1:], other[1:]))

    def to_dict(self) -> dict[str, int | str]:
        """Return the counts and the digest by name."""
        return {**dict(zip(self._fields[:-1], self, strict=False)), "digest": self.digest}


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


class Span(NamedTuple):
    """Which users a block holds: the first and last label or row number, how many, and a checksum.

    The checksum is the sum of the users' hashes.
    """

    first: int | str
    last: int | str
    n: int
    checksum: int

    @classmethod
    def of(cls, users: AnyArray, hashes: Hashes) -> Span:
        """Return the span of users, given by their labels or row numbers and hashes."""
        if not len(users):
            return cls(0, 0, 0, 0)
        first, last = users[[users.argmin(), users.argmax()]].tolist()
        return cls(first, last, len(users), int(hashes.sum(dtype=np.uint64)))

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

    def merge(self, other: ListSums) -> ListSums:
        """Return the sums over the users of both."""
        return ListSums(*map(add, self, other))
