"""One number by every way: each convention, whatever the inputs are and whoever evaluates them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from implicit.cpu.als import AlternatingLeastSquares
from raising import raises
from rules import each_convention
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
from ways_cases import Case, check_against_plain, make_case, same, ways_cases

import sparse_eval as se
from sparse_eval.metrics.conventions import CONVENTIONS
from sparse_eval.models import source as model_source

#: The lists of a few users may have gaps at rank 1.
pytestmark = pytest.mark.filterwarnings("ignore:no list has a rank 1")


@pytest.mark.parametrize("convention", each_convention())
@settings(max_examples=3)
@given(case=ways_cases())
def test_every_way_gives_one_number(convention: str, case: Case) -> None:
    case = case.accepted(convention)
    metrics = case.metrics(convention)
    expected = se.evaluate(case.positions, case.validation, metrics, convention=convention)
    check_against_plain(expected, case)
    with small_blocks():
        for way in WAYS:
            same(way(case, metrics, {"convention": convention}), expected)


@pytest.mark.parametrize("no_relevant", ["zero", "judged"])
@pytest.mark.parametrize("way", WAYS)
def test_every_way_counts_the_same_users(way: Way, no_relevant: Any) -> None:
    for kind in ("ranks", "gaps", "ties"):
        case = make_case(7, kind=kind, n_users=25)
        protocol = se.Protocol(case.metrics("standard"), no_relevant=no_relevant)
        expected = se.evaluate(case.positions, case.validation, protocol)
        with small_blocks():
            same(way(case, protocol, {}), expected)


def model_of(users: Any, items: Any) -> AlternatingLeastSquares:
    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(factors=users.shape[1])
    model.user_factors, model.item_factors = users, items
    return model


def model_case(case: Case) -> tuple[AlternatingLeastSquares, csr_matrix, Case]:
    """Return a model, what its users have seen, and the case with the lists that it makes.

    Scores are different whole numbers. A user without a relevant item gets no list, nor does one
    who has seen every item.
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
        has_relevant = any(gain > 0 for gain in case.gains[user].values())
        first = unseen[:3] if has_relevant else []
        ranked.append({item: rank for rank, item in enumerate(first, 1)})
    lists = Case(ranked, case.gains, None, n_items)
    return model_of(users, items), csr_matrix(seen.astype(np.float64)), lists


# The default way is by ranks, or, for coverage, by lists.
@pytest.mark.parametrize(
    ("convention", "lists"),
    [
        parameter
        for lists in (False, True)
        for parameter in each_convention(lists)
        if not lists or "coverage" not in CONVENTIONS[parameter.values[0]].unlike
    ],
)
@settings(max_examples=3)
@given(case=ways_cases())
def test_every_way_from_a_model_gives_one_number(convention: str, lists: bool, case: Case) -> None:
    model, train, case = model_case(case.accepted(convention))
    held, options = case.validation, {"convention": convention}
    # Those of whole rankings are in tests/models/test_whole_rankings.py.
    uncut = CONVENTIONS[convention].uncut if CONVENTIONS[convention].ranks_all else ()
    metrics = [name for name in case.metrics(convention, lists=lists) if name not in uncut]
    expected = se.evaluate_model(model, train, held, metrics, keep="lists", **options)
    check_against_plain(expected, case)

    def check(model: Any = model, **more: Any) -> se.Evaluation:
        found = se.evaluate_model(model, train, held, metrics, **options, **more)
        same(found, expected)
        return found

    for found, via in (
        (check(), "top_k" if lists else "held_out_ranks"),
        (check(keep="lists"), "top_k"),
        (check(se.Recommender(model)), "recommend"),
    ):
        assert found.retrieval is not None
        assert found.retrieval.via == via
    check(keep="totals")
    check((model.user_factors, model.item_factors))
    with (
        mock.patch.object(model_source, "users_within", return_value=2),
        ThreadPoolExecutor(2) as pool,
    ):
        check(memory=1 << 28)
        check(memory=1 << 28, keep="totals")
        check(client=pool)
    # As lists that are given, beside the seen items.
    same(se.evaluate(case.positions, held, metrics, train=train, **options), expected)


@pytest.mark.parametrize("convention", [n for n, c in CONVENTIONS.items() if c.refuses_zeros])
def test_every_way_raises_for_zeros_that_the_library_counts(convention: str) -> None:
    case = make_case(7, n_users=25)
    metrics, options = ["precision@3"], {"convention": convention}
    assert any(0.0 in row.values() for row in case.gains)
    with small_blocks():
        for way in WAYS:
            with raises(se.errors.InvalidDataError):
                way(case, metrics, options)
    model, train, case = model_case(case)
    held = case.validation
    with (
        mock.patch.object(model_source, "users_within", return_value=2),
        ThreadPoolExecutor(2) as pool,
    ):
        for more in ({}, {"keep": "lists"}, {"memory": 1 << 28}, {"client": pool}):
            with raises(se.errors.InvalidDataError):
                se.evaluate_model(model, train, held, metrics, **options, **more)
            stated = se.Relevance.from_csr(held, threshold=0.5)
            se.evaluate_model(model, train, stated, metrics, **options, **more)


def test_mind_notebook_counts_items_stored_with_a_zero_by_the_default_way_too() -> None:
    # The notebook's lists of candidates hold clicks (1) and what was shown beside them (0), and
    # its ndcg counts both. By the ranks of the relevant items alone it would be 1 / log2(3).
    model = model_of(np.ones((1, 1), np.float32), np.array([[4], [3], [2], [1]], np.float32))
    train = csr_matrix((1, 4))
    held = csr_matrix(([0.0, 1.0, 0.0], [0, 1, 3], [0, 3]), shape=(1, 4))
    expected = 1 + 1 / np.log2(3)
    protocol = se.Protocol("ndcg@3", convention="mind-notebook")
    for of in (model, se.Recommender(model)):
        for keep in ("values", "lists", "totals"):
            ev = se.evaluate_model(of, train, held, protocol, keep=keep)
            assert ev["ndcg@3"] == pytest.approx(expected)
    with ThreadPoolExecutor(1) as pool:
        for more in ({"client": pool}, {"memory": 1 << 28}):
            ev = se.evaluate_model(model, train, held, protocol, **more)
            assert ev["ndcg@3"] == pytest.approx(expected)
    assert se.evaluate_model(model, train, held, "ndcg@3")["ndcg@3"] == pytest.approx(
        1 / np.log2(3)
    )


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
