"""Inputs that retrieval takes and refuses, and what it does to the process."""

import io
import math
import signal
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from raising import raises, warns
from retrieval_cases import (
    ALL,
    Case,
    accuracy,
    call,
    check_ranks,
    check_same_metrics,
    check_top_k,
    make_case,
    make_factors,
    results_of,
    row_of,
)
from scipy import sparse
from systems import need_posix
from tensors import CUDA, Tensor
from threadpoolctl import threadpool_info, threadpool_limits

import sparse_eval as se
from sparse_eval import Rankings, Relevance, evaluate_model, factor_model
from sparse_eval.core import progress
from sparse_eval.errors import InvalidDataError, SparseEvalError
from sparse_eval.retrieval.ranker import check_factors


@pytest.fixture(scope="module")
def plain():
    rng = np.random.default_rng(9)
    users, items = make_factors(rng, "whole", (9, 40, 6))
    return make_case(rng, users, items, 7)


LAYOUTS = {
    "every third": lambda array: np.repeat(array, 3, axis=1)[:, ::3],
    "reversed": lambda array: array[::-1, ::-1].copy()[::-1, ::-1],
    "Fortran": np.asfortranarray,
    "other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
    "float64": lambda array: array.astype(np.float64),
    "float16": lambda array: array.astype(np.float16),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_factors_of_any_layout(plain, layout):
    users, items = LAYOUTS[layout](plain.users), LAYOUTS[layout](plain.items)
    users.flags.writeable = items.flags.writeable = False
    expected = results_of(plain)
    for one, other in ((users, items), (users, plain.items), (plain.users, items)):
        assert results_of(replace(plain, users=one, items=other)) == expected


def test_seen_and_held_out_of_any_form(plain):
    """Rows are not sorted, indices have 64 bits, and nothing can be written."""
    expected = results_of(plain)
    for name in ("seen", "held_out"):
        matrix = getattr(plain, name)
        rows = np.repeat(np.arange(len(matrix.indptr) - 1), np.diff(matrix.indptr))
        falling = np.lexsort((-matrix.indices, rows))
        parts = matrix.data[falling], matrix.indices[falling], matrix.indptr
        unsorted = sparse.csr_matrix(matrix.shape, dtype=matrix.dtype)
        unsorted.data, unsorted.indices, unsorted.indptr = (
            part.astype(dtype)
            for part, dtype in zip(parts, (float, np.int64, np.int64), strict=True)
        )
        unsorted.has_sorted_indices = False
        for part in (unsorted.data, unsorted.indices, unsorted.indptr):
            part.flags.writeable = False
        for form in (unsorted, matrix.tocoo(), sparse.csr_array(matrix)):
            assert results_of(replace(plain, **{name: form})) == expected


def test_takes_relevance_as_held_out(plain):
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


def test_a_smaller_held_out_matrix_is_padded(plain):
    rows, columns = 6, 31
    small = plain.held_out[:rows, :columns]
    assert np.count_nonzero(small.data)
    padded = small.copy()
    padded.resize(plain.shape)
    expected = results_of(replace(plain, held_out=padded))
    for held_out in (small, Relevance.from_csr(small)):
        assert results_of(replace(plain, held_out=held_out)) == expected
    check_ranks(replace(plain, held_out=padded), replace(plain, held_out=small).ranks(7), k=7)


def test_users_in_any_order_and_more_than_once(plain):
    everyone = plain.top_k()
    picked = [8, 0, 3, 3, 8, 1]
    for users in (picked, np.array(picked, np.uint8), np.repeat(picked, 2)[::2]):
        result = plain.top_k(users=users)
        assert result.ids.tolist() == everyone.ids[picked].tolist()
        assert result.scores.tobytes() == everyone.scores[picked].tobytes()
    for nobody in ([], np.array([], np.int64)):
        assert plain.top_k(users=nobody).ids.shape == (0, 7)


def test_held_out_items_that_are_no_candidates_are_no_overlap(plain):
    only_seen = sparse.csr_matrix(np.tile(np.arange(40.0) == 0, (9, 1)))
    held_out = sparse.csr_matrix(np.tile(np.arange(40.0) == 5, (9, 1)))
    case = Case(plain.users, plain.items, 7, only_seen, held_out, [0, 1], [1])
    assert case.top_k().ids.tolist() == [[-1]] * 9
    for ranks in (case.ranks(7), case.ranks()):
        assert (ranks.items.tolist(), ranks.lengths.tolist()) == ([], [0] * 9)


def test_takes_no_held_out_items_and_no_users(plain):
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


def test_factors_of_width_zero_are_ties():
    users, items = np.empty((2, 0), np.float32), np.empty((5, 0), np.float32)
    seen = sparse.csr_matrix([[0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    result = se.top_k((users, items), 2, seen=seen)
    assert result.ids.tolist() == [[0, 2], [0, 1]]
    assert result.scores.tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_refuses_hits_in_place_of_lists(plain):
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
def overlapping():
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
def test_refuses_held_out_items_that_were_seen(overlapping, k):
    for options in ({}, {"overlap": "error"}):
        with raises(InvalidDataError, user=17):
            overlapping.ranks(k, **options)


@pytest.mark.parametrize("k", [8, None])
def test_reports_held_out_items_that_were_seen(overlapping, k):
    with warns() as caught:
        ranks = overlapping.ranks(k, overlap="report")
    assert len(caught) == 1
    check_ranks(overlapping, ranks, k=k or math.inf)
    if k:  # they count as misses
        lists = Rankings.from_topk(overlapping.top_k().ids, shape=overlapping.shape)
        check_same_metrics(ranks, lists, overlapping, accuracy([1, 8]))


def test_takes_tensors_without_a_copy():
    rng = np.random.default_rng(3)
    users, items = rng.normal(size=(7, 4)).astype(np.float32), rng.normal(size=(9, 4))
    case = Case(users, items, 3, None, sparse.csr_matrix(np.eye(7, 9)))
    lent = (Tensor(users), Tensor(items))
    assert results_of(replace(case, users=lent[0], items=lent[1])) == results_of(case)
    measured = check_factors(*lent)
    assert all(map(np.shares_memory, (side.values for side in measured), (users, items)))
    ids = {"users": [4, 2], "candidates": [0, 3, 5, 8], "exclude": [3]}
    expected = se.top_k((users, items), 3, **ids)
    found = se.top_k(lent, 3, **{name: Tensor(np.array(rows)) for name, rows in ids.items()})
    assert found.ids.tolist() == expected.ids.tolist()
    lists = Rankings.from_topk(Tensor(expected.ids), user_rows=Tensor(np.array([4, 2])))
    assert lists.items.tolist() == expected.ids.ravel().tolist()


def spoiled(array, value):
    array = array.copy()
    array[6, -1] = value
    return array


#: What is no array of finite factors.
NOT_FACTORS = {
    "nan": lambda array: spoiled(array, np.nan),
    "infinite": lambda array: spoiled(array.astype(np.float64), np.inf),
    "minus infinite": lambda array: spoiled(array, -np.inf),
    "one dimension": lambda array: array[0],
    "int": lambda array: array.astype(np.int64),
    "complex": lambda array: array.astype(np.complex64),
    "longdouble": lambda array: array.astype(np.longdouble),
    "masked": lambda array: np.ma.masked_equal(array, 0),
    "list": lambda array: array.tolist(),
    "sparse": sparse.csr_matrix,
    "on a GPU": lambda array: Tensor(array, device=CUDA),
    "with gradients": lambda array: Tensor(array, requires_grad=True),
}


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("side", ["user_factors", "item_factors"])
@pytest.mark.parametrize("form", NOT_FACTORS)
def test_refuses_what_is_not_an_array_of_factors(plain, of, side, form):
    whole = plain.users if side == "user_factors" else plain.items
    with raises(InvalidDataError, argument=side):
        call(of, plain, **{side: NOT_FACTORS[form](whole)})


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize(
    ("user", "item"),
    [
        ([1e200, 0.0], [1e200, 0.0]),
        ([1e200, -1e200], [1e200, 1e200]),  # ∞ − ∞
        ([-1e160], [1e160]),
        ([1e154] * 2, [1.7e154] * 2),  # each product fits
    ],
)
def test_refuses_factors_whose_scores_could_overflow(of, user, item):
    users, items = np.zeros((3, len(user))), np.ones((4, len(item)))
    users[1], items[2] = user, item
    arguments = {"held_out": sparse.csr_matrix(np.eye(3, 4)), "seen": None}
    case = Case(users, items, 2, None, arguments["held_out"])
    with raises(InvalidDataError):
        call(of, case)


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize(
    "change",
    [
        {"user_factors": np.ones((9, 5))},
        {"seen": sparse.csr_matrix((8, 40))},
        {"seen": sparse.csr_matrix((9, 39))},
        {"seen": np.zeros((9, 40))},
        {"candidates": [3, 40]},
        {"candidates": [0.5]},
        {"candidates": np.ones(40, bool)},
        {"candidates": [[0, 1]]},
        {"candidates": np.array([2**64 - 1], np.uint64)},
        {"candidates": []},
        {"candidates": [[0], [1], [2]]},
        {"candidates": np.array([[0, -1], [1, 2]])},
        {"candidates": {0: [0], 1: [1]}},
        {"candidates": "items"},
        {"candidates": {"a": ["x"]}},
        {"candidates": {0: 3}},
        {"candidates": pd.Index(["x"])},
        {"candidates": sparse.csr_matrix((9, 41))},
        {"candidates": [1, 2], "exclude": [2, 1]},
        {"exclude": [40]},
        {"exclude": [0, -2]},
        {"exclude": range(40)},
        {"item_factors": np.empty((0, 6)), "seen": None, "held_out": sparse.csr_matrix((9, 0))},
        {"num_threads": 0},
        {"num_threads": 1.5},
    ],
)  # fmt: skip
def test_refuses_inputs(plain, of, change):
    with raises(SparseEvalError):
        call(of, plain, **change)


@pytest.mark.parametrize(
    ("of", "change"),
    [
        *((of, {"k": k}) for of in ("top_k", "ranks up to k") for k in (0, -1, 2.0, "3", True)),
        *(("top_k", {"users": rows}) for rows in ([0, 9], [-1], [0.5], [[0, 1]], 3, ["a"])),
        ("top_k", {"users": np.ones(9, bool)}),
        *((of, {"held_out": sparse.csr_matrix((9, 41))}) for of in ALL[1:]),
        *((of, {"held_out": np.zeros((9, 40))}) for of in ALL[1:]),
        *((of, {"held_out": None}) for of in ALL[1:]),
        *((of, {"held_out": sparse.csr_matrix(-np.eye(9, 40))}) for of in ALL[1:]),
        *((of, {"held_out": sparse.csr_matrix(np.nan * np.eye(9, 40))}) for of in ALL[1:]),
        *((of, {"overlap": "drop"}) for of in ALL[1:]),
    ],
)
def test_refuses_inputs_of_one_function(plain, of, change):
    with raises(InvalidDataError):
        call(of, plain, **change)


def test_refuses_a_damaged_matrix(plain):
    for name in ("seen", "held_out"):
        damaged = getattr(plain, name).copy()
        damaged.indices[3] = 40
        for of in ALL[name == "held_out" :]:
            with raises(InvalidDataError, column=40):
                call(of, plain, **{name: damaged})


def settings_of_the_process():
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return pools, np.geterr(), signal.getsignal(signal.SIGINT)


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("of", ALL)
def test_shows_progress_on_request(plain, of, monkeypatch):
    def shown(stream, **options):
        monkeypatch.setattr(sys, "stderr", stream)
        call(of, plain, **options)
        return stream.getvalue()

    assert "100%" in shown(io.StringIO(), progress=True)
    assert shown(Terminal()) == ""  # it is done within a second
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert "100%" in shown(Terminal())
    assert shown(io.StringIO()) == shown(Terminal(), progress=False) == ""


@pytest.fixture(scope="module")
def long_work():
    """Return a case that takes at least half a second."""
    rng = np.random.default_rng(13)
    users, items = make_factors(rng, "unit", (40_000, 40_000, 64))
    held_out = (np.ones(120_000), rng.integers(40_000, size=120_000), np.arange(0, 120_001, 3))
    return Case(users, items, 5000, None, sparse.csr_matrix(held_out, (40_000, 40_000)))


@pytest.mark.slow  # interpreted, a block of users would take too long
@pytest.mark.parametrize("of", ALL)
def test_an_interrupt_ends_the_work(plain, long_work, of):
    need_posix()
    call(of, plain, num_threads=2)  # compiles
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    with threadpool_limits(3, "blas"):
        before = settings_of_the_process()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                call(of, long_work, k=10 if of == "top_k" else 5000, num_threads=2)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        assert settings_of_the_process() == before
    check_top_k(plain, plain.top_k(), k=plain.k)


def test_takes_any_k_beyond_the_catalogue(plain):
    whole = replace(plain, seen=None).ranks(plain.items.shape[0], overlap="report")
    for k in (2**31, 2**63, 10**30):
        ranks = replace(plain, seen=None).ranks(k, overlap="report")
        assert ranks.to_positions().toarray().tolist() == whole.to_positions().toarray().tolist()
        assert ranks.lengths.tolist() == whole.lengths.tolist()


def test_an_evaluation_names_its_own_options():
    factors = sparse.csr_matrix(np.eye(3))
    model = factor_model(np.eye(3), np.eye(3))
    with pytest.raises(InvalidDataError) as told:
        evaluate_model(model, factors * 0, factors, "recall@1", candidates=np.empty(0, np.int64))
    assert "exclude" not in str(told.value)
