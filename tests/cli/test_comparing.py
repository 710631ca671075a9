"""Test the commands compare and report."""

import csv
import json
import shutil

import numpy as np
import pandas as pd
import pytest
import reporting

import sparse_eval as se
from sparse_eval.core.formatting import number, numbers
from sparse_eval.results.gate_rules import EXAMPLE

EVALUATIONS = reporting.three()


@pytest.fixture
def results(tmp_path):
    for name, ev in EVALUATIONS.items():
        ev.save(tmp_path / "results" / name)
    return tmp_path / "results"


def compared(command, *words):
    """Return the content of a comparison."""
    status, printed, said = command("compare", *words, "--format", "json")
    assert status == 0, said
    return json.loads(printed)


def content(found):
    return json.loads(json.dumps(found.to_dict()))


def test_compares_two_results(command, results):
    words = (results / "good", results / "poor", "-m", "ndcg@{5,10}")
    status, printed, said = command("compare", *words)
    assert status == 0
    assert "read: 2 results" in said
    good, poor = EVALUATIONS["good"], EVALUATIONS["poor"]
    expected = se.compare({"good": good, "poor": poor}, ["ndcg@5", "ndcg@10"])
    row = expected.table.iloc[0]
    cells = next(line for line in printed.splitlines() if line.startswith("ndcg@5")).split()
    rounded = numbers(row["difference"], row["ci_low"], row["ci_high"])[0]
    assert cells[:4] == ["ndcg@5", "good", "poor", f"+{rounded}"]
    assert cells[-3:] == [
        "good", f"{row['wins']:.0f}/{row['ties']:.0f}/{row['losses']:.0f}",
        number(row["detectable"]),
    ]  # fmt: skip
    assert compared(command, *words) == content(expected)
    rows = csv.DictReader(command("compare", *words, "--format", "csv")[1].splitlines())
    assert [float(row["p"]) for row in rows] == expected.table["p"].tolist()


def test_names_of_results(command, results, tmp_path):
    (tmp_path / "x=y").mkdir()
    shutil.copytree(results / "good", tmp_path / "x=y" / "a=b")
    for words, names in (
        ((results,), ["fair", "good", "poor"]),
        ((f"a={results / 'good'}", results / "poor" / "summary.json"), ["a", "poor"]),
        ((tmp_path / "x=y" / "a=b", results / "poor"), ["a=b", "poor"]),
    ):
        assert compared(command, *words, "-m", "mrr@10")["names"] == names


def test_compares_the_users_that_all_have(command, results):
    half = EVALUATIONS["good"]
    held = half._block.aligned.relevance.to_csr().csr.copy()
    held.data[: held.indptr[100]] = 0
    held.eliminate_zeros()
    se.evaluate(half.rankings, held, "ndcg@5").save(results / "half")
    words = (results / "poor", results / "half", "-m", "ndcg@5")
    n_users = int((half._values.counted & (np.arange(240) >= 100)).sum())
    found = compared(command, *words)
    assert found["n_users"] == n_users
    assert found["left_out"] == {"poor": half.n_users - n_users, "half": 0}


def test_segments_of_a_table_of_users(command, results, tmp_path):
    table = pd.DataFrame({"user": range(200), "plan": ["free", "paid"] * 100})
    table.to_csv(tmp_path / "users.csv", index=False)
    words = (results / "good", results / "poor", "-m", "ndcg@10", "--by", tmp_path / "users.csv")
    models = {name: EVALUATIONS[name] for name in ("good", "poor")}
    assert compared(command, *words) == content(se.compare(models, "ndcg@10", by=table))


@pytest.mark.long
def test_many_models_are_compared_with_the_best(command, results):
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
    last = "a is good, the best by ndcg@5, against each other model by ndcg@5 only; all 1,806 rows:"
    assert last in " ".join(lines)
    # The best one is a, whatever the order.
    (fair,) = (line.split() for line in lines if line.startswith("fair "))
    row = se.compare({name: EVALUATIONS[name] for name in ("good", "fair")}, "ndcg@5").table.iloc[0]
    difference = numbers(row["difference"], row["ci_low"], row["ci_high"])[0]
    assert (fair[1], fair[-1]) == (f"+{difference}", "good")


def test_broken_results_are_left_out(command, tmp_path):
    for name, ev in (("b", "poor"), ("c", "good"), ("z", "good")):
        EVALUATIONS[ev].save(tmp_path / name)
    (tmp_path / "z" / "summary.json").write_text("{}")
    status, printed, said = command("compare", tmp_path, "-m", "ndcg@10")
    assert status == 1
    assert "left out: " in said
    assert printed.splitlines()[2].split()[1:3] == ["b", "c"]


def test_the_gate_judges_the_named_candidate(command, results, tmp_path):
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rule]]\nmetric = "ndcg@10"\nnot_worse_by = "1%"\n')
    good, poor = results / "good", results / "poor"

    def judged(candidate, champion, *words):
        return command("gate", rules, "--candidate", candidate, "--champion", champion, *words)

    status, printed, _ = judged(good, poor)
    assert (status, printed.splitlines()[4]) == (0, "verdict: passed")
    status, printed, _ = judged(poor, good)
    assert (status, printed.splitlines()[4]) == (3, "verdict: failed")
    expected = se.gate(rules, EVALUATIONS["poor"], EVALUATIONS["good"])
    assert json.loads(judged(poor, good, "--format", "json")[1]) == content(expected)
    assert judged(poor, good, "--format", "junit")[1] == expected.to_junit()
    assert judged(poor, good, "--format", "markdown")[1].startswith("| rule ")
    rules.write_text('[[rule]]\nmetric = "ndcg@10"\nbetter_by = "0%"\n')
    status, printed, _ = judged(good, good)
    assert (status, printed.splitlines()[4]) == (4, "verdict: undecided")
    status, printed, _ = command("gate", "--example")
    assert (status, printed) == (0, EXAMPLE)


def test_a_margin_gives_verdicts(command, results):
    words = ("compare", results / "good", results / "poor", "-m", "ndcg@10", "--margin")
    status, printed, _ = command(*words, "1%")
    assert status == 0
    assert "verdict" in printed
    (row,) = json.loads(command(*words, "ndcg@10=0.01", "--format", "json")[1])["differences"]
    assert row["margin"] == 0.01


def test_selects_metrics_by_their_names_in_the_results(command, tmp_path):
    # Conventions have different defaults, so that the same words mean different metrics.
    names = ["recall(denominator=relevant)@5", "recall@5"]
    for seed, name in ((1, "a"), (2, "b")):
        ev = reporting.evaluate(seed, 0.3)
        lists, truth = ev.rankings, ev._block.aligned.relevance
        se.evaluate(lists, truth, names, convention="lenskit").save(tmp_path / "r" / name)
    for name in names:
        words = ("compare", tmp_path / "r", "-m", name, "--format", "json")
        status, printed, said = command(*words)
        assert status == 0, said
        assert [row["metric"] for row in json.loads(printed)["differences"]] == [name]


@pytest.mark.long
def test_reports_unreadable_results_and_shows_the_others(command, results, tmp_path):
    (results / "bad").mkdir()
    (results / "bad" / "summary.json").write_text("{")
    (results / "fair" / "per_user.parquet").unlink()
    status, printed, said = command("compare", results, "-m", "ndcg@5")
    assert status == 1
    assert printed.count("\nndcg@5") == 1
    assert "left out: " in said
    assert "bad/summary.json: is not a saved evaluation" in said
    assert "keep both together" in said
    assert "2 of 4 results could not be read" in said
    page = tmp_path / "r.html"
    assert command("report", results, "-o", page)[:2] == (1, f"{page}\n")
    text = page.read_text(encoding="utf-8")
    assert "Left out" in text
    assert "is not a saved evaluation" in text
    for folder in ("good", "poor"):
        shutil.rmtree(results / folder)
    status, _, said = command("compare", results)
    assert status == 2
    assert "none of the results could be read" in said
