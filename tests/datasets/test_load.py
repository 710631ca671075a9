"""Guessing formats, loading several files with one encoding, and files that none can read."""

import gzip

import pandas as pd
import pytest
from events import CSV
from raising import raises
from scipy import sparse

from sparse_eval.datasets import (
    FORMATS,
    guess_format,
    load,
    load_adjacency,
    load_csv,
    load_mind,
    load_movielens,
    load_npz,
    load_parquet,
    load_parts,
)
from sparse_eval.errors import InvalidDataError, InvalidFileError


@pytest.mark.parametrize(
    ("name", "content", "format_"),
    [
        ("a.tsv", CSV, "csv"),
        ("a.csv.gz", b"", "csv"),
        ("a.parquet", b"", "parquet"),
        ("ratings.csv", "userId,movieId,rating,timestamp\n1,2,3,4\n", "csv"),
        ("BEHAVIORS.TSV", "", "mind"),
        ("test.txt", "0 1 2\n1 2\n", "adjacency"),
        ("user_artists.dat", "userID\tartistID\tweight\n2\t51\t13883\n", "csv"),
        ("data", '"User-ID";"ISBN"\n"1";"2"\n', "csv"),
        ("lists", "a x\nb\n", "adjacency"),
    ],
)
def test_guesses_the_format(write, name, content, format_):
    assert guess_format(write(name, content)) == format_


@pytest.mark.parametrize("content", ["0 1\n1 2\n", "0 1 2\n", "a,b\n1,2\n", "a::b\nc\n"])
def test_refuses_to_guess_without_evidence(write, tmp_path, content):
    with raises(InvalidFileError):
        guess_format(write("data.txt", content))
    (tmp_path / "data.txt").unlink()
    with raises(InvalidFileError):
        guess_format(tmp_path)


def test_loads_a_named_format_and_refuses_unknown_options(write, tmp_path):
    path = write("data", CSV)
    interactions = load(path, format="csv", value="value", sep=",")
    assert interactions.values.tolist() == [3.0, 0.0, 1.5]
    with raises(InvalidDataError):
        load(path, format="tsv")
    with raises(InvalidDataError, argument="history"):
        load(path, format="csv", history=False)
    with raises(InvalidFileError):
        load(tmp_path / "nothing")
    assert list(FORMATS) == sorted(FORMATS)


def test_parts_share_one_encoding(tmp_path):
    (tmp_path / "train.csv").write_text("user,item\n1,7\n2,5\n")
    (tmp_path / "test.csv").write_text("user,item\n1,x\n3,5\n")
    train, test = load_parts(tmp_path / "train.csv", tmp_path / "test.csv")
    assert train.users.tolist() == test.users.tolist() == [1, 2, 3]
    assert train.items.tolist() == ["5", "7", "x"]  # numbers here, text there: text in both
    assert train.matrix().csr.toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert test.matrix().csr.toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_parts_without_labels_are_padded(tmp_path):
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_matrix([[1, 2]]))
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_matrix([[0], [3]]))
    first, second = load_parts(tmp_path / "a.npz", tmp_path / "b.npz", format="npz")
    assert first.matrix().csr.toarray().tolist() == [[1, 2], [0, 0]]
    assert second.matrix().csr.toarray().tolist() == [[0, 0], [3, 0]]


def test_paths_of_a_folder_name_columns(tmp_path):
    for day, user in (("1", "ann"), ("a%20b", "bob")):
        (tmp_path / f"item={day}").mkdir()
        (tmp_path / f"item={day}" / "clicks.csv").write_text(f"user,value\n{user},1\n")
    (tmp_path / "_temporary.csv").write_text("left out")
    for source in (tmp_path, f"{tmp_path}/item=*/*.csv"):
        frame = load(source).to_frame()
        assert frame[["user", "item"]].values.tolist() == [["ann", "1"], ["bob", "a b"]]
    link = tmp_path / "item=1" / "lost.csv"
    link.symlink_to(tmp_path / "nowhere.csv")
    for source in (tmp_path, f"{tmp_path}/item=*/*.csv"):
        with raises(InvalidFileError, path=link):
            load(source)
    link.unlink()
    (tmp_path / "item=1").rename(tmp_path / "item=__HIVE_DEFAULT_PARTITION__")
    with raises(InvalidFileError):
        load(tmp_path)


def test_a_folder_may_have_several_formats(tmp_path):
    """A day in CSV and the next in Parquet: ids and times are the same as in one table."""
    for kind, users in (("numbers", [7, 10, 7, 2]), ("text", ["u7", "u10", "u7", "007"])):
        days = pd.to_datetime([f"2026-11-0{day}" for day in (1, 2, 3, 4)])
        rows = pd.DataFrame({"user": users, "item": [3, 3, 20, 100], "timestamp": days})
        for number, names in enumerate((("1.csv", "2.parquet"), ("1.parquet", "2.csv"))):
            folder = tmp_path / f"{kind}{number}"
            folder.mkdir()
            for name, part in zip(names, (rows[:2], rows[2:]), strict=True):
                write = part.to_csv if name.endswith("csv") else part.to_parquet
                write(folder / name, index=False)
            whole, found = load(rows), load(folder)
            pd.testing.assert_frame_equal(found.to_frame(), whole.to_frame())
            assert found.items.dtype == whole.items.dtype == "int64"


def test_ids_of_different_types_in_a_folder_are_refused(tmp_path):
    for name, users in (("1.parquet", [7, 8]), ("2.csv", [7, 8]), ("3.parquet", ["7", "8"])):
        rows = pd.DataFrame({"user": users, "item": [3, 4]})
        (rows.to_csv if name == "2.csv" else rows.to_parquet)(tmp_path / name, index=False)
    with raises(InvalidFileError):
        load(tmp_path)
    (tmp_path / "1.parquet").unlink()
    assert load(tmp_path).users.tolist() == ["7", "8"]


@pytest.mark.parametrize("loader", [load_csv, load_mind, load_movielens, load_adjacency])
def test_refuses_missing_empty_binary_and_unreadable_files(write, tmp_path, loader):
    with raises(InvalidFileError):
        loader(tmp_path / "nothing")
    for content in (b"", b"\n \n", b"\xef\xbb\xbf"):
        with raises(InvalidFileError):
            loader(write("empty", content))
    unreadable = [(b"user,item\n1,\0\n", 2), ("\ufeffuser".encode("utf-16-le"), 1)]
    if loader not in (load_csv, load_adjacency):  # they try Latin-1
        unreadable.append((b"user,item\n1,\xff2\n", 2))
    for content, line in unreadable:
        with raises(InvalidFileError, line=line):
            loader(write("binary", content))
    for content in (gzip.compress(b"user" * 100)[:-9], gzip.compress(b"")[:5]):
        with raises(InvalidFileError):
            loader(write("broken.gz", content))


def test_refuses_folders_without_one_known_file(tmp_path):
    for loader in (load_csv, load_adjacency, load_parquet, load_npz, load_mind, load_movielens):
        with raises(InvalidFileError):
            loader(tmp_path)
    for name in ("u.data", "ratings.dat"):
        (tmp_path / name).touch()
    with raises(InvalidFileError, path=tmp_path):
        load_movielens(tmp_path)
