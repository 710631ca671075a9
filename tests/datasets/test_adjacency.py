"""Loading adjacency lists."""

from __future__ import annotations

import pytest
from events import rows

from sparse_eval.datasets import SkippedLinesWarning, guess_format, load, load_adjacency
from sparse_eval.errors import InvalidDataError, InvalidFileError


def test_reads_one_file(write):
    train = write("train.txt", "10 5 6 7 \n9 5\n\n8\n")
    interactions = load_adjacency(train)
    assert rows(interactions) == [(10, 5, 1.0), (10, 6, 1.0), (10, 7, 1.0), (9, 5, 1.0)]
    assert interactions.users.tolist() == [8, 9, 10]
    assert guess_format(train) == "adjacency"
    assert rows(load(train)) == rows(interactions)


def test_several_files_share_one_encoding(write):
    train, test = write("train.txt", "b x y\na x\n"), write("test.txt", "c 10\nb x\n")
    first, second = load_adjacency(train, test)
    assert first.shape == second.shape == (3, 3)
    assert first.users is second.users
    assert first.items.tolist() == ["10", "x", "y"]
    assert rows(second) == [("c", "10", 1.0), ("b", "x", 1.0)]


def test_refuses_or_skips_malformed_lines_and_empty_files(write):
    path = write("a.txt", "1 2\n3,4,5\n")
    with pytest.raises(InvalidFileError, match="line 2: expected ids separated by spaces"):
        load_adjacency(path)
    with pytest.warns(SkippedLinesWarning):
        assert load_adjacency(path, on_bad_lines="skip").n_skipped == 1
    with pytest.raises(InvalidFileError, match="no user has an item"):
        load_adjacency(write("b.txt", "1 2\n"), write("c.txt", "1\n2\n"))
    with pytest.raises(InvalidDataError, match="at least one file"):
        load_adjacency()
    with pytest.raises(InvalidDataError, match="on_bad_lines"):
        load_adjacency(path, on_bad_lines="")


def test_reads_gowalla(gowalla):
    train, test = load_adjacency(gowalla / "train.txt", gowalla / "test.txt")
    assert train.shape == test.shape == (29_858, 40_981)
    assert (len(train), len(test)) == (810_128, 217_242)
    assert train.users.tolist() == list(range(29_858))
    assert train.matrix().multiply(test.matrix()).nnz == 0
    assert guess_format(gowalla / "train.txt") == "adjacency"
