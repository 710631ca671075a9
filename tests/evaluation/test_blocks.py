"""Users in blocks, of matrices that do not fit: the bits of the whole."""

from __future__ import annotations

import gc
import weakref
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from merge_cases import N_ITEMS, same_bits, same_random
from raising import raises
from scipy import sparse
from tables_cases import saved_csr

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError, InvalidMetricError
from sparse_eval.evaluation import run
from sparse_eval.evaluation.run import evaluate_block
from sparse_eval.inputs.npy import open_csr

N_USERS = 23
LEAST = run.MINIMUM
PLAIN = ["ndcg@3", "recall(average=micro)@3", "coverage@2"]


def positions(seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    ids = rng.permuted(np.tile(np.arange(N_ITEMS), (N_USERS, 1)), axis=1)[:, :6]
    ids[np.arange(6) >= rng.integers(0, 7, N_USERS)[:, None]] = -1
    return se.Rankings.from_topk(ids, shape=(N_USERS, N_ITEMS)).to_positions()


def gains(seed: int = 1) -> Any:
    rng = np.random.default_rng(seed)
    found = rng.integers(1, 4, (N_USERS, N_ITEMS)) * (rng.random((N_USERS, N_ITEMS)) < 0.3)
    found[[0, 9, 22]] = 0
    return sparse.csr_matrix(found.astype(np.float64))


@pytest.fixture
def inputs() -> dict[str, Any]:
    rng = np.random.default_rng(2)
    return {
        "train": sparse.csr_matrix((rng.random((N_USERS, N_ITEMS)) < 0.3).astype(np.float64)),
        "items": se.ItemData(
            groups=rng.integers(0, 3, N_ITEMS), vectors=rng.normal(size=(N_ITEMS, 3))
        ),
    }


def small_blocks() -> Any:
    """So few rows in each block that a matrix has several."""
    return mock.patch.object(run, "PER_USER", LEAST // 5)


def mapped(folder: Path, matrix: Any) -> Any:
    saved_csr(folder, matrix)
    parts = [
        np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "indptr")
    ]
    return sparse.csr_matrix(tuple(parts), shape=matrix.shape)


def test_a_budget(inputs: dict[str, Any], tmp_path: Path) -> None:
    lists, held = positions(), gains()
    metrics = [*PLAIN, "err@3", "gini@3", "diversity(similarity=vectors)@3", "novelty@3"]
    expected = se.evaluate(lists, held, metrics, **inputs)
    with small_blocks():
        for name, sides in {
            "coo": (lists.tocoo(), held.tocoo()),
            "mapped": (mapped(tmp_path / "a", lists), mapped(tmp_path / "b", held)),
            "mixed": (se.Rankings.from_positions(lists), held),
        }.items():
            with mock.patch.object(run, "evaluate_block", wraps=run.evaluate_block) as one:
                found = se.evaluate(*sides, metrics, **inputs, memory=LEAST)
            assert one.call_count >= 5, name
            same_bits(found, expected)
            same_random(found, expected)


def test_sides_of_different_sizes() -> None:
    lists, held = positions(), gains()
    of_each = ["ndcg@3", "map"]  # lists without some of their items have no others
    for a, b, metrics in (
        (lists[:15], held, PLAIN),
        (lists, held[:15], PLAIN),
        (lists, held[:, :7], PLAIN),
        (lists[:, :7], held, of_each),
    ):
        expected = se.evaluate(a, b, metrics)
        with small_blocks():
            same_bits(se.evaluate(a, b, metrics, memory=LEAST), expected)


def test_what_is_stored_twice_is_summed_before_the_largest_gain_is_known() -> None:
    held = gains()
    twice = sparse.csr_matrix(
        (
            np.repeat(held.data / 2, 2),
            np.repeat(held.indices, 2),
            2 * held.indptr,
        ),
        shape=held.shape,
    )
    twice = sparse.csr_matrix(
        (np.append(twice.data, 99.0), np.append(twice.indices, 0), twice.indptr), shape=held.shape
    )
    metrics = ["err@3", "rbp(gain=linear)@3"]
    expected = se.evaluate(positions(), held, metrics)
    with small_blocks():
        found = se.evaluate(positions(), twice, metrics, memory=LEAST)
    same_bits(found, expected)


def damaged(matrix: Any, **parts: Any) -> Any:
    found = matrix.copy()
    for name, part in parts.items():
        setattr(found, name, part)
    return found


def changed(array: Any, place: int, value: Any) -> Any:
    found = array.copy()
    found[place] = value
    return found


def test_matrices_that_are_refused_within_a_budget() -> None:
    lists, held = positions(), gains()
    with small_blocks():
        for a, b in (
            (damaged(lists, data=changed(lists.data, -1, 0)), held),
            (lists, damaged(held, data=changed(held.data, -1, np.nan))),
            (damaged(lists, indices=changed(lists.indices, -1, N_ITEMS)), held),
            (damaged(lists, indptr=changed(lists.indptr, 7, 10**6)), held),
            (damaged(lists, indptr=lists.indptr[:-1]), held),
            (lists, damaged(held, indptr=changed(held.indptr, -1, 10**6))),
            (lists.toarray(), held),
            ([lists[:5], lists[5:]], held),
            (lists, "nowhere"),
        ):
            with raises((InvalidDataError, InvalidFileError)):
                se.evaluate(a, b, [*PLAIN, "err@3"], memory=LEAST)


def test_a_budget_that_is_too_small() -> None:
    for memory in (0, LEAST - 1, -1, 1.5, True, "1G"):
        with raises(InvalidDataError, argument="memory"):
            se.evaluate(positions(), gains(), PLAIN, memory=memory)  # type: ignore[arg-type]
    n = 200_000
    wide = sparse.csr_matrix((np.ones(1), np.zeros(1, int), np.r_[0, np.ones(n, int)]), (n, 1))
    with raises(InvalidDataError):
        se.evaluate(wide, wide, "mrr", memory=LEAST)
    assert se.evaluate(wide, wide, "mrr", memory=LEAST, keep="totals")["mrr"] == 1


FILES: dict[str, tuple[str, Any, str]] = {
    "no array": ("indices", b"hello"),
    "objects": ("data", np.array([{}], object)),
    "a shape of one": ("shape", np.array([3])),
    "a text shape": ("shape", np.array(["a", "b"])),
    "a negative shape": ("shape", np.array([-1, 3])),
    "another shape": ("shape", np.array([22, 3])),
    "float indices": ("indices", np.zeros(3)),
    "text": ("data", np.array(["a"] * positions().nnz)),
    "too short": ("data", np.ones(3, np.int32)),
}


@pytest.mark.parametrize("memory", [None, LEAST])
@pytest.mark.parametrize("name", FILES)
def test_folders_that_are_refused(name: str, memory: int | None, tmp_path: Path) -> None:
    folder = saved_csr(tmp_path / "lists", positions())
    which, content = FILES[name]
    file = folder / f"{which}.npy"
    if isinstance(content, bytes):
        file.write_bytes(content)
    else:
        np.save(file, content, allow_pickle=True)
    with raises(InvalidFileError):
        se.evaluate(folder, gains(), PLAIN, memory=memory)


def test_parts_of_other_widths_stay_on_disk(tmp_path: Path) -> None:
    lists, held = positions(), gains()
    wide = damaged(lists, indptr=lists.indptr.astype(np.int64))
    folder = saved_csr(tmp_path / "lists", wide)
    matrix = open_csr(folder)
    assert isinstance(matrix.indices, np.memmap)
    assert isinstance(matrix.indptr, np.memmap)
    expected = se.evaluate(lists, held, PLAIN)
    same_bits(se.evaluate(folder, held, PLAIN), expected)
    with small_blocks():
        same_bits(se.evaluate(folder, held, PLAIN, memory=LEAST), expected)


def test_tied_lists() -> None:
    scores = np.random.default_rng(0).integers(0, 3, (N_USERS, N_ITEMS)).astype(np.float64)
    lists = se.Rankings.from_scores(scores, k=4, ties="average")
    with small_blocks():
        for held in (gains(), gains()[:5]):
            expected = se.evaluate(lists, held, "ndcg@3")
            same_bits(se.evaluate(lists, held, "ndcg@3", memory=LEAST), expected)
        with raises(InvalidMetricError):
            se.evaluate(lists, gains(), "mrr", memory=LEAST)


def test_a_block_is_free_when_its_part_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[Any] = []

    def measured(*arguments: Any) -> Any:
        block = evaluate_block(*arguments)
        blocks.append(weakref.ref(block))
        return block

    monkeypatch.setattr(run, "evaluate_block", measured)
    gc.disable()
    try:
        with small_blocks():
            se.evaluate(positions(), gains(), PLAIN, memory=LEAST)
        assert len(blocks) > 1
        assert not any(block() for block in blocks)
    finally:
        gc.enable()
