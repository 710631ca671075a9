"""The command ``score`` on several checkpoints."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from commands import press_ctrl_c, start_command, wait_for
from sweep_cases import (
    METRICS,
    NAMES,
    Command,
    rows_of,
    same_table,
    save,
)

import sparse_eval as se
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
    assert lines[0].split() == ["file", "best", *NAMES, "factors", "seconds"]
    assert [line.split()[0] for line in lines[2:]] == expected["file"].tolist()
    assert [line.split()[1] == "*" for line in lines[2:]] == [i == best for i in range(3)]
    assert number(expected["ndcg@10"][0]) in lines[2]
    names = [f"als-{factors}" for factors in (10, 2, 4)]
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == [*names, "sweep.csv"]
    before = (tmp_path / "o" / "sweep.csv").read_bytes()

    files = sorted(folder.iterdir())
    status, printed, _ = command(*files, *split, "--out", tmp_path / "o", "--format", "json")
    assert status == 0
    rows = json.loads(printed)
    assert sorted(row["factors"] for row in rows) == [2, 4, 10]
    assert {row["file"]: row["ndcg@10"] for row in rows} == dict(
        zip(expected["file"], expected["ndcg@10"], strict=True)
    )
    assert [row["best"] for row in rows].count(True) == 1

    status, printed, _ = command(folder, *split, "--out", tmp_path / "o", "--format", "csv")
    assert (status, printed.encode()) == (0, before)
    status, printed, _ = command(folder, *split, "--format", "markdown", "--monitor", "recall@20")
    assert status == 0
    lines = printed.splitlines()
    assert lines[0].split()[:4] == ["|", "file", "|", "best"]
    assert " * " in lines[2 + int(expected["recall@20"].argmax())]


def test_the_command_fails_at_the_end_if_a_checkpoint_did(
    command: Command, folder: Path, split: Any, tmp_path: Path
) -> None:
    (folder / "als-3.npz").write_bytes(b"")
    status, printed, said = command(folder, *split, folder / "missing.npz", "--progress")
    assert status == 1
    assert "2 of 5 checkpoints could not be scored" in said.splitlines()[-1]
    assert "score: 100%" in said
    lines = printed.splitlines()
    assert lines[0].split()[-1] == "error"
    assert "expected an .npz file" in lines[3]
    assert lines[-1].endswith("does not exist")
    status, printed, _ = command(folder, *split, "--format", "json")
    assert status == 1
    row = json.loads(printed)[1]
    assert (row["status"], row["ndcg@10"], row["factors"]) == ("failed", None, None)


def test_the_command_reports_one_checkpoint_like_evaluate(
    command: Command, folder: Path, split: Any, tmp_path: Path
) -> None:
    status, printed, said = command(folder / "als-2.npz", *split, "--out", tmp_path / "o")
    assert status == 0, said
    assert printed.splitlines()[0].split()[:2] == ["metric", "mean"]
    assert "\nndcg@10 " in printed
    assert sorted(path.name for path in (tmp_path / "o").iterdir()) == [
        "per_user.csv", "summary.json", "totals-popularity.npz", "totals.npz",
    ]  # fmt: skip


def test_the_command_refuses_before_it_reads(
    command: Command, folder: Path, split: Any, tmp_path: Path
) -> None:
    (tmp_path / "none").mkdir()
    for words, message in (
        ((tmp_path / "none",), "none: has no .npz file in it"),
        (
            (folder / "als-2.npz", "--monitor", "ndcg@10"),
            "--monitor decides which of several checkpoints is best; found one",
        ),
        ((folder / "als-2.npz", "--watch", "1"), "watch follows one folder"),
        ((folder, folder, "--watch", "1"), "watch follows one folder"),
        ((folder, "--watch", "0"), "watch: expected a finite number of at least 0.1"),
        ((folder, "--monitor", "mrr@3"), "monitor is 'mrr@3'"),
        ((folder, "-m", "ndgc@3"), "did you mean 'ndcg'"),
    ):
        status, printed, said = command(*words, *split)
        assert (status, printed) == (2, "")
        assert message in said.splitlines()[-1]
    assert command(folder, *split, "--out", tmp_path / "o")[0] == 0
    status, _, said = command(folder, *split, "-m", "mrr@5", "--out", tmp_path / "o")
    assert status == 2
    assert "sweep.csv: was made with other inputs: metrics" in said


SLOWLY = """
import sys, time
from pathlib import Path

source, target = map(Path, sys.argv[1:])
content = source.read_bytes()
step = len(content) // 40 + 1
with target.open("wb") as stream:
    for start in range(0, len(content), step):
        stream.write(content[start : start + step])
        stream.flush()
        time.sleep(0.05)
"""


@pytest.mark.long
def test_the_command_follows_a_training(
    folder: Path, holdout: Any, split: Any, tmp_path: Path
) -> None:
    words = (folder, *split, "--watch", "0.8", "--format", "csv", "--out", tmp_path / "o")
    out = tmp_path / "o" / "sweep.csv"
    source = save(tmp_path / "source.npz", 7)
    (folder / ".als-8.npz").write_bytes(b"half")

    def states() -> dict[str, str]:
        # The file is complete whenever it is read, without the checkpoint that is being written.
        rows = rows_of(out) if out.exists() else []
        assert all(row["sparse_eval"] for row in rows)
        assert {row["status"] for row in rows} <= {"ok"}
        return {Path(row["file"]).name: row["factors"] for row in rows}

    process = start_command("score", *words)

    def followed() -> bool:
        wait_for(lambda: len(states()) == 3, process)
        began = time.monotonic()
        writer = subprocess.Popen([sys.executable, "-c", SLOWLY, source, folder / "als-3.npz"])
        wait_for(lambda: "als-3.npz" in states(), process)
        assert time.monotonic() - began > 40 * 0.05
        assert writer.wait() == 0
        save(folder / "als-2.npz", 5)
        wait_for(lambda: states()["als-2.npz"] == "5", process)
        return True

    status, printed, said = press_ctrl_c(process, followed, signal.SIGTERM)
    assert status == 143, said
    assert printed == out.read_text()
    assert "Traceback" not in said
    names = ["als-10", "als-2", "als-3", "als-4", "sweep.csv"]
    assert sorted(path.name for path in out.parent.iterdir()) == names
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS)
    assert same_table(se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out), table)

    (folder / "als-4.npz").write_bytes(b"broken")
    status, _, said = press_ctrl_c(
        start_command("score", *words),
        lambda: any(row["status"] == "failed" for row in rows_of(out)),
    )
    assert status == 130
    assert said.splitlines()[-2:] == [
        "1 of 4 checkpoints could not be scored",
        f"interrupted: what was scored is in {out}; the same command goes on from there",
    ]


@pytest.mark.parametrize(
    ("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"]
)
def test_a_signal_ends_the_command_and_a_rerun_goes_on(
    folder: Path,
    holdout: Any,
    split: Any,
    command: Command,
    tmp_path: Path,
    number: signal.Signals,
    expected: int,
) -> None:
    paths = [save(folder / f"als-{n}.npz", n) for n in range(2, 45)]
    out = tmp_path / "o" / "sweep.csv"
    status, printed, said = press_ctrl_c(
        start_command("score", folder, *split, "--out", out.parent),
        lambda: out.exists() and len(rows_of(out)) > 2,
        number,
    )
    assert status == expected, said
    assert "Traceback" not in said
    assert said.splitlines()[-1] == (
        f"interrupted: what was scored is in {out}; the same command goes on from there"
    )
    n_done = len(rows_of(out))
    saved = [path for path in out.parent.glob("*/summary.json") if se.Evaluation.load(path)]
    assert n_done <= len(saved) <= n_done + 1
    assert 2 < n_done < len(paths)
    header, _, *rows = printed.splitlines()
    assert header.split()[:2] == ["file", "best"]
    assert [row.split()[0] for row in rows] == [row["file"] for row in rows_of(out)]
    assert command(folder, *split, "--out", out.parent)[0] == 0
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS)
    assert same_table(se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out), table)
