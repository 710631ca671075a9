"""Ledgers: rows that are read as they were written, and damage that is found."""

import pytest
from raising import raises, warns
from systems import need_posix

from sparse_eval.errors import InvalidFileError, OutputError
from sparse_eval.jobs.ledger import INPUTS, Ledger

VALUES = {"third": 1 / 3, "text": "a\n\udcff", "none": None, "list": [1, "2"]}


def write(path):
    ledger = Ledger(path, "test")
    for slot in "abc":
        ledger.append(slot, **VALUES)
    return path.read_bytes()


def test_reads_what_it_wrote(tmp_path):
    path = tmp_path / "new" / "rows.jsonl"
    write(path)
    ledger = Ledger(path, "test")
    assert [*ledger.rows] == ["a", "b", "c"]
    ledger.append("a", third=1)
    for found in (ledger, Ledger(path, "test")):
        assert [*found.rows] == ["b", "c", "a"]  # the newest of each slot
        assert {name: found.rows["b"][name] for name in VALUES} == VALUES
        assert found.rows["a"]["third"] == 1
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_an_incomplete_last_line_is_left_out(tmp_path):
    path = tmp_path / "rows.jsonl"
    whole = write(path)
    for cut in (1, 20, len(whole) // 3 - 1):
        path.write_bytes(whole[:-cut])
        with warns():
            ledger = Ledger(path, "test")
        assert [*ledger.rows] == ["a", "b"]
        ledger.append("c", **VALUES)
        assert path.read_bytes() == whole


@pytest.mark.parametrize(
    "damage",
    [
        lambda line: line[:-20],
        lambda line: line.replace(b"0.3333", b"0.3334"),
        lambda line: line.replace(b'"b"', b'"\xff"'),
        lambda line: b"[1]",
        lambda line: b"[" * 100_000,
        lambda line: line.replace(b'"schema": 2', b'"schema": 9'),
        lambda line: line.replace(b"null", b"NaN"),
    ],
)
def test_names_a_damaged_line(tmp_path, damage):
    path = tmp_path / "rows.jsonl"
    first, second, third = write(path).splitlines()
    path.write_bytes(b"\n".join([first, damage(second), third, b""]))
    with raises(InvalidFileError, line=2):
        Ledger(path, "test")


def test_refuses_other_jobs_and_inputs(tmp_path):
    write(tmp_path / "test.jsonl")
    with raises(InvalidFileError, line=1):
        Ledger(tmp_path / "test.jsonl", "sweep")
    with raises(InvalidFileError):
        Ledger(tmp_path, "test")
    out = tmp_path / "out"
    made = {"train": "abc", "patience": 3, "metrics": ["mrr@5"]}
    changed = made | {"patience": None, "metrics": ["mrr@5", "map@5"]}
    for _ in range(2):
        with Ledger.opened(out, "test", made) as ledger:
            assert [*ledger.rows] == [INPUTS]
    with raises(InvalidFileError), Ledger.opened(out, "test", changed):
        pass
    ledger.append("a")
    inputs, rest = (out / "test.jsonl").read_bytes().splitlines(keepends=True)
    (out / "test.jsonl").write_bytes(rest)
    with raises(InvalidFileError), Ledger.opened(out, "test", made):  # without its inputs
        pass
    (out / "test.jsonl").write_bytes(inputs)
    with raises(InvalidFileError), Ledger.opened(out, "sweep", made, earlier=["*.jsonl"]):
        pass
    need_posix()
    with Ledger.opened(out, "test", made), raises(OutputError), Ledger.opened(out, "test", made):
        pass


@pytest.mark.parametrize("saved", [{"folder": "a"}, {"folder": "als 32.é"}])
def test_a_row_names_a_folder_next_to_it(tmp_path, saved):
    path = tmp_path / "rows.jsonl"
    Ledger(path, "test").append("a", saved=saved)
    assert Ledger(path, "test").rows["a"]["saved"] == saved


@pytest.mark.parametrize(
    "saved",
    [*({"folder": name} for name in ("../a", "..", ".", "/a", "a/b", "", 5)), "a", [], {}],
)
def test_refuses_a_row_that_names_anything_else(tmp_path, saved):
    path = tmp_path / "rows.jsonl"
    Ledger(path, "test").append("a", saved=saved)
    with raises(InvalidFileError):
        Ledger(path, "test")
