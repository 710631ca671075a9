"""Sweeps that are interrupted, killed, or run out of disk space."""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import wait_for
from own_process import own_process
from sweep_cases import (
    METRICS,
    rows_of,
    same_table,
)
from systems import need_posix

import sparse_eval as se
import sparse_eval.models.sweep as sweeping


@contextmanager
def interrupted(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, call: int) -> Iterator[Any]:
    """Press Ctrl-C when a function is called for the n-th time."""
    calls = [0]
    function = getattr(owner, name)

    def pressed(*given: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return function(*given, **options)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, pressed)
        with pytest.raises(KeyboardInterrupt):
            yield
    assert calls[0] >= call  # moves that are interrupted are made again


@pytest.mark.parametrize("call", [1, 2, 3])
@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (hashlib, "file_digest"),
        (sweeping, "read_checkpoint"),
        (sweeping, "as_model"),
        (sweeping, "evaluate_request"),
        (Path, "write_text"),
        (os, "close"),
        (Path, "replace"),
    ],
)
@own_process
def test_ctrl_c_keeps_the_finished_rows(
    folder: Path,
    holdout: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    owner: Any,
    name: str,
    call: int,
) -> None:
    data, out = (holdout.train, holdout.validation, METRICS), tmp_path / "out" / "table.csv"
    out.parent.mkdir()
    with interrupted(monkeypatch, owner, name, call):
        se.sweep(folder, *data, out=out.parent)
    assert [path.name for path in out.parent.iterdir()] == ["table.csv"] * out.exists()
    if owner not in (os, Path) or (owner is Path and name == "replace"):
        assert len(rows_of(out)) == call - 1
    elif call == 1:  # the empty table
        assert not out.exists()
    else:
        assert len(rows_of(out)) == call - 2
    assert same_table(se.sweep(folder, *data, out=out.parent), se.sweep(folder, *data))


FULL = """
import resource, signal, sys
from pathlib import Path
import sparse_eval as se

folder, out, split = map(Path, sys.argv[1:])
holdout = se.split.Holdout.load(split)
data = (holdout.train, holdout.validation, ["ndcg@10", "recall@{5,20}", "novelty@5"])
paths = sorted(folder.iterdir())
se.sweep(paths, *data)  # caches the kernels while files can still be written
se.sweep(paths[:2], *data, out=out.parent)
before = out.read_bytes()
resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 10,) * 2)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    se.sweep(paths, *data, out=out.parent)
except se.SparseEvalError as error:
    print(type(error).__name__, error)
assert out.read_bytes() == before
"""


def test_a_full_disk_keeps_the_table(folder: Path, holdout: Any, tmp_path: Path) -> None:
    need_posix()
    holdout.save(tmp_path / "split")
    out = tmp_path / "out" / "table.csv"
    out.parent.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", FULL, folder, out, tmp_path / "split"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == f"OutputError {out}: cannot be written: File too large\n", done.stderr
    assert done.returncode == 0, done.stderr
    assert [path.name for path in out.parent.iterdir()] == ["table.csv"]
    table = se.sweep(folder, holdout.train, holdout.validation, METRICS, out=out.parent)
    assert same_table(table, se.sweep(folder, holdout.train, holdout.validation, METRICS))


KILLED = """
import sys
from pathlib import Path
import sparse_eval as se

folder, split, out = map(Path, sys.argv[1:])
holdout = se.split.Holdout.load(split)
data = (holdout.train, holdout.validation, ["ndcg@10", "recall@{5,20}"])
se.sweep([folder / "als-2.npz"], *data)  # loads the kernels
print("ready", flush=True)
sys.stdin.readline()
se.sweep(folder, *data, out=out.parent)
print("done", flush=True)
"""


@pytest.mark.long
@pytest.mark.slow
def test_survives_being_killed_twenty_times(tmp_path: Path) -> None:
    need_posix()
    clicks = se.datasets.synthetic(n_users=1000, n_items=300, seed=3)
    holdout = se.split.random(clicks, seed=0)
    holdout.save(tmp_path / "split")
    folder, out = tmp_path / "checkpoints", tmp_path / "killed" / "table.csv"
    folder.mkdir()
    rng = np.random.default_rng(0)
    sizes = dict(zip(("user_factors", "item_factors"), holdout.train.shape, strict=True))
    for factors in range(2, 82):
        parts = {
            name: rng.standard_normal((size, factors)).astype(np.float32)
            for name, size in sizes.items()
        }
        np.savez(folder / f"als-{factors}.npz", factors=factors, **parts)
    for copy in (5, 30, 31):
        shutil.copy(folder / "als-3.npz", folder / f"als-{copy}.npz")
    for broken in (4, 8, 20):
        (folder / f"als-{broken}.npz").write_bytes(b"broken")
    data = (holdout.train, holdout.validation, ["ndcg@10", "recall@{5,20}"])
    whole = tmp_path / "whole" / "table.csv"
    se.sweep(folder, *data, out=whole.parent)
    expected = [{**row, "seconds": ""} for row in rows_of(whole)]
    assert [row["status"] for row in expected].count("failed") == 3
    step = sum(float(row["seconds"]) for row in rows_of(whole)) / 80

    def start() -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", KILLED, folder, tmp_path / "split", out],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def n_done() -> int:
        return len(rows_of(out)) if out.exists() else 0

    chance = random.Random(5)  # noqa: S311
    waiting, done_counts = [start()], []
    try:
        while len(done_counts) < 20:
            waiting.append(start())  # the next process starts while this one works
            process, before = waiting[0], n_done()
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "ready\n"
            process.stdin.write("\n")
            process.stdin.flush()
            goal = before + chance.choice([0, 1, 1, 2])
            wait_for(lambda goal=goal: n_done() >= goal, process)
            time.sleep(chance.uniform(0, 2 * step))
            os.kill(process.pid, signal.SIGKILL)
            said = process.communicate()[0]
            waiting.pop(0)
            if said == "":
                assert process.returncode == -signal.SIGKILL
                done_counts.append(n_done())
                assert before <= done_counts[-1] <= 80
            else:  # the sweep was finished before it was killed: not counted
                assert [{**row, "seconds": ""} for row in rows_of(out)] == expected
                out.unlink()
    finally:
        for process in waiting:
            process.kill()
            process.communicate()
    assert len({*done_counts}) > 10  # they were killed at different points, and the sweep continued
    table = se.sweep(folder, *data, out=out.parent)
    assert [{**row, "seconds": ""} for row in rows_of(out)] == expected
    assert same_table(table, se.sweep(folder, *data))
