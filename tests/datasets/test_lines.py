"""Text files that no loader can read, whatever their format."""

from __future__ import annotations

import gzip
import os

import pytest
from raising import raises

from sparse_eval.datasets import (
    load,
    load_adjacency,
    load_csv,
    load_mind,
    load_movielens,
    load_npz,
    load_parquet,
)
from sparse_eval.errors import InvalidFileError


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


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes that have names")
def test_refuses_pipes(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for loader in (load, load_csv, load_movielens):
        with raises(InvalidFileError):
            loader(tmp_path / "pipe")


def test_refuses_folders_without_one_known_file(tmp_path):
    for loader in (load_csv, load_adjacency, load_parquet, load_npz, load_mind, load_movielens):
        with raises(InvalidFileError):
            loader(tmp_path)
    for name in ("u.data", "ratings.dat"):
        (tmp_path / name).touch()
    with raises(InvalidFileError, path=tmp_path):
        load_movielens(tmp_path)
