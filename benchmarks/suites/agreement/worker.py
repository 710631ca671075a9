"""Compute one library's own numbers on the cases, in the library's environment.

    python -P worker.py SCRIPT CASES VALUES

SCRIPT is the library's script, in the folder `rivals`. It has

    METRICS      our name of a metric -> a function that calls the library with a `Case` and
                 returns a value for each user (None if the library leaves the user out), or only
                 the mean. `@k` stands for the case's cut-off, a following " (judged)" for
                 judged_only=.
    CONVENTION   the convention= that must give the same, or None
    TIES         if the library orders by score: our `ties=` for its order of equal scores;
                 without it, cases with scores are lists for the library as well
    NEEDS        metric (or "*", for all) -> requirements for a case: {property of `Case`: reason},
                 with an empty reason if the metric is not defined otherwise
    NOT_COMPARED metric -> why it is not compared
    TOLERANCE    the largest allowed difference (by default 1e-9)
    IMPRECISE    the reason for a larger TOLERANCE

Each case is measured without the explicit zeros of its gains. If it has any, it is measured again
with them: scripts read the gains for a library from `Case.pairs`, which has the zeros the second
time. Our convention must give the same number, or raise the error for stored zeros.

Cases and metrics are only left out because of an entry in NEEDS or NOT_COMPARED, which the results
repeat. `-P` keeps this folder off the module path: `import ranx` means the library.
"""

import json
import os
import sys
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

sys.path.append(str(Path(__file__).parents[2]))  # at the end: libraries come before our modules
from harness.script import load, protect_stdout


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
    def listed_are_relevant(self) -> bool:
        """Every user with a list has a relevant item."""
        return all(row for items, row in zip(self.lists, self.relevant, strict=True) if items)

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
    def several_in_train(self) -> bool:
        """Two users or more have seen something."""
        return sum(map(bool, self.train)) > 1

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


def main(script: Path, cases: Path, values: Path) -> None:
    answers = protect_stdout()  # our driver reads the last line
    warnings.simplefilter("ignore")
    # Waking a second thread takes longer than a case.
    os.environ |= {"NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    library = load(script)
    needs = getattr(library, "NEEDS", {})
    if unknown := set(needs) - set(library.METRICS) - {"*"}:
        raise KeyError(f"{script.stem}: NEEDS names {unknown}, which are not in METRICS")
    read = [Case(**_read(raw)) for raw in json.loads(cases.read_text(encoding="utf-8"))]
    found = [_measure(library, needs, case) for case in read]
    zeros = [
        _measure(library, needs, replace(case, with_zeros=True)) if case.has_zeros else {}
        for case in read
    ]
    report = {
        "convention": library.CONVENTION,
        "ties": getattr(library, "TIES", None),
        "tolerance": getattr(library, "TOLERANCE", 1e-9),
        "imprecise": getattr(library, "IMPRECISE", None),
        "needs": {metric: _reasons(entry) for metric, entry in needs.items()},
        "not_compared": getattr(library, "NOT_COMPARED", {}),
        "cases": found,
        "zeros": zeros,
    }
    values.write_text(json.dumps(report), encoding="utf-8")
    answers.write("{}\n")


def _measure(library: ModuleType, needs: dict[str, dict[str, str]], case: Case) -> dict[str, Any]:
    """Return {metric: values} of all metrics whose needs the case meets."""
    return {
        metric: call(case)
        for metric, call in library.METRICS.items()
        if all(getattr(case, need) for need in needs.get("*", {}) | needs.get(metric, {}))
    }


def _reasons(needs: dict[str, str]) -> list[str]:
    """Return the needs in words, except needs without a reason."""
    return [f"{getattr(Case, need).__doc__[:-1]}: {why}" for need, why in needs.items() if why]


def _read(raw: dict[str, Any]) -> dict[str, Any]:
    stored = [dict(row) for row in raw["validation"]]
    names = ("k", "n_items", "lists", "train", "scores")
    return {name: raw[name] for name in names} | {"stored": stored}


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
