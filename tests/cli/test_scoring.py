"""Test the command evaluate, on matrices and TREC files."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from commands import Command
from scipy import sparse

RUN = """ann Q0 x 1 0.9 tag
ann Q0 y 2 0.9 tag
bob Q0 x 1 0.5 tag
"""
QRELS = """ann 0 x 1
ann 0 z 2
bob 0 y 0
cat 0 x 1
"""


def test_evaluates_matrices(command: Command, tmp_path: Path) -> None:
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
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == [
        "per_user.csv", "summary.json", "totals.npz",
    ]  # fmt: skip


def test_errors_of_matrices_name_the_file(command: Command, tmp_path: Path) -> None:
    gains = sparse.csr_matrix([[0, 1, 0], [0, 1, 1]])  # position 1 twice in a row
    repeated = sparse.coo_matrix(([1, 2], ([1, 1], [2, 2])), shape=(2, 3))
    sparse.save_npz(tmp_path / "v.npz", gains)
    sparse.save_npz(tmp_path / "p.npz", repeated)
    for files in (("v.npz", "v.npz"), ("p.npz", "v.npz")):
        status, printed, said = command("evaluate", *(tmp_path / name for name in files))
        assert (status, printed) == (2, "")
        assert said.startswith(f"error: {tmp_path / files[0]}: ")


def test_evaluates_a_run_against_qrels(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    files = (str(tmp_path / "a.run"), str(tmp_path / "a.qrels"))
    options = ("-m", "mrr,recall@2", "--format", "csv", "--per-user")
    status, printed, _ = command("evaluate", *files, *options, "--convention", "trec_eval")
    assert status == 0
    # Of equal scores, the larger name comes first.
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
def test_default_metrics_fit_every_convention(
    command: Command, tmp_path: Path, convention: str
) -> None:
    (tmp_path / "a.run").write_text(RUN)
    (tmp_path / "a.qrels").write_text(QRELS)
    files = (str(tmp_path / "a.run"), str(tmp_path / "a.qrels"))
    status, printed, said = command("evaluate", *files, "--convention", convention)
    assert status == 0, said
    assert "ndcg" in printed
    assert ("mrr" in printed) == (convention in ("trec_eval", "lenskit"))


def test_per_user_values_have_all_digits(command: Command, tmp_path: Path) -> None:
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
    assert "means over 2 users, 1 left out (nothing relevant)\nfcp@2: over 1 user\n" in printed
