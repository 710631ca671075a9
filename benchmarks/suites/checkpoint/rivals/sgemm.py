"""The product of all users' factors and all items' factors, by block; the scores are discarded.

Nothing is ranked or left out: this is the minimum time of brute force. BLAS has all threads, and
every block is written to the same memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.checkpoint.case import Checkpoint

BLOCK = 2048


class Raw(NamedTuple):
    user_factors: np.ndarray
    item_factors: np.ndarray
    scores: np.ndarray


def prepare(case: Checkpoint) -> Raw:
    scores = np.zeros((BLOCK, len(case.item_factors)), np.float32)
    return Raw(case.user_factors[case.users], case.item_factors, scores)


def product(case: Checkpoint, raw: Raw) -> None:
    for start in range(0, len(raw.user_factors), BLOCK):
        users = raw.user_factors[start : start + BLOCK]
        np.matmul(users, raw.item_factors.T, out=raw.scores[: len(users)])


def values(case: Checkpoint, raw: Raw, result: None) -> Values:
    return {}


TASKS = {"product": (product, values)}
