"""The operator's week: a new day of logs, several checkpoints and all kinds of trouble every night.

Each night is a step of one test, with the exit status, the line and the files of each command.
"""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from systems import need_posix

import sparse_eval as se
from sparse_eval.core.atomic_files import locked_folder

DAYS = [f"2026-11-{day:02d}" for day in range(1, 11)]

METRICS = ("-m", "ndcg@10,recall@10")


def write_day(number):
    """Write the clicks of a day: in CSV in one folder, and in Parquet in another one.

    Each day has a few users and items that the days before it have not.
    """
    for folder in ("logs", "archive"):
        Path(folder).mkdir(exist_ok=True)
    drawn = np.random.default_rng(number)
    users = drawn.integers(200 + 10 * number, size=900)
    items = (users * 7 + drawn.integers(25, size=900) ** 2 // 25) % (80 + 2 * number)
    times = pd.Timestamp(DAYS[number]) + pd.to_timedelta(drawn.integers(86_400, size=900), "s")
    columns = {"user": [f"u{n}" for n in users], "item": [f"i{n}" for n in items]}
    clicks = pd.DataFrame(columns | {"timestamp": times.astype(str)})
    clicks.to_csv(f"logs/{DAYS[number]}.csv", index=False)
    clicks.to_parquet(f"archive/{DAYS[number]}.parquet")


def start_command(*words):
    line = [Path(sys.executable).with_name("sparse-eval"), *map(str, words)]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_for(condition, process):
    """Wait until the condition holds while the process is running."""
    deadline = time.monotonic() + 60
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, "it did not happen within a minute"
        time.sleep(0.01)


class Operator:
    """Runs commands in a folder, and says what is expected of them."""

    def __init__(self, command):
        self._command = command
        self.said = ""  # by the last command, on standard error

    def runs(self, line, *more, status=0, says=""):
        """Run a command; check its status and what standard error says; return what is printed."""
        ended, printed, self.said = self._command(*line.split(), *more)
        assert (ended, says in self.said) == (status, True), (line, ended, self.said)
        return printed

    def gauges(self, file):
        """Return the values that Prometheus reads, by gauge and labels."""
        lines = Path(file).read_text().splitlines()
        pairs = (line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
        return {name.removeprefix("sparse_eval_"): float(value) for name, value in pairs}


@pytest.mark.long
def test_the_week(command, tmp_path, monkeypatch):
    need_posix()
    monkeypatch.chdir(tmp_path)
    operator = Operator(command)
    Path("gauges").mkdir()
    for number in range(9):
        write_day(number)
    learns(operator)
    the_first_night(operator)
    a_night_that_is_repeated(operator)
    nights_that_decide(operator)
    a_night_that_is_killed()
    a_full_disk_and_two_at_once(operator, monkeypatch)
    a_new_day(operator)
    mistakes(operator, monkeypatch)


def learns(operator):
    """Split nine days by time, and train six checkpoints."""
    operator.runs("split logs --at 2026-11-08 --out split", says="left in split: train.npz")
    for factors in (4, 8, 16):
        line = f"train split --out models/als{factors}.npz --factors {factors} --iterations 3"
        operator.runs(line, says="train: ALS")
    operator.runs("train split --out models/bpr.npz --model bpr --factors 8 --iterations 20")
    operator.runs("train split --out models/bm25.npz --model bm25")
    # What is saved is the best iteration, the same that a table of all iterations has.
    line = "train split --out best.npz -m ndcg@10 --iterations 4 --checkpoints iterations"
    operator.runs(line, says="best ndcg@10")
    printed = operator.runs("score iterations/*.npz --split split -m ndcg@10 --format jsonl")
    best = max(json.loads(line)["metrics"]["ndcg@10"]["mean"] for line in printed.splitlines())
    (one,) = json.loads(operator.runs("score best.npz --split split -m ndcg@10 --format json"))
    assert one["metrics"]["ndcg@10"]["mean"] == best


NIGHT = "score models --split split --prometheus gauges/als.prom"


def the_first_night(operator):
    """Five checkpoints, and a corrupt one, one of another shape, and one that is half-written."""
    whole = Path("models/als8.npz").read_bytes()
    Path("models/corrupt.npz").write_bytes(whole[: len(whole) // 2])
    Path("models/.als32.0f3c9a5be1d24876.npz").write_bytes(whole[:100])  # is still written
    se.save_model(se.factor_model(np.ones((3, 2)), np.ones((5, 2))), "models/shape.npz")
    night = f"{NIGHT} --out night/1"
    printed = operator.runs(night, *METRICS, status=1, says="2 of 7 checkpoints could not be")
    for name in ("als4.npz", "bm25.npz", "random", "popularity", "95 % interval"):
        assert name in printed
    assert ".als32" not in printed
    operator.runs(f"{night} --max-failed 2", *METRICS, says="warning: models/corrupt.npz: ")
    names = {path.name for path in Path("night/1").iterdir()}
    assert {"table.csv", "sweep.jsonl", "als4", "bm25"} <= names
    gauges = operator.gauges("gauges/als.prom")
    assert gauges['failed{job="als",split="split"}'] == 2
    assert gauges['last_run_success{job="als",split="split"}'] == 1
    assert gauges['users{job="als",split="split",model="als4"}'] > 100


def a_night_that_is_repeated(operator):
    """The best model is deleted; the rerun computes nothing anew, and does not show it."""
    table = pd.read_csv("night/1/table.csv")
    best = Path(table["file"][table["best"]].item()).stem
    for name in (best, "corrupt", "shape"):
        Path(f"models/{name}.npz").unlink()
    before = Path("night/1/sweep.jsonl").read_bytes()
    night = f"{NIGHT} --out night/1"
    printed = operator.runs(night, *METRICS)
    left = {"als4", "als8", "als16", "bpr", "bm25"} - {best}
    assert f"{best}.npz" not in printed
    assert all(f"{name}.npz" in printed for name in left)
    after = Path("night/1/sweep.jsonl").read_bytes()
    assert after.startswith(before)
    added = [json.loads(line) for line in after[len(before) :].splitlines()]
    assert [(Path(row["file"]).stem, row["status"]) for row in added] == [(best, "gone")]
    rows = json.loads(operator.runs(f"{night} --format json", *METRICS))
    assert (len(rows), sum(row["best"] for row in rows)) == (len(left), 1)
    assert {"mean", "ci_low", "random", "popularity"} <= rows[0]["metrics"]["ndcg@10"].keys()


SETTINGS = """
out = "nights"
rules = "rules.toml"
checkpoints = "new"
candidate = "best of ndcg@10"
champion = "champion.npz"
split = "split"
prometheus = "gauges/gate.prom"
"""


def nights_that_decide(operator):
    """A useless model fails, an equal one passes and is promoted, and the log tells both."""
    held_out = se.Holdout.load("split").validation
    ids = {"users": held_out.users, "items": held_out.items}
    hits = (held_out.csr.toarray() > 0) * 0.3
    parts = hits + np.random.default_rng(0).random(hits.shape), np.eye(hits.shape[1])
    se.save_model(se.factor_model(*parts, **ids), "champion.npz")
    useless = se.factor_model(parts[0], -parts[1], **ids)
    Path("new").mkdir()
    se.save_model(useless, "new/useless.npz")
    Path("rules.toml").write_text('[[rule]]\nmetric = "ndcg@10"\nnot_worse_by = "5%"\n')
    Path("night.toml").write_text(SETTINGS)
    printed = operator.runs("night night.toml --promote --night 2026-11-09", status=3)
    assert "verdict: failed" in printed
    like = se.factor_model(*(part[:, ::-1] for part in parts), **ids)
    se.save_model(like, "new/again.npz")
    night = "night night.toml --promote --night 2026-11-10"
    operator.runs(night, says="promoted")
    before = Path("nights/gate.jsonl").read_bytes()
    operator.runs(night, says="promoted")
    assert Path("nights/gate.jsonl").read_bytes() == before
    log = json.loads(operator.runs("gate --log nights --format json"))
    assert [(one["candidate"], one["verdict"]) for one in log] == [
        ("useless", "failed"), ("again", "passed"),
    ]  # fmt: skip
    gauges = operator.gauges("gauges/gate.prom")
    assert gauges['gate{job="gate",split="nights",verdict="passed"}'] == 1
    sides = "--champion nights/2026-11-10/champion --candidate nights/2026-11-09/useless"
    assert "verdict: failed" in operator.runs(f"gate rules.toml {sides}", status=3)
    operator.runs("report nights/2026-11-10 --nights nights -o page.html")
    assert '<h2 id="nights">Nights</h2>' in Path("page.html").read_text(encoding="utf-8")


def a_night_that_is_killed():
    """Ctrl-C and kill -9: the same command goes on, to the same rows."""
    words = ("score", "models", "--split", "split", *METRICS, "--threads", 1)
    whole = {str(path) for path in Path("models").iterdir() if path.name[0] != "."}

    def rows(folder):
        ledger = Path(folder, "sweep.jsonl")
        lines = ledger.read_text().split("\n") if ledger.exists() else []
        return [json.loads(line) for line in lines[1:-1]]  # only whole lines

    for folder, number, expected in (
        ("night/3", signal.SIGINT, 130), ("night/4", signal.SIGKILL, -9),
    ):  # fmt: skip
        with start_command(*words, "--out", folder) as process:
            wait_for(lambda folder=folder: rows(folder), process)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        assert process.returncode in (expected, 0), said  # it may have been done
        if process.returncode == 130:
            assert said.splitlines()[-1] == "interrupted"
        kept = rows(folder)
        with start_command(*words, "--out", folder) as again:
            assert again.wait(60) == 0
        assert rows(folder)[: len(kept)] == kept
        assert {row["file"] for row in rows(folder)} == whole
    known = [{row["file"]: row["metrics"] for row in rows(f"night/{n}")} for n in (3, 4)]
    assert known[0] == known[1]


def a_full_disk_and_two_at_once(operator, monkeypatch):
    """Try again later: exit status 75."""

    def full(*_):
        raise OSError(28, "No space left on device")

    before = Path("split/train.npz").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr("scipy.sparse.save_npz", full)
        line = "split logs --at 2026-11-09 --out split"
        operator.runs(line, status=75, says="cannot be written: No space left on device")
    assert Path("split/train.npz").read_bytes() == before
    Path("night/5").mkdir()
    with locked_folder(Path("night/5")):
        second = "score models --split split --out night/5 --prometheus gauges/second.prom"
        operator.runs(second, *METRICS, status=75, says="another process writes to this folder")
    labels = '{job="second",split="split"}'
    assert operator.gauges("gauges/second.prom")[f"last_run_success{labels}"] == 0


def a_new_day(operator):
    """Tonight's split, of Parquet, has users and items that yesterday's models do not know."""
    operator.runs("split archive --at 2026-11-08 --out same")
    assert Path("same/train.npz").read_bytes() == Path("split/train.npz").read_bytes()
    write_day(9)
    operator.runs("split archive --at 2026-11-10 --out tonight")
    says = "are unknown to the model"
    operator.runs("score best.npz --split tonight --out new/old", *METRICS, says=says)
    operator.runs("train tonight --out best.npz --factors 8 --iterations 3")
    operator.runs("score best.npz --split tonight --out new/new", *METRICS)
    row = json.loads(operator.runs("compare new/old new/new -m ndcg@10 --format jsonl"))
    old, new = (se.Evaluation.load(f"new/{name}") for name in ("old", "new"))
    assert (row["a"], row["b"]) == ("old", "new")
    assert row["difference"] == pytest.approx(old["ndcg@10"] - new["ndcg@10"])  # a − b
    operator.runs("recommend best.npz tonight -k 10 --out lists.csv")
    (one,) = json.loads(operator.runs("score best.npz --split tonight -m ndcg@10 --format json"))
    # Lists in a file are judged by the folder of the split.
    found = json.loads(operator.runs("evaluate lists.csv tonight -m ndcg@10 --format json"))
    assert found["metrics"]["ndcg@10"]["mean"] == one["metrics"]["ndcg@10"]["mean"]


def mistakes(operator, monkeypatch):
    """Mistakes of people are errors in one line, also in logs that programs read."""
    score = "score best.npz"
    operator.runs(f"{score} --split split --prometheus gauge/a.prom", status=2, says="exists")
    operator.runs("score nowhere/als-*.npz --split split", status=2)
    operator.runs("score modles --split split", status=2)
    with Path("lists.csv").open() as lists:
        monkeypatch.setattr("sys.stdin", lists)
        operator.runs("evaluate - tonight -m ndcg@10", says="evaluate")
    # What is typed replaces what contradicts it in the environment.
    monkeypatch.setenv("SPARSE_EVAL_SPLIT", "nowhere")
    operator.runs(f"{score} --train logs/{DAYS[0]}.csv --validation logs/{DAYS[1]}.csv -m ndcg@10")
    monkeypatch.setenv("SPARSE_EVAL_TRAIN", "nowhere.csv")
    operator.runs(f"{score} --split tonight -m ndcg@10")
    operator.runs(f"{score} -m ndcg@10", status=2)
    # Each line of a log says which command it is of, and which model.
    Path("broken.npz").write_bytes(b"")
    operator.runs(f"{score} broken.npz --split tonight --log-format json -m ndcg@10", status=1)
    lines = [json.loads(line) for line in operator.said.splitlines()]
    assert {line["command"] for line in lines} == {"score"}
    assert {line["level"] for line in lines} == {"info", "warning", "error"}
    assert lines[-2]["model"] == "broken.npz"
    operator.runs(f"{score} --nonsense --log-format=json", status=2, says='"level": "error"')
