"""Exact retrieval against its definition, to the last bit."""

from dataclasses import replace

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from retrieval_cases import (
    KINDS,
    SEEN,
    Case,
    cases,
    cases_of_any_floats,
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


@given(cases(), tilings(), threads)
def test_lists_and_ranks(case, tiling, num_threads):
    with cut_into(tiling):
        case.check(num_threads=num_threads)


@settings(max_examples=20)
@given(cases_of_any_floats(), tilings())
def test_lists_and_ranks_of_any_floats(case, tiling):
    with cut_into(tiling):
        case.check()


@given(cases(), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.1, 0.5, 1.0]), threads)
def test_lists_and_ranks_among_candidates_of_each_user(case, seed, share, num_threads):
    mask = np.random.default_rng(seed).random(case.shape) < share
    replace(case, candidates=mask).check(num_threads=num_threads)


@pytest.mark.slow  # if the kernels run as Python
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_items_of_every_kind(kind):
    rng = np.random.default_rng(3)
    f = 200 if kind == "absorbed" else 12
    users, items = make_factors(rng, kind, (150, 2500, f), cold=0.02)
    make_case(rng, users, items, 20).check(1, 20, 600)


@pytest.mark.long
@pytest.mark.parametrize(
    "kind", ["popular", pytest.param("unit", marks=pytest.mark.long), NEAR_TIES]
)
def test_groups_of_users_and_threads(kind):
    rng = np.random.default_rng(5)
    n_users = 30 if numba.config.DISABLE_JIT else 400 if kind == "near_ties" else 1100
    users, items = make_factors(rng, kind, (n_users, 3000, 12), cold=0.02)
    case = make_case(rng, users, items, 20)
    case.check(num_threads=1)
    one = results_of(case, num_threads=1)
    for tiling in ({}, dict.fromkeys(["small_catalogue", "easy_for_few", "worth_keeping"], 0)):
        with cut_into(tiling):  # in order, and in groups
            for num_threads in (1, 2, 7, None):
                assert results_of(case, num_threads=num_threads) == one


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("f", [1, 64, 300])
def test_lists_of_every_length(f):
    rng = np.random.default_rng(6)
    users, items = make_factors(rng, "popular", (40, 3000, f))
    items[1000:2000] = items[:1000]  # every long vector twice,
    items[2000:2200] = items[0]  # and one of them more often than a list is long
    for seen in SEEN:
        make_case(rng, users, items, 1, seen).check(1, 100, 700, 3001)


@pytest.mark.long
@pytest.mark.slow
def test_real_factors(gowalla):
    files = (gowalla / "train.txt", gowalla / "test.txt")
    holdout = se.Holdout.from_frames(*map(se.datasets.load_adjacency, files))
    with np.load(gowalla / "als64.npz", allow_pickle=False) as model:
        factors = model["user_factors"], model["item_factors"]
    case = Case(*factors, 20, holdout.train.csr, holdout.validation.csr)
    some = np.random.default_rng(8).permutation(len(case.users))[:300]
    sides = {name: getattr(case, name)[some] for name in ("users", "seen", "held_out")}
    sampled = replace(case, **sides)
    sampled.check()
    sampled.check_top_k(case.top_k(users=some), 20)


MUCH_HELD_OUT = ["whole", "duplicates", "near_ties", "normal"]


def much_held_out(kind):
    """Hold out hundreds of items, so that each candidate's place among them is searched."""
    rng = np.random.default_rng(6)
    users, items = make_factors(rng, kind, (5, 900, 3))
    case = make_case(rng, users, items, 10)
    held = rng.random(case.shape) < np.array([[0.9], [0.5], [0.01], [0.4], [1.0]])
    seen = case.seen.tocoo()
    held[seen.row, seen.col] = False  # stored zeros are seen, too
    assert (held.sum(axis=1) > COMPARED).sum() == 4
    return replace(case, held_out=to_csr(held, held))


@pytest.mark.parametrize("most", [0, 300, pytest.param(4096, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", MUCH_HELD_OUT)
def test_ranks_of_many_held_out_items(kind, most):
    with cut_into({"most_held_out": most, "plain_candidates": 250, "plain_users": 2}):
        much_held_out(kind).check(10, 301, 800)


@pytest.mark.parametrize("kind", MUCH_HELD_OUT)
def test_candidates_and_functions_rank_alike(kind):
    case = much_held_out(kind)
    own = replace(case, candidates=np.ones(case.shape, bool))
    case.check_ranks(own.ranks())
    scores = np.zeros(case.shape)
    for factor in range(case.users.shape[1]):  # in the order of the factors
        scores += case.users[:, factor, None].astype(float) * case.items[:, factor].astype(float)
    case.check_ranks(se.ranks(lambda users: scores[users], case.held_out, train=case.seen))


@pytest.mark.slow  # if the kernels run as Python
def test_time_grows_as_the_input_does():
    # Of the larger one each held-out item would be compared with each candidate 10^10 times.
    n_items = 200_000
    rng = np.random.default_rng(0)
    held_out = sparse.csr_matrix(np.ones((1, n_items), np.float32))
    factors = np.ones((1, 1), np.float32), rng.random((n_items, 1), np.float32)
    ranks, among = (se.ranks(factors, held_out, candidates=own) for own in (None, held_out))
    assert ranks.positions.tolist() == list(range(1, n_items + 1))
    assert among.items.tolist() == ranks.items.tolist()
