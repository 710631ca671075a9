"""What all commands share: refusals, exit status and ways to start them; metrics, compile."""

import io
import json
import os
import platform
import shlex
import subprocess
import sys
from functools import partial
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pandas as pd
import pytest
from exact import exact_model
from scipy import sparse

import sparse_eval as se
from sparse_eval.cli import BUG
from sparse_eval.cli import compile as compiling
from sparse_eval.cli.commands import COMMANDS, FORMER
from sparse_eval.cli.terminal import ISSUES
from sparse_eval.core.threads import thread_count
from sparse_eval.errors import InvalidDataError
from sparse_eval.evaluation.runners import check_version
from sparse_eval.metrics import REGISTRY

#: Options of a quick training.
SMALL = ("--factors", "4", "--iterations", "2")

#: Beginnings of command lines.
SPLIT = "split days.csv --method temporal --timestamp timestamp --out s"
SCORE = "score models --split split -m ndcg@10"
COMPARE = "compare results -m ndcg@10"

#: Command lines, and what their error says.
REFUSED = {
    "nonsense": "No such command",
    # Files and folders.
    "run missing.csv": "error: missing.csv: there is no such file",
    "run bytes.csv": "(option --encoding)",
    "run one.csv --out one.csv": "cannot be used as an output folder",
    "demo --out=": "'--out': the path is empty; name a file, or a folder",
    "train one.csv --out model": "expected a file name that ends in .npz",
    "evaluate recs.parquet none": "error: none: ",
    "score one.csv --split split": "one.csv: ",
    "score none --split split": "none: contains no .npz file",
    "score models/a.npz --split -": "-/labels.npz: there is no such file",
    "score m.npz": "m.npz: does not exist",
    "score models/a.npz": "give either --split",
    f"{SCORE} --scheduler tcp://127.0.0.1:9": "tcp://127.0.0.1:9",
    f"{SCORE} --scheduler x://nowhere": "x://nowhere",
    f"{SCORE} --memory 1GB": "--memory is for one checkpoint; leave it out, or score one by",
    f"{SCORE} --user u": "--user: split is a split already",
    f"{SCORE} --prometheus d.prom": "it is a folder",
    f"{SCORE} --prometheus none/x/y.prom": "in a folder that exists",
    f"{SCORE} --prometheus x.txt": "expected a file name that ends in .prom",
    "recommend models/a.npz days.csv --out recs.txt": "--out is 'recs.txt'; expected .csv",
    "recommend models/a.npz days.csv --users nobody": "the model knows no user 'nobody'",
    "recommend models/a.npz days.csv -k 0": "error: k: expected a whole number of at least 1, "
        "found 0 (option --k)",
    # Splits.
    "run one.csv --user users": "did you mean 'user'",
    "run one.csv --counts": "leave it out (option --counts)",
    "run one.csv --input-format xml": "found 'xml' (option --input-format)",
    "run one.csv --n 2": "--n does not apply to --method random",
    "run one.csv one.csv --fraction 0": "two files are a split already",
    "run one.csv one.csv --min-value 2": "--min-value applies before interactions are split",
    "run one.csv --method last-n": "load it with timestamp=, or use split.random (option --time",
    "run one.csv --method leave-k-out": "nothing is held out",
    "run missing --seed -1": "'--seed'",
    "split one.csv --out s --fraction 2": "found 2.0 (option --fraction)",
    f"{SPLIT} --at 14.11.2019": "(option --at)",
    f"{SPLIT} --at {'1' * 4301}": "(option --at)",
    f"{SPLIT} --at 2019-11-14 --gap soon": "(option --gap)",
    f"{SPLIT} --at 2019-11-14 --fraction 0.1": "pass one of them (option --fraction)",
    f"{SPLIT} --test-at 2019-11-13": "--test-at needs --at, where the validation part begins",
    f"{SPLIT} --at 2019-11-14 --timestamp day": "(option --at)",
    # Models.
    "run missing --model bpr --alpha 1": "--alpha does not apply to --model bpr; leave it out",
    "run missing --model bpr --learning-rate 0": "found 0.0 (option --learning-rate)",
    "train users --out m.npz --model bpr --factors 2 --iterations 1 -m ndcg@10":
        "new users cannot be folded into this model",
    "train days.csv --out m.npz --patience 2": "--patience needs --validation, or a folder",
    "train split --out m.npz --model tfidf --patience 2": "--patience is for models that are trai",
    "train split --out m.npz --keep-best": "--keep-best needs checkpoints; name their folder with",
    "train split --out m.npz --validation split": "has its own validation part; leave out --val",
    "train split --out m.npz --min-value 2": "--min-value: split is a split already",
    "tune split --out none --min-value 2": "--min-value: split is a split already",
    "tune split --method users --out none": "the given test part has users of train",
    "tune users --out none": "holds out users, and has none for the test",
    "train one.csv --out m.npz --factors 99999999999999": "factors",
    # Metrics.
    "demo --memory much": "--memory",
    "run one.csv -m coverage": "coverage has no cut-off",
    "metrics --format xml": "'xml' is not one of",
    "metrics ndcg --convention ranx": "not both",
    "metrics ndgc": "there is no metric 'ndgc'; did you mean 'ndcg' or 'psndcg'?",
    "metrics --convention standard": "is the default, without --convention",
    # Lists.
    "evaluate one.csv one.csv": "one.csv: the recommendations: no column for the rank or score was",
    "evaluate recs.csv truth.csv --ties average": "and recs.csv holds ranks; leave it out",
    "evaluate p.npz v.npz --ties average": "--ties orders equal scores, and p.npz holds",
    "evaluate recs.csv truth.csv --rank a --score b": "one of rank= and score=, the column",
    "evaluate recs.csv truth.csv --user u": "(option --user)",
    "evaluate recs.csv truth.csv --item-groups no.csv": "no.csv: no column for the item was",
    "evaluate recs.parquet truth.parquet -m categorical_diversity@2 --item-groups groups.csv":
        "evaluate matrices (option --item-groups)",
    "evaluate p.npz v.npz --threshold 9": "v.npz: threshold is 9.0, but the largest gain is 3.0",
    "evaluate p.npz v.npz --item-groups v.npz": "(option --item-groups)",
    "evaluate p.npz v.npz -m novelty@2": "needs train: give train= (option --train)",
    # Results.
    "compare nothing": "nothing: cannot be read",
    "compare none": "none: contains no results",
    "compare ''": "names no folder",
    "compare all=results": "has 2 results; name them one by one",
    "compare results results": "two results have the name 'a'",
    "compare results/a": "there is only one result; name two or more",
    "compare results/a models/a.npz": "For a model, run first",
    "compare results -m map@3": "have map@3",
    f"{COMPARE} --fail-if-worse": "no option --fail-if-worse any more; sparse-eval gate",
    f"{COMPARE} --tolerance ndcg@10=0.1": "no option --tolerance any more; sparse-eval gate",
    "gate r.toml": "--candidate and --champion: missing; see sparse-eval gate --help",
    "gate none.toml --candidate results/a --champion results/a": "none.toml: cannot be read",
    "gate r.toml --candidate results --champion results/a": "name one of them: a, b",
    f"{COMPARE} --margin much": "--margin",
    f"{COMPARE} --margin 1% --margin 2%": "expected a metric and a number, such as ndcg@10=1%",
}  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Return a folder with what the refused commands read."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("none", "d.prom", "models"):
        (folder / name).mkdir()
    for name, text in {
        "bytes.csv": "user,item\0\n1,2\n",
        "one.csv": "user,item\n1,2\n",
        "recs.csv": "user,item,rank\na,x,1\na,y,2\n",
        "truth.csv": "user,item,gain\na,y,1\n",
        "groups.csv": "item,group\nx,1\ny,2\n",
        "no.csv": "a,b\n1,2\n",
        "h.jsonl": "{}\n",
        "r.toml": '[[rule]]\nmetric = "ndcg@10"\nnot_worse_by = "2%"\n',
    }.items():
        (folder / name).write_text(text)
    for side in ("recs", "truth"):
        pd.read_csv(folder / f"{side}.csv").to_parquet(folder / f"{side}.parquet")
    sparse.save_npz(folder / "p.npz", sparse.csr_matrix([[1, 2, 0], [0, 1, 2]]))
    sparse.save_npz(folder / "v.npz", sparse.csr_matrix([[0, 1, 0], [0, 3, 1]]))
    clicks = se.datasets.synthetic(n_users=80, n_items=60, seed=1)
    clicks.to_frame().assign(day=range(len(clicks))).to_csv(folder / "days.csv", index=False)
    se.split.users(clicks, seed=0).save(folder / "users")
    holdout = se.split.random(clicks, seed=0)
    holdout.save(folder / "split")
    model = exact_model(holdout.train)
    for name in ("a", "b"):
        se.save_model(model, folder / "models" / f"{name}.npz")
        se.evaluate_model(model, holdout, "ndcg@10").save(folder / "results" / name)
    return folder


@pytest.mark.parametrize("line", REFUSED)
def test_bad_input_is_one_line_and_status_2(command, files, monkeypatch, line):
    monkeypatch.chdir(files)
    before = sorted(files.rglob("*"))
    status, printed, said = command(*shlex.split(line))
    last = said.splitlines()[-1]
    assert (status, printed) == (75 if "127.0.0.1" in line else 2, ""), said
    assert last.lower().startswith("error: ")
    assert REFUSED[line] in last
    assert "Traceback" not in said
    assert "recommend and score" not in said
    assert sorted(files.rglob("*")) == before


def test_debug_shows_the_traceback_anywhere_on_the_line(command):
    for words in (("--debug", "run", "missing.csv"), ("run", "missing.csv", "--debug")):
        status, _, said = command(*words)
        assert status == 2
        assert "Traceback" in said
        assert said.splitlines()[-1].startswith("error: missing.csv")


def test_a_bug_is_status_70_and_says_what_to_send(command, monkeypatch):
    def broken():
        raise IndexError("out of range")

    monkeypatch.setattr("sparse_eval.metrics.registry.load_extensions", broken)
    status, printed, said = command("metrics")
    assert (status, printed) == (BUG, "") == (70, "")
    lines = said.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert "IndexError: out of range" in lines
    report = said.partition("error: IndexError")[2]
    for part in (ISSUES, version("sparse_eval"), platform.python_version(), platform.platform()):
        assert part in report
    assert f"numpy {np.__version__}" in report
    assert str(Path.home()) not in report


def test_what_is_no_bug_has_another_status(command, monkeypatch):
    for error in (InvalidDataError("no"), MemoryError(), PermissionError("no")):
        monkeypatch.setattr("sparse_eval.metrics.registry.load_extensions", Mock(side_effect=error))
        assert command("metrics")[0] == 2
    # A worker with another version goes on failing, unlike one that is lost.
    monkeypatch.setattr(
        "sparse_eval.metrics.registry.load_extensions", partial(check_version, "0.0.1")
    )
    assert command("metrics")[0] == 2


@pytest.mark.parametrize("number", ["0", "-1", " 00"])
def test_a_number_of_threads_that_numba_refuses_is_no_bug(number):
    environment = os.environ | {"NUMBA_NUM_THREADS": number}
    words = [sys.executable, "-m", "sparse_eval", "metrics"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith("error: the environment variable NUMBA_NUM_THREADS")
    assert len(done.stderr.splitlines()) == 1


def test_threads_are_limited_for_one_command(command, monkeypatch):
    counts = []

    def fail(*_, **__):
        counts.append(thread_count(None))
        raise InvalidDataError("n is wrong", argument="n")

    monkeypatch.setattr("sparse_eval.core.threads.available_cores", lambda *_: 8)
    monkeypatch.setattr("sparse_eval.datasets.load", fail)
    for words in ((), ("--threads", 3), ()):
        found = command("split", "days.csv", "--out", "s", *words)
        assert found == (2, "", "error: n is wrong (option --n)\n")
    assert counts == [8, 3, 8]


def test_a_command_alone_shows_its_help(command):
    status, printed, said = command("run")
    assert (status, printed) == (2, "")
    assert "Usage: sparse-eval run" in said
    assert command("--version")[:2] == (0, "0.1.0\n")


def in_a_process(*words, **options):
    """Run a command in its own process; `env` is added to the environment."""
    environment = os.environ | options.pop("env", {})
    line = [sys.executable, "-m", "sparse_eval", *words]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(line, env=environment, check=False, text=True, **piped)


@pytest.mark.long
def test_runs_without_a_terminal(tmp_path):
    words = ("demo", "--users", "50", "--items", "40", *SMALL, "--format", "json")
    done = in_a_process(*words, env={"TERM": "dumb"}, cwd=tmp_path)
    assert done.returncode == 0
    assert np.isfinite(json.loads(done.stdout)["metrics"]["ndcg@10"]["mean"])
    assert "it/s" not in done.stderr  # no progress bar without a terminal


@pytest.mark.long
def test_standard_input_the_environment_and_a_reader_that_has_enough(tmp_path):
    (tmp_path / "truth.csv").write_text("user,item\na,y\nb,x\n")
    reader, writer = os.pipe()
    os.close(reader)
    names = {"SPARSE_EVAL_METRIC": "mrr@2 recall@2", "SPARSE_EVAL_OUT": "out"}
    lists = "user,item,rank\na,x,1\na,y,2\nb,x,1\n"
    words = ("evaluate", "-", "truth.csv")
    done = in_a_process(*words, env=names, input=lists, stdout=writer, cwd=tmp_path)
    os.close(writer)
    assert done.returncode == 0, done.stderr
    assert se.Evaluation.load(tmp_path / "out").mean() == {"mrr@2": 0.75, "recall@2": 1}


def test_only_one_input_is_standard_input(command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"user,item,rank\na,x,1\n")))
    status, printed, said = command("evaluate", "-", "-")
    assert (status, printed) == (2, "")
    assert "only one input can be -" in said


def test_messages_as_lines_of_json_or_none(command, tmp_path):
    words = ("demo", "--users", 50, "--items", 40, *SMALL, "--out", tmp_path / "d")
    for more, last in (((), "info"), (("--memory", "1"), "error")):
        said = command(*words, *more, "--log-format", "json")[2]
        lines = [json.loads(line) for line in said.splitlines()]
        assert {"time", "level", "message", "command"} <= set.intersection(*map(set, lines))
        assert lines[-1]["level"] == last
        assert {line["command"] for line in lines} == {"demo"}
    status, _, said = command(*words, "-q", "--threads", 1)
    assert (status, said) == (0, "")
    assert command(*words, "--memory", "2 GB", "--help-all")[0] == 0


@pytest.mark.long
def test_output_in_an_encoding_that_lacks_a_letter():
    done = in_a_process("metrics", "ndcg", env={"PYTHONIOENCODING": "cp1252"})
    assert (done.returncode, done.stdout) == (2, "")
    assert "\\u2212" in done.stderr
    assert done.stderr.endswith("; set PYTHONIOENCODING=utf-8\n")


@pytest.mark.parametrize(("name", "option"), FORMER)
def test_former_options_show_what_replaces_them(command, name, option):
    status, printed, said = command(name, "x", f"{option}=y")
    assert (status, printed) == (2, "")
    assert FORMER[name, option] in said


def test_lists_and_describes_every_metric(command):
    _, printed, _ = command("metrics", "--format", "json")
    assert len(json.loads(printed)) == len(REGISTRY)
    for name in REGISTRY:
        status, printed, _ = command("metrics", name)
        assert status == 0
        assert REGISTRY[name].text in printed
        assert REGISTRY[name].plain in printed
    assert "train (similarity=train)" in command("metrics", "diversity")[1]
    expected = command("metrics", "hit_rate")
    assert "also called" in expected[1]
    for name in ("hr", "HR@10", "hit-ratio", "hit_rate_10"):
        assert command("metrics", name) == expected


def test_shows_what_a_convention_changes(command):
    status, printed, _ = command("metrics", "--convention", "implicit")
    assert status == 0
    assert "precision(average)" in printed
    assert "micro" in printed


def test_says_what_was_compiled(command, monkeypatch):
    done = compiling.CompiledKernels(Path("kept"), "znver5", 1)
    with monkeypatch.context() as patch:
        patch.setattr(compiling, "compile_kernels", lambda: done)
        said = "compiled 1 kernel for znver5; all are in kept\n"
        assert command("compile") == (0, said, "")
    monkeypatch.setattr(compiling, "writable_folder", lambda: None)
    status, printed, said = command("compile")
    assert (status, printed) == (2, "")
    assert "NUMBA_CACHE_DIR" in said


def test_help_lists_the_first_line_of_every_command_without_imports():
    for module, function, line in COMMANDS.values():
        command = getattr(import_module(f"sparse_eval.cli.{module}"), function)
        assert command.__doc__.splitlines()[0] == line
    code = "import sys; from sparse_eval.cli import main; sys.argv[1:] = ['--help']\n"
    code += (
        "try: main()\nfinally: print(*{'numpy', 'numba', 'pandas'} & {*sys.modules}, 'imported')"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1].split() == ["imported"]
    assert all(f"  {name} " in found.stdout for name in COMMANDS)
