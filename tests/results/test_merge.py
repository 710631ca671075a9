"""Evaluations of blocks of users: merged in any way, they are the evaluation of all users."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from evaluations import MIXED, some, without_lists
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from merge_cases import LARGEST, N_ITEMS, every_metric, same_bits
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.inputs.axes import Axis


@st.composite
def problems(draw: st.DrawFn) -> dict[str, Any]:
    """Draw lists, gains and a history of some users."""
    n_users = draw(st.integers(1, 14))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    order = rng.permuted(np.tile(np.arange(N_ITEMS), (n_users, 1)), axis=1)[:, :6]
    lengths = rng.integers(0, 7, n_users)
    order[np.arange(6) >= lengths[:, None]] = -1
    gains = rng.integers(0, 2 if draw(st.booleans()) else 4, (n_users, N_ITEMS))
    gains[rng.random(n_users) < 0.2] = 0
    gains[0, 0] = 1
    return {
        "ids": order,
        "gains": csr_matrix(gains.astype(np.float64)),
        "train": csr_matrix(rng.random((n_users, N_ITEMS)) < 0.3).astype(np.float64),
        "vectors": rng.normal(size=(N_ITEMS, 3)),
        "groups": rng.integers(0, 3, N_ITEMS),
    }


def whole(problem: dict[str, Any], metrics: list[str], **options: Any) -> se.Evaluation:
    lists = se.Rankings.from_topk(problem["ids"], shape=problem["gains"].shape)
    return se.evaluate(lists, problem["gains"], metrics, **options)


def block(problem: dict[str, Any], a: int, b: int, metrics: list[str]) -> se.Evaluation:
    lists = se.Rankings.from_topk(problem["ids"][a:b], shape=(b - a, N_ITEMS))
    held = se.Relevance.from_csr(problem["gains"][a:b], users=range(a, b))
    return se.evaluate(lists, held, metrics)


@st.composite
def cuts(draw: st.DrawFn, n_users: int) -> list[tuple[int, int]]:
    inner = draw(st.sets(st.integers(1, max(n_users - 1, 1)), max_size=5))
    ends = sorted({0, n_users} | {at for at in inner if at < n_users})
    return list(pairwise(ends))


def merged_in_a_tree(draw: Any, blocks: list[se.Evaluation]) -> se.Evaluation:
    """Merge any two, until one is left."""
    while len(blocks) > 1:
        a = blocks.pop(draw(st.integers(0, len(blocks) - 1)))
        b = blocks.pop(draw(st.integers(0, len(blocks) - 1)))
        blocks.append(a.merge(b))
    return blocks[0]


@settings(max_examples=25)
@given(st.data())
def test_any_cut_in_any_order_with_repetitions_gives_the_same_bits(data: st.DataObject) -> None:
    problem = data.draw(problems())
    n_users = len(problem["ids"])
    metrics = [name for name in every_metric() if name not in LARGEST]
    expected = whole(problem, metrics)
    ends = data.draw(cuts(n_users))
    assume(all((problem["gains"][a:b] > 0).nnz for a, b in ends))
    blocks = [block(problem, a, b, metrics) for a, b in ends]
    repeated = data.draw(st.lists(st.sampled_from(blocks), max_size=3))
    found = merged_in_a_tree(data.draw, [*blocks, *repeated])
    same_bits(found.merge() if len(blocks) == 1 else found, expected)


def test_says_what_differs() -> None:
    one = some()
    train = csr_matrix(np.eye(10, N_ITEMS))
    novel = {"metrics": ["novelty@3"]}
    graded = se.Relevance.from_csr(csr_matrix([[3]]), users=[99])
    wide = replace(some(first=10).relevance, shape=(10, 20), users=Axis.of(range(10, 20)))
    for ours, other in (
        (one, some(first=10, metrics=["ndcg@4"])),
        (one, some(first=10, metrics=MIXED[::-1])),
        (one, some(first=10, metrics=se.Protocol(MIXED, no_relevant="zero"))),
        (some(metrics=["ndcg@3"]), some(first=10, metrics=["ndcg@3"], convention="ranx")),
        (one, se.evaluate(some(first=10).rankings, wide, MIXED)),
        (some(**novel, train=train), some(first=10, **novel, train=train[:, ::-1])),
        (some(metrics=["err@3"]), se.evaluate(csr_matrix([[1]]), graded, "err@3")),
        (one, some(first=10, labels="text")),
    ):
        for a, b in ((ours, other), (other, ours)):
            with raises(InvalidDataError):
                a.merge(b).mean()


def test_refuses_a_user_in_two_blocks() -> None:
    for one, other in (
        (some(), some(first=5)),
        (some(keep="totals"), some(first=5, keep="totals")),
        (some(), some(first=5, keep="totals")),
        (some(labels="text"), some(first=5, labels="text")),
        (some().merge(some(first=10)), some(n_users=1, first=5)),
    ):
        with raises(InvalidDataError):
            one.merge(other)


def test_accepts_users_between_those_of_another_block_by_their_values() -> None:
    one, other = some(labels=[*range(0, 20, 2)]), some(first=1, labels=[*range(1, 20, 2)])
    assert one.merge(other).per_user.index.tolist() == list(range(20))
    with raises(InvalidDataError):
        without_lists(one, per_user=False).merge(other)


def test_tells_blocks_without_labels_apart_by_their_results() -> None:
    alike = [
        se.evaluate(se.Rankings.from_topk([[item, 3]]), csr_matrix(np.eye(4)[[item]]), "mrr@2")
        for item in (0, 1)
    ]
    assert alike[0].mean() == alike[1].mean()
    for one, other in (
        (some(labels=None), some(seed=1, labels=None)),
        (some(labels=None), some(12, labels=None)),
        alike,  # whose relevant items are others
    ):
        with raises(InvalidDataError):
            one.merge(other)
    assert alike[0].merge(alike[0]).n_users == 1


@pytest.mark.parametrize("keep", ["values", "totals"])
def test_refuses_different_results_of_the_same_users(keep: str) -> None:
    with raises(InvalidDataError):
        some(keep=keep).merge(some(seed=1, keep=keep))


@pytest.mark.parametrize("turn", [1, -1])
def test_keeps_the_values_of_a_block_that_is_there_twice(turn: int) -> None:
    twice = [some(), some(keep="totals")][::turn]
    found = twice[0].merge(twice[1])
    same_bits(found, some())


def test_blocks_stay_as_they_are() -> None:
    one, other = some(), some(first=10)
    before = one.columns.copy()
    merged = one.merge(other)
    values = merged.values("ndcg@3")
    with pytest.raises(ValueError, match="read-only"):
        values[0] = 7
    np.testing.assert_array_equal(one.columns, before)
