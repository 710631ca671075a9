"""Loading adjacency lists."""

import pytest
from events import rows
from raising import raises, warns

from sparse_eval.datasets import (
    GuessWarning,
    SkippedLinesWarning,
    guess_format,
    load,
    load_adjacency,
    load_parts,
)
from sparse_eval.errors import InvalidDataError, InvalidFileError


def test_reads_one_file(write):
    train = write("train.txt", "10 5 6 7 \n9 5\n\n8\n")
    interactions = load_adjacency(train)
    assert rows(interactions) == [(10, 5, 1.0), (10, 6, 1.0), (10, 7, 1.0), (9, 5, 1.0)]
    assert interactions.users.tolist() == [8, 9, 10]
    assert guess_format(train) == "adjacency"
    assert rows(load(train)) == rows(interactions)


def test_refuses_or_skips_malformed_lines_and_empty_files(write):
    path = write("a.txt", "1 2\n3,4,5\n")
    with raises(InvalidFileError, line=2):
        load_adjacency(path)
    with pytest.warns(SkippedLinesWarning):
        assert load_adjacency(path, on_bad_lines="skip").n_skipped == 1
    with raises(InvalidFileError):
        load_adjacency(write("b.txt", "1\n2\n"))


COUNTED = "2 10 11\n1 5\n0\n2 5 10\n"


def test_counts_at_the_beginning_of_lines_are_no_users(write):
    path = write("users.dat", COUNTED)
    for clicks in (load(path), load_adjacency(path, counts=True)):
        assert rows(clicks) == [(0, 10, 1.0), (0, 11, 1.0), (1, 5, 1.0), (3, 5, 1.0), (3, 10, 1.0)]
        assert clicks.users.tolist() == [0, 1, 2, 3]
        assert clicks.recognized == {"user": "line number"}
        assert repr(clicks).endswith("5 events, 'line number' as user)")
    assert load_adjacency(write("blank.txt", "1 7\n\n1 5\n")).users.tolist() == [0, 2]
    as_users = load(path, counts=False)
    assert as_users.users.tolist() == [0, 1, 2]
    assert as_users.recognized == {}
    first, second = load_parts(path, write("test.dat", "1 7\n1 5\n2 5 7\n"))
    assert first.users.tolist() == second.users.tolist() == [0, 1, 2, 3]
    assert rows(second) == [(0, 7, 1.0), (1, 5, 1.0), (2, 5, 1.0), (2, 7, 1.0)]


def test_says_where_counts_are_in_doubt(write):
    tiny = write("tiny.txt", "2 10 11\n1 5\n")
    with warns(GuessWarning):
        assert load_adjacency(tiny).users.tolist() == [1, 2]
    assert load_adjacency(tiny, counts=True).users.tolist() == [0, 1]
    assert load_adjacency(tiny, counts=False).users.tolist() == [1, 2]
    damaged = write("damaged.txt", COUNTED * 10 + "2 5\n")
    with warns(GuessWarning):
        assert load_adjacency(damaged).recognized == {}
    with raises(InvalidFileError, line=41):
        load_adjacency(damaged, counts=True)
    with pytest.warns(SkippedLinesWarning):
        assert load_adjacency(damaged, counts=True, on_bad_lines="skip").n_users == 40


def test_files_that_disagree_are_an_error(write):
    train, test = write("train.txt", COUNTED), write("test.txt", "7 1\n")
    with raises(InvalidDataError):
        load_parts(train, test, format="adjacency")
    first, _ = load_parts(train, test, format="adjacency", counts=False)
    assert first.users.tolist() == [0, 1, 2, 7]
