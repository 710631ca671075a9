"""Evaluations of blocks of users: merged in any way, they are the evaluation of all users."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.metrics import REGISTRY

N_ITEMS = 12


#: What they divide by, the largest gain of all users, is not that of a block.
LARGEST = ["rbp(gain=linear)@3", "err@3"]


def every_metric(**inputs: Any) -> list[str]:
    """Every metric of the registry that the inputs allow, with a cut-off where it may have one."""
    names = [
        "err(max=4)@3",
        "rbp(gain=linear)@3",
        "recall(average=micro)@3",
        "ndcg(gain=exp)@5",
        "coverage@2",
    ]
    return names + [
        one.name + ("" if one.cutoff == "none" else "@3")
        for one in REGISTRY.values()
        if set(one.needs) <= set(inputs) and (inputs or one.name != "diversity")
    ]


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


def same_bits(a: se.Evaluation, b: se.Evaluation) -> None:
    """Check that everything that both have is the same to the last bit."""
    pd.testing.assert_frame_equal(a.per_user, b.per_user, check_exact=True, check_index_type=False)
    assert a.names == b.names
    one, other = a.summary(), b.summary()
    columns = ["mean", "std", "n_users", "n_skipped"]
    pd.testing.assert_frame_equal(one[columns], other[columns], check_exact=True)
    per_user = [name for name in a.names if a.is_per_user(name)]
    ends = ["ci_low", "ci_high", "interval"]
    pd.testing.assert_frame_equal(
        one.loc[per_user, ends], other.loc[per_user, ends], check_exact=True
    )
    assert (a.n_users, a.n_skipped, a.n_without_list) == (b.n_users, b.n_skipped, b.n_without_list)
    assert np.array_equal(a.fingerprints, b.fingerprints)
    assert np.array_equal(a.counted, b.counted)
    assert a.n_users_of == b.n_users_of


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


@settings(max_examples=60)
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


@settings(max_examples=60)
@given(st.data())
def test_blocks_of_an_iterable_give_the_same_bits(data: st.DataObject) -> None:
    problem = data.draw(problems())
    n_users = len(problem["ids"])
    inputs = {
        "train": problem["train"],
        "item_groups": problem["groups"],
        "item_vectors": problem["vectors"],
    }
    metrics = every_metric(**inputs)
    expected = whole(problem, metrics, **inputs)
    ends = data.draw(cuts(n_users))
    lists = [se.Rankings.from_topk(problem["ids"][a:b], shape=(b - a, N_ITEMS)) for a, b in ends]
    positions = [one.to_positions() for one in lists]
    gains = problem["gains"]
    found = se.evaluate(iter(lists), gains, metrics, **inputs)
    same_bits(found, expected)
    same_bits(se.evaluate(positions, gains, metrics, **inputs), expected)
    without = se.evaluate(positions, gains, metrics, per_user=False, **inputs)
    pd.testing.assert_frame_equal(without.summary(), found.summary(), check_exact=True)
