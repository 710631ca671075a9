"""Test the commands compare and report."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import reporting
from commands import Command
from cross_cases import cross

import sparse_eval as se
from sparse_eval.cli import nightly
from sparse_eval.core.formatting import number, numbers


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    for name, ev in reporting.three().items():
        ev.save(folder / name)
    return folder


@pytest.fixture
def results(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "results"))


def test_compares_two_results(command: Command, results: Path) -> None:
    words = ("compare", results / "good", results / "poor", "-m", "ndcg@{5,10}")
    status, printed, said = command(*words)
    assert status == 0
    assert "read: 2 results" in said
    models = reporting.three()
    expected = models["good"].compare(models["poor"], ["ndcg@5", "ndcg@10"], names=("good", "poor"))
    row = expected.table.iloc[0]
    cells = next(line for line in printed.splitlines() if line.startswith("ndcg@5")).split()
    rounded = numbers(row["difference"], row["ci_low"], row["ci_high"])[0]
    assert cells[:4] == ["ndcg@5", "good", "poor", f"+{rounded}"]
    assert cells[-3:] == [
        "good", f"{row['wins']:.0f}/{row['ties']:.0f}/{row['losses']:.0f}",
        number(row["detectable"]),
    ]  # fmt: skip
    assert json.loads(command(*words, "--format", "json")[1]) == json.loads(
        json.dumps(expected.to_dict())
    )
    rows = list(csv.DictReader(command(*words, "--format", "csv")[1].splitlines()))
    assert [float(row["p"]) for row in rows] == expected.table["p"].tolist()


def test_many_models_are_compared_with_the_best(
    command: Command, results: Path, tmp_path: Path
) -> None:
    for number_of_copy in range(20):
        for name in ("fair", "poor"):
            shutil.copytree(results / name, results / f"{name}{number_of_copy}")
    status, printed, _ = command("compare", results, "-m", "ndcg@5", "-m", "mrr@10")
    assert status == 0
    lines = printed.splitlines()
    assert lines[0].split("  ")[0] == "b"
    assert "a − b" in lines[0]
    assert len(lines) < 55
    assert max(map(len, lines[:44])) <= 80
    assert sum(line.startswith(("fair", "poor")) for line in lines) == 42
    last = "a is good, the best by ndcg@5; by ndcg@5, a against each other model; all 1,806 rows:"
    assert last in " ".join(lines)
    # The best one is a, whatever the order.
    rows = {line.split()[0]: line.split() for line in lines[2:44]}
    evs = reporting.three()
    row = evs["good"].compare(evs["fair"], "ndcg@5").table.iloc[0]
    assert rows["fair"][1] == f"+{numbers(row['difference'], row['ci_low'], row['ci_high'])[0]}"
    assert rows["fair"][-1] == "good"


def test_folder_stands_for_all_results_in_it(
    command: Command, results: Path, tmp_path: Path
) -> None:
    _, printed, _ = command("compare", results, "-m", "mrr@10", "--format", "json")
    assert json.loads(printed)["names"] == ["fair", "good", "poor"]
    words = ("compare", f"a={results / 'good'}", results / "poor" / "summary.json")
    assert json.loads(command(*words, "--format", "json")[1])["names"] == ["a", "poor"]
    (tmp_path / "x=y").mkdir()
    (results / "good").rename(tmp_path / "x=y" / "a=b")
    _, printed, _ = command("compare", tmp_path / "x=y" / "a=b", results / "poor")
    assert "a=b" in printed


def test_selects_metrics_by_their_names_in_the_results(command: Command, tmp_path: Path) -> None:
    # Conventions have different defaults, so that the same words mean different metrics.
    names = ["recall(denominator=relevant)@5", "recall@5"]
    for seed, name in ((1, "a"), (2, "b")):
        ev = reporting.evaluate(seed, 0.3)
        lists, truth = ev.rankings, ev.relevance
        se.evaluate(lists, truth, names, convention="lenskit").save(tmp_path / "r" / name)
    for name in names:
        words = ("compare", tmp_path / "r", "-m", name, "--format", "json")
        status, printed, said = command(*words)
        assert status == 0, said
        assert [row["metric"] for row in json.loads(printed)["differences"]] == [name]


def test_compares_the_users_that_all_have_or_refuses_different_ones(
    command: Command, results: Path
) -> None:
    half = reporting.three()["good"]
    lists = half.rankings
    keep = se.Relevance.from_csr(_without(half, range(100)))
    se.evaluate(lists, keep, half.names, train=None).save(results / "half")
    words = ("compare", results / "poor", results / "half", "-m", "ndcg@5")
    status, _, said = command(*words, "--users", "same")
    assert status == 2
    assert "poor and half have different users" in said
    n_users = int((half.counted & (np.arange(240) >= 100)).sum())
    status, printed, _ = command(*words, "--format", "json")
    assert status == 0
    content = json.loads(printed)
    assert content["n_users"] == n_users
    assert content["left_out"] == {"poor": half.n_users - n_users, "half": 0}


def _without(ev: se.Evaluation, users: range) -> object:
    from scipy.sparse import csr_matrix

    truth = ev.relevance
    matrix = csr_matrix((truth.gains, truth.items, truth.indptr), shape=truth.shape).tolil()
    matrix[list(users)] = 0
    return matrix.tocsr()


def test_reports_unreadable_results_and_shows_the_others(
    command: Command, results: Path, tmp_path: Path
) -> None:
    (results / "bad").mkdir()
    (results / "bad" / "summary.json").write_text("{")
    (results / "fair" / "per_user.csv").unlink()
    status, printed, said = command("compare", results, "-m", "ndcg@5")
    assert status == 1
    assert printed.count("\nndcg@5") == 1
    assert "left out: " in said
    assert "bad/summary.json: is not a saved evaluation" in said
    assert "keep both together" in said
    assert "2 of 4 results could not be read" in said
    status, printed, said = command("report", results, "-o", tmp_path / "r.html")
    assert (status, printed) == (1, f"{tmp_path / 'r.html'}\n")
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Left out" in page
    assert "is not a saved evaluation" in page
    for folder in ("good", "poor"):
        shutil.rmtree(results / folder)
    status, _, said = command("compare", results)
    assert status == 2
    assert "none of the results could be read" in said


def test_report_has_the_learning_curve_of_a_sweep(
    command: Command, results: Path, tmp_path: Path
) -> None:
    clicks = se.datasets.synthetic(n_users=60, n_items=40, seed=0)
    holdout = se.split.random(clicks, seed=0)
    for factors in (2, 4):
        se.train_als(holdout.train, factors=factors).save(str(tmp_path / f"als{factors}.npz"))
    files = sorted(tmp_path.glob("als*.npz"))
    se.sweep(files, holdout.train, holdout.validation, "ndcg@5", out=results)
    words = ("report", results, "-o", tmp_path / "r.html", "-m", "ndcg@5")
    status, _, said = command(*words)
    assert status == 0, said
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Learning curve: results" in page
    assert "recall@5 by" not in page
    (results / "table.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    status, _, said = command(*words)
    assert status == 2
    assert "table.csv: is not the table of a sweep" in said


def test_refuses_what_are_not_results(command: Command, results: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    np.savez(tmp_path / "model.npz", user_factors=np.ones((2, 2)))
    (tmp_path / "more").mkdir()
    shutil.copytree(results / "good", tmp_path / "more" / "good")
    refused = [
        ([tmp_path / "none"], "none: cannot be read"),
        ([tmp_path / "empty"], "empty: contains no results"),
        ([""], "names no folder"),
        (["a="], "names no folder"),
        ([f"all={results}"], "has 3 results; name them one by one"),
        ([results, tmp_path / "more"], "two results have the name 'good'"),
        ([results / "good"], "there is only one result; name two or more"),
        ([results / "good", tmp_path / "model.npz"], "For a model, run first"),
        ([results, "-m", "map@3"], "have map@3"),
        ([results, "--test", "z"], "'z' is not one of"),
    ]
    for words, message in refused:
        status, printed, said = command("compare", *words)
        assert (status, printed) == (2, ""), said
        assert message in " ".join(said.split()).replace("│ ", "")


def test_saved_results_say_where_they_come_from(command: Command, tmp_path: Path) -> None:
    out = tmp_path / "demo"
    words = ("demo", "--users", 100, "--items", 80, "--factors", 4, "--seed", 3, "--out", out)
    assert command(*words)[0] == 0
    saved = se.Evaluation.load(out)
    assert saved.about == {
        "command": f"sparse-eval demo --users 100 --items 80 --factors 4 --seed 3 --out {out}",
        "data": "synthetic",
        "model": {
            "class": "ALS", "factors": 4, "regularization": 0.1, "alpha": 40.0, "iterations": 15,
        },
        "seed": 3,
    }  # fmt: skip
    again = tmp_path / "again"
    status, _, said = command("score", out / "model.npz", "--split", out / "split", "--out", again)
    assert status == 0, said
    about = se.Evaluation.load(again).about["checkpoint"]
    assert about["file"] == str(out / "model.npz")
    assert len(about["sha256"]) == 64
    assert about["factors"] == 4
    assert se.Evaluation.load(again).mean() == saved.mean()


def test_compares_the_models_of_a_cross_validation(command: Command, tmp_path: Path) -> None:
    cv = cross(out=tmp_path / "cv")
    status, printed, said = command("compare", tmp_path / "cv", "-m", "ndcg@5", "--format", "json")
    assert status == 0, said
    assert json.loads(printed) == json.loads(json.dumps(cv.compare("ndcg@5").to_dict()))
    status, printed, said = command("report", tmp_path / "cv", "-o", tmp_path / "r.html")
    assert status == 0, said
    assert "of Nadeau and Bengio" in (tmp_path / "r.html").read_text(encoding="utf-8")
    for words in ((tmp_path / "cv", tmp_path / "cv"), (f"x={tmp_path / 'cv'}",)):
        status, _, said = command("compare", *words)
        assert status == 2
        assert "name only this folder" in said


def test_segments_of_a_table_of_users(command: Command, results: Path, tmp_path: Path) -> None:
    table = pd.DataFrame({"user": range(200), "plan": ["free", "paid"] * 100})
    by = tmp_path / "users.csv"
    table.to_csv(by, index=False)
    words = ("compare", results / "good", results / "poor", "-m", "ndcg@10", "--by", by)
    models = {name: ev for name, ev in reporting.three().items() if name != "fair"}
    expected = se.compare(models, "ndcg@10", by=table)
    assert json.loads(command(*words, "--format", "json")[1]) == json.loads(
        json.dumps(expected.to_dict())
    )
    status, _, said = command(*words, "--fail-if-worse")
    assert status == 3
    assert "poor is worse than good by ndcg@10 in plan free (" in said


def test_saved_metrics_need_not_be_registered_where_nothing_is_judged() -> None:
    assert nightly.parse_bounds(None, ["mine@5"], None) == []
