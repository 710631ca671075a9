"""The command ``tune``."""

import csv
import json

import pytest
from tune_cases import search

import sparse_eval as se
from sparse_eval.core.formatting import number

pytestmark = pytest.mark.long

SMALL = (
    "--factors", "2,6", "--alpha", "1,40", "--regularization", "0.01", "--iterations", "3",
    "-m", "ndcg@10,recall@5",
)  # fmt: skip


@pytest.fixture
def log(tmp_path):
    clicks = se.datasets.synthetic(n_users=60, n_items=30, n_interactions=700, seed=3)
    clicks.to_frame().to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


def test_searches_and_tests(command, log, tmp_path):
    out = tmp_path / "made" / "out"
    words = ("tune", log, *SMALL, "--fraction", "0.25", "--seed", "2", "--out", out)
    status, printed, said = command(*words, "--progress")
    assert status == 0, said
    assert "tune: 100%" in said
    whole = se.split.random(se.datasets.load(log), fraction=0.25, seed=2)
    outcome = search((whole, se.split.random(whole.train, fraction=0.25, seed=2)), seed=2)
    lines = printed.splitlines()
    assert lines[0].split() == [*outcome.trials]
    assert [line.split()[1] == "True" for line in lines[2:6]] == outcome.trials["best"].tolist()
    assert number(outcome.trials["ndcg@10"][0]) in lines[2]
    assert "\n".join(lines[7:]) == str(outcome.test)
    status, again, _ = command(*words, "--format", "json")
    result = json.loads(again)
    assert result["best"] == outcome.best
    assert result["test"] == outcome.test.to_dict()
    assert [row["recall@5"] for row in result["trials"]] == outcome.trials["recall@5"].tolist()
    trials = command(*words, "--format", "csv")[1]
    assert trials == (out / "trials.csv").read_text()
    values = [float(row["recall@5"]) for row in csv.DictReader(trials.splitlines())]
    assert values == outcome.trials["recall@5"].tolist()
    printed_as_markdown = command(*words, "--format", "markdown")[1]
    assert printed_as_markdown.startswith("| trial ")
    assert printed_as_markdown.endswith(f"\n\n{outcome.test.to_markdown()}\n")
    *rows, last = map(json.loads, command(*words, "--format", "jsonl")[1].splitlines())
    assert ([row["trial"] for row in rows], {*last}) == ([0, 1, 2, 3], {"best", "test"})
    # A saved split is taken as that of the test part.
    split = ("split", log, "--fraction", 0.25, "--seed", 2, "--out", tmp_path / "s")
    assert command(*split)[0] == 0
    assert command("tune", tmp_path / "s", *words[2:])[:2] == (0, printed)


def test_samples_and_cuts_in_three(command, log, tmp_path):
    clicks = se.datasets.load(log, timestamp="timestamp")
    temporal = ("--method", "temporal", "--timestamp", "timestamp")
    cuts = ("--at", "2019-11-24", "--test-at", "2019-12-01", "--gap", "1D")
    by_date = se.split.temporal(clicks, at="2019-11-24", test="2019-12-01", gap="1D")
    by_share = se.split.temporal(clicks, fraction=0.3 * 0.7, test=0.3)
    ranges = ("--alpha", "1:100", "--trials", 2, "--seed", 5, "--monitor", "recall@5")
    options = {"alpha": "1:100", "n_trials": 2, "seed": 5, "monitor": "recall@5"}
    folder = tmp_path / "three"
    assert command("split", log, *temporal, *cuts, "--out", folder)[0] == 0
    for words, holdout in (
        ((log, *temporal, *cuts, "--out", tmp_path / "date"), by_date),
        ((log, *temporal, "--fraction", 0.3, "--out", tmp_path / "share"), by_share),
        ((folder, "--out", tmp_path / "split"), by_date),
    ):
        status, printed, said = command("tune", *words, *SMALL, *ranges, "--format", "json")
        assert status == 0, said
        outcome = search((holdout.for_test(), holdout), **options)
        result = json.loads(printed)
        assert (result["best"], result["test"]) == (outcome.best, outcome.test.to_dict())
    for words, message in (
        ((folder, "--method", "random"), "is split in three already; leave --method"),
        ((log, *temporal, *cuts[:2]), "--at needs --test-at here, where the test part begins"),
    ):
        status, _, said = command("tune", *words, *SMALL, "--out", tmp_path / "o")
        assert status == 2
        assert message in said.splitlines()[-1]


def test_takes_a_given_test_part(command, log, tmp_path):
    pairs = se.datasets.load(log).to_frame().drop_duplicates(["user", "item"])
    files = (tmp_path / "train.csv", tmp_path / "test.csv")
    for path, part in zip(files, (pairs[::2], pairs[1::2]), strict=True):
        part.to_csv(path, index=False)
    whole = se.Holdout.from_frames(*files)
    words = (*files, *SMALL, "--method", "leave-k-out", "--n", 3, "--out", tmp_path / "o")
    printed = command("tune", *words, "--format", "json")[1]
    outcome = search((whole, se.split.leave_k_out(whole.train, n=3)))
    assert json.loads(printed)["test"] == outcome.test.to_dict()


def test_fails_if_every_trial_does(command, log, tmp_path):
    words = ("tune", log, *SMALL, "--factors", 2)
    status, printed, said = command(*words, "--alpha", "1,1e30", "--out", tmp_path / "one")
    assert (status, said.splitlines()[-1]) == (0, "1 of 2 trials failed")
    assert printed.count("is not finite; train again") == 1
    words = (*words, "--alpha", "1e29,1e30", "--out", tmp_path / "all", "--format", "json")
    status, printed, said = command(*words)
    assert (status, said.splitlines()[-1]) == (1, "2 of 2 trials failed")
    result = json.loads(printed)
    assert (result["best"], result["test"]) == (None, None)
    assert result["trials"][0]["ndcg@10"] is None


def test_refuses_before_it_reads(command, tmp_path):
    for words, message in (
        ("--factors 8,many", "factors: expected a whole number, several as in 10,20,40"),
        ("--alpha 1:100", "(option --trials)"),
        ("--monitor mrr@3", "monitor is 'mrr@3', which is not among the metrics"),
    ):
        line = ("tune", tmp_path / "missing.csv", "--out", tmp_path / "o", *words.split())
        status, printed, said = command(*line)
        assert (status, printed) == (2, "")
        assert message in said
        assert len(said.splitlines()) == 1
        assert not (tmp_path / "o").exists()
