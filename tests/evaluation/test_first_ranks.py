"""Lists that begin after rank 1: every way warns, and the numbers stay the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from ways import WAYS, Way, small_blocks
from ways_cases import Case

import sparse_eval as se

METRICS = ["ndcg@9", "recall@9"]


def make_case(firsts: list[int]) -> Case:
    """Return users with two items in each list, the second of them relevant."""
    ranked = [{user % 4: first, 4: first + 1} for user, first in enumerate(firsts)]
    gains: list[dict[int, float]] = [{4: 1.0, 5: 1.0} for _ in firsts]
    return Case(ranked, gains, None, 6)


def warned(evaluate: Any) -> int:
    """Count the warnings that no list has a rank 1."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate()
    return sum("no list has a rank 1" in str(one.message) for one in caught)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_warns_once(way: Way) -> None:
    with small_blocks():
        for firsts in ([6] * 8, [7, 6, 8, 9, 6, 7, 7, 6]):
            assert warned(lambda: way(make_case(firsts), METRICS, {})) == 1  # noqa: B023
        assert warned(lambda: way(make_case([6, 6, 6, 6, 1, 6, 6, 6]), METRICS, {})) == 0


def test_lists_of_hits_need_no_rank_1() -> None:
    rng = np.random.default_rng(0)
    held = make_case([1] * 5).validation
    factors = rng.normal(size=(5, 2)), rng.normal(size=(6, 2))
    factors[1][4:] = 0
    factors[0][:] = np.abs(factors[0])
    factors[1][:4] = np.abs(factors[1][:4])
    lists = se.ranks(factors, held, k=6)
    assert lists.positions.min() == 5
    assert not warned(lambda: se.evaluate(lists, held, METRICS))
    assert not warned(lambda: se.evaluate(lists, held, METRICS, memory=10**9))
    train = csr_matrix(held.shape)
    assert not warned(lambda: se.evaluate_model(factors, train, held, "ndcg@6,recall@6"))
