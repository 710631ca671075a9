"""The loaders: every format, every guard."""

from __future__ import annotations

import builtins
import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from sparse_eval.datasets import (
    FORMATS,
    SkippedLinesWarning,
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
from sparse_eval.datasets import delimited as tables
from sparse_eval.errors import InvalidDataError, InvalidFileError, MissingExtraError

CSV = "user,item,value,at\nanna,7,3,30\nbob,5,0,20\nanna,5,1.5,10\n"
MIND = (
    "1\tU2\t11/11/2019 9:05:58 AM\tN1 N2\tN3-1 N4-0\n"
    "2\tU1\t11/12/2019 12:00:00 AM\t\tN3-0\n"
    "3\tU2\t11/10/2019 12:30:00 PM\tN1 N2 N5\tN4-1 N3-1\n"
)


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def rows(interactions):
    return list(interactions.to_frame().itertuples(index=False, name=None))


# ---------------------------------------------------------------------------------- CSV


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
        ("a.csv.gz", gzip.compress(CSV.encode())),
        ("a.tsv.gz", gzip.compress(CSV.replace(",", "\t").encode())),
    ],
)
def test_csv(write, name, content):
    interactions = load_csv(write(name, content), value="value", timestamp="at")
    assert rows(interactions) == [("anna", 7, 3.0, 30), ("bob", 5, 0.0, 20), ("anna", 5, 1.5, 10)]
    assert interactions.items.dtype == np.int64
    assert interactions.n_skipped == 0


def test_csv_by_place(write):
    path = write("a.csv", "1,x,2\n3,y,4\n")
    assert rows(load_csv(path, header=False)) == [(1, "x", 1.0), (3, "y", 1.0)]
    swapped = load_csv(path, user=1, item=0, value=2, header=False)
    assert rows(swapped) == [("x", 1, 2.0), ("y", 3, 4.0)]
    same = load_csv(path, user=0, item=2, value=2, timestamp=2, header=False)
    assert rows(same) == [(1, 2, 2.0, 2), (3, 4, 4.0, 4)]


def test_csv_ids_are_what_is_written(write):
    text = load_csv(write("a.csv", "user,item\nNA,007\nnull,7\n1e3,-5\n"))
    assert text.users.tolist() == ["1e3", "NA", "null"]
    assert text.items.tolist() == ["-5", "007", "7"]
    numbers = load_csv(write("b.csv", "user,item\n-3,10\n0,9\n"))
    assert numbers.users.tolist() == [-3, 0]
    assert numbers.items.tolist() == [9, 10]


def test_csv_separators_are_literal(write):
    assert rows(load_csv(write("a.csv", "user.item\na.b\n"), sep=".")) == [("a", "b", 1.0)]
    assert rows(load_csv(write("b.csv", "user->item\na->b\n"), sep="->")) == [("a", "b", 1.0)]
    assert rows(load_csv(write("c.csv", "user§item\na§b\n"), sep="§")) == [("a", "b", 1.0)]
    mixed = load_csv(write("d.dat", "user::item\na\tb::c\n"), sep="::")
    assert rows(mixed) == [("a\tb", "c", 1.0)]


def test_csv_dates(write):
    content = "user,item,at\n1,1,1970-01-01T00:00:01Z\n1,2,1970-01-02\n1,3,1970-01-01 01:00+01:00\n"
    interactions = load_csv(write("a.csv", content), timestamp="at")
    assert interactions.timestamps.tolist() == [10**9, 86400 * 10**9, 0]
    with pytest.raises(InvalidFileError, match="line 3: .*ISO 8601 date, found '5'"):
        load_csv(write("b.csv", "user,item,at\n1,1,1970-01-01\n1,2,5\n"), timestamp="at")
    with pytest.raises(InvalidFileError, match="line 2: .*ISO 8601 date"):
        load_csv(write("c.csv", "user,item,at\n1,1,2500-01-01\n"), timestamp="at")


def test_csv_whole_numbers_keep_all_digits(write):
    content = f"user,item,at\n1,1,{2**63 - 1}\n1,2,1e3\n"
    interactions = load_csv(write("a.csv", content), timestamp="at")
    assert interactions.timestamps.tolist() == [2**63 - 1, 1000]


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("a,b,1", "expected 4 fields separated by ',', found 3, in 'a,b,1'"),
        ("a,b,1,2,3", "expected 4 fields separated by ',', found 5"),
        ("a", "expected 4 fields separated by ',', found 1"),
        (",b,1,2", "expected a user id, found an empty field"),
        ("a, ,1,2", "expected a item id, found an empty field"),
        ("a,b,x,2", "expected a finite value that is not negative, found 'x'"),
        ("a,b,,2", "found ''"),
        ("a,b,nan,2", "found 'nan'"),
        ("a,b,1e999,2", "found '1e999'"),
        ("a,b,-1,2", "found '-1'"),
        ("a,b,1_0,2", "found '1_0'"),
        ("a,b,1,x", "expected a whole number as timestamp, found 'x'"),
        ("a,b,1,1.5", "found '1.5'"),
        ("a,b,1,", "found ''"),
        ("a,b,1,99999999999999999999", "found '99999999999999999999'"),
        ("a,b,1,9223372036854775808", "found '9223372036854775808'"),
        ('a,"b,1,2', "expected quotes in pairs"),
    ],
)
def test_csv_malformed_lines(write, line, fault):
    options = {"value": "value", "timestamp": "at"}
    path = write("a.csv", CSV + line + "\n" + CSV.split("\n", 1)[1])
    with pytest.raises(InvalidFileError) as caught:
        load_csv(path, **options)
    assert (caught.value.path, caught.value.line) == (path, 5)
    assert fault in str(caught.value)
    message = f"skipped 1 malformed line of {path} \\(first: line 5\\)"
    with pytest.warns(SkippedLinesWarning, match=message):
        interactions = load_csv(path, **options, on_bad_lines="skip")
    assert interactions.n_skipped == 1
    assert repr(interactions).endswith("1 lines skipped)")
    assert rows(interactions) == 2 * rows(load_csv(write("b.csv", CSV), **options))


def test_long_lines_are_shortened(write):
    path = write("a.csv", "user,item\n" + "x" * 1000 + "\n")
    with pytest.raises(InvalidFileError) as caught:
        load_csv(path)
    assert len(str(caught.value)) < 400


def test_nothing_but_malformed_lines(write):
    path = write("a.csv", "user,item\nx\ny\n")
    with pytest.raises(InvalidFileError, match="no interactions: all 2 lines are malformed"):
        load_csv(path, on_bad_lines="skip")
    with pytest.raises(InvalidFileError, match="no interactions: no line after the header"):
        load_csv(write("b.csv", "user,item\n"))


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"on_bad_lines": "warn"}, "on_bad_lines: expected 'error' or 'skip', found 'warn'"),
        ({"sep": ""}, "sep: expected"),
        ({"sep": '"'}, "sep: expected"),
        ({"sep": 5}, "sep: expected"),
        ({"user": 0}, "user: expected a column name, found 0"),
        ({"header": False, "user": "who"}, "user: expected the place of a column"),
        ({"header": False, "value": True}, "value: expected the place of a column"),
        ({"header": False, "item": 4}, "item: there is no column 4; the first line has 4 fields"),
        ({"header": False, "item": -1}, "item: there is no column -1"),
        ({"value": "values"}, "value: there is no column 'values'.*did you mean 'value'"),
    ],
)
def test_csv_options(write, options, fault):
    with pytest.raises((InvalidDataError, InvalidFileError), match=fault):
        load_csv(write("a.csv", CSV), **options)


def test_csv_headers(write):
    with pytest.raises(InvalidFileError, match="user: there are several columns 'user'"):
        load_csv(write("a.csv", "user,user,item\n1,2,3\n"))
    with pytest.raises(InvalidFileError, match="line 1: expected fields separated by"):
        load_csv(write("b.csv", "user item\n1 2\n"))
    with pytest.raises(InvalidFileError, match="line 1: expected quotes in pairs"):
        load_csv(write("c.csv", 'user,"item\n1,2\n'))


FIELD = st.one_of(
    st.sampled_from(["", " ", "1", "007", "-1", "NA", "1.5", "nan", "1e400", "_", '"a"', '"', "é"]),
    st.text(alphabet="ab01 .-+e\u2028", max_size=4),
)


@given(st.lists(st.lists(FIELD, min_size=3, max_size=4), min_size=1, max_size=8))
def test_both_ways_to_read_a_table_agree(lines):
    data = "".join(",".join(fields) + "\n" for fields in lines).encode()
    layout = tables._Layout(
        sep=",", n_fields=4, places={"user": 0, "item": 1, "value": 2, "timestamp": 3}, n_header=0
    )
    fast = tables._read_fast(data, layout)
    if fast is not None:
        slow = tables._read_lines(data, layout, tables.BadLines(Path("x"), "error"))
        assert rows_of(fast) == rows_of(slow)


@pytest.mark.parametrize(("blank", "sep"), [("  ", " "), ("\t\t", "\t"), (" , ,", ",")])
def test_lines_of_nothing_are_no_lines(write, blank, sep):
    content = sep.join("abc") + "\n" + blank + "\n"
    options = {"user": 1, "item": 2, "sep": sep, "header": False}
    if blank.isspace():
        assert rows(load_csv(write("a", content), **options)) == [("b", "c", 1.0)]
    else:
        with pytest.raises(InvalidFileError, match="line 2: expected a user id"):
            load_csv(write("a", content), **options)


def rows_of(frame):
    return list(frame.itertuples(index=False, name=None))


def test_plain_files_are_read_fast(write, monkeypatch):
    monkeypatch.setattr(tables, "_read_lines", None)
    content = "".join(f"{n % 7}::{n}::{n / 3}::{n}\n" for n in range(100))
    interactions = load_movielens(write("ratings.dat", content))
    assert interactions.values.tolist() == [n / 3 for n in range(100)]


# ---------------------------------------------------------------------- files of any kind


@pytest.mark.parametrize("loader", [load_csv, load_mind, load_movielens, load_adjacency])
def test_files_that_are_no_text(write, tmp_path, monkeypatch, loader):
    with pytest.raises(InvalidFileError, match="there is no such file"):
        loader(tmp_path / "nothing")
    for content in (b"", b"\n \n", b"\xef\xbb\xbf"):
        with pytest.raises(InvalidFileError, match="the file is empty"):
            loader(write("empty", content))
    for content, byte in ((b"user,item\n1,\xff2\n", "0xff"), (b"user,item\n1,\0\n", "0x00")):
        with pytest.raises(InvalidFileError, match=f"line 2: expected UTF-8 text.*{byte}"):
            loader(write("binary", content))
    for content in (b"user", gzip.compress(b"user" * 100)[:-9], gzip.compress(b"")[:5]):
        with pytest.raises(InvalidFileError, match="cannot be read"):
            loader(write("broken.gz", content))
    path = write("locked", "user,item\n")

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InvalidFileError, match="cannot be read .*Permission denied"):
        loader(path)


def test_folders(tmp_path):
    for loader in (load_csv, load_adjacency, load_parquet, load_npz):
        with pytest.raises(InvalidFileError, match="expected a file, found a folder"):
            loader(tmp_path)
    with pytest.raises(InvalidFileError, match=r"expected behaviors.tsv in this folder"):
        load_mind(tmp_path)
    with pytest.raises(InvalidFileError, match=r"expected u.data or ratings.dat or ratings.csv"):
        load_movielens(tmp_path)
    for name in ("u.data", "ratings.dat"):
        (tmp_path / name).touch()
    with pytest.raises(InvalidFileError, match=r"holds u.data, ratings.dat; give the path of one"):
        load_movielens(tmp_path)


# ---------------------------------------------------------------------------- MovieLens


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("u.data", "2\t10\t4\t881250949\n1\t9\t3.5\t891717742\n"),
        ("ratings.dat", "2::10::4::881250949\n1::9::3.5::891717742\n"),
        ("ratings.csv", "userId,movieId,rating,timestamp\n2,10,4,881250949\n1,9,3.5,891717742\n"),
    ],
)
def test_movielens(write, tmp_path, name, content):
    path = write(name, content)
    for source in (path, tmp_path, str(path)):
        interactions = load_movielens(source)
        assert rows(interactions) == [(2, 10, 4.0, 881250949), (1, 9, 3.5, 891717742)]
        assert interactions.users.tolist() == [1, 2]
        assert guess_format(source) == "movielens"
        assert rows(load(source)) == rows(interactions)


def test_movielens_guards(write):
    with pytest.raises(InvalidFileError, match="line 1: expected MovieLens ratings.*'user item'"):
        load_movielens(write("u.data", "user item\n"))
    path = write("ratings.dat", "1::2::3::4\n1::2::3\n")
    with pytest.raises(InvalidFileError, match="line 2: expected 4 fields separated by '::'"):
        load_movielens(path)
    with pytest.warns(SkippedLinesWarning):
        assert load_movielens(path, on_bad_lines="skip").n_skipped == 1
    with pytest.raises(InvalidDataError, match="on_bad_lines"):
        load_movielens(path, on_bad_lines="no")


# --------------------------------------------------------------------------------- MIND


def test_mind(write, tmp_path):
    path = write("behaviors.tsv", MIND)
    at = [1573463158, 1573516800, 1573389000]
    shown = [
        ("U2", "N3", 1.0, at[0]),
        ("U2", "N4", 0.0, at[0]),
        ("U1", "N3", 0.0, at[1]),
        ("U2", "N4", 1.0, at[2]),
        ("U2", "N3", 1.0, at[2]),
    ]
    read = [("U2", news, 1.0, at[2] - 1) for news in ("N1", "N2", "N5")]
    for source in (path, tmp_path):
        assert rows(load_mind(source)) == shown + read
        assert rows(load(source)) == shown + read
    assert rows(load_mind(path, history=False)) == shown
    assert load_mind(path, history=False).items.tolist() == ["N3", "N4"]
    matrix = load_mind(path, history=False).matrix()
    assert matrix.toarray().tolist() == [[0, 0], [2, 1]]
    assert matrix.nnz == 3  # shown and not clicked is stored


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("1\tU1\t11/11/2019 9:05:58 AM\tN1", "expected 5 fields separated by tabs"),
        ("1\tU1\t11/11/2019 9:05:58 AM\tN1\tN1-1\tx", "found 6"),
        ("1\t\t11/11/2019 9:05:58 AM\tN1\tN1-1", "expected a user id"),
        ("1\tU1\t11/11/2019 9:05:58 AM\tN1\t", "expected impressions"),
        ("1\tU1\t11/11/2019 9:05:58 AM\tN1\tN1-1 N2", "expected impressions.*found 'N2'"),
        ("1\tU1\t11/11/2019 9:05:58 AM\tN1\tN2-2", "found 'N2-2'"),
        ("1\tU1\t11/11/2019 9:05:58 AM\tN1\t-1", "found '-1'"),
        ("1\tU1\t2019-11-11 9:05:58\tN1\tN1-1", "expected a time like '11/11/2019 9:05:58 AM'"),
        ("1\tU1\t11/31/2019 9:05:58 AM\tN1\tN1-1", "expected a time"),
        ("1\tU1\t11/11/2019 13:05:58 PM\tN1\tN1-1", "expected a time"),
        ("1\tU1\t11/11/2019 0:05:58 AM\tN1\tN1-1", "expected a time"),
    ],
)
def test_mind_malformed_lines(write, line, fault):
    path = write("behaviors.tsv", MIND + line + "\n")
    with pytest.raises(InvalidFileError, match=f"line 4: .*{fault}"):
        load_mind(path)
    with pytest.warns(SkippedLinesWarning, match="skipped 1 malformed line .*first: line 4"):
        interactions = load_mind(path, on_bad_lines="skip")
    assert interactions.n_skipped == 1
    assert rows(interactions) == rows(load_mind(write("b.tsv", MIND)))


def test_mind_without_clicks(write):
    path = write("behaviors.tsv", "1\tU1\t11/11/2019 9:05:58 AM\tN1\tN1 N2\n")
    with pytest.raises(InvalidFileError, match="all 1 lines are malformed"):
        load_mind(path, on_bad_lines="skip")
    with pytest.raises(InvalidDataError, match="on_bad_lines"):
        load_mind(path, on_bad_lines=None)


def test_mind_without_histories(write):
    line = "1\tU1\t11/11/2019 12:05:58 PM\t\tN1-0\n"
    assert rows(load_mind(write("behaviors.tsv", line))) == [("U1", "N1", 0.0, 1573473958)]


# ---------------------------------------------------------------------- adjacency lists


def test_adjacency(write):
    train = write("train.txt", "10 5 6 7 \n9 5\n\n8\n")
    interactions = load_adjacency(train)
    assert rows(interactions) == [(10, 5, 1.0), (10, 6, 1.0), (10, 7, 1.0), (9, 5, 1.0)]
    assert interactions.users.tolist() == [8, 9, 10]
    assert guess_format(train) == "adjacency"
    assert rows(load(train)) == rows(interactions)


def test_adjacency_shares_one_encoding(write):
    train, test = write("train.txt", "b x y\na x\n"), write("test.txt", "c 10\nb x\n")
    first, second = load_adjacency(train, test)
    assert first.shape == second.shape == (3, 3)
    assert first.users is second.users
    assert first.items.tolist() == ["10", "x", "y"]
    assert rows(second) == [("c", "10", 1.0), ("b", "x", 1.0)]


def test_adjacency_guards(write):
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


def test_gowalla(gowalla):
    train, test = load_adjacency(gowalla / "train.txt", gowalla / "test.txt")
    assert train.shape == test.shape == (29_858, 40_981)
    assert (len(train), len(test)) == (810_128, 217_242)
    assert train.users.tolist() == list(range(29_858))
    assert train.matrix().multiply(test.matrix()).nnz == 0
    assert guess_format(gowalla / "train.txt") == "adjacency"


# -------------------------------------------------------------------------- npz, Parquet


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("make", [sparse.coo_matrix, sparse.coo_array])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, bool])
def test_npz(tmp_path, kind, make, dtype):
    values = np.array([1, 0, 1]).astype(dtype)
    matrix = make((values, ([0, 1, 1], [2, 0, 2])), shape=(3, 4)).asformat(kind)
    path = tmp_path / "m.npz"
    sparse.save_npz(path, matrix)
    interactions = load_npz(path)
    assert interactions.shape == (3, 4)
    assert isinstance(interactions.users, pd.RangeIndex)
    assert interactions.timestamps is None
    assert sorted(rows(interactions)) == [(0, 2, 1.0), (1, 0, 0.0), (1, 2, 1.0)]
    assert guess_format(path) == "npz"
    assert load(path).matrix().nnz == 3


def test_npz_guards(tmp_path, write):
    path = tmp_path / "m.npz"
    with pytest.raises(InvalidFileError, match="there is no such file"):
        load_npz(path)
    good = sparse.random(200, 50, 0.2, format="csr", random_state=0)
    sparse.save_npz(path, good)
    content = path.read_bytes()
    for broken in (content[:-100], content[: len(content) // 2], b"", b"user,item\n1,2\n"):
        with pytest.raises(InvalidFileError, match=r"expected a matrix saved by scipy"):
            load_npz(write("broken.npz", broken))
    damaged = bytearray(content)
    damaged[len(content) // 2] ^= 0xFF
    with pytest.raises(InvalidFileError):
        load_npz(write("damaged.npz", bytes(damaged)))
    for content_of in ({"x": np.ones(3)}, {"format": np.array("csr"), "data": [{}]}):
        np.savez(path, **content_of)
        with pytest.raises(InvalidFileError, match=r"expected a matrix saved by scipy"):
            load_npz(path)
    with path.open("wb") as file:
        np.save(file, np.array([{}], dtype=object))
    with pytest.raises(InvalidFileError, match=r"expected a matrix saved by scipy"):
        load_npz(path)
    sparse.save_npz(path, sparse.eye(3, format="dia"))
    with pytest.raises(InvalidFileError, match="expected CSR, CSC or COO, found dia"):
        load_npz(path)
    sparse.save_npz(path, sparse.csr_matrix((3, 4)))
    with pytest.raises(InvalidFileError, match="no interactions"):
        load_npz(path)
    for value, shown in ((-1.0, "-1.0"), (np.nan, "nan"), (np.inf, "inf")):
        sparse.save_npz(path, sparse.csr_matrix([[0, 1], [value, 0]]))
        with pytest.raises(InvalidFileError, match=f"row 1, column 0: the value is {shown}"):
            load_npz(path)
    sparse.save_npz(path, sparse.csr_matrix([[1j]]))
    with pytest.raises(InvalidFileError, match="expected real numbers, found complex128"):
        load_npz(path)
    outside = sparse.csr_matrix([[1, 1]])
    outside.indices[1] = 7
    sparse.save_npz(path, outside)
    with pytest.raises(InvalidFileError, match="the matrix is damaged"):
        load_npz(path)
    sparse.save_npz(path, sparse.coo_matrix(([1], ([0], [2**31])), shape=(1, 2**31 + 1)))
    with pytest.raises(InvalidFileError, match="at most 2,147,483,647"):
        load_npz(path)
    sparse.save_npz(path, sparse.coo_array(np.ones(3)))
    with pytest.raises(InvalidFileError, match="found 1-D"):
        load_npz(path)


def test_parquet(tmp_path):
    frame = pd.DataFrame(
        {
            "who": ["b", "a"],
            "what": [7, 5],
            "n": [2.0, 0.0],
            "at": pd.to_datetime(["1970-01-02", "1970-01-01"]),
            "other": [None, "x"],
        }
    )
    path = tmp_path / "a.parquet"
    frame.to_parquet(path)
    columns = {"user": "who", "item": "what", "value": "n", "timestamp": "at"}
    expected = [("b", 7, 2.0, 86400 * 10**9), ("a", 5, 0.0, 0)]
    assert rows(load_parquet(path, **columns)) == expected
    assert rows(load(path, **columns)) == expected
    assert guess_format(path) == "parquet"
    assert load_parquet(path, user="what", item="what").shape == (2, 2)


def test_parquet_guards(tmp_path, write, monkeypatch):
    path = tmp_path / "a.parquet"
    pd.DataFrame({"user": ["a", None], "item": [1, 2], "n": [1.0, -1.0]}).to_parquet(path)
    with pytest.raises(InvalidFileError, match="no column 'users'.*did you mean 'user'"):
        load_parquet(path, user="users")
    with pytest.raises(InvalidFileError, match=r"a.parquet: row 1, column 'user': .*missing"):
        load_parquet(path)
    with pytest.raises(InvalidFileError, match=r"a.parquet: row 1, column 'n'"):
        load_parquet(path, user="item", value="n")
    with pytest.raises(InvalidFileError, match="there is no such file"):
        load_parquet(tmp_path / "b.parquet")
    for content in (b"", b"user,item\n", path.read_bytes()[:-50], path.read_bytes()[:200]):
        with pytest.raises(InvalidFileError, match="not a readable Parquet file"):
            load_parquet(write("broken.parquet", content))
    real = builtins.__import__

    def without_pyarrow(name, *rest):
        if name.startswith("pyarrow"):
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_pyarrow)
    with pytest.raises(MissingExtraError, match=r'pip install "sparse_eval\[parquet\]"'):
        load_parquet(path)


# ----------------------------------------------------------------------------- guessing


@pytest.mark.parametrize(
    ("name", "content", "format_"),
    [
        ("a.csv", CSV, "csv"),
        ("a.tsv", CSV, "csv"),
        ("a.csv.gz", b"", "csv"),
        ("ratings.csv", "user,item\n1,2\n", "csv"),
        ("ratings.csv", "userId,movieId,rating,timestamp\n1,2,3,4\n", "movielens"),
        ("BEHAVIORS.TSV", "", "mind"),
        ("test.txt", "0 1 2\n1 2\n", "adjacency"),
        ("lists", "a x\nb\n", "adjacency"),
    ],
)
def test_formats_are_guessed(write, name, content, format_):
    assert guess_format(write(name, content)) == format_


@pytest.mark.parametrize("content", ["0 1\n1 2\n", "0 1 2\n", CSV, "a::b\nc\n"])
def test_unknown_formats(write, tmp_path, content):
    formats = ", ".join(FORMATS)
    with pytest.raises(InvalidFileError, match=f"cannot be told.*give format=, one of {formats}"):
        guess_format(write("data.txt", content))
    (tmp_path / "data.txt").unlink()
    with pytest.raises(InvalidFileError, match="a folder without"):
        guess_format(tmp_path)


def test_load(write, tmp_path):
    path = write("data", CSV)
    interactions = load(path, "csv", value="value", sep=",")
    assert interactions.values.tolist() == [3.0, 0.0, 1.5]
    with pytest.raises(InvalidDataError, match="format: expected one of adjacency, .*found 'tsv'"):
        load(path, format="tsv")
    with pytest.raises(InvalidDataError, match="csv has no option 'hist'; it has user, item"):
        load(path, format="csv", hist=True)
    with pytest.raises(InvalidDataError, match="npz has no option 'user'; it has none"):
        load(path, format="npz", user="x")
    with pytest.raises(InvalidFileError, match="there is no such file"):
        load(tmp_path / "nothing")
    assert list(FORMATS) == sorted(FORMATS)


def test_parts_share_one_encoding(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("user,item\n1,7\n2,5\n")
    (tmp_path / "test.csv").write_text("user,item\n1,x\n3,5\n")
    train, test = load_parts(tmp_path / "train.csv", tmp_path / "test.csv")
    assert train.users.tolist() == test.users.tolist() == [1, 2, 3]
    assert train.items.tolist() == ["5", "7", "x"]  # numbers here, text there: text in both
    assert train.matrix().toarray().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0]]
    assert test.matrix().toarray().tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0]]


def test_parts_without_labels_are_padded(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "a.npz", sparse.csr_matrix([[1, 2]]))
    sparse.save_npz(tmp_path / "b.npz", sparse.csr_matrix([[0], [3]]))
    first, second = load_parts(tmp_path / "a.npz", tmp_path / "b.npz", format="npz")
    assert first.matrix().toarray().tolist() == [[1, 2], [0, 0]]
    assert second.matrix().toarray().tolist() == [[0, 0], [3, 0]]
