"""Inputs that retrieval takes and refuses, and what it does to the process."""

import math
import signal
from dataclasses import replace

import numpy as np
import pytest
from raising import raises, warns
from retrieval_cases import Case, make_case, make_factors, results_of
from scipy import sparse
from systems import need_posix
from tensors import Tensor
from threadpoolctl import threadpool_info, threadpool_limits

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, SparseEvalError
from sparse_eval.retrieval.ranker import check_factors


@pytest.fixture(scope="module")
def plain():
    rng = np.random.default_rng(9)
    users, items = make_factors(rng, "whole", (9, 40, 6))
    return make_case(rng, users, items, 7)


def turned(array):
    """Store the rows from the last to the first, the columns one after the other, swapped bytes."""
    return np.asfortranarray(array[::-1].astype(array.dtype.newbyteorder()))[::-1]


# Two sides of different dtypes have their own kernels, which take half a minute to compile.
@pytest.mark.parametrize("layout", [turned, pytest.param(np.float64, marks=pytest.mark.long)])
def test_factors_of_any_layout(plain, layout):
    users, items = layout(plain.users), layout(plain.items)
    users.flags.writeable = items.flags.writeable = False
    expected = results_of(plain)
    for one, other in ((users, items), (users, plain.items), (plain.users, items)):
        assert results_of(replace(plain, users=one, items=other)) == expected


@pytest.mark.parametrize("name", ["seen", "held_out"])
def test_unsorted_rows_that_cannot_be_written(plain, name):
    matrix = getattr(plain, name)
    mirrored = matrix[:, ::-1].sorted_indices()
    parts = mirrored.data, plain.shape[1] - 1 - mirrored.indices, mirrored.indptr
    for part in parts:
        part.flags.writeable = False
    unsorted = sparse.csr_array(parts, matrix.shape)
    assert results_of(replace(plain, **{name: unsorted})) == results_of(plain)


def test_takes_tensors_without_a_copy(plain):
    lent = Tensor(plain.users), Tensor(plain.items)
    assert results_of(replace(plain, users=lent[0], items=lent[1])) == results_of(plain)
    measured = check_factors(*lent)
    assert np.shares_memory(measured[0].values, plain.users)
    assert np.shares_memory(measured[1].values, plain.items)
    ids = {"users": [4, 2], "candidates": [0, 3, 5, 8], "exclude": [3]}
    found = se.top_k(lent, 3, **{name: Tensor(np.array(rows)) for name, rows in ids.items()})
    assert found.ids.tolist() == se.top_k((plain.users, plain.items), 3, **ids).ids.tolist()


def test_relevance_counts_from_its_threshold(plain):
    relevance = se.Relevance.from_csr(plain.held_out, threshold=3)
    by_hand = plain.held_out.copy()
    by_hand.data[by_hand.data < 3] = 0
    assert 0 < np.count_nonzero(by_hand.data) < np.count_nonzero(plain.held_out.data)
    by_hand = replace(plain, held_out=by_hand)
    assert results_of(replace(plain, held_out=relevance)) == results_of(by_hand)


def test_a_smaller_held_out_matrix_is_padded(plain):
    small = plain.held_out[:6, :31]
    padded = small.copy()
    padded.resize(plain.shape)
    padded = replace(plain, held_out=padded)
    for held_out in (small, se.Relevance.from_csr(small)):
        padded.check_ranks(replace(plain, held_out=held_out).ranks(7), 7)


def test_users_in_any_order_and_more_than_once(plain):
    everyone = plain.top_k()
    picked = [8, 0, 3, 3, 8, 1]
    result = plain.top_k(users=picked)
    assert result.ids.tolist() == everyone.ids[picked].tolist()
    assert result.scores.tobytes() == everyone.scores[picked].tobytes()
    assert plain.top_k(users=[]).ids.shape == (0, 7)


def test_no_held_out_items_no_users_and_no_factors(plain):
    for nothing in (plain.held_out * 0, sparse.csr_matrix((0, 0))):
        replace(plain, held_out=plain.held_out * 0).check_ranks(
            replace(plain, held_out=nothing).ranks()
        )
    nobody = Case(np.empty((0, 6)), plain.items, 5, None, sparse.csr_matrix((0, 40)))
    assert nobody.top_k().ids.shape == (0, 5)
    assert nobody.ranks(5).shape == (0, 40)
    Case(np.empty((9, 0)), np.empty((40, 0)), 5, plain.seen, plain.held_out).check()  # all tie


def test_ranks_are_no_lists():
    """Not even if there is no gap between the hits of a user."""
    held_out = sparse.csr_matrix([[1, 0, 0]])
    ranks = se.ranks((np.ones((1, 1)), np.array([[3.0], [2.0], [1.0]])), held_out, 3)
    with pytest.raises(InvalidDataError):
        se.evaluate(ranks, held_out, "coverage@3")


@pytest.mark.parametrize("k", [7, None])
def test_held_out_items_that_were_seen(plain, k):
    both = sparse.csr_matrix(([3.0, 3.0, 3.0], ([4, 4, 7], [23, 31, 2])), plain.shape)
    case = replace(plain, seen=plain.seen + both, held_out=plain.held_out + both)
    with raises(InvalidDataError, user=4):
        case.ranks(k)
    with warns() as caught:
        ranks = case.ranks(k, overlap="report")
    assert len(caught) == 1
    case.check_ranks(ranks, k or math.inf)
    lists = se.Rankings.from_topk(case.top_k(40).ids, shape=case.shape)
    of_ranks, of_lists = (  # they count as misses
        se.evaluate(found, case.held_out, ["ndcg@7", "recall@7", "err@7"], train=case.seen)
        for found in (ranks, lists)
    )
    assert of_ranks._values.columns.tobytes() == of_lists._values.columns.tobytes()


def spoiled(array, value):
    array = array.copy()
    array[6, -1] = value
    return array


@pytest.mark.parametrize(
    "spoil",
    [
        lambda array: spoiled(array, np.nan),
        lambda array: spoiled(array, -np.inf),
        lambda array: array[0],
        lambda array: array.astype(np.int64),
        lambda array: array.astype(np.longdouble),
        lambda array: array.tolist(),
        lambda array: Tensor(array, requires_grad=True),
    ],
)
def test_refuses_what_is_not_an_array_of_factors(plain, spoil):
    with raises(InvalidDataError, argument="user_factors"):
        se.top_k((spoil(plain.users), plain.items), 3)
    with raises(InvalidDataError, argument="item_factors"):
        se.ranks((plain.users, spoil(plain.items)), plain.held_out)


@pytest.mark.parametrize(
    ("user", "item"),
    [
        ([1e200, -1e200], [1e200, 1e200]),  # ∞ − ∞
        ([1e154] * 2, [1.7e154] * 2),  # each product fits
    ],
)
def test_refuses_factors_whose_scores_could_overflow(user, item):
    with raises(InvalidDataError):
        se.top_k((np.array([[0.0, 0.0], user]), np.array([item, [1.0, 1.0]])), 2)


@pytest.mark.parametrize("candidates", [None, sparse.csr_matrix(np.ones((9, 40)))])
def test_refuses_factors_whose_scores_lose_their_order(plain, candidates):
    users, items = plain.users.astype(np.float64), plain.items.astype(np.float64)
    users[:4] *= 1e-200
    users[2] = 0.0  # cold
    options = {"candidates": candidates}
    expected = se.top_k((users, items), 3, **options)
    found = se.top_k((users * 2.0**-100, items * 2.0**-50), 3, **options)  # no digit is lost
    assert np.array_equal(found.ids, expected.ids)
    small, held_out = (users, items * 1e-130), sparse.csr_matrix(np.ones((9, 40)))
    for call in (
        lambda: se.top_k(small, 3, **options),
        lambda: se.ranks(small, held_out, **options),
        lambda: se.evaluate_model(small, sparse.csr_matrix((9, 40)), held_out, "ndcg@3", **options),
    ):
        with raises(InvalidDataError):
            call()
    others = se.top_k(small, 3, users=[2, 4, 8], **options)
    assert np.array_equal(others.ids, expected.ids[[2, 4, 8]])


def test_columns_that_add_nothing_do_not_hide_that_scores_lose_their_order(plain):
    users, items = (side.astype(np.float64) * 1e-200 for side in (plain.users, plain.items))
    ones, zeros = np.ones((len(users), 1)), np.zeros((len(items), 1))
    for model in (
        se.factor_model(users, items, similarity="euclidean"),
        se.factor_model(users, items, item_biases=zeros[:, 0]),
        (np.hstack([ones, users]), np.hstack([zeros, items])),
    ):
        with raises(InvalidDataError):
            se.top_k(model, 3)


def test_scores_that_are_small_and_exact_keep_their_order():
    items = np.ldexp([[1.0], [3.0], [2.0], [0.0]], -1074)  # of a few units of the last digit
    assert se.top_k((np.array([[1.0]]), items), 4).ids.tolist() == [[1, 2, 0, 3]]
    assert se.top_k((np.array([[0.5]]), items), 4, exclude=[0, 1]).ids.tolist() == [[2, 3]]
    with raises(InvalidDataError):
        se.top_k((np.array([[0.25]]), items), 4)
    # A score that is lost next to others that are not.
    items = np.array([[1e-200], [1e-150], [1.0]])
    assert se.top_k((np.array([[1e-150]]), items), 3).ids.tolist() == [[2, 1, 0]]


@pytest.mark.parametrize(
    "change",
    [
        {"model": (np.ones((9, 5)), np.ones((40, 6)))},
        {"train": sparse.csr_matrix((8, 40))},
        {"train": sparse.csr_matrix((9, 39))},
        {"candidates": [3, 40]},
        {"candidates": [-1]},
        {"candidates": [0.5]},
        {"candidates": np.ones(40, bool)},
        {"candidates": [[0, 1]]},
        {"candidates": np.array([2**64 - 1], np.uint64)},
        {"candidates": []},
        {"candidates": {0: [0], 1: [1]}},
        {"candidates": {0: 3}},
        {"candidates": "items"},
        {"candidates": sparse.csr_matrix((9, 41))},
        {"candidates": [1, 2], "exclude": [2, 1]},
        {"exclude": [0, -2]},
        {"num_threads": 0},
        {"k": 2.0},
        {"held_out": sparse.csr_matrix((9, 41))},
        {"held_out": np.zeros((9, 40))},
        {"held_out": sparse.csr_matrix(-np.eye(9, 40))},
        {"overlap": "drop"},
    ],
)
def test_refuses_inputs(plain, change):
    given = {"model": (plain.users, plain.items), "held_out": plain.held_out, "train": plain.seen}
    with raises(SparseEvalError):
        se.ranks(**given | change)


def test_refuses_other_users_cutoffs_and_damaged_matrices(plain):
    for users in ([0, 9], [-1], [0.5], np.ones(9, bool), 3):
        with raises(InvalidDataError):
            plain.top_k(users=users)
    with raises(InvalidDataError, argument="k"):
        plain.top_k(True)
    for name in ("seen", "held_out"):
        damaged = getattr(plain, name).copy()
        damaged.indices[3] = 40
        with raises(InvalidDataError, column=40):
            replace(plain, **{name: damaged}).ranks()


WAYS = {
    "top_k": lambda case, **options: case.top_k(10, **options),
    "ranks up to k": lambda case, **options: case.ranks(case.k, **options),
    "all ranks": lambda case, **options: case.ranks(**options),
}


@pytest.mark.parametrize("way", WAYS)
def test_shows_progress_on_request(plain, way, capsys):
    WAYS[way](plain, progress=True)
    assert "100%" in capsys.readouterr().err
    WAYS[way](plain)
    assert capsys.readouterr().err == ""


@pytest.fixture(scope="module")
def long_work():
    """Return a case that takes at least half a second."""
    rng = np.random.default_rng(13)
    users, items = make_factors(rng, "unit", (40_000, 40_000, 64))
    held_out = (np.ones(120_000), rng.integers(40_000, size=120_000), np.arange(0, 120_001, 3))
    return Case(users, items, 5000, None, sparse.csr_matrix(held_out, (40_000, 40_000)))


def settings_of_the_process():
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return pools, np.geterr(), signal.getsignal(signal.SIGINT)


@pytest.mark.slow  # interpreted, a block of users would take too long
@pytest.mark.parametrize("way", WAYS)
def test_an_interrupt_ends_the_work(plain, long_work, way):
    need_posix()
    WAYS[way](plain, num_threads=2)  # compiles
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    with threadpool_limits(3, "blas"):
        before = settings_of_the_process()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                WAYS[way](long_work, num_threads=2)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        assert settings_of_the_process() == before
    plain.check_top_k(plain.top_k(), plain.k)
