"""The command line: what it prints, leaves and refuses."""

from __future__ import annotations

import csv
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import sparse_eval as se

Command = Callable[..., tuple[int, str, str]]
SMALL = ("--factors", "4", "--iterations", "2")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a click log as CSV."""
    clicks = se.datasets.synthetic(n_users=80, n_items=60, seed=1)
    clicks.to_frame().to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


def test_demo_does_the_whole_way(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    status, printed, said = command("demo", "--users", 100, "--items", 80, *SMALL, "--out", out)
    assert status == 0, said
    assert printed.splitlines()[0].split() == ["metric", "@5", "@10", "@20"]
    assert "means over" in printed
    assert "train: ALS, 4 factors, 2 iterations" in said
    assert sorted(p.name for p in out.iterdir()) == [
        "model.npz", "per_user.csv", "split", "summary.json",
    ]  # fmt: skip
    # what it left is enough to get the same figures again
    status, again, _ = command("score", out / "model.npz", "--split", out / "split")
    assert (status, again) == (0, printed)
    holdout = se.split.Holdout.load(out / "split")
    ev = se.evaluate_model(out / "model.npz", holdout.train, holdout.validation, "ndcg@10")
    assert (
        json.loads((out / "summary.json").read_text())["metrics"]["ndcg@10"]["mean"]
        == ev["ndcg@10"]
    )
    with (out / "per_user.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 100
    assert rows[0]["user"] == "U1"


def test_step_by_step_equals_run(command: Command, log: Path, tmp_path: Path) -> None:
    status, printed, said = command("run", log, *SMALL, "-m", "ndcg@{5,10}", "--format", "json")
    assert status == 0, said
    assert command("split", log, "--out", tmp_path / "split")[0] == 0
    assert command("train", tmp_path / "split", *SMALL, "--out", tmp_path / "m" / "a.npz")[0] == 0
    status, again, _ = command(
        "score", tmp_path / "m" / "a.npz", "--split", tmp_path / "split",
        "-m", "ndcg@5", "-m", "ndcg@10", "--format", "json",
    )  # fmt: skip
    assert status == 0
    assert json.loads(again) == json.loads(printed)
    assert list(json.loads(printed)) == [
        "schema", "sparse_eval", "n_users", "n_skipped", "n_without_list", "no_relevant",
        "convention", "retrieval", "metrics",
    ]  # fmt: skip


def test_a_ready_made_split(command: Command, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("0 0 1 2\n1 1 2\n2 0 2 3\n3 3\n")
    (tmp_path / "test.txt").write_text("0 3\n1 0\n2 1\n3\n")
    parts = (tmp_path / "train.txt", tmp_path / "test.txt")
    status, printed, said = command(
        "run", *parts, *SMALL, "-m", "recall@2", "--out", tmp_path / "r"
    )
    assert status == 0, said
    assert "means over 3 users, 1 left out (nothing relevant)" in printed
    train, test = parts
    status, again, said = command(
        "score",
        tmp_path / "r" / "model.npz",
        "--train",
        train,
        "--validation",
        test,
        "-m",
        "recall@2",
    )
    assert (status, again) == (0, printed), said


@pytest.mark.parametrize(
    ("method", "held_out"),
    [("random", 80), ("leave-k-out", 79), ("last-n", 79), ("temporal", 1)],
)
def test_every_way_to_split(
    command: Command, log: Path, tmp_path: Path, method: str, held_out: int
) -> None:
    status, _, said = command(
        "split", log, "--method", method, "--timestamp", "timestamp", "--out", tmp_path / "s"
    )
    assert status == 0, said
    holdout = se.split.Holdout.load(tmp_path / "s")
    clicks = se.datasets.load_csv(log)
    assert ((holdout.train + holdout.validation) != clicks.matrix()).nnz == 0
    assert holdout.validation.nnz >= held_out


def test_columns_by_name_and_by_number(command: Command, tmp_path: Path) -> None:
    text = "anna,1,7,3\nanna,1,8,2\nbob,1,7,1\nbob,1,9,1\n"
    (tmp_path / "plain.csv").write_text(text)
    (tmp_path / "named.csv").write_text("who,x,what,n\n" + text)
    for words in (
        ("plain.csv", "--no-header", "--user", 0, "--item", 2, "--value", 3),
        ("named.csv", "--user", "who", "--item", "what", "--value", "n"),
    ):
        status, _, said = command(
            "split", tmp_path / words[0], *words[1:], "--fraction", 0.5, "--out", tmp_path / "s"
        )
        assert status == 0, said
        holdout = se.split.Holdout.load(tmp_path / "s")
        assert (holdout.train + holdout.validation).sum() == 7
    status, _, said = command(
        "split", tmp_path / "plain.csv", "--no-header", "--user", "who", "--out", tmp_path / "s"
    )
    assert status == 2
    assert "--user is 'who'; with --no-header expected the number of a column" in said


def test_bad_lines_may_be_skipped(command: Command, log: Path, tmp_path: Path) -> None:
    with log.open("a") as file:
        file.write("U1\n")
    status, _, said = command("split", log, "--out", tmp_path / "s")
    assert status == 2
    assert "clicks.csv, line" in said
    status, _, said = command("split", log, "--skip-bad-lines", "--out", tmp_path / "s")
    assert status == 0, said
    assert "\nwarning: skipped 1 malformed line of " in "\n" + said


def test_mind_and_its_history(command: Command, tmp_path: Path) -> None:
    (tmp_path / "behaviors.tsv").write_text(
        "1\tU1\t11/11/2019 9:05:58 AM\tN1 N2\tN3-1 N4-0\n"
        "2\tU2\t11/12/2019 9:05:58 AM\tN1\tN3-0 N4-1\n"
    )
    sizes = []
    for words in ((), ("--no-history",)):
        status, _, said = command(
            "split", tmp_path, *words, "--fraction", 0.5, "--out", tmp_path / "s"
        )
        assert status == 0, said
        assert "shown, not clicked" in said
        holdout = se.split.Holdout.load(tmp_path / "s")
        sizes.append(holdout.train.nnz + holdout.validation.nnz)
    assert sizes == [7, 4]


def test_matrices_are_evaluated(command: Command, tmp_path: Path) -> None:
    positions = sparse.csr_matrix([[1, 2, 0], [0, 1, 2]])
    gains = sparse.csr_matrix([[0, 1, 0], [0, 3, 1]])
    sparse.save_npz(tmp_path / "p.npz", positions)
    sparse.save_npz(tmp_path / "v.npz", gains)
    words = (
        "evaluate",
        tmp_path / "p.npz",
        tmp_path / "v.npz",
        "-m",
        "mrr@2,map",
        "--format",
        "csv",
    )
    status, printed, said = command(*words)
    assert status == 0, said
    rows = list(csv.DictReader(printed.splitlines()))
    assert [(row["metric"], float(row["mean"])) for row in rows] == [("mrr@2", 0.75), ("map", 0.75)]
    status, printed, _ = command(*words[:-2], "--format", "markdown")
    assert printed.splitlines()[0].split() == ["|", "metric", "|", "@2", "|", "whole", "list", "|"]
    assert command(*words[:-2], "--out", tmp_path / "o")[0] == 0
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["per_user.csv", "summary.json"]


def test_a_matrix_that_is_none_is_put_to_its_file(command: Command, tmp_path: Path) -> None:
    gains = sparse.csr_matrix([[0, 1, 0], [0, 1, 1]])  # position 1 twice in a row
    repeated = sparse.coo_matrix(([1, 2], ([1, 1], [2, 2])), shape=(2, 3))
    sparse.save_npz(tmp_path / "v.npz", gains)
    sparse.save_npz(tmp_path / "p.npz", repeated)
    for files in (("v.npz", "v.npz"), ("p.npz", "v.npz")):
        status, printed, said = command("evaluate", *(tmp_path / name for name in files))
        assert (status, printed) == (2, "")
        assert said.startswith(f"error: {tmp_path / files[0]}: ")


def test_the_registry_is_shown(command: Command) -> None:
    from sparse_eval.metrics import REGISTRY

    _, printed, _ = command("metrics", "--format", "json")
    assert len(json.loads(printed)) == len(REGISTRY)
    for name in REGISTRY:
        status, printed, _ = command("metrics", name)
        assert status == 0
        assert REGISTRY[name].text in printed
    status, printed, said = command("metrics", "ndgc")
    assert (status, printed) == (2, "")
    assert said == "error: there is no metric 'ndgc'; did you mean 'ndcg'?\n"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("run", "missing.csv"), "error: missing.csv: there is no such file"),
        (("run", "missing.csv", "-m", "ndcg@0"), "cut-off '0'"),
        (("run", "empty.csv"), "empty.csv: the file is empty"),
        (("run", "bytes.csv"), "bytes.csv, line 1: expected UTF-8 text"),
        (("run", "one.csv", "--input-format", "excel"), "expected one of adjacency"),
        (("run", "one.csv", "--user", "users"), "did you mean 'user'"),
        (("run", "one.csv", "--no-history"), "has no option 'history'"),
        (("run", "one.csv", "--fraction", "2"), "fraction"),
        (("run", "one.csv", "--n", "2"), "--n has no meaning for --method random; see --fraction"),
        (
            ("run", "one.csv", "--method", "last-n", "--fraction", "0.5"),
            "--fraction has no meaning",
        ),
        (("run", "one.csv", "one.csv", "--method", "random"), "two files are a split already"),
        (("run", "one.csv", "--method", "last-n"), "timestamps"),
        (("run", "one.csv", "--method", "leave-k-out"), "nothing is held out"),
        (("run", "one.csv", "--out", "one.csv"), "cannot be used as an output folder"),
        (("score", "missing.npz"), "give either --split"),
        (("score", "", "--split", "nowhere"), "a checkpoint has no name"),
        (("score", "missing.npz", "--split", "nowhere"), "nowhere"),
        (("score", "one.csv", "--train", "one.csv", "--validation", "one.csv"), "one.csv: "),
        (("evaluate", "one.csv", "one.csv"), "one.csv, line 1: expected 6 fields"),
        (("evaluate", "none.npz", "none.npz"), "none.npz: "),
        (("evaluate", "none.npz", "one.csv"), "a matrix and a TREC file"),
        (("metrics", "ndcg", "--convention", "ranx"), "not both"),
        (("metrics", "--convention", "standard"), "what there is without"),
        (
            ("train", "one.csv", "--factors", "0", "--out", "m.npz"),
            "factors: expected a whole number",
        ),
        (("train", "one.csv", "--out", "model"), "expected a file name that ends in .npz"),
        (("run", "one.csv", "-m", "ndcg"), "ndcg has no cut-off"),
        (("run", "a" * 300 + ".csv"), "cannot be read"),
        (("train", "one.csv", "--factors", "99999999999999", "--out", "m.npz"), "memory"),
        (("demo", "--users", "0"), "n_users"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    command: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty.csv").write_bytes(b"")
    Path("bytes.csv").write_bytes(b"user,item\xff\xfe\n1,2\n")
    Path("one.csv").write_text("user,item\n1,2\n")
    status, printed, said = command(*words)
    last = said.splitlines()[-1]
    assert status == 2
    assert printed == ""
    assert last.startswith("error: ")
    assert says in last
    assert "Traceback" not in said


def test_debug_shows_the_traceback_wherever_it_stands(command: Command) -> None:
    for words in (("--debug", "run", "missing.csv"), ("run", "missing.csv", "--debug")):
        status, _, said = command(*words)
        assert status == 2
        assert "Traceback" in said
        assert said.splitlines()[-1].startswith("error: missing.csv")


def test_misuse_is_status_2_too(command: Command) -> None:
    for words in (("run",), ("nonsense",), ("metrics", "--format", "xml")):
        assert command(*words)[0] == 2
    assert command("--version")[:2] == (0, "0.1.0\n")


def test_progress_is_shown_where_it_is_asked_for(command: Command, tmp_path: Path) -> None:
    words = ("demo", "--users", 50, "--items", 40, *SMALL, "--out", tmp_path / "d")
    assert "retrieve: 100%" in command(*words, "--progress")[2]
    for quiet in ((), ("--no-progress",)):
        assert "%" not in command(*words, *quiet)[2]


def test_the_installed_command_runs_where_nothing_can_be_shown(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("sparse-eval")
    done = subprocess.run(
        [script, "demo", "--users", "50", "--items", "40", *SMALL, "--format", "json"],
        cwd=tmp_path,
        env=os.environ | {"TERM": "dumb"},
        capture_output=True,
        check=True,
        text=True,
    )
    assert np.isfinite(json.loads(done.stdout)["metrics"]["ndcg@10"]["mean"])
    assert "it/s" not in done.stderr  # no progress bar without a terminal


RUN = """ann Q0 x 1 0.9 tag
ann Q0 y 2 0.9 tag
bob Q0 x 1 0.5 tag
"""
QRELS = """ann 0 x 1
ann 0 z 2
bob 0 y 0
cat 0 x 1
"""


def test_a_run_against_qrels(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    files = (str(tmp_path / "a.run"), str(tmp_path / "a.qrels"))
    options = ("-m", "mrr,recall@2", "--format", "csv", "--per-user")
    status, printed, _ = command("evaluate", *files, *options, "--convention", "trec_eval")
    assert status == 0
    # equal scores: the larger name first
    assert printed == "user,mrr,recall@2\nann,0.5,0.5\nbob,0.0,0.0\ncat,,\n"
    _, printed, _ = command("evaluate", *files, *options)
    assert printed == "user,mrr,recall@2\nann,1.0,0.5\nbob,,\ncat,0.0,0.0\n"
    status, printed, _ = command("evaluate", *files, "-m", "recall@2", "--per-user")
    assert status == 0
    assert "means over 2 users, 1 left out" in printed
    status, printed, _ = command(
        "evaluate", *files, "-m", "novelty@2", "--train", str(tmp_path / "a.qrels"),
        "--format", "json",
    )  # fmt: skip
    assert status == 0
    assert json.loads(printed)["metrics"]["novelty@2"]["mean"] > 0


@pytest.mark.parametrize("convention", ["trec_eval", "sklearn", "torchmetrics", "lenskit"])
def test_the_default_metrics_fit_every_convention(
    command: Command, tmp_path: Path, convention: str
) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    files = (str(tmp_path / "a.run"), str(tmp_path / "a.qrels"))
    status, printed, said = command("evaluate", *files, "--convention", convention)
    assert status == 0, said
    assert "ndcg" in printed
    assert ("mrr" in printed) == (convention in ("trec_eval", "lenskit"))


def test_per_user_values_are_whole(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    files = (str(tmp_path / "a.run"), str(tmp_path / "a.qrels"))
    status, printed, _ = command(
        "evaluate", *files, "-m", "ndcg@2", "--per-user", "--format", "json"
    )
    assert status == 0
    rows = json.loads(printed)
    assert rows[0] == {"user": "ann", "ndcg@2": 1 / (2 + 1 / math.log2(3))}
    assert rows[1] == {"user": "bob", "ndcg@2": None}
    status, printed, _ = command("evaluate", *files, "-m", "fcp@2", "-m", "mrr@2")
    assert status == 0
    assert "means over 2 users, 1 left out (nothing relevant)\nfcp@2: over 1 users" in printed


def test_what_a_convention_changes(command: Command) -> None:
    status, printed, _ = command("metrics", "--convention", "implicit")
    assert status == 0
    assert "precision(average)" in printed
    assert "micro" in printed
    _, printed, _ = command("metrics", "--convention", "all", "--format", "csv")
    assert "trec_eval," in printed
    status, _, said = command("metrics", "--convention", "implict")
    assert status == 2
    assert "did you mean 'implicit'" in said
    _, printed, _ = command("metrics", "diversity")
    assert "train (similarity=train)" in printed


def test_a_run_of_a_model_under_a_convention(command: Command, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("0 0 1 2\n1 1 2\n2 0 2 3\n3 3\n")
    (tmp_path / "test.txt").write_text("0 3\n1 0\n2 1\n3 0 1\n")
    words = ("run", str(tmp_path / "train.txt"), str(tmp_path / "test.txt"), "--factors", "2",
             "-m", "precision@1", "--format", "json")  # fmt: skip
    status, printed, _ = command(*words, "--convention", "implicit")
    assert status == 0
    assert json.loads(printed)["convention"] == "implicit"
    assert json.loads(printed)["metrics"]["precision@1"]["std"] is None
    status, _, said = command(*words, "--convention", "none")
    assert status == 2
    assert "there is no convention 'none'" in said
