"""Retrieval among the candidates of each user, against its definition, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from retrieval_cases import (
    EXAMPLES,
    Case,
    cases,
    check_ranks,
    check_top_k,
    make_case,
    make_factors,
    results_of,
    threads,
)
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import SparseEvalError


@st.composite
def cases_of_candidates(draw: st.DrawFn) -> Case:
    case = draw(cases())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    share = draw(st.sampled_from([0.0, 0.1, 0.5, 1.0]))
    own = [np.flatnonzero(row).tolist() for row in rng.random(case.shape) < share]
    return replace(case, among=None, own=own)


@EXAMPLES
@given(cases_of_candidates(), threads)
def test_lists_and_ranks_are_those_of_brute_force(case: Case, num_threads: int | None) -> None:
    orders = case.orders()
    check_top_k(case, case.top_k(num_threads=num_threads), k=case.k, orders=orders)
    ranks = case.ranks(case.k, num_threads=num_threads)
    check_ranks(case, ranks, k=case.k, orders=orders)
    check_ranks(case, case.ranks(num_threads=num_threads), orders=orders)


def test_the_same_candidates_for_all_are_those_of_each() -> None:
    rng = np.random.default_rng(1)
    users, items = make_factors(rng, "duplicates", (30, 90, 3), np.float32, (0, 0))
    case = make_case(rng, users, items, 7)
    some = [1, 5, 7, 30, 31, 32, 80]
    at_once = replace(case, among=some)
    by_user = replace(case, own=[some] * 30)
    assert results_of(at_once)[-500:] == results_of(by_user)[-500:]
    lists = by_user.top_k()
    np.testing.assert_array_equal(at_once.top_k().ids[:, : lists.ids.shape[1]], lists.ids)


def test_long_rows_are_cut_before_they_are_sorted() -> None:
    rng = np.random.default_rng(2)
    users, items = make_factors(rng, "whole", (3, 900, 2), np.float64, (0, 0))
    case = make_case(rng, users, items, 20)
    own = [sorted(rng.permutation(900)[:n].tolist()) for n in (700, 257, 3)]
    case = replace(case, own=own)
    check_top_k(case, case.top_k(), k=20)
    check_top_k(case, case.top_k(600), k=600)


def test_nobody_has_candidates() -> None:
    users, items = np.ones((2, 1)), np.ones((3, 1))
    nothing = sparse.csr_matrix((2, 3))
    ids, scores = se.top_k((users, items), 2, candidates=nothing)
    assert ids.shape == scores.shape == (2, 0)
    ranks = se.ranks((users, items), sparse.csr_matrix(np.eye(2, 3)), candidates=nothing)
    assert ranks.lengths.tolist() == [0, 0]


@pytest.mark.parametrize(
    "candidates",
    [
        [[0], [1], [2]],
        np.array([[0, -1], [1, 2]]),
        {0: [0], 1: [1]},
        [7],
        [-1],
        "items",
        3,
        {"a": ["x"]},
        {0: 3},
        pd.Index(["x"]),
        sparse.csr_matrix((2, 4)),
        sparse.csr_matrix((3, 5)),
    ],
)
def test_refuses_candidates_of_others(candidates: Any) -> None:
    users, items = np.ones((3, 1)), np.ones((4, 1))
    held_out = sparse.csr_matrix(np.eye(3, 4))
    for call in (
        lambda: se.top_k((users, items), 2, candidates=candidates),
        lambda: se.ranks((users, items), held_out, 2, candidates=candidates),
    ):
        with raises(SparseEvalError):
            call()
