"""Read what NumPy and SciPy saved, and refuse all else without another error, or much memory."""

import io
import zipfile

import numpy as np
import pytest
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.core.saved_arrays import UnreadableError, map_array, read_arrays, read_sparse

HOLDOUT = se.split.random(se.datasets.synthetic(n_users=40, n_items=30, seed=0), seed=0)
MODEL = se.train_als(HOLDOUT.train, factors=4, iterations=1)
TRAIN, VALIDATION = (part.csr.copy() for part in (HOLDOUT.train, HOLDOUT.validation))

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


def with_member(path, name, content):
    """Return an ``.npz`` file with other content of one of its members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(stream, "w") as new:
        for member in old.namelist():
            new.writestr(member, content if member == name else old.read(member))
    return stream.getvalue()


@pytest.mark.parametrize("array", ARRAYS, ids=str)
@pytest.mark.parametrize("compressed", [False, True])
def test_arrays_come_back(array, compressed, tmp_path):
    np.save(tmp_path / "a.npy", array)
    (np.savez_compressed if compressed else np.savez)(tmp_path / "a.npz", one=array, two=array.T)
    with (tmp_path / "a.npz").open("rb") as stream:
        found = read_arrays(stream)
    assert list(found) == ["one", "two"]
    for again in (map_array(tmp_path / "a.npy"), found["one"], found["two"].T):
        assert again.dtype == array.dtype
        np.testing.assert_array_equal(again, array)
        assert again.shape == array.shape


def test_says_what_is_wrong(tmp_path):
    path = tmp_path / "a.npy"
    np.save(path, np.arange(100.0))
    path.write_bytes(path.read_bytes()[:-1])
    with raises(UnreadableError):
        map_array(path)
    path.write_bytes(path.read_bytes() + bytes(9))  # longer than it says
    with raises(UnreadableError):
        map_array(path)
    path.write_bytes(npy(HEADERS[9]))
    with raises(UnreadableError):
        map_array(path)
    np.savez(tmp_path / "a.npz", x=np.ones(3))
    with raises(UnreadableError):
        read_arrays(io.BytesIO(b"no archive"))
    with raises(UnreadableError), (tmp_path / "a.npz").open("rb") as stream:
        read_sparse(stream)
    parts = {"indptr": [0, 1], "indices": [0.5], "data": [1.0], "shape": [1, 2], "format": "csr"}
    np.savez(tmp_path / "a.npz", **parts)
    with raises(UnreadableError), (tmp_path / "a.npz").open("rb") as stream:
        read_sparse(stream)


@pytest.mark.parametrize("dtype", ["<U3", ">U3"])
def test_text_is_of_characters_that_exist(dtype, tmp_path):
    labels = np.array([["ann", "\U0010ffff"], ["", "b"]], dtype, order="F")
    np.save(tmp_path / "a.npy", labels)
    assert map_array(tmp_path / "a.npy").tolist() == labels.tolist()
    content = (tmp_path / "a.npy").read_bytes()
    largest = labels[:1, 1:].tobytes()[:4]
    damaged = content.replace(
        largest, bytes([*largest[:3], 1] if dtype[0] == "<" else [1, *largest[1:]])
    )
    (tmp_path / "a.npy").write_bytes(damaged)
    with raises(UnreadableError):
        map_array(tmp_path / "a.npy")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("users.npy", damaged)
    stream.seek(0)
    with raises(UnreadableError):
        read_arrays(stream)


def test_an_archive_takes_no_more_memory_than_its_size_explains():
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name in ("x.npy", "y.npy"):
            archive.writestr(name, bytes(2**20))
        for member in archive.infolist():
            member.file_size = 1000 * 2**20  # what DEFLATE can do
    with raises(UnreadableError):
        read_arrays(stream)


def test_a_member_has_the_numbers_that_its_header_promises():
    square = b"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2), }"
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("x.npy", npy(square, bytes(24)))
    with raises(UnreadableError):
        read_arrays(stream)
    parts = {"data": np.ones(1), "row": np.zeros(1, int), "col": np.zeros(1, int)}
    stream = io.BytesIO()
    np.savez(stream, format="coo", shape=np.array([-2, 3]), **parts)
    with raises(UnreadableError):
        read_sparse(stream)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a file of each kind that is read."""
    folder = tmp_path_factory.mktemp("saved")
    se.save_model(MODEL, folder / "model.npz")
    sparse.save_npz(folder / "train.npz", TRAIN)
    np.save(folder / "items.npy", (TRAIN.T @ TRAIN).toarray())
    HOLDOUT.save(folder / "split")
    se.evaluate_model(MODEL, HOLDOUT, "ndcg@10").save(folder / "ev")
    (folder / "csr").mkdir()
    for part in ("data", "indices", "indptr", "shape"):
        np.save(folder / "csr" / f"{part}.npy", np.asarray(getattr(TRAIN, part)))
    return folder


USES = {
    "model.npz": lambda at: se.evaluate_model(at / "model.npz", HOLDOUT, "mrr@5"),
    "train.npz": lambda at: se.evaluate_model(MODEL, at / "train.npz", VALIDATION, "mrr@5"),
    "items.npy": lambda at: se.evaluate_model(at / "items.npy", TRAIN, VALIDATION, "mrr@5"),
    "csr/indptr.npy": lambda at: se.evaluate_model(MODEL, at / "csr", VALIDATION, "mrr@5"),
    "split/train.npz": lambda at: se.Holdout.load(at / "split"),
    "split/labels.npz": lambda at: se.Holdout.load(at / "split"),
    "ev/totals.npz": lambda at: se.Evaluation.load(at / "ev").summary(),
}


@pytest.mark.parametrize("header", HEADERS)
@pytest.mark.parametrize("file", USES)
def test_headers_that_say_anything(file, header, folder):
    path = folder / file
    contents = [npy(header)]
    if file.endswith(".npz"):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        contents = [with_member(path, name, npy(header)) for name in names[:4]]
    whole = path.read_bytes()
    try:
        for content in contents:
            path.write_bytes(content)
            with pytest.raises(se.SparseEvalError):
                USES[file](folder)
    finally:
        path.write_bytes(whole)
