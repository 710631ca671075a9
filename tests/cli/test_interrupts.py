"""Test how signals end commands: the exit status, the message, and the files that are left."""

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import sparse_eval as se
from sparse_eval.cli import compile as compiling
from sparse_eval.cli import main
from sparse_eval.jobs import sweep as sweeping
from sparse_eval.jobs import train
from sparse_eval.jobs import tune as tuning
from sparse_eval.models import evaluate_model as evaluating

pytestmark = pytest.mark.long

#: Options of a quick training.
SMALL = ("--factors", "4", "--iterations", "2")


@pytest.fixture
def split(tmp_path, monkeypatch):
    """Go to a folder with a log and a split; return the latter."""
    monkeypatch.chdir(tmp_path)
    clicks = se.datasets.synthetic(n_users=80, n_items=60, seed=1)
    clicks.to_frame().to_csv("clicks.csv", index=False)
    se.split.random(clicks, seed=0).save("split")
    return Path("split")


def killed_at(monkeypatch, owner, name, call, number):
    """Send this process a signal when a function is called for the n-th time."""
    function, calls = getattr(owner, name), iter(range(1, 99))

    def killing(*given, **options):
        if next(calls) == call:
            signal.raise_signal(number)
        return function(*given, **options)

    monkeypatch.setattr(owner, name, killing)


#: The call at which a signal comes, the command, and a file that it leaves.
INTERRUPTED = [
    (se.Holdout, "load", 1, "score als.npz --split split", "als.npz"),
    (sweeping, "read_checkpoint", 2, "score als.npz other.npz --split split --out o",
     "o/table.csv"),
    (train, "train_als", 1, "run clicks.csv --out r", "r/split/labels.npz"),
    (evaluating, "evaluate_request", 1, "run clicks.csv --out r", "r/model.npz"),
    (train, "save_model", 2, "train split --iterations 3 --checkpoints c --out m.npz", "c"),
    (compiling, "_calls", 1, "compile", "als.npz"),
]  # fmt: skip


@pytest.mark.parametrize(("owner", "name", "call", "line", "left"), INTERRUPTED)
@pytest.mark.parametrize(("number", "expected"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_a_command(
    command, split, monkeypatch, owner, name, call, line, left, number, expected
):
    for model in ("als.npz", "other.npz"):
        assert command("train", split, *SMALL, "--seed", len(model), "--out", model)[0] == 0
    handlers = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    killed_at(monkeypatch, owner, name, call, number)
    status, printed, said = command(*line.split(), *(SMALL if "run" in line else ()))
    assert (status, printed) == (expected, "")
    assert said.splitlines()[-1] == "interrupted"
    assert Path(left).exists()
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == handlers


def test_tune_keeps_its_trials_and_goes_on(command, split, monkeypatch):
    words = ("tune", split, "--factors", "2,3,4", "--iterations", 2, "--out", "t")
    with monkeypatch.context() as patch:
        killed_at(patch, tuning, "train_als", 3, signal.SIGTERM)
        status, printed, said = command(*words, "--format", "csv")
    assert (status, printed) == (143, ""), said
    assert said.splitlines()[-1] == "interrupted"
    kept = Path("t/trials.csv").read_text()
    assert kept.count("\n") == 3
    status, again, _ = command(*words, "--format", "csv")
    assert status == 0
    assert again.count("\n") == 4
    # But for the mark of the best, which may be another one now.
    assert again.replace("True", "False").startswith(kept.replace("True", "False"))
    assert again == Path("t/trials.csv").read_text()


def test_a_run_over_an_earlier_one_leaves_nothing_of_that(command, split, monkeypatch):
    words = ("run", "clicks.csv", *SMALL, "--out", "r")
    assert command(*words)[0] == 0
    Path("r/notes.txt").write_text("kept")
    killed_at(monkeypatch, train, "train_als", 1, signal.SIGTERM)
    assert command(*words, "--seed", 1)[0] == 143
    # The model of before has seen what is held out now.
    assert sorted(path.name for path in Path("r").iterdir()) == ["notes.txt", "split"]


def test_signals_that_are_ignored_stay_so(command, monkeypatch):
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        monkeypatch.setattr(
            compiling, "_calls", lambda: [lambda: signal.raise_signal(signal.SIGTERM)]
        )
        assert command("compile")[0] == 0
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_thread_can_run_a_command():
    with ThreadPoolExecutor(1) as pool, pytest.raises(SystemExit) as end:
        pool.submit(main, ["metrics", "ndcg"]).result()
    assert end.value.code == 0


#: Runs the command line and sends a signal at the n-th import after the handlers were set.
USED = """
import signal

before = list(map(signal.getsignal, signal.valid_signals()))
import sparse_eval as se
clicks = se.datasets.synthetic(n_users=50, n_items=40, seed=0)
holdout = se.split.random(clicks, seed=0)
se.evaluate_model(se.train_als(holdout, factors=2, iterations=1), holdout, "ndcg@5")
assert before == list(map(signal.getsignal, signal.valid_signals()))
"""


def test_the_library_sets_no_handlers():
    subprocess.run([sys.executable, "-c", USED], check=True)


IMPORTING = """
import importlib.abc, os, signal, sys
place, number = map(int, sys.argv[1:])
names = []

class Signals(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            names.append(name)
            if len(names) == place:
                signal.raise_signal(number)

sys.meta_path.insert(0, Signals())
sys.argv = ["sparse-eval", "metrics", "ndcg"]
try:
    import sparse_eval.__main__
finally:
    os.write(2, ("\\n" + " ".join(names)).encode())
"""


def interrupt_import(place, number):
    """Return the status, the messages, and the modules that were looked for by then."""
    words = [sys.executable, "-c", IMPORTING, str(place), str(number)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    said, _, names = done.stderr.rpartition("\n")
    return done.returncode, said, names.split(" ")


def test_a_signal_while_modules_are_imported_prints_no_traceback():
    status, said, names = interrupt_import(0, signal.SIGINT)
    assert (status, said) == (0, "")
    assert {"typer", "numpy", "scipy", "numba", "pandas", "sparse_eval.cli.commands"} <= {*names}
    for turn, place in enumerate([1, *map(names.index, ("typer", "numpy", "pandas"))]):
        number, expected = ((signal.SIGINT, 130), (signal.SIGTERM, 143))[turn % 2]
        found = interrupt_import(place, number)[:2]
        assert found == (expected, "interrupted\n"), (names[place - 1], found)
