"""The input of a library: lists of some users, their relevant items and their history.

The properties are requirements that `libraries.toml` names; their docstrings are the words for
them. The methods at the end return rows, one for each user, in the forms that libraries take. A row
is {item: value}, or a list of items, each with the value 1.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

Rows = Any


@dataclass(frozen=True, eq=False)  # equal only to itself, so that calls can be cached by case
class Case:
    """The input of a library.

    Attributes
    ----------
    k : int
        The cut-off.
    n_items : int
        The size of the catalogue.
    lists : list of list of int
        Each user's items, best first; empty for a user without a list.
    stored : list of dict
        Each user's gains by item, including explicit zeros.
    train : list of list of int
        The items that each user has seen.
    scores : list of list of int, or None
        Each user's score of every item; `lists` is the order by score, lower id first.
    with_zeros : bool
        Whether `pairs` includes the explicit zeros.
    """

    k: int
    n_items: int
    lists: list[list[int]]
    stored: list[dict[int, int]]
    train: list[list[int]]
    scores: list[list[int]] | None
    with_zeros: bool = False

    @property
    def groups(self) -> list[int]:
        """The group of each item."""
        return [item % 4 for item in range(self.n_items)]

    @property
    def cut_at_two(self) -> bool:
        """The cut-off is above 1."""
        return self.k > 1

    @property
    def users(self) -> range:
        return range(len(self.lists))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.lists), self.n_items

    @cached_property
    def relevant(self) -> list[dict[int, int]]:
        """Each user's gains above 0."""
        return [{item: gain for item, gain in row.items() if gain} for row in self.stored]

    @property
    def pairs(self) -> list[dict[int, int]]:
        """Each user's gains, for a library that may count every pair as relevant."""
        return self.stored if self.with_zeros else self.relevant

    @property
    def has_zeros(self) -> bool:
        """Whether an explicit zero is stored, and no user has all items stored."""
        is_stored = self.stored != self.relevant
        return is_stored and all(len(row) < self.n_items for row in self.stored)

    @cached_property
    def binary(self) -> bool:
        """All gains are 1."""
        return all(gain == 1 for row in self.relevant for gain in row.values())

    @property
    def all_relevant(self) -> bool:
        """Every user has a relevant item."""
        return all(self.relevant)

    @property
    def stored_are_relevant(self) -> bool:
        """No user has explicit zeros only."""
        return all(row for stored, row in zip(self.stored, self.relevant, strict=True) if stored)

    @property
    def some_irrelevant(self) -> bool:
        """Every user has an item that is not relevant."""
        return all(len(row) < self.n_items for row in self.relevant)

    @property
    def all_lists(self) -> bool:
        """Every user has a list."""
        return all(self.lists)

    @property
    def more_than_k(self) -> bool:
        """The catalogue has more than k items."""
        return self.n_items > self.k

    @property
    def full_lists(self) -> bool:
        """Every list reaches the cut-off."""
        return all(len(items) >= self.k for items in self.lists)

    @property
    def has_scores(self) -> bool:
        """Every item has a score."""
        return self.scores is not None

    @property
    def untied(self) -> bool:
        """No two items of a user have the same score."""
        return self.scores is None or all(len(set(row)) == len(row) for row in self.scores)

    @property
    def has_train(self) -> bool:
        """Somebody has seen something."""
        return any(self.train)

    @property
    def listed_in_train(self) -> bool:
        """Every user with a list has seen something."""
        return all(row for items, row in zip(self.lists, self.train, strict=True) if items)

    @property
    def train_of_three(self) -> bool:
        """Three users at least have seen something."""
        return sum(map(bool, self.train)) >= 3

    @property
    def two_users(self) -> bool:
        """There are two users at least."""
        return len(self.lists) >= 2

    @property
    def train_has_all(self) -> bool:
        """Every item of the catalogue is in train."""
        return len({item for row in self.train for item in row}) == self.n_items

    @property
    def first_k(self) -> list[list[int]]:
        """The lists down to the cut-off."""
        return [items[: self.k] for items in self.lists]

    def listed(self, value: Any = lambda rank: float(-rank)) -> Rows:
        """Return the lists as rows, with a value for each rank from 1."""
        return [{item: value(rank) for rank, item in enumerate(row, 1)} for row in self.lists]

    def run(self) -> Rows:
        """Return the score of every item, or of the listed items if a list is all there is."""
        scores = self.scores or []
        return [dict(enumerate(map(float, row))) for row in scores] or self.listed()

    def matrix(self, rows: Rows, dtype: Any = float) -> Any:
        import numpy as np
        from scipy.sparse import csr_matrix

        users, items, values = zip(*triples(rows), strict=True) if any(rows) else ((), (), ())
        return csr_matrix((np.array(values, dtype), (users, items)), (len(rows), self.n_items))

    def frame(self, rows: Rows, *columns: str) -> Any:
        """Return a frame with the names of the columns of users, items and perhaps values."""
        import pandas as pd

        chosen = [triple[: len(columns)] for triple in triples(rows)]
        return pd.DataFrame(chosen, columns=list(columns), dtype=None if chosen else "int64")

    def named(self, rows: Rows) -> dict[str, dict[str, Any]]:
        """Return dictionaries with text ids, without users whose row is empty."""
        return {
            f"{user}": {document(item): value for item, value in row.items()}
            for user, row in enumerate(rows)
            if row
        }

    def by_user(self, found: Any) -> list[Any]:
        """Return the values in the order of the users, None for missing users."""
        return [found.get(user) for user in self.users]


def triples(rows: Rows) -> list[tuple[int, int, Any]]:
    pairs = (row if isinstance(row, dict) else dict.fromkeys(row, 1) for row in rows)
    return [(user, *pair) for user, row in enumerate(pairs) for pair in row.items()]


def document(item: int) -> str:
    return f"{item:03d}"  # programs that order equal scores do so by the text
