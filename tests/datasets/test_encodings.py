"""Encodings and separators of text files, and quotes."""

from __future__ import annotations

import csv
import io

import pytest
from events import rows
from hypothesis import given
from hypothesis import strategies as st
from raising import raises, warns

from sparse_eval.datasets import GuessWarning, load, load_adjacency, load_csv, text_table
from sparse_eval.datasets.lines import BadLines
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


def test_reads_adjacency_of_any_encoding(write):
    path = write("a.txt", "zoë 1 2\nbob 3\n".encode("latin-1"))
    assert load_adjacency(path, encoding="latin-1").users.tolist() == ["bob", "zoë"]
    with warns(GuessWarning):
        assert load(path).users.tolist() == ["bob", "zoë"]


def test_tries_latin_1_and_says_so(write):
    path = write("a.csv", TEXT.encode("latin-1"))
    with warns(GuessWarning) as told:
        assert rows(load_csv(path)) == ROWS
    assert len(told) == 1
    assert "\n" not in str(told[0].message)


@given(st.lists(st.binary(min_size=1, max_size=3), min_size=2, max_size=6, unique=True))
def test_latin_1_keeps_different_ids_apart(ids):
    ids = [b"\xff" + each.translate(None, b'\0\r\n,"') + b"!" for each in ids]
    text = b"\n".join(each.decode("latin-1").encode() + b",x" for each in ids)
    frame = text_table.read_lines(
        text, text_table.Layout(",", 2, {"user": 0, "item": 1}, 0), BadLines(None, "error")
    )
    assert frame["user"].nunique() == len(set(ids))


def test_refuses_encodings(write):
    path = write("a.csv", TEXT.encode("latin-1"))
    for encoding in ("klingon", "base64", 5):
        with raises(InvalidDataError):
            load_csv(path, encoding=encoding)
    for encoding in ("utf-8", "ascii"):
        with raises(InvalidFileError, line=3):
            load_csv(path, encoding=encoding)
    for content in (TEXT.encode("utf-16"), b"\x89PNG\r\n\x1a\n\0\0\xff"):
        with raises(InvalidFileError):
            load_csv(write("b.csv", content))


def test_guesses_formats_whatever_the_encoding(write):
    path = write("ratings.csv", "User-ID;ISBN;Book-Rating\n1;é;5\n".encode("latin-1"))
    assert rows(load(path, encoding="latin-1")) == [(1, "é", 5.0)]


def test_quotes_hide_separators(write):
    path = write("a.csv", '"user";"item"\n"a;b";"say ""x"""\n c ;"d"\n')
    assert rows(load_csv(path)) == [("a;b", 'say "x"', 1.0), (" c ", "d", 1.0)]


def test_quotes_across_lines_are_refused(write):
    path = write("a.csv", 'user,item\n"a\nb",1\n')
    with raises(InvalidFileError, line=2):
        load_csv(path)


@given(
    st.lists(
        st.lists(
            st.text('ab01,;"\u00e9 ', min_size=1, max_size=4).filter(str.strip),
            min_size=2,
            max_size=2,
        ),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(",;\t|"),
)
def test_reads_what_the_csv_module_writes(table, sep):
    written = io.StringIO()
    csv.writer(written, delimiter=sep, lineterminator="\n").writerows(table)
    layout = text_table.Layout(sep, 2, {"user": 0, "item": 1}, 0)
    frame = text_table.read_table(written.getvalue().encode(), layout, BadLines(None, "error"))
    assert [list(row) for row in frame.itertuples(index=False)] == table


def test_dates_take_the_fast_path(write, monkeypatch):
    monkeypatch.setattr(text_table, "read_lines", None)
    path = write("a.csv", "user,item,date\n1,1,2024-01-01\n1,2,2024-01-02 00:00:00.123456789Z\n")
    first, second = load_csv(path).timestamps.tolist()
    assert second - first == 86_400 * 10**9 + 123_456_789


@pytest.mark.parametrize("date", ["2024-01-01 00:00:00.1234567891", "2024-13-01", "1 May 2024"])
def test_refuses_dates_that_would_lose_digits(write, date):
    path = write("a.csv", f"user,item,date\n1,1,2024-01-01\n1,2,{date}\n")
    with raises(InvalidFileError, line=3):
        load_csv(path, timestamp="date")
