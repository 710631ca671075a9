"""Loading public data sets: MovieLens, and the click log of MIND."""

import pytest
from events import rows
from raising import raises, warns

from sparse_eval.datasets import (
    UNDATED,
    SkippedLinesWarning,
    guess_format,
    load,
    load_mind,
    load_movielens,
)
from sparse_eval.errors import InvalidFileError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("u.data", "2\t10\t4\t881250949\n1\t9\t3.5\t891717742\n"),
        ("ratings.dat", "2::10::4::881250949\n1::9::3.5::891717742\n"),
        ("ratings.csv", "userId,movieId,rating,timestamp\n2,10,4,881250949\n1,9,3.5,891717742\n"),
    ],
)
def test_reads_every_layout_of_movielens(write, tmp_path, name, content):
    path = write(name, content)
    for source in (path, tmp_path, str(path)):
        interactions = load_movielens(source)
        assert rows(interactions) == [(2, 10, 4.0, 881250949), (1, 9, 3.5, 891717742)]
        assert interactions.users.tolist() == [1, 2]
        assert interactions.time_unit == "s"
        own = "csv" if name == "ratings.csv" and source != tmp_path else "movielens"
        assert guess_format(source) == own  # its header says the same to both
        assert rows(load(source)) == rows(interactions)


def test_refuses_or_skips_malformed_lines_of_movielens(write):
    with raises(InvalidFileError, line=1):
        load_movielens(write("u.data", "user item\n"))
    path = write("ratings.dat", "1::2::3::4\n1::2::3\n")
    with raises(InvalidFileError, line=2):
        load_movielens(path)
    with pytest.warns(SkippedLinesWarning):
        assert load_movielens(path, on_bad_lines="skip").n_skipped == 1


MIND = (
    "1\tU2\t11/11/2019 9:05:58 AM\tN1 N2\tN3-1 N4-0\n"
    "2\tU1\t11/12/2019 12:00:00 AM\t\tN3-0\n"
    "3\tU2\t11/10/2019 12:30:00 PM\tN1 N2 N5\tN4-1 N3-1\n"
)


def test_reads_impressions_and_histories(write, tmp_path):
    path = write("behaviors.tsv", MIND)
    at = [1573463158, 1573516800, 1573389000]
    shown = [
        ("U2", "N3", 1.0, at[0]),
        ("U2", "N4", 0.0, at[0]),
        ("U1", "N3", 0.0, at[1]),
        ("U2", "N4", 1.0, at[2]),
        ("U2", "N3", 1.0, at[2]),
    ]
    read = [("U2", news, 1.0, UNDATED) for news in ("N1", "N2", "N5")]
    for found in (load_mind(path), load_mind(tmp_path), load(path)):
        assert rows(found) == shown + read
    assert load_mind(path).time_unit == "s"
    assert load_mind(path).n_undated == 3
    assert rows(load_mind(path, history=False)) == shown
    assert load_mind(path, history=False).items.tolist() == ["N3", "N4"]
    matrix = load_mind(path, history=False).matrix().csr
    assert matrix.toarray().tolist() == [[0, 0], [2, 1]]
    assert matrix.nnz == 3  # shown and not clicked is stored


@pytest.mark.parametrize(
    "line",
    [
        "1\tU1\t11/11/2019 9:05:58 AM\tN1",
        "1\t\t11/11/2019 9:05:58 AM\tN1\tN1-1",
        "1\tU1\t11/11/2019 9:05:58 AM\tN1\t",
        "1\tU1\t11/11/2019 9:05:58 AM\tN1\tN1-1 N2",
        "1\tU1\t11/11/2019 9:05:58 AM\tN1\tN2-2",
        "1\tU1\t11/31/2019 9:05:58 AM\tN1\tN1-1",
        "1\tU1\t11/11/2019 13:05:58 PM\tN1\tN1-1",
    ],
)
def test_refuses_or_skips_malformed_lines_of_mind(write, line):
    path = write("behaviors.tsv", MIND + line + "\n")
    with raises(InvalidFileError, line=4):
        load_mind(path)
    with warns(SkippedLinesWarning):
        interactions = load_mind(path, on_bad_lines="skip")
    assert interactions.n_skipped == 1
    assert rows(interactions) == rows(load_mind(write("b.tsv", MIND)))


def test_refuses_the_unlabelled_test_set(write):
    path = write("behaviors.tsv", "1\tU1\t11/11/2019 9:05:58 AM\tN1\tN1 N2\n")
    with raises(InvalidFileError):
        load_mind(path, on_bad_lines="skip")
