"""The CSV log of a run, the check of where it comes from, and JSON beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from raising import raises

from sparse_eval.errors import InvalidFileError
from sparse_eval.jobs.csv_log import CSVLog, check_origin


def log_of(path: Path) -> CSVLog:
    return CSVLog(path, "is not a log", "is not a row")


def test_reads_what_it_wrote(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    log = log_of(path)
    assert log.columns is None
    rows = [{"a": 'comma, "quote"', "b": "x" * 200_000}, {"b": "é"}]
    log.write(["a", "b", "c"], rows)
    again = log_of(path)
    assert again.columns == ["a", "b", "c"]
    assert list(again.rows()) == [(2, rows[0]), (3, rows[1])]
    assert [file.name for file in tmp_path.iterdir()] == ["log.csv"]


def test_does_not_write_the_same_content_again(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    log_of(path).write(["a"], [{"a": "1"}])
    before = path.stat()
    log = log_of(path)
    log.write(["a"], [{"a": "1"}])
    assert path.stat().st_ino == before.st_ino
    log.write(["a"], [{"a": "2"}])
    assert path.read_text() == "a\n2\n"


def test_refuses_what_is_not_csv(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    for content in (b"", b"\n", b'"', b"\xff\xfe"):
        path.write_bytes(content)
        with raises(InvalidFileError):
            log_of(path)


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,2\n1,2,3\n",
        "a,b\n1,2\n3,0.0",  # cut off: it was 3,0.05
        "a,b\n1,2,3\n",
        'a,b\n1,"2\n',
    ],
)
def test_refuses_broken_rows_after_a_sound_header(tmp_path: Path, content: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(content)
    log = log_of(path)
    assert log.columns == ["a", "b"]
    with raises(InvalidFileError):
        list(log.rows())


def test_names_every_input_that_differs(tmp_path: Path) -> None:
    made_from = {"train": "abc", "patience": 3, "metrics": ["mrr@5"]}
    expected = {"train": "abc", "patience": None, "metrics": ["mrr@5", "map@5"]}
    check_origin(tmp_path, made_from, made_from, "is of another run", "choose another file")
    with raises(InvalidFileError):
        check_origin(tmp_path, made_from, expected, "is of another run", "choose another file")
