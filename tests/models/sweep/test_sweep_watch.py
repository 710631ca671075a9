"""Sweeps that follow a folder."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from own_process import own_process
from sweep_cases import (
    METRICS,
    changing,
    make_old,
    overwrite,
    rows_of,
    same_table,
    save,
)

import sparse_eval as se
import sparse_eval.models.sweep as sweeping
from sparse_eval.errors import InvalidFileError


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[Callable[[], None]]], list[float]]:
    """Run a step between each scan of the folder and the next, then press Ctrl-C."""

    def play(steps: list[Callable[[], None]]) -> list[float]:
        slept: list[float] = []

        def sleep(seconds: float) -> None:
            slept.append(seconds)
            if len(slept) > len(steps):
                raise KeyboardInterrupt
            steps[len(slept) - 1]()

        monkeypatch.setattr(sweeping.time, "sleep", sleep)
        return slept

    return play


@own_process
def test_follows_a_folder(
    folder: Path,
    holdout: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    scored: list[Any],
    scans: Any,
) -> None:
    out, data = tmp_path / "sweep.csv", (holdout.train, holdout.validation, METRICS)
    for path in folder.iterdir():
        make_old(path)
    late = save(tmp_path / "late.npz", 7).read_bytes()
    growing = folder / "als-3.npz"
    seen: list[list[str]] = []

    def table() -> list[str]:
        seen.append([f"{Path(row['file']).name} {row['status']}" for row in rows_of(out)])
        return seen[-1]

    def grow(upto: int) -> Callable[[], None]:
        def step() -> None:
            assert "als-3.npz" not in " ".join(table())
            growing.write_bytes(late[:upto])

        return step

    def change() -> None:
        assert table()[1] == "als-3.npz ok"
        save(folder / "als-2.npz", 9)
        save(folder / ".als-1.npz", 1)

    there = ["als-2.npz ok", "als-4.npz ok", "als-10.npz ok"]
    hash_file, hashed = hashlib.file_digest, []
    monkeypatch.setattr(
        hashlib, "file_digest", lambda *given: hashed.append(1) or hash_file(*given)
    )
    slept = scans([
        lambda: seen.append(table()), grow(100), grow(2000), grow(len(late)),
        table, table, change, table, table, lambda: (folder / "als-4.npz").unlink(), table,
    ])  # fmt: skip
    result = se.sweep(folder, *data, out=out, watch=7.5)
    assert slept == [7.5] * 12  # it sleeps between scans only
    assert seen[0] == there
    assert scored == [2, 4, 10, 7, 9]
    assert len(hashed) == 5  # unchanged files are not read again
    names = [Path(file).name for file in result["file"]]
    assert names == ["als-2.npz", "als-3.npz", "als-10.npz", "als-4.npz"]
    assert result["factors"].tolist() == [9, 7, 10, 4]
    assert rows_of(out)[3]["file"] == str(folder / "als-4.npz")
    scored.clear()
    scans([])
    assert same_table(se.sweep([folder], *data, out=out, watch=7.5), result)
    assert scored == []


@own_process
def test_a_new_file_waits_for_the_second_scan(
    folder: Path, holdout: Any, scans: Any, scored: list[Any]
) -> None:
    make_old(folder / "als-4.npz")
    first: list[int] = []
    scans([lambda: first.extend(scored)])
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, watch=3600)
    assert first == [4]
    assert table["factors"].tolist() == [2, 4, 10]


@own_process
def test_a_broken_checkpoint_fails_until_it_changes(
    folder: Path, holdout: Any, scans: Any, scored: list[Any]
) -> None:
    good = (folder / "als-4.npz").read_bytes()
    (folder / "als-4.npz").write_bytes(good[:900])
    for path in folder.iterdir():
        make_old(path)
    scans([])
    data = (holdout.train, holdout.validation, METRICS)
    table = se.sweep(folder, *data, watch=1)
    assert table["status"].tolist() == ["ok", "failed", "ok"]
    scans([lambda: (folder / "als-4.npz").write_bytes(good), lambda: None])
    assert set(se.sweep(folder, *data, watch=1)["status"]) == {"ok"}


@own_process
def test_a_file_that_changes_while_it_is_read_waits(
    folder: Path, holdout: Any, tmp_path: Path, scans: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path in folder.iterdir():
        make_old(path)
    path, out = folder / "als-4.npz", tmp_path / "sweep.csv"
    whole = path.read_bytes()
    numbers: list[int] = []

    def note() -> None:
        numbers.append(len(rows_of(out)))

    def complete() -> None:
        note()
        overwrite(path, whole)

    scans([complete, note, note])
    changes = [lambda: overwrite(path, whole[:800]), lambda: overwrite(path, whole + b"more")]
    with changing(monkeypatch, sweeping, "read_checkpoint", path, changes):
        table = se.sweep(folder, holdout.train, holdout.validation, METRICS, watch=1, out=out)
    assert numbers == [2, 2, 2]  # the changed file has no failed row
    assert table["file"].tolist() == [str(folder / "als-2.npz"), str(folder / "als-10.npz")]


@own_process
def test_follows_an_empty_folder(tmp_path: Path, holdout: Any, scans: Any) -> None:
    (tmp_path / "new").mkdir()
    scans([])
    table = se.sweep(tmp_path / "new", holdout.train, holdout.validation, METRICS, watch=1)
    assert len(table) == 0
    assert list(table.columns)[:6] == ["file", "best", "status", "error", "seconds", "ndcg@10"]


@own_process
def test_a_removed_folder_ends_the_watch(
    folder: Path, holdout: Any, tmp_path: Path, scans: Any
) -> None:
    for path in folder.iterdir():
        make_old(path)
    out = tmp_path / "sweep.csv"
    scans([lambda: shutil.rmtree(folder)])
    with pytest.raises(InvalidFileError, match="checkpoints: cannot be read: No such file"):
        se.sweep(folder, holdout.train, holdout.validation, METRICS, watch=1, out=out)
    assert len(rows_of(out)) == 3


@own_process
def test_ctrl_c_while_scoring_ends_the_watch_with_the_table(
    folder: Path, holdout: Any, monkeypatch: pytest.MonkeyPatch, scans: Any
) -> None:
    for path in folder.iterdir():
        make_old(path)
    scans([])

    def pressed(model: Any, *data: Any, **options: Any) -> Any:
        if model.item_factors.shape[1] == 10:
            raise KeyboardInterrupt
        return se.evaluate_model(model, *data, **options)

    monkeypatch.setattr(sweeping, "evaluate_model", pressed)
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, watch=1)
    assert table["factors"].tolist() == [2, 4]
