"""The data of a problem, for a library's script and for ours.

The library's script, in the folder `rivals`, has `answer`, a function of a `Problem`. It returns
{"values": {our name of a number -> the value of each user (None if the library leaves the user
out), or only the mean}, "given": {data that the library drew or made itself -> the input of ours
for it}}, or None if the problem is not suitable. `@k` stands for the cut-off. `libraries.toml` has
the rules of the comparison.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix


@dataclass(frozen=True)
class Problem:
    """A model and the data of its users.

    Attributes
    ----------
    k : int
        The cut-off.
    user_factors, item_factors : ndarray of float32, shape (n_users, f) and (n_items, f)
    user_biases, item_biases : ndarray of float32, shape (n_users,) and (n_items,)
    train : csr_matrix of float64, shape (n_users, n_items)
        The items that users have seen, each 1.
    validation : csr_matrix of float64, shape (n_users, n_items)
        Gains of other items; in every second problem, all are 1. Some users have none.
    candidates : csr_matrix of float64, shape (n_users, n_items)
        The candidates of each user, each 1. They include seen items, and relevant items may be
        missing.
    events : ndarray of int64, shape (n, 3)
        User, item and hour of each event, in any order, unrelated to `train`.
    """

    k: int
    user_factors: np.ndarray
    item_factors: np.ndarray
    user_biases: np.ndarray
    item_biases: np.ndarray
    train: csr_matrix
    validation: csr_matrix
    candidates: csr_matrix
    events: np.ndarray

    @property
    def shape(self) -> tuple[int, int]:
        return self.train.shape

    @property
    def relevant(self) -> csr_matrix:
        """The held-out items, each 1."""
        return self.validation.sign()

    @property
    def graded(self) -> bool:
        return bool((self.validation.data != 1).any())


def answer(library: Any, rules: dict[str, Any], problems: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a library's numbers for the problems."""
    answers = [library.answer(make_problem(**raw)) for raw in problems]
    return {"notes": rules.get("notes", []), "answers": answers}


def make_problem(
    *, k: int, train: Any, validation: Any, candidates: Any, events: Any, **model: Any
) -> Problem:
    shape = (len(model["user_factors"]), len(model["item_factors"]))
    return Problem(
        k=k,
        **{name: np.array(numbers, np.float32) for name, numbers in model.items()},
        train=matrix(train, shape),
        validation=matrix(map(dict, validation), shape),
        candidates=matrix(candidates, shape),
        events=np.array(events),
    )


def matrix(rows: Any, shape: tuple[int, int]) -> csr_matrix:
    """Return a matrix of rows {item: value}, or of rows of items, each with the value 1."""
    dense = np.zeros(shape)
    for user, row in enumerate(rows):
        dense[user, list(row)] = list(row.values()) if isinstance(row, dict) else 1
    return csr_matrix(dense)
