"""Users of whom hundreds of items are held out: each candidate's place among them is searched."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from retrieval_cases import Case, check_ranks, cut_into, make_case, make_factors, to_csr
from scipy import sparse

import sparse_eval as se
from sparse_eval.kernels.candidates import COMPARED

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
    with cut_into({"most_held_out": most, "plain_candidates": 250, "plain_users": 2}):
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
