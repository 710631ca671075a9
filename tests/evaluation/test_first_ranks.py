"""Lists that begin after rank 1: every way warns, and the numbers stay the same."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from raising import warns
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


def warned(evaluate: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        evaluate()
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("firsts", [[6] * 8, [7, 6, 8, 9, 6, 7, 7, 6]], ids=["alike", "unlike"])
def test_every_way_warns_once(way: Way, firsts: list[int]) -> None:
    case = make_case(firsts)
    with small_blocks(), warns() as caught:
        way(case, METRICS, {})
    assert sum("no list has a rank 1" in str(one.message) for one in caught) == 1


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", [0, 4, 7])
def test_one_list_with_a_rank_1_is_enough(way: Way, place: int) -> None:
    firsts = [6] * 8
    firsts[place] = 1
    with small_blocks():
        said = warned(lambda: way(make_case(firsts), METRICS, {}))
    assert not any("rank 1" in message for message in said)


@pytest.mark.parametrize("keep", ["values", "totals"])
def test_constructors(keep: Any) -> None:
    case = make_case([3] * 5)
    frame = se.Rankings.from_positions(case.positions).to_frame()
    for lists in (
        case.positions,
        se.Rankings.from_positions(case.positions),
        se.Rankings.from_topk([[-1, -1, 0, 4]] * 5, shape=(5, 6)),
    ):
        with warns():
            se.evaluate(lists, case.validation, METRICS, keep=keep)
    lists = se.Rankings.from_frame(frame, rank="rank")
    truth = se.Relevance.from_frame(case.tables[1], gain="gain")
    with warns():
        se.evaluate(lists, truth, METRICS, keep=keep)


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
    said = warned(lambda: se.evaluate_model(factors, train, held, "ndcg@6,recall@6"))
    assert not any("rank 1" in one for one in said)
