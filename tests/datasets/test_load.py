"""Formats, their options, lists of sources, sparse matrices, and unreadable files."""

import gzip

import numpy as np
import pandas as pd
import pytest
from events import CSV, rows
from raising import raises
from scipy import sparse

from sparse_eval import Holdout, datasets
from sparse_eval.datasets import load
from sparse_eval.errors import InvalidDataError, InvalidFileError


@pytest.mark.parametrize(
    "content", ["0 1 2\n1 2\n", "user,item\n1,2\n", '"User-ID";"ISBN"\n"1";"2"\n', "a b\n"]
)
def test_only_the_name_shows_the_format(write, content):
    for name in ("data.txt", "data"):
        with raises(InvalidFileError):
            load(write(name, content))
    with raises(InvalidFileError):
        load(write("data.parquet", content))


def test_loads_a_named_format(write):
    path = write("data", CSV)
    assert load(path, format="csv", value="value", sep=",").values.tolist() == [3.0, 0.0, 1.5]
    with raises(InvalidDataError, argument="format"):
        load(path, format="xlsx")


@pytest.mark.parametrize(
    ("format_", "options"),
    [
        ("csv", {"counts": True}),
        ("parquet", {"sep": ","}),
        ("json", {"encoding": "latin-1"}),
        ("mind", {"timestamp": None}),
        ("movielens", {"value": None}),
        ("adjacency", {"header": False}),
        ("npz", {"users": ["a"]}),
        (None, {"on_bad_lines": "skip"}),
        (None, {"format": "csv"}),
    ],
)
def test_an_option_that_the_format_does_not_use_is_an_error(write, format_, options):
    source = pd.DataFrame({"user": [1], "item": [2]}) if format_ is None else write("data", CSV)
    given = {} if format_ is None else {"format": format_}
    with raises(InvalidDataError, argument=next(iter(options))):
        load(source, **given, **options)


def test_a_list_is_read_as_one_table(write):
    first = write("a.csv", "user,item\n1,7\n2,5\n")
    second = write("b.csv", "user,item\n1,x\n")
    frame = pd.DataFrame({"user": [9], "item": [3]})
    assert rows(load([first, frame])) == [(1, 7, 1.0), (2, 5, 1.0), (9, 3, 1.0)]
    assert rows(load((second, first))) == [(1, "x", 1.0), (1, "7", 1.0), (2, "5", 1.0)]
    assert rows(load([first])) == rows(load(first))
    rated = write("c.csv", "user,item,rating\n1,7,4\n")
    with raises(InvalidFileError, path=first):  # which has no ratings
        load([rated, first])
    with raises(InvalidDataError):
        load([first, write("u.data", "2\t10\t4\t881250949\n")])
    with raises(InvalidDataError):
        load([])


def test_former_names_are_errors_that_show_the_call():
    for name in ("load_csv", "load_frame", "load_parts", "guess_format", "FORMATS"):
        with pytest.raises(AttributeError, match="use se"):
            getattr(datasets, name)
    with pytest.raises(AttributeError):
        datasets.load_tsv  # noqa: B018


# ---- sparse matrices


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("make", [sparse.coo_matrix, sparse.coo_array])
def test_reads_every_sparse_format(tmp_path, kind, make):
    matrix = make((np.array([True, False, True]), ([0, 1, 1], [2, 0, 2])), shape=(3, 4))
    path = tmp_path / "m.npz"
    sparse.save_npz(path, matrix.asformat(kind))
    interactions = load(path)
    assert interactions.shape == (3, 4)
    assert isinstance(interactions.users.index, pd.RangeIndex)
    assert interactions.timestamps is None
    assert sorted(rows(interactions)) == [(0, 2, 1.0), (1, 0, 0.0), (1, 2, 1.0)]
    assert interactions.matrix().nnz == 3


def test_refuses_damaged_and_unusable_matrices(tmp_path):
    path = tmp_path / "m.npz"
    sparse.save_npz(path, sparse.random(200, 50, 0.2, format="csr", random_state=0))
    content = path.read_bytes()
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    for broken in (content[:-100], b"", b"user,item\n1,2\n", bytes(damaged)):
        path.write_bytes(broken)
        with pytest.raises(InvalidFileError):
            load(path)
    np.savez(path, format=np.array("csr"), data=[{}])
    with raises(InvalidFileError):
        load(path)
    outside = sparse.csr_matrix([[1, 1]])
    outside.indices[1] = 7
    for matrix in (
        sparse.csr_matrix((3, 4)),
        sparse.csr_matrix([[0, 1], [-1.0, 0]]),
        sparse.csr_matrix([[1j]]),
        outside,
        sparse.coo_matrix(([1], ([0], [2**31])), shape=(1, 2**31 + 1)),
    ):
        sparse.save_npz(path, matrix)
        with raises(InvalidFileError):
            load(path)


# ---- several files


def test_parts_share_one_encoding(write):
    train = write("train.csv", "user,item\n1,7\n2,5\n")
    test = write("test.csv", "user,item\n1,x\n3,5\n")
    for holdout in (
        Holdout.from_frames(train, test),
        Holdout.from_frames(load(train).filter(min_value=1), [test]),
    ):
        assert holdout.users.tolist() == [1, 2, 3]
        assert holdout.items.tolist() == ["5", "7", "x"]  # numbers here, text there: all are text
        assert holdout.train.csr.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
        assert holdout.validation.csr.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]
    with raises(InvalidDataError):
        Holdout.from_frames(pd.DataFrame({"user": [1], "item": [7]}), test)


def test_parts_without_labels_are_padded(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_matrix([[1, 2]]))
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_matrix([[0], [3]]))
    holdout = Holdout.from_frames(tmp_path / "a.npz", tmp_path / "b.npz")
    assert holdout.train.csr.toarray().tolist() == [[1, 2], [0, 0]]
    assert holdout.validation.csr.toarray().tolist() == [[0, 0], [3, 0]]


def test_paths_of_a_folder_name_columns(tmp_path):
    for day, user in (("1", "ann"), ("a%20b", "bob")):
        (tmp_path / f"item={day}").mkdir()
        (tmp_path / f"item={day}" / "clicks.csv").write_text(f"user,value\n{user},1\n")
    (tmp_path / "_temporary.csv").write_text("left out")
    link = tmp_path / "item=1" / "lost.csv"
    for source in (tmp_path, f"{tmp_path}/item=*/*.csv"):
        frame = load(source).to_frame()
        assert frame[["user", "item"]].values.tolist() == [["ann", "1"], ["bob", "a b"]]
        link.symlink_to(tmp_path / "nowhere.csv")
        with raises(InvalidFileError, path=link):
            load(source)
        link.unlink()
    (tmp_path / "item=1").rename(tmp_path / "item=__HIVE_DEFAULT_PARTITION__")
    with raises(InvalidFileError):
        load(tmp_path)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "arrow"])
def test_all_columns_may_be_in_the_path(tmp_path, suffix):
    folder = tmp_path / "user=1" / "item=2"
    folder.mkdir(parents=True)
    write = {"csv": "to_csv", "parquet": "to_parquet", "arrow": "to_feather"}[suffix]
    getattr(pd.DataFrame({"price": [3, 4]}), write)(folder / f"a.{suffix}")
    assert load(tmp_path, value=None).to_frame().values.tolist() == [[1, 2, 1.0]] * 2


@pytest.mark.parametrize("users", [[7, 10, 7, 2], ["u7", "u10", "u7", "007"]])
def test_a_list_may_have_several_formats(tmp_path, users):
    """A day in CSV and the next in Parquet: ids and times are the same as in one table."""
    days = pd.to_datetime([f"2026-11-0{day}" for day in (1, 2, 3, 4)])
    whole = pd.DataFrame({"user": users, "item": [3, 3, 20, 100], "timestamp": days})
    paths = [tmp_path / "0.csv", tmp_path / "2.parquet"]
    whole[:2].to_csv(paths[0], index=False)
    whole[2:].to_parquet(paths[1], index=False)
    expected = load(whole)
    for sources in (paths, [whole[:2], paths[1]], [paths[0], whole[2:]]):
        found = load(sources)
        pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame())
        assert found.items.dtype == expected.items.dtype == "int64"
    with raises(InvalidFileError, path=paths[1]):
        load(tmp_path)
    other = whole.assign(user=[1, 2, 3, 4] if isinstance(users[0], str) else [*"abcd"])
    with raises(InvalidDataError):
        load([whole, other])


# ---- files that none can read


@pytest.mark.parametrize("name", ["csv", "mind", "movielens", "adjacency"])
def test_refuses_missing_empty_binary_and_unreadable_files(write, tmp_path, name):
    def refused(path):
        with raises(InvalidFileError, path=path):
            load(path, format=name)

    refused(tmp_path / "nothing")
    for content in (b"", b"\n \n", b"\xef\xbb\xbf"):
        refused(write("empty", content))
    refused(write("binary", "\ufeffuser".encode("utf-16-le")))
    refused(write("binary", b"user,item\n1,\xff2\n"))
    for content in (gzip.compress(b"user" * 100)[:-9], gzip.compress(b"")[:5]):
        refused(write("broken.gz", content))


def test_refuses_folders_without_one_known_file(tmp_path):
    for name in ("csv", "adjacency", "parquet", "npz", "mind", "movielens"):
        with raises(InvalidFileError):
            load(tmp_path, format=name)
    for name in ("u.data", "ratings.dat"):
        (tmp_path / name).touch()
    with raises(InvalidFileError, path=tmp_path):
        datasets.load_movielens(tmp_path)
