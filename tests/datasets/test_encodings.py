"""Encodings and separators of text files, and quotes."""

from __future__ import annotations

import pytest
from events import rows
from raising import raises, warns

from sparse_eval.datasets import GuessWarning, load, load_adjacency, load_csv
from sparse_eval.errors import InvalidDataError, InvalidFileError

TEXT = "user,item\nanna,7\nzoë,5\n"
ROWS = [("anna", 7, 1.0), ("zoë", 5, 1.0)]


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "UTF_32"]
)
def test_reads_any_encoding_that_is_named(write, encoding):
    path = write("a.csv", TEXT.encode(encoding))
    assert rows(load_csv(path, encoding=encoding)) == ROWS
    assert rows(load(path, encoding=encoding)) == ROWS


def test_tries_latin_1_and_says_so(write):
    path = write("a.csv", TEXT.encode("latin-1"))
    with warns(GuessWarning) as told:
        assert rows(load_csv(path)) == ROWS
    assert len(told) == 1
    path = write("a.txt", "zoë 1 2\nbob 3\n".encode("latin-1"))
    assert load_adjacency(path, encoding="latin-1").users.tolist() == ["bob", "zoë"]
    with warns(GuessWarning):
        assert load(path).users.tolist() == ["bob", "zoë"]


def test_refuses_encodings(write):
    path = write("a.csv", TEXT.encode("latin-1"))
    for encoding in ("klingon", "base64", 5):
        with raises(InvalidDataError):
            load_csv(path, encoding=encoding)
    for encoding, line in (("utf-8", 3), ("ascii", None)):
        with raises(InvalidFileError, line=line):
            load_csv(path, encoding=encoding)
    for content in (TEXT.encode("utf-16"), b"\x89PNG\r\n\x1a\n\0\0\xff"):
        with raises(InvalidFileError):
            load_csv(write("b.csv", content))
