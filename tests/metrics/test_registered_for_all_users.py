"""Registered metrics that are one number for all users: what they may read, in memory and not."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidMetricError

IDS = [[0, 1, 2], [2, 3, 0], [4, 1, 3], [0, 4, 1]]
LISTS = se.Rankings.from_topk(IDS, shape=(4, 5))
GAINS = csr_matrix([[1, 0, 1, 0, 0], [0, 0, 0, 2, 0], [0, 0, 0, 0, 1], [1, 1, 0, 0, 0]])
TRAIN = csr_matrix([[0, 0, 0, 1, 0], [0, 1, 0, 0, 0], [1, 0, 0, 0, 0], [0, 0, 1, 1, 0]])


def register(formula: Any, name: str = "all_users", **options: Any) -> str:
    se.register_metric(name, "one number", over="lists", per_user=False, **options)(formula)
    return f"{name}@2"


#: What a formula may read of the lists, and its value above.
READ: dict[str, tuple[Any, float]] = {
    "items": (lambda lists: float(lists.items.sum()), 15.0),
    "indptr": (lambda lists: float(lists.indptr[-1]), 8.0),
    "lengths": (lambda lists: float(lists.lengths.sum()), 8.0),
    "rows": (lambda lists: float(lists.rows.max()), 3.0),
    "ranks": (lambda lists: float(lists.ranks.sum()), 12.0),
    "gains": (lambda lists: float(lists.gains.sum()), 5.0),
    "relevant": (lambda lists: float(lists.relevant[2].sum()), 7.0),
    "picks": (lambda lists: float(lists.picks.nnz), 8.0),
    "users": (lambda lists: float(lists.users.sum()), 6.0),
    "training": (lambda lists: float(len(lists.train.items)), 5.0),
}

#: What it may read of blocks, too.
COUNTED: dict[str, tuple[Any, float]] = {
    "k": (lambda lists: float(lists.k), 2.0),
    "n_users": (lambda lists: float(lists.n_users), 4.0),
    "n_listed": (lambda lists: float(lists.n_listed), 4.0),
    "n_items": (lambda lists: float(lists.n_items), 5.0),
    "item_counts": (lambda lists: float(lists.item_counts @ np.arange(5)), 15.0),
}


def in_blocks(names: Any, **options: Any) -> list[se.Evaluation]:
    """Evaluate the same users by every way that cuts them into blocks."""
    with ThreadPoolExecutor(2) as pool:
        return [
            se.evaluate(LISTS, GAINS, names, train=TRAIN, memory=10**9, **options),
            se.evaluate(LISTS, GAINS, names, train=TRAIN, client=pool, **options),
        ]


@pytest.mark.parametrize("what", [*READ, *COUNTED])
def test_may_read_anything_in_memory(what: str) -> None:
    formula, value = (READ | COUNTED)[what]
    name = register(formula)
    ev = se.evaluate(LISTS, GAINS, [name, "ndcg@2"], train=TRAIN)
    assert ev[name] == ev.mean()[name] == value
    assert ev.summary().loc[name, "mean"] == value
    assert not ev.is_per_user(name)


@pytest.mark.parametrize("what", COUNTED)
@pytest.mark.parametrize("keep", ["values", "totals"])
def test_may_read_counts_in_blocks(what: str, keep: str) -> None:
    formula, value = COUNTED[what]
    name = register(formula)
    whole = se.evaluate(LISTS, GAINS, [name, "ndcg@2"], train=TRAIN)
    for ev in in_blocks([name, "ndcg@2"], keep=keep):
        assert ev[name] == value
        assert ev.replicates(name).tobytes() == whole.replicates(name).tobytes()
        assert ev.summary().loc[name, "mean"] == value


@pytest.mark.parametrize("what", READ)
def test_refuses_to_read_lists_in_blocks(what: str) -> None:
    name = register(READ[what][0])
    for ev in in_blocks([name, "ndcg@2"]):
        assert ev["ndcg@2"] > 0  # the others can be read
        with raises(InvalidMetricError):
            _ = ev[name]


def test_reads_lists_of_the_users_that_count() -> None:
    name = register(lambda lists: float(lists.items.sum()))
    gains = GAINS.copy()
    gains.data[2] = 0  # the only one of the second user
    assert se.evaluate(LISTS, gains, name)[name] == 10.0


@pytest.mark.parametrize("wrong", [np.ones(2), None, "1", (1.0, 2.0), 1j])
def test_refuses_values_that_are_not_one_number_in_blocks_too(wrong: Any) -> None:
    name = register(lambda lists: wrong)
    with raises(InvalidMetricError, metric="all_users@2"):
        se.evaluate(LISTS, GAINS, name)
    with raises(InvalidMetricError, metric="all_users@2"):
        _ = in_blocks([name, "ndcg@2"])[0][name]
