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


@pytest.mark.parametrize(
    "candidates",
    [
        [[0], [1], [2]],
        np.array([[0, -1], [1, 2]]),
        {0: [0], 1: [1]},
        [-1],
        "items",
        {"a": ["x"]},
        {0: 3},
        pd.Index(["x"]),
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
