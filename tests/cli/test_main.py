"""Test what all commands share, errors, exit status and ways to start them; metrics, compile."""

import io
import json
import os
import platform
import subprocess
import sys
from functools import partial
from importlib.metadata import version
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
from commands import SMALL

import sparse_eval as se
from sparse_eval.cli import BUG
from sparse_eval.cli.messages import FLAGS, ISSUES, message_of
from sparse_eval.errors import InvalidDataError, InvalidFileError, InvalidMetricError, OutputError
from sparse_eval.evaluation.dask import check_version
from sparse_eval.metrics import REGISTRY
from sparse_eval.models import compile as compiling


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "missing.csv"), "error: missing.csv: there is no such file"),
        (("run", "empty.csv"), "empty.csv: the file is empty"),
        (("run", "bytes.csv"), "bytes.csv, line 1: expected UTF-8 text"),
        (("run", "one.csv", "--user", "users"), "did you mean 'user'"),
        (("run", "one.csv", "--no-history"), "has no option --no-history"),
        (("run", "one.csv", "--n", "2"), "--n does not apply to --method random"),
        (("run", "one.csv", "one.csv", "--fraction", 0), "two files are a split already"),
        (("run", "one.csv", "--fold-in", "0.5"), "--fold-in does not apply to --method random"),
        (
            ("run", "one.csv", "--method", "last-n"),
            "load it with --timestamp, or use --method random",
        ),
        (("run", "one.csv", "--method", "leave-k-out"), "nothing is held out"),
        (("run", "one.csv", "--out", "one.csv"), "cannot be used as an output folder"),
        (("score", "missing.npz"), "give either --split"),
        (("score", "", "--split", "nowhere"), "the path is empty"),
        (("score", "one.csv", "--train", "one.csv", "--validation", "one.csv"), "one.csv: "),
        (
            ("evaluate", "one.csv", "one.csv"),
            "one.csv: the recommendations: no column for the rank or score was recognized",
        ),
        (("evaluate", "none.npz", "one.csv"), "none.npz: there is no such file"),
        (("metrics", "ndcg", "--convention", "ranx"), "not both"),
        (("metrics", "ndgc"), "there is no metric 'ndgc'; did you mean 'ndcg' or 'psndcg'?"),
        (("metrics", "r"), "did you mean 'recall' or 'r_precision'?"),
        (("metrics", "--convention", "implict"), "did you mean 'implicit'"),
        (("metrics", "--convention", "standard"), "is the default, without --convention"),
        (("train", "one.csv", "--out", "model"), "expected a file name that ends in .npz"),
        # Numbers are checked before data are read.
        (("split", "one.csv", "--out", "s", "--fraction", "2"), "error: --fraction: expected"),
        (("run", "one.csv", "-m", "coverage"), "coverage has no cut-off"),
        (("train", "one.csv", "--factors", "99999999999999", "--out", "m.npz"), "factors"),
        (("demo", "--users", "0"), "error: --users"),
    ],
)
def test_bad_input_is_one_line_and_status_2(command, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    Path("empty.csv").write_bytes(b"")
    Path("bytes.csv").write_bytes(b"user,item\0\n1,2\n")
    Path("one.csv").write_text("user,item\n1,2\n")
    status, printed, said = command(*words)
    last = said.splitlines()[-1]
    assert status == 2
    assert printed == ""
    assert last.startswith("error: ")
    assert says in last
    assert "Traceback" not in said


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
    unmapped = ImportError("a.so: failed to map segment from shared object")
    for error in (InvalidDataError("no"), MemoryError(), PermissionError("no"), unmapped):
        monkeypatch.setattr("sparse_eval.metrics.registry.load_extensions", Mock(side_effect=error))
        assert command("metrics")[0] == 2
    # A worker with another version goes on failing, unlike one that is lost.
    monkeypatch.setattr(
        "sparse_eval.metrics.registry.load_extensions", partial(check_version, "0.0.1")
    )
    assert command("metrics")[0] == 2


def test_misuse_is_status_2(command):
    for words, says in (
        (("run",), "Usage: sparse-eval run"),
        (("nonsense",), "No such command"),
        (("metrics", "--format", "xml"), "'xml' is not one of"),
        (("run", "x", "--seed", "-1"), "'--seed'"),
        (("demo", "--memory", "much"), "--memory"),
        (("run", ""), "'input': the path is empty; name a file, or a folder"),
        (("demo", "--out="), "'--out': the path is empty; name a file, or a folder"),
    ):
        status, printed, said = command(*words)
        assert (status, printed) == (2, "")
        assert says in " ".join(said.replace("│", "").split())
    assert command("--version")[:2] == (0, "0.1.0\n")


def in_a_process(*words, **options):
    """Run a command in its own process; `env` is added to the environment."""
    environment = os.environ | options.pop("env", {})
    line = [sys.executable, "-m", "sparse_eval", *words]
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
    return subprocess.run(line, env=environment, check=False, text=True, **piped)


def test_runs_without_a_terminal():
    script = Path(sys.executable).with_name("sparse-eval")
    done = subprocess.run(
        [script, "demo", "--users", "50", "--items", "40", *SMALL, "--format", "json"],
        env=os.environ | {"TERM": "dumb"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert np.isfinite(json.loads(done.stdout)["metrics"]["ndcg@10"]["mean"])
    assert "it/s" not in done.stderr  # no progress bar without a terminal


@pytest.mark.parametrize("words", ["evaluate - truth.csv", "score --help"])
def test_standard_input_the_environment_and_a_reader_that_has_enough(tmp_path, words):
    (tmp_path / "truth.csv").write_text("user,item\na,y\nb,x\n")
    reader, writer = os.pipe()
    os.close(reader)
    names = {"SPARSE_EVAL_METRIC": "mrr@2 recall@2", "SPARSE_EVAL_OUT": "out"}
    lists = "user,item,rank\na,x,1\na,y,2\nb,x,1\n"
    done = in_a_process(*words.split(), env=names, input=lists, stdout=writer, cwd=tmp_path)
    os.close(writer)
    assert done.returncode == 0, done.stderr
    if words.startswith("evaluate"):
        assert se.Evaluation.load(tmp_path / "out").mean() == {"mrr@2": 0.75, "recall@2": 1}
    else:
        assert done.stderr == ""


def test_only_one_input_is_standard_input(command, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"user,item,rank\na,x,1\n")))
    status, printed, said = command("evaluate", "-", "-")
    assert (status, printed) == (2, "")
    assert "only one input can be -" in said
    status, _, said = command("score", "m.npz", "--split", "-")
    assert status == 2
    assert "Invalid value for '--split': a folder is expected" in " ".join(said.split())


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


def test_output_in_an_encoding_that_lacks_a_letter():
    done = in_a_process("metrics", "ndcg", env={"PYTHONIOENCODING": "cp1252"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "error: the output's encoding lacks '\\u2212'; set PYTHONIOENCODING=utf-8\n"
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (InvalidDataError("n_trials: expected 1"), "--trials: expected 1"),
        (InvalidDataError("monitor is 'x'; give monitor="), "--monitor is 'x'; give --monitor"),
        (InvalidMetricError("with convention='ranx', whose"), "with --convention ranx, whose"),
        (
            InvalidDataError('the shared users with how="intersection"'),
            "the shared users with --users intersection",
        ),
        (InvalidDataError("a column, with header=False"), "a column, with --no-header"),
        (InvalidDataError("format: expected csv"), "--input-format: expected csv"),
        (
            InvalidDataError("name it: Rankings.scan(…, rank=…), or score="),
            "name it: --rank, or --score",
        ),
        (InvalidDataError("give items=se.ItemData(propensity=…)"), "give --propensity"),
        (
            InvalidFileError("leave them out with on_bad_lines='skip'", "train=/seed=", 3),
            "train=/seed=, line 3: leave them out with --skip-bad-lines",
        ),
        (
            InvalidDataError("csv has no option 'history'; it has header"),
            "csv has no option --no-history",
        ),
        (InvalidDataError("use split.leave_k_out"), "use --method leave-k-out"),
        # No options: other names, arguments of Python, words of a sentence, paths.
        (InvalidDataError("evaluate with keep='values'"), "evaluate with keep='values'"),
        (InvalidDataError("from_csr(m, users=holdout.users)"), "from_csr(m, users=holdout.users)"),
        (OutputError("seed=1: cannot be written"), "seed=1: cannot be written"),
        (ImportError("a.so: failed to map segment from shared object"), "not enough memory"),
        (
            OSError(28, "No space left on device"),
            "standard output, or a temporary file, cannot be written: No space left on device",
        ),
    ],
)
def test_errors_name_options_as_on_the_command_line(error, message):
    names = ("monitor", "convention", "rank", "score", "propensity", "train", "seed", "users")
    others = {"n_trials": "trials", "how": "users", "header": "no-header", "history": "no-history",
              "format": "input-format", "on_bad_lines": "skip-bad-lines"}  # fmt: skip
    options = dict(zip(names, names, strict=True)) | others
    FLAGS.set({name: f"--{option}" for name, option in options.items()})
    assert message_of(error) == message


#: Limits the address space before other code runs.
LIMITED = "import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv.pop(1)), -1))"


@pytest.mark.parametrize(
    ("megabytes", "code", "expected"),
    [
        (350, "from sparse_eval.cli import main; main(['metrics'])", "error: not enough memory\n"),
        (
            # OpenBLAS would retry forever to get memory if it were loaded later.
            450,
            (
                "from sparse_eval import cli; cli._load_openblas(); import os;"
                "print(os.environ['OPENBLAS_NUM_THREADS'], 'scipy.linalg.blas' in sys.modules,"
                "'numba' in sys.modules, file=sys.stderr)"
            ),
            "1 True False\n",
        ),
    ],
)
def test_a_limit_of_the_address_space(megabytes, code, expected):
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", f"{LIMITED}; {code}", str(megabytes << 20)],
        capture_output=True,
        text=True,
        check=False,
        env={key: value for key, value in os.environ.items() if key != "OPENBLAS_NUM_THREADS"},
    )
    assert done.stderr == expected
    assert done.returncode == (2 if "error" in expected else 0)


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
