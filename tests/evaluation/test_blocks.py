"""Users in blocks, of matrices that do not fit: the bits of the whole."""

import gc
import warnings
import weakref
from unittest import mock

import numpy as np
import pytest
from merge_cases import N_ITEMS, same_bits
from raising import raises
from scipy import sparse
from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.evaluation import execution
from sparse_eval.evaluation.execution import evaluate_block
from sparse_eval.inputs.npy import open_csr

N_USERS = 23
LEAST = execution.MINIMUM
PLAIN = ["ndcg@3", "recall(average=micro)@3", "coverage@2"]


def positions(seed=0):
    rng = np.random.default_rng(seed)
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (N_USERS, 1)), axis=1)[:, :6]
    ids[np.arange(6) >= rng.integers(0, 7, N_USERS)[:, None]] = -1
    return se.Rankings.from_topk(ids, shape=(N_USERS, N_ITEMS)).to_positions()


def gains(seed=1):
    rng = np.random.default_rng(seed)
    found = rng.integers(1, 4, (N_USERS, N_ITEMS)) * (rng.random((N_USERS, N_ITEMS)) < 0.3)
    found[[0, 9, 22]] = 0
    return sparse.csr_matrix(found.astype(np.float64))


def in_blocks(*sides, **options):
    """Evaluate in at least five blocks."""
    with (
        mock.patch.object(execution, "PER_USER", LEAST // 5),
        mock.patch.object(execution, "evaluate_block", wraps=execution.evaluate_block) as one,
    ):
        found = se.evaluate(*sides, memory=LEAST, **options)
    assert one.call_count >= 5
    return found


def test_sides_of_different_sizes():
    lists, held = positions(), gains()
    scores = np.random.default_rng(0).integers(0, 3, (N_USERS, N_ITEMS)).astype(np.float64)
    tied = se.Rankings.from_scores(scores, k=4, ties="average")
    of_each = ["ndcg@3", "map"]  # lists without some of their items have no others
    for a, b, metrics in (
        (lists[:15], held, PLAIN),
        (lists, held[:15], PLAIN),
        (lists, held[:, :7], PLAIN),
        (lists[:, :7], held, of_each),
        (tied, held, "ndcg@3"),
        (tied, held[:5], "ndcg@3"),
    ):
        same_bits(in_blocks(a, b, metrics), se.evaluate(a, b, metrics))


def test_what_is_stored_twice_is_summed_before_the_largest_gain_is_known():
    held = gains()
    # Two halves of each gain, and a large one after the last row ends.
    data, indices = np.repeat(held.data / 2, 2), np.repeat(held.indices, 2)
    parts = np.append(data, 99.0), np.append(indices, 0), 2 * held.indptr
    twice = sparse.csr_matrix(parts, shape=held.shape)
    metrics = ["err@3", "rbp(gain=linear)@3"]
    same_bits(in_blocks(positions(), twice, metrics), se.evaluate(positions(), held, metrics))


def damaged(matrix, name, place, value):
    """Return a matrix with another value in one of its parts."""
    found = matrix.copy()
    getattr(found, name)[place] = value
    return found


def test_matrices_that_are_refused_within_a_budget():
    lists, held = positions(), gains()
    short = lists.copy()
    short.indptr = short.indptr[:-1]
    for a, b in (
        (damaged(lists, "data", -1, 0), held),
        (lists, damaged(held, "data", -1, np.nan)),
        (damaged(lists, "indices", -1, N_ITEMS), held),
        (damaged(lists, "indptr", 7, 10**6), held),
        (short, held),
        (lists, damaged(held, "indptr", -1, 10**6)),
        (lists.toarray(), held),
    ):
        with raises(InvalidDataError):
            in_blocks(a, b, [*PLAIN, "err@3"])


def test_a_budget_that_is_too_small():
    with raises(InvalidDataError, argument="memory"):
        se.evaluate(positions(), gains(), PLAIN, memory=LEAST - 1)
    n = 200_000
    wide = sparse.csr_matrix((np.ones(1), np.zeros(1, int), np.r_[0, np.ones(n, int)]), (n, 1))
    with raises(InvalidDataError):
        se.evaluate(wide, wide, "mrr", memory=LEAST)
    assert se.evaluate(wide, wide, "mrr", memory=LEAST, keep="totals")["mrr"] == 1


@pytest.mark.parametrize(
    ("part", "content"),
    [
        ("data", np.array([{}], object)),
        ("data", np.array(["a"] * positions().nnz)),
        ("data", np.ones(3, np.int32)),
        ("indices", np.zeros(3)),
        ("shape", np.array([3])),
        ("shape", np.array(["a", "b"])),
        ("shape", np.array([-1, 3])),
        ("shape", np.array([22, 3])),
    ],
)
def test_folders_that_are_refused(part, content, tmp_path):
    folder = saved_csr(tmp_path / "lists", positions())
    np.save(folder / f"{part}.npy", content, allow_pickle=True)
    with raises(InvalidFileError):
        se.evaluate(folder, gains(), PLAIN)


@pytest.mark.long
def test_parts_of_other_widths_stay_on_disk(tmp_path):
    lists, held = positions(), gains()
    wide = lists.copy()
    wide.indptr = lists.indptr.astype(np.int64)
    folder = saved_csr(tmp_path / "lists", wide)
    matrix = open_csr(folder)
    assert isinstance(matrix.indices, np.memmap)
    assert isinstance(matrix.indptr, np.memmap)
    expected = se.evaluate(lists, held, PLAIN)
    same_bits(se.evaluate(folder, held, PLAIN), expected)
    same_bits(in_blocks(folder, held, PLAIN), expected)


def test_a_block_is_free_when_its_part_is_made():
    blocks = []

    def measured(*arguments):
        block = evaluate_block(*arguments)
        blocks.append(weakref.ref(block))
        return block

    gc.disable()
    try:
        with mock.patch.object(execution, "evaluate_block", measured):
            in_blocks(positions(), gains(), PLAIN)
        assert len(blocks) > 1
        assert not any(block() for block in blocks)
    finally:
        gc.enable()


@pytest.mark.parametrize("row", [None, 0, 11, 22])
def test_warns_of_lists_without_hits_if_no_block_has_any(row):
    users = np.arange(N_USERS)
    held = sparse.csr_matrix((np.ones(N_USERS), (users, 0 * users)), (N_USERS, 2))
    lists = np.ones((N_USERS, 1), int)
    if row is not None:
        lists[row] = 0  # a hit
    lists = se.Rankings.from_topk(lists, shape=(N_USERS, 2)).to_positions()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        in_blocks(lists, held, metrics="ndcg@1, coverage@1")
    said = [warning for warning in caught if "no list contains" in str(warning.message)]
    assert len(said) == (row is None)
