"""Loading sparse matrices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from events import rows
from raising import raises
from scipy import sparse

from sparse_eval.datasets import guess_format, load, load_npz
from sparse_eval.errors import InvalidFileError


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("make", [sparse.coo_matrix, sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_reads_every_sparse_format(tmp_path, kind, make, dtype):
    values = np.array([1, 0, 1]).astype(dtype)
    matrix = make((values, ([0, 1, 1], [2, 0, 2])), shape=(3, 4)).asformat(kind)
    path = tmp_path / "m.npz"
    sparse.save_npz(path, matrix)
    interactions = load_npz(path)
    assert interactions.shape == (3, 4)
    assert isinstance(interactions.users, pd.RangeIndex)
    assert interactions.timestamps is None
    assert sorted(rows(interactions)) == [(0, 2, 1.0), (1, 0, 0.0), (1, 2, 1.0)]
    assert guess_format(path) == "npz"
    assert load(path).matrix().nnz == 3


def test_refuses_damaged_and_unusable_files(tmp_path, write):
    path = tmp_path / "m.npz"
    with raises(InvalidFileError):
        load_npz(path)
    good = sparse.random(200, 50, 0.2, format="csr", random_state=0)
    sparse.save_npz(path, good)
    content = path.read_bytes()
    for broken in (content[:-100], content[: len(content) // 2], b"", b"user,item\n1,2\n"):
        with raises(InvalidFileError):
            load_npz(write("broken.npz", broken))
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    with pytest.raises(InvalidFileError):
        load_npz(write("damaged.npz", bytes(damaged)))
    for content_of in ({"x": np.ones(3)}, {"format": np.array("csr"), "data": [{}]}):
        np.savez(path, **content_of)
        with raises(InvalidFileError):
            load_npz(path)
    with path.open("wb") as file:
        np.save(file, np.array([{}], dtype=object))
    with raises(InvalidFileError):
        load_npz(path)
    sparse.save_npz(path, sparse.eye(3, format="dia"))
    with raises(InvalidFileError):
        load_npz(path)
    sparse.save_npz(path, sparse.csr_matrix((3, 4)))
    with raises(InvalidFileError):
        load_npz(path)
    for value in (-1.0, np.nan, np.inf):
        sparse.save_npz(path, sparse.csr_matrix([[0, 1], [value, 0]]))
        with raises(InvalidFileError):
            load_npz(path)
    sparse.save_npz(path, sparse.csr_matrix([[1j]]))
    with raises(InvalidFileError):
        load_npz(path)
    outside = sparse.csr_matrix([[1, 1]])
    outside.indices[1] = 7
    sparse.save_npz(path, outside)
    with raises(InvalidFileError):
        load_npz(path)
    sparse.save_npz(path, sparse.coo_matrix(([1], ([0], [2**31])), shape=(1, 2**31 + 1)))
    with raises(InvalidFileError):
        load_npz(path)
    sparse.save_npz(path, sparse.coo_array(np.ones(3)))
    with raises(InvalidFileError):
        load_npz(path)
