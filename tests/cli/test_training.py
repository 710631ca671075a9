"""Test the commands that split data and train models: demo, run, split, train."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import SMALL, Command

import sparse_eval as se


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a click log as CSV."""
    clicks = se.datasets.synthetic(n_users=80, n_items=60, seed=1)
    clicks.to_frame().to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


def test_demo_runs_every_step(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    status, printed, said = command("demo", "--users", 100, "--items", 80, *SMALL, "--out", out)
    assert status == 0, said
    assert sorted(p.name for p in out.iterdir()) == [
        "model.npz", "per_user.csv", "split", "summary.json", "totals.npz",
    ]  # fmt: skip
    # The files are enough to get the same numbers again.
    status, again, _ = command("score", out / "model.npz", "--split", out / "split")
    assert (status, again) == (0, printed)
    holdout = se.split.Holdout.load(out / "split")
    ev = se.evaluate_model(out / "model.npz", holdout.train, holdout.validation, "ndcg@10")
    assert se.Evaluation.load(out)["ndcg@10"] == ev["ndcg@10"]


def test_a_run_keeps_what_is_there_if_there_is_no_room_for_the_split(
    command: Command, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def contents() -> dict[str, bytes]:
        files = [path for path in out.rglob("*") if path.is_file()]
        return {str(path.relative_to(out)): path.read_bytes() for path in files}

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    out = tmp_path / "results"
    assert command("run", log, *SMALL, "--out", out)[0] == 0
    before = contents()
    with monkeypatch.context() as patch:
        patch.setattr("scipy.sparse.save_npz", full)
        status, _, said = command("run", log, *SMALL, "--seed", 1, "--out", out)
    assert status == 75  # try again later
    assert said.endswith("train.npz: cannot be written: No space left on device\n")
    assert contents() == before
    assert {"model.npz", "summary.json", "split/labels.npz"} <= before.keys()


def test_split_train_and_score_equal_run(command: Command, log: Path, tmp_path: Path) -> None:
    status, printed, said = command("run", log, *SMALL, "-m", "ndcg@{5,10}", "--format", "json")
    assert status == 0, said
    assert command("split", log, "--out", tmp_path / "split")[0] == 0
    assert command("train", tmp_path / "split", *SMALL, "--out", tmp_path / "m" / "a.npz")[0] == 0
    status, again, _ = command(
        "score", tmp_path / "m" / "a.npz", "--split", tmp_path / "split",
        "-m", "ndcg@5", "-m", "ndcg@10", "--format", "json",
    )  # fmt: skip
    assert status == 0
    (row,) = json.loads(again)
    assert row == {name: row[name] for name in ("file", "sha256", "best", "status", "error")} | (
        json.loads(printed)
    )


def test_run_uses_a_ready_made_split(command: Command, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("0 0 1 2\n1 1 2\n2 0 2 3\n3 3\n")
    (tmp_path / "test.txt").write_text("0 3\n1 0\n2 1\n3\n")
    parts = (tmp_path / "train.txt", tmp_path / "test.txt")
    status, printed, said = command(
        "run", *parts, *SMALL, "-m", "recall@2", "--out", tmp_path / "r"
    )
    assert status == 0, said
    assert "means over 3 users, 1 left out (nothing relevant)" in printed
    train, test = parts
    words = ("--train", train, "--validation", test, "-m", "recall@2")
    status, again, said = command("score", tmp_path / "r" / "model.npz", *words)
    assert (status, again) == (0, printed), said


TEMPORAL = ("--method", "temporal", "--timestamp", "timestamp")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--fraction 0.3 --seed 2", lambda clicks: se.split.random(clicks, fraction=0.3, seed=2)),
        ("--method leave-k-out", lambda clicks: se.split.leave_k_out(clicks, seed=0)),
        ("--method last-n --n 2", lambda clicks: se.split.last_n(clicks, n=2)),
        ("--method temporal", lambda clicks: se.split.temporal(clicks, fraction=0.2)),
        (
            "--at 1574208000 --gap 43200",
            lambda clicks: se.split.temporal(clicks, at=1574208000, gap=43200),
        ),
        (
            "--at 2019-11-20 --test-at 1575158400 --gap 12h --only-known",
            lambda clicks: se.split.temporal(
                clicks, at="2019-11-20", test="2019-12-01", gap="12h"
            ).known(),
        ),
        (
            "--method users --fold-in 0.5 --order time",
            lambda clicks: se.split.users(clicks, fraction=0.2, fold_in=0.5, order="time", seed=0),
        ),
    ],
)
def test_splits_as_python_does(
    command: Command,
    log: Path,
    tmp_path: Path,
    words: str,
    expected: Callable[[se.Interactions], se.Holdout],
) -> None:
    out = tmp_path / "s"
    status, _, said = command("split", log, *words.split(), "--out", out)
    assert status == 0, said
    found = se.Holdout.load(out)
    holdout = expected(se.datasets.load_csv(log, timestamp="timestamp"))
    assert repr(found) == repr(holdout)
    for part in ("train", "validation", "test", "fold_in"):
        one, other = getattr(found, part), getattr(holdout, part)
        assert (one is None) == (other is None)
        assert one is None or (one.csr != other.csr).nnz == 0


def test_run_at_a_date_and_with_known_items_only(
    command: Command, log: Path, tmp_path: Path
) -> None:
    words = ("run", log, *SMALL, *TEMPORAL, "--at", "2019-11-12", "-m", "ndcg@5")
    status, _, said = command(*words, "--only-known", "--out", tmp_path / "r")
    assert status == 0, said
    holdout = se.split.Holdout.load(tmp_path / "r" / "split")
    assert holdout.left_out.unknown > 0
    assert holdout.unknown == (0, 0, 0)
    (tmp_path / "train.txt").write_text("0 0 1 2\n1 1 2\n2 0 2 3\n3 3\n")
    (tmp_path / "new.txt").write_text("0 4\n1 5\n2 4 5\n")
    parts = (tmp_path / "train.txt", tmp_path / "new.txt")
    status, _, said = command("run", *parts, *SMALL, "--only-known")
    assert status == 2
    assert "nothing is held out for validation: every pair has a user or item without" in said


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--at", "14.11.2019"), "error: --at: expected a date such as '2019-11-14'"),
        (("--at", "1" * 4301), "error: --at: expected a date such as '2019-11-14'"),
        (("--at", "2019-11-14", "--gap", "soon"), "error: --gap: expected a duration such as '1D'"),
        (("--at", "2019-11-14", "--fraction", 0.1), "--fraction: cannot be combined with --at; "),
        (("--test-at", "2019-11-13"), "--test-at needs --at, where the validation part begins"),
    ],
)
def test_refuses_dates(
    command: Command, log: Path, tmp_path: Path, words: tuple[object, ...], says: str
) -> None:
    status, printed, said = command("split", log, *TEMPORAL, *words, "--out", tmp_path / "s")
    assert (status, printed) == (2, "")
    assert says in said.splitlines()[-1]
    assert not (tmp_path / "s").exists()


def test_refuses_a_date_where_the_unit_is_not_known(command: Command, tmp_path: Path) -> None:
    (tmp_path / "days.csv").write_text("user,item,day\n1,1,1\n1,2,2\n2,1,3\n")
    words = ("split", tmp_path / "days.csv", "--method", "temporal", "--timestamp", "day")
    status, _, said = command(*words, "--at", "2019-11-14", "--out", tmp_path / "s")
    assert status == 2
    assert "--at: the unit of the timestamps is not known" in said
    assert "pass --at as a whole number in their unit" in said
    assert command(*words, "--at", 2, "--out", tmp_path / "s")[0] == 0
