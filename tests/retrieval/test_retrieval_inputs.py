"""Inputs of every form, restricted candidates, and held-out items that were seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from raising import raises, warns
from retrieval_cases import (
    ALL,
    Array,
    Case,
    accuracy,
    call,
    check_ranks,
    check_same_metrics,
    make_case,
    make_factors,
    results_of,
    row_of,
)
from scipy import sparse
from tensors import CUDA, Tensor

import sparse_eval as se
from sparse_eval import Rankings, Relevance
from sparse_eval.errors import InvalidDataError
from sparse_eval.retrieval.ranker import check_factors


def strided(array: Array) -> Array:
    room = np.full((2 * len(array), 3 * array.shape[1]), np.nan, array.dtype)
    room[::2, ::3] = array
    return room[::2, ::3]


def read_only(array: Array) -> Array:
    array = array.copy()
    array.flags.writeable = False
    return array


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "read-only": read_only,
    "strided": strided,
    "reversed": lambda array: array[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran": np.asfortranarray,
    "other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "float64": lambda array: array.astype(np.float64),
    "float16": lambda array: array.astype(np.float16),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_factors_of_any_layout(plain: Case, layout: str) -> None:
    users, items = LAYOUTS[layout](plain.users), LAYOUTS[layout](plain.items)
    expected = results_of(plain)
    for one, other in ((users, items), (users, plain.items), (plain.users, items)):
        before = one.tobytes(), other.tobytes()
        assert results_of(replace(plain, users=one, items=other)) == expected
        assert (one.tobytes(), other.tobytes()) == before


def wide_indices(matrix: Any) -> Any:
    matrix = matrix.copy()
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    return matrix


def unsorted_rows(matrix: Any) -> Any:
    shuffled = matrix.copy()
    for first, last in zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True):
        shuffled.indices[first:last] = matrix.indices[first:last][::-1]
        shuffled.data[first:last] = matrix.data[first:last][::-1]
    shuffled.has_sorted_indices = False
    return shuffled


def twice(matrix: Any) -> Any:
    coo = matrix.tocoo()
    rows, columns = np.tile(coo.row, 2), np.tile(coo.col, 2)
    return sparse.coo_matrix((np.tile(coo.data, 2), (rows, columns)), matrix.shape)


def locked(matrix: Any) -> Any:
    matrix = matrix.copy()
    for part in (matrix.data, matrix.indices, matrix.indptr):
        part.flags.writeable = False
    return matrix


MATRICES: dict[str, Callable[[Any], Any]] = {
    "csr_array": sparse.csr_array,
    "read-only": locked,
    "int64 indices": wide_indices,
    "unsorted rows": unsorted_rows,
    "csc": lambda matrix: matrix.tocsc(),
    "coo": lambda matrix: matrix.tocoo(),
    "pairs stored twice": twice,
    "int8": lambda matrix: matrix.astype(np.int8),
}


@pytest.mark.parametrize("form", MATRICES)
def test_seen_and_held_out_of_any_form(plain: Case, form: str) -> None:
    expected = results_of(plain)
    for name in ("seen", "held_out"):
        given_matrix = MATRICES[form](getattr(plain, name))
        parts = [value for value in vars(given_matrix).values() if isinstance(value, np.ndarray)]
        before = [part.copy() for part in parts]
        assert results_of(replace(plain, **{name: given_matrix})) == expected
        for part, old in zip(parts, before, strict=True):
            assert part.dtype == old.dtype
            assert part.tobytes() == old.tobytes()


def test_takes_relevance_as_held_out(plain: Case) -> None:
    relevance = Relevance.from_csr(plain.held_out)
    assert results_of(replace(plain, held_out=relevance)) == results_of(plain)
    # what is below the threshold is not relevant
    graded = Relevance.from_csr(plain.held_out, threshold=3)
    by_hand = plain.held_out.copy()
    by_hand.data[by_hand.data < 3] = 0
    assert 0 < np.count_nonzero(by_hand.data) < np.count_nonzero(plain.held_out.data)
    assert results_of(replace(plain, held_out=graded)) == results_of(
        replace(plain, held_out=by_hand)
    )


def test_a_smaller_held_out_matrix_is_padded(plain: Case) -> None:
    rows, columns = 6, 31
    small = plain.held_out[:rows, :columns]
    assert np.count_nonzero(small.data)
    padded = small.copy()
    padded.resize(plain.shape)
    expected = results_of(replace(plain, held_out=padded))
    for held_out in (small, Relevance.from_csr(small)):
        assert results_of(replace(plain, held_out=held_out)) == expected
    check_ranks(replace(plain, held_out=padded), replace(plain, held_out=small).ranks(7), k=7)


def test_users_in_any_order_and_more_than_once(plain: Case) -> None:
    everyone = plain.top_k()
    picked = [8, 0, 3, 3, 8, 1]
    for users in (picked, np.array(picked, np.uint8), np.repeat(picked, 2)[::2]):
        result = plain.top_k(users=users)
        assert result.ids.tolist() == everyone.ids[picked].tolist()
        assert result.scores.tobytes() == everyone.scores[picked].tobytes()
    for nobody in ([], np.array([], np.int64)):
        assert plain.top_k(users=nobody).ids.shape == (0, 7)


def test_held_out_items_that_are_no_candidates_are_no_overlap(plain: Case) -> None:
    only_seen = sparse.csr_matrix(np.tile(np.arange(40.0) == 0, (9, 1)))
    held_out = sparse.csr_matrix(np.tile(np.arange(40.0) == 5, (9, 1)))
    case = Case(plain.users, plain.items, 7, only_seen, held_out, [0, 1], [1])
    assert case.top_k().ids.tolist() == [[-1]] * 9
    for ranks in (case.ranks(7), case.ranks()):
        assert (ranks.items.tolist(), ranks.lengths.tolist()) == ([], [0] * 9)


def test_takes_no_held_out_items_and_no_users(plain: Case) -> None:
    for nothing in (sparse.csr_matrix(plain.shape), plain.held_out * 0, sparse.csr_matrix((0, 0))):
        for k in (5, None):
            ranks = replace(plain, held_out=nothing).ranks(k)
            assert ranks.shape == plain.shape
            assert ranks.indptr.tolist() == [0] * 10
            assert ranks.lengths.tolist() == [0] * 9
    none = np.empty((0, 6), np.float32)
    assert se.top_k((none, plain.items), 5).ids.shape == (0, 5)
    ranks = se.ranks((none, plain.items), sparse.csr_matrix((0, 40)), 5)
    assert (ranks.shape, ranks.lengths.tolist()) == ((0, 40), [])


def test_factors_of_width_zero_are_ties() -> None:
    users, items = np.empty((2, 0), np.float32), np.empty((5, 0), np.float32)
    seen = sparse.csr_matrix([[0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    result = se.top_k((users, items), 2, seen=seen)
    assert result.ids.tolist() == [[0, 2], [0, 1]]
    assert result.scores.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_refuses_hits_in_place_of_lists(plain: Case) -> None:
    """Metrics of the recommended items need the lists."""
    with pytest.raises(InvalidDataError):
        se.evaluate(plain.ranks(7), plain.held_out, "coverage@7")
    first = replace(  # its hits have no gap between them
        plain,
        users=np.ones((1, 1)),
        items=np.array([[3.0], [2.0], [1.0]]),
        seen=None,
        held_out=sparse.csr_matrix([[1, 0, 0]]),
    )
    with pytest.raises(InvalidDataError):
        se.evaluate(first.ranks(3), first.held_out, "coverage@3")


@pytest.fixture
def overlapping() -> Case:
    rng = np.random.default_rng(11)
    users, items = make_factors(rng, "whole", (60, 45, 3))
    case = make_case(rng, users, items, 8)
    seen, held_out = case.seen.tolil(), case.held_out.tolil()
    for user, item in ((17, 23), (17, 31), (38, 2), (52, 44)):
        seen[user, item], held_out[user, item] = 2, 3
    held_out[51, 3], seen[51, 3] = 0, 1
    held_out = held_out.tocsr()
    rows, columns, gains = sparse.find(held_out)
    # seen, and stored with gain 0: no overlap
    zero = sparse.csr_matrix(
        (np.append(gains, 0.0), (np.append(rows, 5), np.append(columns, row_of(case.seen, 5)[0]))),
        case.shape,
    )
    return replace(case, seen=seen.tocsr(), held_out=zero)


@pytest.mark.parametrize("k", [8, None])
def test_refuses_held_out_items_that_were_seen(overlapping: Case, k: int | None) -> None:
    for options in ({}, {"overlap": "error"}):
        with raises(InvalidDataError, user=17) as raised:
            overlapping.ranks(k, **options)
        message = str(raised.value)
        for number in ("17", "23", "4"):
            assert number in message.replace(",", " ").replace(";", " ").replace(")", " ").split()


@pytest.mark.parametrize("k", [8, None])
def test_reports_held_out_items_that_were_seen(overlapping: Case, k: int | None) -> None:
    with warns() as caught:
        ranks = overlapping.ranks(k, overlap="report")
    assert len(caught) == 1
    check_ranks(overlapping, ranks, k=k or math.inf)
    if k:  # they count as misses
        lists = Rankings.from_topk(overlapping.top_k().ids, shape=overlapping.shape)
        check_same_metrics(ranks, lists, overlapping, accuracy([1, 8]))


def test_takes_tensors_without_a_copy() -> None:
    rng = np.random.default_rng(3)
    users, items = rng.normal(size=(7, 4)).astype(np.float32), rng.normal(size=(9, 4))
    case = Case(users, items, 3, None, sparse.csr_matrix(np.eye(7, 9)))
    lent: Any = (Tensor(users), Tensor(items))
    assert results_of(replace(case, users=lent[0], items=lent[1])) == results_of(case)
    measured = check_factors(*lent)
    assert all(map(np.shares_memory, (side.values for side in measured), (users, items)))
    ids = {"users": [4, 2], "candidates": [0, 3, 5, 8], "exclude": [3]}
    expected = se.top_k((users, items), 3, **ids)
    found = se.top_k(lent, 3, **{name: Tensor(np.array(rows)) for name, rows in ids.items()})
    assert found.ids.tolist() == expected.ids.tolist()
    lists = Rankings.from_topk(Tensor(expected.ids), user_rows=Tensor(np.array([4, 2])))
    assert lists.items.tolist() == expected.ids.ravel().tolist()


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("options", [{"requires_grad": True}, {"device": CUDA}])
def test_says_how_a_tensor_becomes_readable(of: str, options: dict[str, Any]) -> None:
    factors = np.ones((3, 2))
    case = Case(factors, factors, 2, None, sparse.csr_matrix(np.eye(3)))
    for side in ("user_factors", "item_factors"):
        with raises(InvalidDataError, argument=side):
            call(of, case, **{side: Tensor(factors, **options)})
