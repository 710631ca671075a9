"""Exact retrieval against its definition, to the last bit."""

from dataclasses import replace

import numba
import numpy as np
import pytest
import retrieval_oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_cases import (
    DTYPES,
    KINDS,
    SCALES,
    SEEN,
    Case,
    cases,
    cases_of_any_floats,
    check_ranks,
    check_top_k,
    cut_into,
    make_case,
    make_factors,
    results_of,
    threads,
    tilings,
    to_csr,
)
from scipy import sparse

import sparse_eval as se
from sparse_eval.kernels.candidates import COMPARED

NEAR_TIES = pytest.param("near_ties", marks=pytest.mark.slow)  # nothing can be pruned


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_both_oracles_agree(kind, dtype):
    rng = np.random.default_rng(1)
    for scale in SCALES[dtype]:
        users, items = make_factors(rng, kind, (2, 30, 5), dtype, scale)
        case = make_case(rng, users, items, 5)
        given_to_both = users, items, case.allowed
        plain = retrieval_oracle.orders(*given_to_both)
        for one, other in zip(plain, retrieval_oracle.orders_of_many(*given_to_both), strict=True):
            assert one[0].tolist() == other[0].tolist()
            assert one[1].tobytes() == other[1].tobytes()


@given(cases(), tilings(), threads)
def test_lists_agree_with_the_oracle(case, tiling, num_threads):
    with cut_into(tiling):
        result = case.top_k(num_threads=num_threads)
    check_top_k(case, result, k=case.k)


@given(cases(), tilings(), threads)
def test_ranks_agree_with_the_oracle(case, tiling, num_threads):
    with cut_into(tiling):
        result = case.ranks(case.k, num_threads=num_threads)
        full = case.ranks(num_threads=num_threads)
    check_ranks(case, result, k=case.k)
    check_ranks(case, full)


@settings(max_examples=20)
@given(cases_of_any_floats(), tilings())
def test_lists_and_ranks_of_any_floats_agree_with_the_oracle(case, tiling):
    with cut_into(tiling):
        lists, ranks, full = case.top_k(), case.ranks(case.k), case.ranks()
    check_top_k(case, lists, k=case.k)
    check_ranks(case, ranks, k=case.k)
    check_ranks(case, full)


@st.composite
def cases_of_candidates(draw):
    case = draw(cases())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    own = [np.flatnonzero(row).tolist() for row in rng.random(case.shape) < share]
    return replace(case, among=None, own=own)


@given(cases_of_candidates(), threads)
def test_lists_and_ranks_among_candidates_agree_with_the_oracle(case, num_threads):
    orders = case.orders()
    check_top_k(case, case.top_k(num_threads=num_threads), k=case.k, orders=orders)
    ranks = case.ranks(case.k, num_threads=num_threads)
    check_ranks(case, ranks, k=case.k, orders=orders)
    check_ranks(case, case.ranks(num_threads=num_threads), orders=orders)


@pytest.mark.slow  # if the kernels run as Python
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_items_of_every_kind(kind):
    rng = np.random.default_rng(3)
    f = 200 if kind == "absorbed" else 12
    users, items = make_factors(rng, kind, (150, 2500, f), cold=0.02)
    case = make_case(rng, users, items, 20)
    orders = case.orders()
    for k in (1, 20, 600):
        check_top_k(case, case.top_k(k), k=k, orders=orders)
        check_ranks(case, case.ranks(k), k=k, orders=orders)
    check_ranks(case, case.ranks(), orders=orders)


@pytest.mark.parametrize("kind", ["popular", "unit", NEAR_TIES])
def test_groups_of_users_and_threads(kind):
    rng = np.random.default_rng(5)
    n_users = 30 if numba.config.DISABLE_JIT else 400 if kind == "near_ties" else 1100
    users, items = make_factors(rng, kind, (n_users, 3000, 12), cold=0.02)
    case = make_case(rng, users, items, 20)
    orders = case.orders()
    one = results_of(case, num_threads=1)
    check_top_k(case, case.top_k(num_threads=1), k=20, orders=orders)
    check_ranks(case, case.ranks(case.k, num_threads=1), k=20, orders=orders)
    check_ranks(case, case.ranks(num_threads=1), orders=orders)
    for tiling in ({}, dict.fromkeys(["small_catalogue", "easy_for_few", "worth_keeping"], 0)):
        with cut_into(tiling):  # in order, and in groups
            for num_threads in (1, 2, 7, None):
                assert results_of(case, num_threads=num_threads) == one


@pytest.mark.slow
@pytest.mark.parametrize("f", [1, 64, 300])
def test_lists_of_every_length(f):
    rng = np.random.default_rng(6)
    users, items = make_factors(rng, "popular", (40, 3000, f))
    items[1000:2000] = items[:1000]  # every long vector twice,
    items[2000:2200] = items[0]  # and one of them more often than a list is long
    for seen in SEEN:
        case = make_case(rng, users, items, 1, seen)
        orders = case.orders()
        for k in (1, 100, 700, 3001):
            check_top_k(case, case.top_k(k), k=k, orders=orders)
            check_ranks(case, case.ranks(k), k=k, orders=orders)


@pytest.mark.slow
def test_real_factors(gowalla):
    train, test = se.datasets.load_parts(gowalla / "train.txt", gowalla / "test.txt")
    with np.load(gowalla / "als64.npz", allow_pickle=False) as model:
        factors = model["user_factors"], model["item_factors"]
    case = Case(*factors, 20, train.matrix().csr, test.matrix().csr)
    sample = np.random.default_rng(8).permutation(len(case.users))[:300]
    sampled = replace(
        case,
        users=case.users[sample],
        seen=case.seen[sample],
        held_out=case.held_out[sample],
    )
    orders = sampled.orders()
    check_top_k(sampled, case.top_k(users=sample), k=20, orders=orders)
    check_ranks(sampled, sampled.ranks(sampled.k), k=20, orders=orders)
    check_ranks(sampled, sampled.ranks(), orders=orders)


MUCH_HELD_OUT = ["whole", "duplicates", "near_ties", "normal"]


def much_held_out(kind):
    """Hold out hundreds of items, so that each candidate's place among them is searched."""
    rng = np.random.default_rng(6)
    users, items = make_factors(rng, kind, (5, 900, 3))
    case = make_case(rng, users, items, 10)
    held = rng.random(case.shape) < np.array([[0.9], [0.5], [0.01], [0.4], [1.0]])
    held[case.seen.nonzero()] = False
    for user in range(len(users)):
        held[user, case.seen[user].indices] = False  # stored zeros are seen, too
    assert (held.sum(axis=1) > COMPARED).sum() == 4
    return replace(case, held_out=to_csr(held, held))


@pytest.mark.parametrize("most", [0, 300, pytest.param(4096, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", MUCH_HELD_OUT)
def test_ranks_of_many_held_out_items(kind, most):
    case = much_held_out(kind)
    orders = case.orders()
    with cut_into({"most_held_out": most, "plain_candidates": 250, "plain_users": 2}):
        check_ranks(case, case.ranks(), orders=orders)
        for k in (10, 301, 800):
            check_ranks(case, case.ranks(k), k=k, orders=orders)


@pytest.mark.parametrize("kind", MUCH_HELD_OUT)
def test_candidates_and_functions_rank_alike(kind):
    case = much_held_out(kind)
    orders = case.orders()
    own = replace(case, own=[list(range(900))] * len(case.users))
    check_ranks(own, own.ranks(), orders=orders)
    scores = np.zeros(case.shape)
    for factor in range(case.users.shape[1]):  # in the order of the factors
        scores += case.users[:, factor, None].astype(float) * case.items[:, factor].astype(float)
    scorer = se.Scorer(lambda users: scores[users])
    check_ranks(case, se.ranks(scorer, case.held_out, seen=case.seen), orders=orders)


@pytest.mark.slow  # if the kernels run as Python
def test_time_grows_as_the_input_does():
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
