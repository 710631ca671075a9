"""One number by every way: each convention, whatever the inputs are and whoever evaluates them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from raising import raises
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits
from ways import (
    WAYS,
    Way,
    by_memory,
    by_parquet,
    by_shuffled_parquet,
    small_blocks,
    without_users_in_blocks,
)
from ways_cases import Case, check_against_plain, make_case, same

import sparse_eval as se
from sparse_eval.metrics import CONVENTIONS

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.long) for n in (1, 2))])
@pytest.mark.parametrize(
    ("convention", "no_relevant"),
    [*((name, None) for name in CONVENTIONS), ("standard", "zero"), ("standard", "judged")],
)
def test_every_way_gives_one_number(convention: str, no_relevant: Any, seed: int) -> None:
    number = list(CONVENTIONS).index(convention)
    kind = ("ranks", "gaps", "ties")[(seed + number) % 3]
    case = make_case(seed, kind=kind, n_users=12).accepted(convention)
    metrics = case.metrics(convention)
    protocol = se.Protocol(metrics, convention=convention, no_relevant=no_relevant)
    expected = se.evaluate(case.positions, case.validation, protocol)
    if no_relevant is None:
        check_against_plain(expected, case)
    with small_blocks():
        # By default some of the ways, others for the next convention.
        for way in WAYS if seed or no_relevant else WAYS[number % 4 :: 4]:
            same(way(case, protocol, {}), expected)


def model_of(users: Any, items: Any) -> AlternatingLeastSquares:
    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(factors=users.shape[1])
    model.user_factors, model.item_factors = users, items
    return model


def model_case(case: Case) -> tuple[AlternatingLeastSquares, csr_matrix, Case]:
    """Return a model, what its users have seen, and the case with the lists that it makes.

    Scores are different whole numbers. A user who has seen every item gets no list.
    """
    rng = np.random.default_rng(len(case.gains) + case.n_items)
    n_users, n_items = len(case.gains), case.n_items
    users = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)[rng.integers(0, 4, n_users)]
    items = np.stack([rng.permutation(n_items), rng.permutation(n_items)], axis=1)
    items = items.astype(np.float32) + 1
    seen = rng.random((n_users, n_items)) < 0.3
    seen[case.validation.toarray() > 0] = False
    if n_users > 2:
        seen[2] = True
        case.gains[2].clear()
    ranked: list[dict[int, int]] = []
    for user, scores in enumerate(users @ items.T):
        unseen = [i for i in np.argsort(-scores, kind="stable").tolist() if not seen[user, i]]
        ranked.append({item: rank for rank, item in enumerate(unseen[:3], 1)})
    lists = Case(ranked, case.gains, None, n_items)
    return model_of(users, items), csr_matrix(seen.astype(np.float64)), lists


@pytest.mark.parametrize("lists", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("convention", CONVENTIONS)
def test_every_way_from_a_model_gives_one_number(convention: str, lists: bool) -> None:
    model, train, case = model_case(make_case(3, n_users=8).accepted(convention))
    held, rules = case.validation, CONVENTIONS[convention]
    # Those of whole rankings are in tests/models/test_whole_rankings.py.
    metrics = [
        name
        for name in case.metrics(convention, lists=lists)
        if rules.uncut.get(name) != "candidates"
    ]
    protocol = se.Protocol(metrics, convention=convention)
    expected = se.evaluate_model(model, train, held, protocol, keep="lists")
    check_against_plain(expected, case)
    same(se.evaluate_model(model, train, held, protocol), expected)
    same(se.evaluate_model(se.Recommender(model), train, held, protocol), expected)
    same(se.evaluate(case.positions, held, protocol, train=train), expected)


@pytest.mark.parametrize("convention", [n for n, c in CONVENTIONS.items() if c.zeros == "error"])
def test_zeros_that_the_library_counts_are_an_error(convention: str) -> None:
    case = make_case(7, n_users=25)
    options = {"convention": convention}
    assert any(0.0 in row.values() for row in case.gains)
    with small_blocks():
        for way in (by_memory, by_parquet):
            with raises(se.errors.InvalidDataError):
                way(case, ["precision@3"], options)
    model, train, case = model_case(case)
    with raises(se.errors.InvalidDataError):
        se.evaluate_model(model, train, case.validation, "precision@3", **options)
    stated = se.Relevance.from_csr(case.validation, threshold=0.5)
    se.evaluate_model(model, train, stated, "precision@3", **options)


@pytest.mark.parametrize(
    "way", [by_memory, by_parquet, by_shuffled_parquet, without_users_in_blocks]
)
def test_numbers_of_all_lists_have_no_random_baseline_without_them(way: Way) -> None:
    case = make_case(3, n_users=12)
    metrics = ["ndcg@3", "coverage@3", "recall(average=micro)@3"]
    whole = se.evaluate(case.positions, case.validation, metrics)
    with small_blocks():
        found = way(case, metrics, {})
    assert found.random("ndcg@3") == whole.random("ndcg@3")
    assert found.random("recall(average=micro)@3") == whole.random("recall(average=micro)@3")
    assert whole.random("coverage@3").mean > 0
    assert pd.isna(found.summary().loc["coverage@3", "random"])
    with raises(se.errors.InvalidDataError):
        found.random("coverage@3")
