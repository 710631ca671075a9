"""Loading sparse matrices."""

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
def test_reads_every_sparse_format(tmp_path, kind, make):
    matrix = make((np.array([True, False, True]), ([0, 1, 1], [2, 0, 2])), shape=(3, 4)).asformat(
        kind
    )
    path = tmp_path / "m.npz"
    sparse.save_npz(path, matrix)
    interactions = load_npz(path)
    assert interactions.shape == (3, 4)
    assert isinstance(interactions.users.index, pd.RangeIndex)
    assert interactions.timestamps is None
    assert sorted(rows(interactions)) == [(0, 2, 1.0), (1, 0, 0.0), (1, 2, 1.0)]
    assert guess_format(path) == "npz"
    assert load(path).matrix().nnz == 3


def test_refuses_damaged_and_unusable_files(tmp_path, write):
    path = tmp_path / "m.npz"
    with raises(InvalidFileError):
        load_npz(path)
    sparse.save_npz(path, sparse.random(200, 50, 0.2, format="csr", random_state=0))
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    for broken in (content[:-100], b"", b"user,item\n1,2\n", bytes(damaged)):
        with pytest.raises(InvalidFileError):
            load_npz(write("broken.npz", broken))
    np.savez(path, format=np.array("csr"), data=[{}])
    with raises(InvalidFileError):
        load_npz(path)
    outside = sparse.csr_matrix([[1, 1]])
    outside.indices[1] = 7
    for matrix in (
        sparse.csr_matrix((3, 4)),
        sparse.csr_matrix([[0, 1], [-1.0, 0]]),
        sparse.csr_matrix([[np.nan]]),
        sparse.csr_matrix([[1j]]),
        outside,
        sparse.coo_matrix(([1], ([0], [2**31])), shape=(1, 2**31 + 1)),
        sparse.coo_array(np.ones(3)),
    ):
        sparse.save_npz(path, matrix)
        with raises(InvalidFileError):
            load_npz(path)
