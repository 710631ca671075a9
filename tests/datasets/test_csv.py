"""Loading delimited text files, of any encoding."""

import gzip
from functools import partial

import numpy as np
import pytest
from events import CSV, rows
from raising import raises, warns

from sparse_eval.datasets import GuessWarning, SkippedLinesWarning, load
from sparse_eval.errors import InvalidDataError, InvalidFileError

load_csv = partial(load, format="csv")

EVENTS = [("zoë", 7, 3.0, 30), ("bob", 5, 0.0, 20), ("zoë", 5, 1.5, 10)]
COLUMNS = {"value": "value", "timestamp": "at"}


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
        ("quoted.csv", CSV.replace("zoë", '"zoë"')),
        ("quoted_header.csv", CSV.replace("user", '"user"')),
        # Without the time of day: it would be in the name of the test, and differ between the
        # processes that collect the tests.
        ("a.tsv.gz", gzip.compress(CSV.replace(",", "\t").encode(), mtime=0)),
    ],
)
def test_reads_every_way_to_write_a_table(write, name, content):
    interactions = load_csv(write(name, content), **COLUMNS)
    assert rows(interactions) == EVENTS
    assert interactions.items.dtype == np.int64
    assert interactions.n_skipped == 0


def test_reads_separators_and_encodings_that_are_named(write):
    for sep in (".", "->", "§", "::"):
        path = write("a.csv", f"user{sep}item\na\tb{sep}c\n")
        assert rows(load_csv(path, sep=sep)) == [("a\tb", "c", 1.0)]
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16", "UTF_32"):
        path = write("a.csv", CSV.encode(encoding))
        assert rows(load_csv(path, encoding=encoding, **COLUMNS)) == EVENTS
        assert rows(load(path, encoding=encoding, **COLUMNS)) == EVENTS


def test_tries_latin_1_and_says_so(write):
    path = write("a.csv", CSV.encode("latin-1"))
    with warns(GuessWarning) as told:
        assert rows(load_csv(path, **COLUMNS)) == EVENTS
    assert len(told) == 1
    path = write("a.txt", "zoë 1 2\nbob 3\n".encode("latin-1"))  # adjacency
    with warns(GuessWarning):
        assert load(path, format="adjacency").users.tolist() == ["bob", "zoë"]
    assert load(path, format="adjacency", encoding="latin-1").users.tolist() == ["bob", "zoë"]


def test_reads_columns_by_number(write):
    path = write("a.csv", "1,x,2\n3,y,4\n")
    assert rows(load_csv(path, value=None, header=False)) == [(1, "x", 1.0), (3, "y", 1.0)]
    with raises(InvalidFileError, argument="value", column=2):
        load_csv(path, header=False)
    same = load_csv(path, user=1, item=2, value=2, timestamp=2, header=False)
    assert rows(same) == [("x", 2, 2.0, 2), ("y", 4, 4.0, 4)]


@pytest.mark.parametrize(
    "ids",
    [["0", "-0"], ["7", "007"], ["1", "+1"], ["1", " 1"], ["1", "1_0"], ["1", "١"], ["1", "1e3"],
     ["1", str(2**63)], ["1", str(-(2**63) - 1)], ["NA", "null"]],
)  # fmt: skip
def test_keeps_ids_verbatim(write, ids):
    """Those that whole numbers would change are text."""
    whole = [0, -5, 2**63 - 1, -(2**63)]
    lines = [f"{user},{item}" for user in ids for item in whole]
    clicks = load_csv(write("a.csv", "\n".join(["user,item", *lines])))
    assert clicks.users.tolist() == sorted(ids)
    assert (clicks.items.dtype, clicks.items.tolist()) == (np.int64, sorted(whole))


def test_a_byte_order_mark_in_an_id_is_part_of_it(write):
    path = write("a.csv", "user,item\n\ufeffu1,a\nu1,a\n")
    assert set(load_csv(path).users) == {"u1", "\ufeffu1"}


@pytest.mark.parametrize(
    "line",
    [
        "a,b,1",
        "a, ,1,2",
        "a,b,x,2",
        "a,b,1e999,2",
        "a,b,-1,2",
        "a,b,1_0,2",
        "a,b,1,1.5",
        "a,b,1,9223372036854775808",
        'a,"b"c,1,2',
    ],
)
def test_refuses_or_skips_malformed_lines(write, line):
    path = write("a.csv", CSV + line + "\n" + CSV.split("\n", 1)[1])
    with raises(InvalidFileError, path=path, line=5):
        load_csv(path, **COLUMNS)
    with warns(SkippedLinesWarning):
        interactions = load_csv(path, **COLUMNS, on_bad_lines="skip")
    assert interactions.n_skipped == 1
    assert repr(interactions).endswith("1 lines skipped)")
    assert rows(interactions) == 2 * EVENTS


@pytest.mark.parametrize("on_bad_lines", ["error", "skip"])
def test_refuses_a_field_with_a_line_break(write, on_bad_lines):
    """What follows would pass for rows: here (u9, i9), which is part of a title."""
    text = 'user,item,title\nu1,i1,"a film\nu9,i9,in 2024"\nu2,i2,ok\n'
    with raises(InvalidFileError, line=2):
        load_csv(write("a.csv", text), on_bad_lines=on_bad_lines)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("user,user,item\n1,2,3\n", None),
        ("user item\n1 2\n", 1),
        ('user,"item\n1,2\n', 1),
        ("user,item\n", None),
        (CSV.encode("utf-16"), 1),
        (b"\x89PNG\r\n\x1a\n\0\0\xff", 3),
    ],
)
def test_refuses_other_content(write, content, line):
    with raises(InvalidFileError, line=line):
        load_csv(write("a.csv", content))


@pytest.mark.parametrize(
    "options",
    [
        {"on_bad_lines": "warn"},
        {"user": 0},
        {"header": False, "user": 1},
        {"header": False, "value": True},
        {"header": False, "item": 4},
        {"value": "values"},
        {"encoding": "klingon"},
        {"encoding": "base64"},
        {"encoding": 5},
        {"encoding": "utf-8"},
        {"encoding": "ascii"},
    ],
)
def test_refuses_options(write, options):
    with raises((InvalidDataError, InvalidFileError)):
        load_csv(write("a.csv", CSV.encode("latin-1")), **{"encoding": "latin-1"} | options)
