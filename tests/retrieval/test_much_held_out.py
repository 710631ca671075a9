"""Users of whom hundreds of items are held out: each candidate's place among them is searched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from retrieval_cases import Case, check_ranks, cut_into, make_case, make_factors, to_csr
from scipy import sparse

import sparse_eval as se
from sparse_eval.kernels.blocks import rank_held_out
from sparse_eval.kernels.candidates import rank_candidates
from sparse_eval.kernels.counted_above import COMPARED
from sparse_eval.kernels.exact import rank_exhaustively
from sparse_eval.kernels.structures import HeldOut, Seen

N_ITEMS = 900
KINDS = ["whole", "duplicates", "near_ties", "normal"]


def much_held_out(kind: str) -> Case:
    rng = np.random.default_rng(6)
    users, items = make_factors(rng, kind, (5, N_ITEMS, 3))
    case = make_case(rng, users, items, 10)
    held = rng.random(case.shape) < np.array([[0.9], [0.5], [0.01], [0.4], [1.0]])
    held[case.seen.nonzero()] = False
    for user in range(len(users)):
        held[user, case.seen[user].indices] = False  # stored zeros are seen, too
    assert (held.sum(axis=1) > COMPARED).sum() == 4
    return replace(case, held_out=to_csr(held, held))


@pytest.mark.parametrize("most", [0, 300, pytest.param(4096, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", KINDS)
def test_ranks_are_those_of_the_oracle(kind: str, most: int) -> None:
    case = much_held_out(kind)
    orders = case.orders()
    with cut_into({"MOST_HELD_OUT": most, "PLAIN_CANDIDATES": 250, "PLAIN_USERS": 2}):
        check_ranks(case, case.ranks(), orders=orders)
        for k in (10, 301, 800):
            check_ranks(case, case.ranks(k), k=k, orders=orders)


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_and_functions_rank_alike(kind: str) -> None:
    case = much_held_out(kind)
    orders = case.orders()
    own = replace(case, own=[list(range(N_ITEMS))] * len(case.users))
    check_ranks(own, own.ranks(), orders=orders)
    scores = np.zeros(case.shape)
    for factor in range(case.users.shape[1]):  # in the order of the factors
        scores += case.users[:, factor, None].astype(float) * case.items[:, factor].astype(float)
    scorer = se.Scorer(lambda users: scores[users])
    check_ranks(case, se.ranks(scorer, case.held_out, seen=case.seen), orders=orders)


@pytest.mark.parametrize("n_held_out", [COMPARED, COMPARED + 1, 700])
def test_kernels_count_above_and_ties(n_held_out: int) -> None:
    rng = np.random.default_rng(n_held_out)
    scores = rng.integers(-3, 4, N_ITEMS) * np.array(0.5)
    items = rng.permutation(N_ITEMS)[:n_held_out]
    items = items[np.lexsort((items, -scores[items]))].astype(np.int32)
    others = scores[None, :] > scores[items, None]
    same = scores[None, :] == scores[items, None]
    above = others.sum(axis=1) + (same & (np.arange(N_ITEMS) < items[:, None])).sum(axis=1)
    tied = same.sum(axis=1) - 1

    def held_out(first: int) -> HeldOut:
        """Return the row behind another one, of one item, which is not counted."""
        indptr = np.array([0, first, first + n_held_out])
        before = np.full(first, items[0], np.int32)
        sizes = len(before) + n_held_out
        counts: list[NDArray[np.int32]] = [np.zeros(sizes, np.int32) for _ in range(2)]
        rows = np.concatenate([before, items])
        return HeldOut(indptr, rows, scores[rows], *counts, np.zeros(2, np.int64))

    factors = np.ones((2, 1)), scores[:, None].copy()
    everything = np.arange(N_ITEMS, dtype=np.int32)
    nothing = Seen(np.zeros(3, np.int64), np.empty(0, np.int32))
    allowed = Seen(np.array([0, 0, N_ITEMS]), everything)
    room = np.empty(N_ITEMS, np.int32), np.empty(N_ITEMS + 7)
    users = np.array([0, 1])
    results = {kernel: held_out(1) for kernel in ("candidates", "exhaustively", "lines")}
    rank_candidates(1, 2, users, *factors, allowed, results["candidates"], *room)
    for some, are_last in ((everything[:300], False), (everything[300:], True)):
        plain = nothing, results["exhaustively"], are_last
        rank_exhaustively(0, 1, np.array([1]), users, False, *factors, some, *plain)
    rank_held_out(1, 2, scores[None, :].copy(), results["lines"], *room)
    for kernel, result in results.items():
        assert result.above[1:].tolist() == above.tolist(), kernel
        assert result.tied[1:].tolist() == tied.tolist(), kernel
        assert (result.above[0], result.tied[0]) == (0, 0), kernel
        assert result.alive[1] == n_held_out


@pytest.mark.slow  # if the kernels run as Python
def test_time_grows_as_the_input_does() -> None:
    # Of the larger one each held-out item would be compared with each candidate 10^10 times.
    n_items = 200_000
    rng = np.random.default_rng(0)
    held_out = sparse.csr_matrix(np.ones((1, n_items), np.float32))
    factors = np.ones((1, 1), np.float32), rng.random((n_items, 1), np.float32)
    ranks = se.ranks(factors, held_out)
    assert ranks.positions.tolist() == list(range(1, n_items + 1))
    candidates = sparse.csr_matrix(np.ones((1, n_items), np.float32))
    assert se.ranks(factors, held_out, candidates=candidates).items.tolist() == (
        ranks.items.tolist()
    )
