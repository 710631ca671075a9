"""Read what NumPy and SciPy saved, and refuse all else without another error, or much memory."""

import io
import zipfile
from contextlib import suppress

import numpy as np
import pytest
from raising import raises

from sparse_eval.core.saved_arrays import UnreadableError, map_array, read_arrays, read_sparse

ARRAYS = [
    np.arange(12.0).reshape(3, 4),
    np.asfortranarray(np.arange(12, dtype=">i4").reshape(3, 4)),
    np.zeros((0, 5), np.float32),
    np.array(7),
    np.array(["ann", "bé"]),
    np.array([True, False]),
    np.array(["2026-01-01"], "datetime64[s]"),
]

#: Headers that NumPy's parser answers with errors of every kind, or whose arrays are not there.
HEADERS = [
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (-2, 2), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (True, 2), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': 'x', }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000000000, 2), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999999,), }",
    b"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }",
    b"{'descr': b'<f8', 'fortran_order': False, 'shape': (2,), }",
    b"{'descr': '<U999999999', 'fortran_order': False, 'shape': (2,), }",
    b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
    b"{'descr': '<c16', 'fortran_order': False, 'shape': (40, 4), }",
    b"  {'descr': '<f8'}\n x",
    b"'''",
    b"(" * 3000,
    b"\0" * 40,
    b"{1: 2}",
]


def npy(header, body=bytes(64)):
    header = header.ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body


def archive(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return stream


@pytest.mark.parametrize("array", ARRAYS, ids=str)
@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_come_back(array, compressed, tmp_path):
    np.save(tmp_path / "a.npy", array)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "a.npz", one=array, two=array.T)
    with (tmp_path / "a.npz").open("rb") as stream:
        found = read_arrays(stream)
    assert list(found) == ["one", "two"]
    for again in (map_array(tmp_path / "a.npy"), found["one"], found["two"].T):
        np.testing.assert_array_equal(again, array, strict=True)


def test_says_what_is_wrong(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100.0))
    whole = path.read_bytes()
    for content in (whole[:-1], whole + b"0", npy(HEADERS[9])):
        path.write_bytes(content)
        with raises(UnreadableError):
            map_array(path)
    square = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
    for stream in (io.BytesIO(b"no archive"), archive(x=npy(square, bytes(24)))):
        with raises(UnreadableError):
            read_arrays(stream)
    parts = {"indptr": [0, 1], "indices": [0.5], "data": [1.0], "shape": [1, 2], "format": "csr"}
    negative = {"row": [0], "col": [0], "data": [1.0], "shape": [-2, 3], "format": "coo"}
    for arrays in ({"x": np.ones(3)}, parts, negative):
        np.savez(tmp_path / "a.npz", **arrays)
        with raises(UnreadableError), (tmp_path / "a.npz").open("rb") as stream:
            read_sparse(stream)


def test_an_archive_takes_no_more_memory_than_its_size_explains():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("x.npy", "y.npy"):
            archive.writestr(name, bytes(2**20))
        for member in archive.infolist():
            member.file_size = 1000 * 2**20  # what DEFLATE can do
    with raises(UnreadableError):
        read_arrays(stream)


@pytest.mark.parametrize("header", HEADERS)
def test_headers_that_say_anything(header, tmp_path):
    (tmp_path / "a.npy").write_bytes(npy(header))
    with pytest.raises(UnreadableError):
        map_array(tmp_path / "a.npy")
    names = ("data", "format", "indices", "indptr", "shape")
    for read in (read_arrays, read_sparse):
        with suppress(UnreadableError):  # some are of arrays
            read(archive(**dict.fromkeys(names, npy(header))))
