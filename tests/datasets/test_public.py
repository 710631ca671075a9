"""Loading adjacency lists, MovieLens, and the click log of MIND."""

from functools import partial

import pytest
from events import rows
from raising import raises

from sparse_eval import Holdout, datasets
from sparse_eval.datasets import load_adjacency, load_mind, load_movielens
from sparse_eval.errors import InvalidDataError, InvalidFileError

COUNTED = "2 10 11\n1 5\n0\n2 5 10\n"


def test_adjacency_begins_with_users(write):
    train = write("train.txt", "10 5 6 7 \n9 5\n\n8\n")
    for load in (load_adjacency, partial(datasets.load, format="adjacency")):
        assert rows(load(train)) == [(10, 5, 1.0), (10, 6, 1.0), (10, 7, 1.0), (9, 5, 1.0)]
        assert load(train).users.tolist() == [8, 9, 10]
    with raises(InvalidFileError):
        load_adjacency(write("nothing.txt", "1\n2\n"))


def test_counts_at_the_beginning_of_lines_are_no_users(write):
    path = write("users.dat", COUNTED)
    counted = partial(load_adjacency, counts=True)
    for clicks in (datasets.load(path, format="adjacency", counts=True), counted(path)):
        assert rows(clicks) == [(0, 10, 1.0), (0, 11, 1.0), (1, 5, 1.0), (3, 5, 1.0), (3, 10, 1.0)]
        assert clicks.users.tolist() == [0, 1, 2, 3]
        assert clicks.recognized == {"user": "line number"}
    assert counted(write("blank.txt", "1 7\n\n1 5\n")).users.tolist() == [0, 2]
    test = counted(write("test.dat", "1 7\n1 5\n2 5 7\n"))
    holdout = Holdout.from_frames(counted(path), test)
    assert holdout.users.tolist() == [0, 1, 2, 3]
    assert holdout.validation.csr.toarray().tolist() == [
        [0, 1, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0]
    ]  # fmt: skip
    other = load_adjacency(write("other.dat", "7 1\n"), counts=False)
    with raises(InvalidDataError):
        Holdout.from_frames(counted(path), other)
    holdout = Holdout.from_frames(load_adjacency(path, counts=False), other)
    assert holdout.users.tolist() == [0, 1, 2, 7]


def test_what_may_be_counts_is_an_error_without_the_option(write):
    for content in ("2 10 11\n1 5\n", COUNTED, COUNTED * 10 + "2 5\n"):
        path = write("doubtful.txt", content)
        with raises(InvalidFileError, path=path):
            load_adjacency(path)
        assert load_adjacency(path, counts=False).recognized == {}
    with raises(InvalidFileError, line=41):
        load_adjacency(path, counts=True)


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
        assert interactions.time_unit == "s"
        assert rows(datasets.load(source)) == rows(interactions)


MIND = (
    "1\tU2\t11/11/2019 9:05:58 AM\tN1 N2\tN3-1 N4-0\n"
    "2\tU1\t11/12/2019 12:00:00 AM\t\tN3-0\n"
    "3\tU2\t11/10/2019 12:30:00 PM\tN1 N2 N5\tN4-1 N3-1\n"
)


def test_reads_impressions_and_histories(write, tmp_path):
    path = write("behaviors.tsv", MIND)
    shown = [
        ("U2", "N3", 1.0, 1573463158),
        ("U2", "N4", 0.0, 1573463158),
        ("U1", "N3", 0.0, 1573516800),
        ("U2", "N4", 1.0, 1573389000),
        ("U2", "N3", 1.0, 1573389000),
    ]
    read = [("U2", news, 1.0, datasets.UNDATED) for news in ("N1", "N2", "N5")]
    for found in (load_mind(path), load_mind(tmp_path), datasets.load(path)):
        assert rows(found) == shown + read
        assert (found.time_unit, found.n_undated) == ("s", 3)
    clicks = load_mind(path, history=False)
    assert rows(clicks) == shown
    assert clicks.items.tolist() == ["N3", "N4"]


@pytest.mark.parametrize(
    ("load", "name", "content", "line"),
    [
        (load_movielens, "ratings.dat", "1::2::3::4\n", "1::2::3"),
        (load_mind, "behaviors.tsv", MIND, "1\tU1\t11/11/2019 9:05:58 AM\tN1"),
    ],
)
def test_refuses_or_skips_lines_of_another_number_of_fields(write, load, name, content, line):
    path = write(name, content + line + "\n")
    with raises(InvalidFileError, path=path):
        load(path)
    with pytest.warns(datasets.SkippedLinesWarning):
        interactions = load(path, on_bad_lines="skip")
    assert interactions.n_skipped == 1
    assert rows(interactions) == rows(load(write(name, content)))


@pytest.mark.parametrize(
    ("load", "content", "line"),
    [
        (load_adjacency, "5 2\n", "3,4,5"),
        (load_mind, MIND, "1\t\t11/11/2019 9:05:58 AM\tN1\tN1-1"),
        (load_mind, MIND, "1\tU1\t11/11/2019 9:05:58 AM\tN1\tN1-1 N2"),
        (load_mind, MIND, "1\tU1\t11/11/2019 9:05:58 AM\tN1\tN2-2"),
        (load_mind, MIND, "1\tU1\t11/31/2019 9:05:58 AM\tN1\tN1-1"),
        (load_mind, MIND, "1\tU1\t11/11/2019 13:05:58 PM\tN1\tN1-1"),
    ],
)
def test_refuses_malformed_lines(write, load, content, line):
    path = write("damaged", content + line + "\n")
    with raises(InvalidFileError) as caught:
        load(path)
    error = caught.value
    assert (error.line or error.row + 1) == content.count("\n") + 1


def test_refuses_files_of_another_kind(write):
    with raises(InvalidFileError):
        load_movielens(write("u.data", "user item\n"))
    with raises(InvalidFileError):  # the test set has no labels
        load_mind(write("b.tsv", MIND.replace("-1", "").replace("-0", "")))
