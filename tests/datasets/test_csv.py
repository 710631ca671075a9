"""Loading delimited text files, of any encoding."""

import gzip

import numpy as np
import pytest
from events import CSV, rows
from raising import raises, warns

from sparse_eval.datasets import GuessWarning, SkippedLinesWarning, load, load_adjacency, load_csv
from sparse_eval.errors import InvalidDataError, InvalidFileError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("a.tsv", CSV.replace(",", "\t")),
        ("a.txt", CSV.replace(",", "\t")),
        ("semicolons.csv", CSV.replace(",", ";")),
        ("bars.csv", CSV.replace(",", "|")),
        ("colons.dat", CSV.replace(",", "::")),
        ("crlf.csv", CSV.replace("\n", "\r\n")),
        ("mac.csv", CSV.replace("\n", "\r")),
        ("bom.csv", "\ufeff" + CSV),
        ("blank.csv", "\n" + CSV.replace("\n", "\n\n \n")),
        ("no_end.csv", CSV.rstrip("\n")),
        ("quoted.csv", CSV.replace("anna", '"anna"')),
        ("quoted_header.csv", CSV.replace("user", '"user"')),
        # Without the time of day: it would be in the name of the test, and differ between the
        # processes that collect the tests.
        ("a.tsv.gz", gzip.compress(CSV.replace(",", "\t").encode(), mtime=0)),
    ],
)
def test_reads_every_way_to_write_a_table(write, name, content):
    interactions = load_csv(write(name, content), value="value", timestamp="at")
    assert rows(interactions) == [("anna", 7, 3.0, 30), ("bob", 5, 0.0, 20), ("anna", 5, 1.5, 10)]
    assert interactions.items.dtype == np.int64
    assert interactions.n_skipped == 0


def test_reads_columns_by_number(write):
    path = write("a.csv", "1,x,2\n3,y,4\n")
    assert rows(load_csv(path, value=None, header=False)) == [(1, "x", 1.0), (3, "y", 1.0)]
    with raises(InvalidFileError, argument="value", column=2):
        load_csv(path, header=False)
    swapped = load_csv(path, user=1, item=0, value=2, header=False)
    assert rows(swapped) == [("x", 1, 2.0), ("y", 3, 4.0)]
    same = load_csv(path, user=0, item=2, value=2, timestamp=2, header=False)
    assert rows(same) == [(1, 2, 2.0, 2), (3, 4, 4.0, 4)]


def test_keeps_ids_verbatim(write):
    text = load_csv(write("a.csv", "user,item\nNA,007\nnull,7\n1e3,-5\n"))
    assert text.users.tolist() == ["1e3", "NA", "null"]
    assert text.items.tolist() == ["-5", "007", "7"]
    numbers = load_csv(write("b.csv", "user,item\n-3,10\n0,9\n"))
    assert numbers.users.tolist() == [-3, 0]
    assert numbers.items.tolist() == [9, 10]


def test_takes_separators_literally(write):
    assert rows(load_csv(write("a.csv", "user.item\na.b\n"), sep=".")) == [("a", "b", 1.0)]
    assert rows(load_csv(write("b.csv", "user->item\na->b\n"), sep="->")) == [("a", "b", 1.0)]
    assert rows(load_csv(write("c.csv", "user§item\na§b\n"), sep="§")) == [("a", "b", 1.0)]
    mixed = load_csv(write("d.dat", "user::item\na\tb::c\n"), sep="::")
    assert rows(mixed) == [("a\tb", "c", 1.0)]


@pytest.mark.parametrize(
    "line",
    [
        "a,b,1",
        "a",
        "a, ,1,2",
        "a,b,x,2",
        "a,b,nan,2",
        "a,b,1e999,2",
        "a,b,-1,2",
        "a,b,1_0,2",
        "a,b,1,1.5",
        "a,b,1,",
        "a,b,1,9223372036854775808",
        'a,"b"c,1,2',
    ],
)
def test_refuses_or_skips_malformed_lines(write, line):
    options = {"value": "value", "timestamp": "at"}
    path = write("a.csv", CSV + line + "\n" + CSV.split("\n", 1)[1])
    with raises(InvalidFileError, path=path, line=5):
        load_csv(path, **options)
    with warns(SkippedLinesWarning):
        interactions = load_csv(path, **options, on_bad_lines="skip")
    assert interactions.n_skipped == 1
    assert repr(interactions).endswith("1 lines skipped)")
    assert rows(interactions) == 2 * rows(load_csv(write("b.csv", CSV), **options))


@pytest.mark.parametrize("on_bad_lines", ["error", "skip"])
def test_refuses_a_field_with_a_line_break(write, on_bad_lines):
    """What follows would pass for rows: here (u9, i9), which is part of a title."""
    text = 'user,item,title\nu1,i1,"a film\nu9,i9,in 2024"\nu2,i2,ok\n'
    with raises(InvalidFileError, line=2):
        load_csv(write("a.csv", text), on_bad_lines=on_bad_lines)


@pytest.mark.parametrize("rest", ["", 'x,"b,c"\n'])
def test_a_byte_order_mark_in_an_id_is_part_of_it(write, rest):
    """Wherever its line is, and however it is read."""
    path = write("a.csv", "user,item\n\ufeffu1,a\nu1,a\n" + rest)
    assert {"u1", "\ufeffu1"} <= set(load_csv(path).users)


def test_refuses_tables_without_interactions(write):
    path = write("a.csv", "user,item\nx\ny\n")
    with warns(SkippedLinesWarning), raises(InvalidFileError):
        load_csv(path, on_bad_lines="skip")
    with raises(InvalidFileError):
        load_csv(write("b.csv", "user,item\n"))


@pytest.mark.parametrize(
    "options",
    [
        {"on_bad_lines": "warn"},
        {"user": 0},
        {"header": False, "user": 1},
        {"header": False, "user": "who"},
        {"header": False, "value": True},
        {"header": False, "item": 4},
        {"header": False, "item": -1},
        {"value": "values"},
    ],
)
def test_refuses_invalid_options(write, options):
    with raises((InvalidDataError, InvalidFileError)):
        load_csv(write("a.csv", CSV), **options)


def test_refuses_unusable_headers(write):
    with raises(InvalidFileError):
        load_csv(write("a.csv", "user,user,item\n1,2,3\n"))
    with raises(InvalidFileError, line=1):
        load_csv(write("b.csv", "user item\n1 2\n"))
    with raises(InvalidFileError, line=1):
        load_csv(write("c.csv", 'user,"item\n1,2\n'))


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
