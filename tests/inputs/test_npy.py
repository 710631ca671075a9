"""Matrices of which a block of rows is read at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.inputs.npy import release


@pytest.mark.parametrize("options", [{}, {"memory": 1 << 24}, {"keep": "totals"}])
def test_refuses_positions_that_are_stored_twice(options: dict[str, Any], tmp_path: Path) -> None:
    repeated = sparse.coo_matrix(([1, 2], ([1, 1], [2, 2])), shape=(2, 3))
    gains = sparse.csr_matrix([[0, 1, 0], [0, 1, 1]])
    sparse.save_npz(tmp_path / "p.npz", repeated)
    csr = sparse.csr_matrix(([1, 2], [2, 2], [0, 0, 2]), shape=(2, 3))
    for matrix in (repeated, csr):
        with raises(InvalidDataError, user=1):
            se.evaluate(matrix, gains, "mrr@2", **options)
    with raises(InvalidFileError):
        se.evaluate(tmp_path / "p.npz", gains, "mrr@2", **options)


@pytest.mark.parametrize("options", [{}, {"memory": 1 << 24}])
def test_sums_gains_that_are_stored_twice(options: dict[str, Any]) -> None:
    positions = sparse.csr_matrix([[1, 2, 0], [0, 1, 2]])
    repeated = sparse.coo_matrix(([1, 2], ([1, 1], [2, 2])), shape=(2, 3))
    found = se.evaluate(positions, repeated, ["dcg@2", "mrr@2"], **options)
    assert found.mean() == se.evaluate(positions, repeated.tocsr(), ["dcg@2", "mrr@2"]).mean()


@pytest.mark.parametrize("mode", ["r", "r+", "c"])
def test_pages_that_are_released_hold_what_was_written_to_them(mode: Any, tmp_path: Path) -> None:
    np.save(tmp_path / "values.npy", np.arange(9000.0))
    values = np.load(tmp_path / "values.npy", mmap_mode=mode)
    if mode != "r":
        values[7] = -1
    before = values.copy()
    release(values, values[5:], sparse.csr_matrix(np.eye(2)), None)
    np.testing.assert_array_equal(values, before)
