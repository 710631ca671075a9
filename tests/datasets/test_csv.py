"""Loading delimited text files, of any encoding."""

import gzip

import numpy as np
import pytest
from events import CSV, rows
from raising import raises, warns

from sparse_eval.datasets import SkippedLinesWarning, load
from sparse_eval.errors import InvalidDataError, InvalidFileError

EVENTS = [("zoë", 7, 3.0, 30), ("bob", 5, 0.0, 20), ("zoë", 5, 1.5, 10)]
COLUMNS = {"value": "value", "timestamp": "at"}


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", CSV),
        ("a.tsv", CSV.replace(",", "\t")),
        ("crlf.csv", CSV.replace("\n", "\r\n")),
        ("mac.csv", CSV.replace("\n", "\r")),
        ("bom.csv", "\ufeff" + CSV),
        ("blank.csv", "\n" + CSV.replace("\n", "\n\n")),
        ("no_end.csv", CSV.rstrip("\n")),
        ("quoted.csv", CSV.replace("zoë", '"zoë"')),
        ("quoted_header.csv", CSV.replace("user", '"user"')),
        # Without the time of day: it would be in the name of the test, and differ between the
        # processes that collect the tests.
        ("a.tsv.gz", gzip.compress(CSV.replace(",", "\t").encode(), mtime=0)),
    ],
)
def test_reads_every_way_to_write_a_table(write, name, content):
    interactions = load(write(name, content), **COLUMNS)
    assert rows(interactions) == EVENTS
    assert interactions.items.dtype == np.int64
    assert interactions.n_skipped == 0


def test_reads_separators_and_encodings_that_are_named(write):
    for sep in (".", ";", "|", " "):
        path = write("a.csv", f"user{sep}item\na\tb{sep}c\n")
        assert rows(load(path, sep=sep)) == [("a\tb", "c", 1.0)]
        if sep != " ":
            with raises(InvalidFileError, path=path):
                load(path)
    for encoding in ("utf-8", "utf-8-sig", "latin-1", "cp1252", "utf-16"):
        path = write("a.txt", CSV.encode(encoding))
        assert rows(load(path, format="csv", encoding=encoding, **COLUMNS)) == EVENTS
    path = write("a.txt", "zoë 1 2\nbob 3\n".encode("latin-1"))
    found = load(path, format="adjacency", encoding="latin-1")
    assert found.users.tolist() == ["bob", "zoë"]
    with raises(InvalidFileError, path=path):
        load(path, format="adjacency")


def test_reads_columns_by_number(write):
    path = write("a.csv", "1,x,2\n3,y,4\n")
    assert rows(load(path, value=None, header=False)) == [(1, "x", 1.0), (3, "y", 1.0)]
    with raises(InvalidFileError, argument="value", column=2):
        load(path, header=False)
    other = load(path, user=1, item=0, value=2, header=False)
    assert rows(other) == [("x", 1, 2.0), ("y", 3, 4.0)]
    for role in ("value", "timestamp", "user"):
        with raises(InvalidFileError, column=0):
            load(path, **{"item": 0, "value": None, role: 0}, header=False)


@pytest.mark.parametrize(
    "ids",
    [["0", "-0"], ["7", "007"], ["1", "+1"], ["1", " 1"], ["1", "1_0"], ["1", "١"], ["1", "1e3"],
     ["1", str(2**63)], ["1", str(-(2**63) - 1)], ["NA", "null"]],
)  # fmt: skip
def test_keeps_ids_verbatim(write, ids):
    """Those that whole numbers would change are text."""
    whole = [0, -5, 2**63 - 1, -(2**63)]
    lines = [f"{user},{item}" for user in ids for item in whole]
    clicks = load(write("a.csv", "\n".join(["user,item", *lines])))
    assert clicks.users.tolist() == sorted(ids)
    assert (clicks.items.dtype, clicks.items.tolist()) == (np.int64, sorted(whole))


def test_a_byte_order_mark_in_an_id_is_part_of_it(write):
    path = write("a.csv", "user,item\n\ufeffu1,a\nu1,a\n")
    assert set(load(path).users) == {"u1", "\ufeffu1"}


@pytest.mark.parametrize(
    "line",
    [
        "a, ,1,2",
        "a,b,x,2",
        "a,b,,2",
        "a,b,1e999,2",
        "a,b,-1,2",
        "a,b,1_0,2",
        "a,b,1,1.5",
        "a,b,1,",
        "a,b,1,9223372036854775808",
        'a,"b,1,2',
    ],
)
def test_refuses_rows_of_wrong_values(write, line):
    path = write("a.csv", CSV + line + "\n" + CSV.split("\n", 1)[1])
    for on_bad_lines in ("error", "skip"):
        with raises(InvalidFileError, path=path):
            load(path, **COLUMNS, on_bad_lines=on_bad_lines)


@pytest.mark.parametrize("line", ["a,b,1", "a,b,1,2,3", " "])
def test_refuses_or_skips_lines_of_another_number_of_fields(write, line):
    path = write("a.csv", CSV + line + "\n" + CSV.split("\n", 1)[1])
    with raises(InvalidFileError, path=path):
        load(path, **COLUMNS)
    with warns(SkippedLinesWarning):
        interactions = load(path, **COLUMNS, on_bad_lines="skip")
    assert interactions.n_skipped == 1
    assert "1 lines skipped" in repr(interactions)
    assert rows(interactions) == 2 * EVENTS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
@pytest.mark.parametrize(
    ("lines", "is_open"),
    [
        ('u2,i2,"b\nu3,i3,c\n', True),
        ('u2,i2,"b\r\nu3,i3,c\r\n', True),
        ('u2,i2,"b ""x""\nu3,i3,""c""', True),
        ('u2,i2,"b\nu3,i3,c"\n', False),
        ('u2,i2,"b\nu3,i3,""c"""\n\n', False),
        ('u2,i2,5" nail\n', False),
        ('u2,i2,""\n', False),
    ],
)
def test_an_open_quote_in_the_last_column_hides_no_rows(write, lines, is_open, name, encoding):
    text = ('user,item,title\nu1,i1,"a ""b"", c"\n' + lines).encode(encoding)
    path = write(name, gzip.compress(text) if name.endswith("gz") else text)
    if is_open:
        with raises(InvalidFileError, path=path):
            load(path, encoding=encoding)
    else:
        assert rows(load(path, encoding=encoding)) == [("u1", "i1", 1.0), ("u2", "i2", 1.0)]


@pytest.mark.parametrize("at", [3, 4000, 7990])
def test_an_open_quote_far_from_the_end_hides_no_rows(write, at):
    lines = [f"u{n},i{n % 9},{'a long title ' * 100}\n" for n in range(8000)]
    lines[at] = lines[at].replace("a long", '"a long', 1)
    path = write("a.csv", "user,item,title\n" + "".join(lines))
    with raises(InvalidFileError, path=path):
        load(path)


def test_a_quoted_field_may_have_a_line_break(write):
    text = 'user,item,title\nu1,i1,"a film\nu9,i9,in 2024"\nu2,i2,ok\n'
    assert rows(load(write("a.csv", text))) == [("u1", "i1", 1.0), ("u2", "i2", 1.0)]


def test_true_and_false_are_numbers(write):
    text = "user,item,clicked\na,x,true\na,y,FALSE\n"
    assert load(write("a.csv", text)).values.tolist() == [1.0, 0.0]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("user,user,item\n1,2,3\n", None),
        ("user item\n1 2\n", None),
        ('user,"item\n1,2\n', None),
        ("user,item\n", None),
        (CSV.encode("utf-16"), None),
        (b"\x89PNG\r\n\x1a\n\0\0\xff", None),
    ],
)
def test_refuses_other_content(write, content, line):
    with raises(InvalidFileError, line=line):
        load(write("a.csv", content))


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
        {"sep": "::"},
        {"sep": '"'},
    ],
)
def test_refuses_options(write, options):
    with raises((InvalidDataError, InvalidFileError)):
        load(write("a.csv", CSV.encode("latin-1")), **{"encoding": "latin-1"} | options)
