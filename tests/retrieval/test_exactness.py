"""Exact retrieval against its definition, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numba
import numpy as np
import pytest
import retrieval_oracle
from hypothesis import given
from retrieval_cases import (
    DTYPES,
    EXAMPLES,
    KINDS,
    SCALES,
    SEEN,
    Case,
    accuracy,
    cases,
    cases_of_any_floats,
    check_ranks,
    check_same_metrics,
    check_top_k,
    cut_into,
    make_case,
    make_factors,
    results_of,
    threads,
    tilings,
)

import sparse_eval as se
from sparse_eval import Rankings

NEAR_TIES = pytest.param("near_ties", marks=pytest.mark.slow)  # nothing can be pruned


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
def test_both_oracles_agree(kind: str, dtype: type) -> None:
    rng = np.random.default_rng(1)
    for scale in SCALES[dtype]:
        users, items = make_factors(rng, kind, (2, 30, 5), dtype, scale)
        case = make_case(rng, users, items, 5)
        given_to_both = users, items, case.allowed
        plain = retrieval_oracle.orders(*given_to_both)
        for one, other in zip(plain, retrieval_oracle.orders_of_many(*given_to_both), strict=True):
            assert one[0].tolist() == other[0].tolist()
            assert one[1].tobytes() == other[1].tobytes()


@EXAMPLES
@given(cases(), tilings(), threads)
def test_lists_agree_with_the_oracle(
    case: Case, tiling: dict[str, int], num_threads: int | None
) -> None:
    with cut_into(tiling):
        result = case.top_k(num_threads=num_threads)
    check_top_k(case, result, k=case.k)


@EXAMPLES
@given(cases(), tilings(), threads)
def test_ranks_agree_with_the_oracle(
    case: Case, tiling: dict[str, int], num_threads: int | None
) -> None:
    with cut_into(tiling):
        result = case.ranks(case.k, num_threads=num_threads)
        full = case.ranks(num_threads=num_threads)
    check_ranks(case, result, k=case.k)
    check_ranks(case, full)


@EXAMPLES
@given(cases_of_any_floats(), tilings())
def test_lists_and_ranks_of_any_floats_agree_with_the_oracle(
    case: Case, tiling: dict[str, int]
) -> None:
    with cut_into(tiling):
        lists, ranks, full = case.top_k(), case.ranks(case.k), case.ranks()
    check_top_k(case, lists, k=case.k)
    check_ranks(case, ranks, k=case.k)
    check_ranks(case, full)


@pytest.mark.slow  # if the kernels run as Python
@pytest.mark.parametrize("kind", KINDS)
def test_thousands_of_items_of_every_kind(kind: str) -> None:
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
def test_groups_of_users_and_threads(kind: str) -> None:
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
def test_lists_of_every_length(f: int) -> None:
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
def test_many_ranks_give_the_metrics_of_the_lists() -> None:
    rng = np.random.default_rng(7)
    for kind in ("popular", "biased", "whole", "duplicates"):
        users, items = make_factors(rng, kind, (400, 3000, 16), cold=0.05)
        case = make_case(rng, users, items, 50)
        ranks, metrics = case.ranks(case.k), accuracy([1, 10, 50])
        lists = Rankings.from_topk(case.top_k().ids, shape=case.shape)
        check_same_metrics(ranks, lists, case, metrics)
        # If users without relevant items count, so would their lists.
        judged = [user for user in range(len(users)) if case.held_out_of(user)]
        assert len(judged) < len(users)
        lists = Rankings.from_topk(case.top_k(users=judged).ids, user_rows=judged, shape=case.shape)
        for no_relevant in ("zero", "judged"):
            protocol = se.Protocol(metrics, no_relevant=no_relevant)
            check_same_metrics(ranks, lists, case, protocol)


@pytest.mark.slow
def test_real_factors(gowalla: Path) -> None:
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
