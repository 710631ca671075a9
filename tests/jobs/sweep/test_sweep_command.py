"""The command ``score`` on several checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sweep_cases import (
    METRICS,
    NAMES,
    Command,
)

import sparse_eval as se
from sparse_eval.core.files import locked_folder
from sparse_eval.core.formatting import number


def test_the_command_scores_several(
    command: Command, folder: Path, holdout: Any, split: Any, tmp_path: Path
) -> None:
    expected = se.sweep(folder, holdout.train, holdout.validation, METRICS)
    best = int(expected["best"].argmax())
    status, printed, said = command(folder, *split, "--out", tmp_path / "o")
    assert status == 0, said
    assert "score: 3 checkpoints, " in said
    lines = printed.splitlines()
    columns = ["file", "best", NAMES[0], "95", "%", "interval", *NAMES[1:], "factors", "seconds"]
    assert lines[0].split() == columns
    names = [*expected["file"], "random", "popularity"]
    assert [line.split()[0] for line in lines[2:]] == names
    assert [line.split()[1] == "*" for line in lines[2:5]] == [i == best for i in range(3)]
    assert number(expected["ndcg@10"][0]) in lines[2]
    names = [f"als-{factors}" for factors in (10, 2, 4)]
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == [
        *names, "sweep.jsonl", "table.csv",
    ]  # fmt: skip

    files = sorted(folder.iterdir())
    status, printed, _ = command(*files, *split, "--out", tmp_path / "o", "--format", "json")
    assert status == 0
    rows = json.loads(printed)
    assert sorted(row["factors"] for row in rows) == [2, 4, 10]
    assert {row["file"]: row["metrics"]["ndcg@10"]["mean"] for row in rows} == dict(
        zip(expected["file"], expected["ndcg@10"], strict=True)
    )
    assert [row["best"] for row in rows].count(True) == 1


def test_the_command_fails_at_the_end_if_a_checkpoint_did(
    command: Command, folder: Path, split: Any, tmp_path: Path
) -> None:
    (folder / "als-3.npz").write_bytes(b"")
    status, printed, said = command(folder, *split, folder / "missing.npz", "--progress")
    assert status == 1
    assert "2 of 5 checkpoints could not be scored" in said.splitlines()[-1]
    assert "score: 100%" in said
    first, second = said.splitlines()[-3:-1]
    assert first.startswith(f"warning: {folder / 'als-3.npz'}: BadZipFile: ")
    assert second == f"warning: {folder / 'missing.npz'}: does not exist"
    assert "error" not in printed
    status, printed, _ = command(folder, *split, "--format", "json")
    assert status == 1
    row = json.loads(printed)[1]
    assert (row["status"], row["factors"]) == ("failed", None)
    assert row["metrics"]["ndcg@10"] == {"mean": None}


def test_the_command_refuses_before_it_reads(
    command: Command, folder: Path, split: Any, tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    status, printed, said = command(tmp_path / "none", *split)
    assert (status, printed) == (2, "")
    assert "none: contains no .npz file" in said.splitlines()[-1]
    quoted = command(f"{folder}/als-[24].npz", *split, "--format", "json")[1]
    assert [row["factors"] for row in json.loads(quoted)] == [2, 4]
    assert command(folder, *split, "--out", tmp_path / "o")[0] == 0
    with locked_folder(tmp_path / "o"):
        assert command(folder, *split, "--out", tmp_path / "o")[0] == 75
    status, _, said = command(folder, *split, "-m", "mrr@5", "--out", tmp_path / "o")
    assert status == 2
    assert "sweep.jsonl: this folder was written with different inputs: metrics" in said
