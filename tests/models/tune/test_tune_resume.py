"""Searches that continue from a folder, and folders that they refuse."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from killed import run_killed
from own_process import own_process
from tune_cases import (
    FILES,
    content,
    rows_of,
    same_search,
    search,
    three_parts,
)

import sparse_eval as se
import sparse_eval.models.tune as tuning
from sparse_eval.errors import InvalidFileError, OutputError


@own_process
def test_finished_trials_are_not_run_again(
    parts: Any,
    whole_search: tuning.Tuning,
    tmp_path: Path,
    trained: list[Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = search(parts, out=tmp_path / "whole")
    assert same_search(expected, whole_search)
    calls = list(trained)
    trained.clear()

    def interrupting(train: Any, **options: Any) -> Any:
        if len(trained) == 2:
            raise KeyboardInterrupt
        return counted(train, **options)

    counted = tuning.train_als
    with monkeypatch.context() as patch:
        patch.setattr(tuning, "train_als", interrupting)
        with pytest.raises(KeyboardInterrupt):
            search(parts, out=tmp_path / "parts")
    assert trained == calls[:2]
    rows = rows_of(tmp_path / "parts")
    assert [row["trial"] for row in rows] == ["1", "2"]
    assert [row["best"] for row in rows].count("True") == 1
    assert same_search(search(parts, out=tmp_path / "parts"), expected)
    assert trained == calls
    one, other = (content(tmp_path / name) for name in ("whole", "parts"))
    assert {*one} == {*other} == {*FILES}
    for name in {*FILES} - {"trials.csv"}:
        assert one[name] == other[name]
    timeless = [
        [row | {"seconds": ""} for row in rows_of(tmp_path / name)] for name in ("whole", "parts")
    ]
    assert timeless[0] == timeless[1]
    assert one == content(tmp_path / "whole")
    assert same_search(search(parts, out=tmp_path / "whole"), expected)
    assert one == content(tmp_path / "whole")  # nothing is written again
    assert trained == calls


@pytest.mark.parametrize("call", range(1, 8))
@own_process
def test_an_interrupt_at_every_file(
    parts: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: int
) -> None:
    """search.json, a table for each of two trials, the model, two files of the test."""
    options: dict[str, Any] = {"factors": [2], "iterations": 2, "out": tmp_path}
    replaced: list[str] = []
    replace = Path.replace

    def pressed(self: Path, target: Path) -> Path:
        replaced.append(target.name)
        if len(replaced) == call:
            raise KeyboardInterrupt
        return replace(self, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", pressed)
        if call == 7:
            search(parts, **options)
        else:
            with pytest.raises(KeyboardInterrupt):
                search(parts, **options)
    names = ["search.json", "trials.csv", "trials.csv", "model.npz", "per_user.csv", "summary.json"]
    assert replaced == names[:call]
    assert {*content(tmp_path)} == {*names[: call - 1]}  # and no partial file
    assert same_search(search(parts, **options), search(parts, **(options | {"out": None})))
    assert sorted(content(tmp_path)) == FILES


KILLED = """
import sparse_eval as se

split, out = Path(sys.argv[1]), Path(sys.argv[2])
whole, part = se.split.Holdout.load(split / "whole"), se.split.Holdout.load(split / "part")
se.tune(
    part.train, part.validation, ["ndcg@10", "recall@5"], factors=[2, 6], alpha=[1.0, 40.0],
    regularization=0.01, iterations=3, test=whole.validation, out=out,
)
"""


@pytest.mark.parametrize(
    "calls", [(4,), pytest.param((1, 2, 3, 2, 2, 3, 3), marks=(pytest.mark.slow, pytest.mark.long))]
)
def test_survives_being_killed(
    parts: Any, whole_search: tuning.Tuning, tmp_path: Path, calls: tuple[int, ...]
) -> None:
    """Each run is killed before it moves the file of that number to its place."""
    for holdout, name in zip(parts, ("whole", "part"), strict=True):
        holdout.save(tmp_path / name)
    out = tmp_path / "out"
    for call in calls:
        run_killed(KILLED, call, tmp_path, out)
    assert not (out / "summary.json").exists()
    assert same_search(search(parts, out=out), whole_search)
    assert [name for name in sorted(content(out)) if not name.startswith(".")] == FILES


def test_a_full_disk_keeps_the_table(
    parts: Any, whole_search: tuning.Tuning, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Path.write_text

    def full(self: Path, text: str, **options: Any) -> int:
        if text.count("\n") == 4 and text.startswith("trial,"):
            raise OSError(28, "No space left on device")
        return write(self, text, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with pytest.raises(OutputError, match=r"trials.csv: cannot be written: No space left"):
            search(parts, out=tmp_path)
    assert len(rows_of(tmp_path)) == 2
    assert same_search(search(parts, out=tmp_path), whole_search)


def test_refuses_the_folder_of_another_search(
    parts: Any, tmp_path: Path, trained: list[Any]
) -> None:
    search(parts, out=tmp_path, patience=3)
    before = content(tmp_path)
    trained.clear()
    whole, part = parts
    changed = part.train.copy()
    changed.data[5] += 1
    for data, options, message in (
        (parts, {"metrics": ["ndcg@10"]}, r'metrics ["ndcg@10", "recall@5"] (here ["ndcg@10"])'),
        (parts, {"monitor": "recall@5"}, "monitor ndcg@10 (here recall@5)"),
        (parts, {"patience": 4}, "patience 3 (here 4)"),
        (parts, {"patience": None}, "patience 3 (here null)"),
        (parts, {"seed": 1}, "seed 0 (here 1)"),
        (parts, {"factors": [2, 6, 8]}, "factors [2, 6] (here [2, 6, 8])"),
        (parts, {"factors": [6, 2]}, "factors [2, 6] (here [6, 2])"),
        (parts, {"alpha": "1:40", "draws": 4}, "alpha [1.0, 40.0] (here 1.0:40.0); draws null (h"),
        (parts, {"regularization": 0}, "regularization [0.01] (here [0.0])"),
        (parts, {"iterations": 5}, "iterations [3] (here [5])"),
        (three_parts(seed=1), {}, "train "),
        ((whole, se.split.Holdout(part.train, part.validation * 2)), {}, "search: validation "),
        ((whole, se.split.Holdout(changed, part.validation)), {}, "search: train "),
    ):
        with pytest.raises(InvalidFileError, match=re.escape(message)) as error:
            search(data, **({"out": tmp_path, "patience": 3} | options))
        assert f"{tmp_path}/search.json: is of another search: " in str(error.value)
    assert trained == []
    assert content(tmp_path) == before
    single = se.split.Holdout(part.train, part.validation)
    object.__setattr__(single, "train", part.train.astype(np.float32))
    search((whole, single), out=tmp_path, patience=3)  # the same numbers
    assert trained == []


def test_refuses_files_of_another_origin(parts: Any, tmp_path: Path) -> None:
    for name in ("trials.csv", "model.npz", "per_user.csv", "summary.json"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / name).write_text("of another program")
        with pytest.raises(InvalidFileError, match=f"{name}: is there, but no search.json"):
            search(parts, out=folder)
        assert content(folder) == {name: b"of another program"}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("stay")
    search(parts, factors=2, alpha=1.0, out=tmp_path / "other")
    assert sorted(content(tmp_path / "other")) == sorted([*FILES, "notes.txt"])


def test_refuses_files_that_were_changed(parts: Any, tmp_path: Path, trained: list[Any]) -> None:
    outcome = search(parts, iterations=1, out=tmp_path)
    sound = content(tmp_path)
    lines = sound["trials.csv"].decode().splitlines(keepends=True)
    trained.clear()

    def table(*kept: str) -> bytes:
        return "".join(kept).encode()

    second = lines[2].split(",")
    for name, text, message in (
        ("search.json", b"{", "is not what a search wrote, and is left as it is"),
        ("search.json", b"[]", "is not what a search wrote"),
        ("search.json", b'{"seed": 0}', "is not what a search wrote"),
        ("search.json", b"\xff", "is not what a search wrote"),
        ("summary.json", b"", "is not what a search wrote"),
        ("summary.json", b'{"trial": 1}', "is not what a search wrote"),
        ("trials.csv", b"", "is not the table that this search wrote"),
        ("trials.csv", b"\xff\xfe", "is not the table that this search wrote"),
        ("trials.csv", table("trial,best\n", "1,True\n"), "is not the table that this search"),
        ("trials.csv", table(*lines[:2], lines[1]), "trials.csv, line 3: is not what this search"),
        ("trials.csv", table(lines[0], lines[1], lines[2][:25]), "line 3: is not"),
        ("trials.csv", table(*lines, "5" + lines[1][1:]), "line 6: is not"),
        ("trials.csv", table(*lines[:2], "x" + lines[2][1:]), "line 3: is not"),
        ("trials.csv", table(*lines[:2], "3" + lines[2][1:]), "line 3: is not"),
        ("trials.csv", table(lines[0], lines[1].rstrip() + ",7\n"), "line 2: is not"),
        ("trials.csv", table(lines[0], ",".join([*second[:2], "done", *second[3:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:2], "failed", *second[3:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:8], "5", *second[9:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:9], "nan", *second[10:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:10], "high", *second[11:]])), "line 2"),
        ("trials.csv", table(lines[0], ",".join([*second[:11], "\n"])), "line 2"),
    ):
        (tmp_path / name).write_bytes(text)
        with pytest.raises(InvalidFileError, match=re.escape(message)):
            search(parts, iterations=1, out=tmp_path)
        assert content(tmp_path) == sound | {name: text}
        (tmp_path / name).write_bytes(sound[name])
    assert trained == []
    (tmp_path / "trials.csv").write_bytes(table(*lines[:2], *lines[3:]))
    assert same_search(
        search(parts, iterations=1, out=tmp_path), outcome
    )  # a trial whose line was deleted is run again
    assert len(trained) == 1
    summary = json.loads(sound["summary.json"])
    other = summary | {"trial": summary["trial"] % 4 + 1}
    (tmp_path / "summary.json").write_text(json.dumps(other))
    with pytest.raises(InvalidFileError, match="is of another test: trial"):
        search(parts, iterations=1, out=tmp_path)
