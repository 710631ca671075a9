"""Loading MovieLens ratings."""

from __future__ import annotations

import pytest
from events import rows
from raising import raises

from sparse_eval.datasets import SkippedLinesWarning, guess_format, load, load_movielens
from sparse_eval.errors import InvalidFileError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("u.data", "2\t10\t4\t881250949\n1\t9\t3.5\t891717742\n"),
        ("ratings.dat", "2::10::4::881250949\n1::9::3.5::891717742\n"),
        ("ratings.csv", "userId,movieId,rating,timestamp\n2,10,4,881250949\n1,9,3.5,891717742\n"),
    ],
)
def test_reads_every_layout(write, tmp_path, name, content):
    path = write(name, content)
    for source in (path, tmp_path, str(path)):
        interactions = load_movielens(source)
        assert rows(interactions) == [(2, 10, 4.0, 881250949), (1, 9, 3.5, 891717742)]
        assert interactions.users.tolist() == [1, 2]
        assert interactions.time_unit == "s"
        own = "csv" if name == "ratings.csv" and source != tmp_path else "movielens"
        assert guess_format(source) == own  # its header says the same to both
        assert rows(load(source)) == rows(interactions)


def test_refuses_or_skips_malformed_lines(write):
    with raises(InvalidFileError, line=1):
        load_movielens(write("u.data", "user item\n"))
    path = write("ratings.dat", "1::2::3::4\n1::2::3\n")
    with raises(InvalidFileError, line=2):
        load_movielens(path)
    with pytest.warns(SkippedLinesWarning):
        assert load_movielens(path, on_bad_lines="skip").n_skipped == 1
