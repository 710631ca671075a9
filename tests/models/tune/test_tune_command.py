"""The command ``tune``."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commands import press_ctrl_c, start_command
from tune_cases import (
    FILES,
    METRICS,
    N_ITEMS,
    N_USERS,
    PARAMETERS,
    content,
    rows_of,
    search,
)

import sparse_eval as se
from sparse_eval.core.formatting import number
from sparse_eval.models.tune import Search

Command = Callable[..., tuple[int, str, str]]

SMALL = (
    "--factors", "2,6", "--alpha", "1,40", "--regularization", "0.01", "--iterations", "3",
    "-m", "ndcg@10,recall@5",
)  # fmt: skip


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Write a click log as CSV, with some pairs more than once."""
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=700, seed=3)
    frame = clicks.to_frame()
    later = frame[::3].assign(timestamp=frame["timestamp"].max() + 1)
    pd.concat([frame, later]).to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


def test_the_command_searches_and_tests(
    command: Command, log: Path, tmp_path: Path, trained: list[Any]
) -> None:
    out = tmp_path / "made" / "out"
    words = ("tune", log, *SMALL, "--fraction", "0.25", "--seed", "2", "--out", out)
    status, printed, said = command(*words)
    assert status == 0, said
    assert len(trained) == 5
    clicks = se.datasets.load_csv(log)
    whole = se.split.random(clicks, fraction=0.25, seed=2)
    part = se.split.random(whole.train, fraction=0.25, seed=2)
    outcome = search((whole, part), seed=2)
    lines = printed.splitlines()
    assert lines[0].split() == ["trial", "best", *PARAMETERS, "best_iteration", *METRICS, "seconds"]
    assert [line.split()[1] == "*" for line in lines[2:6]] == outcome.trials["best"].tolist()
    assert number(outcome.trials["ndcg@10"][0]) in lines[2]
    best = outcome.trials[outcome.trials["best"]].iloc[0]
    assert [line.split() for line in lines[6:12]] == [
        [],
        ["metric", "validation", "test"],
        ["-" * len("recall@5"), "-" * 12, "-" * len("0.12345")],
        *([name, number(best[name]), number(outcome.test["metrics"][name]["mean"])]
          for name in METRICS),
        [],
    ]  # fmt: skip
    assert lines[12].startswith(f"best: trial {best['trial']} (factors {best['factors']}, alpha ")
    assert lines[13] == (
        "test: trained again on train and validation; means over "
        f"{outcome.test['n_users']} users, {outcome.test['n_skipped']} left out (nothing relevant)"
    )
    assert sorted(content(out)) == FILES
    assert json.loads((out / "summary.json").read_text()) == outcome.test
    assert [*rows_of(out)[0]] == [*outcome.trials.columns]
    assert (out / "per_user.csv").read_text().splitlines()[1].startswith("U1,")

    # the test part is what `split` holds out, so the test can be repeated
    before = content(out)
    trained.clear()
    assert command("split", log, "--fraction", 0.25, "--seed", 2, "--out", tmp_path / "s")[0] == 0
    status, again, _ = command(
        "score", out / "model.npz", "--split", tmp_path / "s", *SMALL[-2:], "--format", "json"
    )
    assert status == 0
    scores = json.loads(again)["metrics"]
    assert {name: scores[name]["mean"] for name in scores} == pytest.approx(
        {name: outcome.test["metrics"][name]["mean"] for name in METRICS}, rel=1e-12
    )
    # a saved split is taken as that of the test part
    status, again, said = command(
        "tune", tmp_path / "s", *SMALL, "--fraction", 0.25, "--seed", 2, "--out", out
    )
    assert (status, again) == (0, printed), said
    assert command(*words)[:2] == (0, printed)
    status, again, _ = command(*words, "--format", "json")
    result = json.loads(again)
    assert [*result] == ["trials", "best", "test"]
    assert result["best"] == outcome.best
    assert result["test"] == outcome.test
    assert pd.DataFrame(result["trials"])[METRICS].equals(outcome.trials[METRICS])
    assert result["trials"][0]["best_iteration"] == outcome.trials["best_iteration"][0]
    status, again, _ = command(*words, "--format", "csv")
    trials, test = again.split("\n\n")
    values = [float(row["recall@5"]) for row in csv.DictReader(trials.splitlines())]
    assert values == outcome.trials["recall@5"].tolist()
    assert [row["metric"] for row in csv.DictReader(test.splitlines())] == METRICS
    status, again, _ = command(*words, "--format", "markdown")
    assert again.splitlines()[0].split()[:4] == ["|", "trial", "|", "best"]
    assert trained == []
    assert content(out) == before

    status, printed, said = command(*words, "--fraction", 0.2)
    assert (status, printed) == (2, "")
    assert f"error: {out}/search.json: is of another search: train " in said.splitlines()[-1]
    assert content(out) == before


def test_the_command_holds_the_last_out_twice(command: Command, log: Path, tmp_path: Path) -> None:
    clicks = se.datasets.load_csv(log, timestamp="timestamp")
    parts = se.split.last_n(clicks, n=2, test=2)
    assert (parts.test != se.split.last_n(clicks, n=2).validation).nnz == 0
    assert (np.diff(parts.validation.indptr) == 2).sum() > 40
    words = ("--method", "last-n", "--n", 2, "--timestamp", "timestamp", "--out", tmp_path / "o")
    status, printed, said = command(
        "tune", log, *SMALL, "--alpha", 1, *words, "--format", "json", "--progress"
    )
    assert status == 0, said
    outcome = search((parts.for_test(), parts), alpha=1.0)
    assert json.loads(printed)["test"] == outcome.test
    assert json.loads(printed)["best"] == outcome.best
    assert "hold out the validation and test parts (last-n): " in said
    assert "tune: 100%" in said
    assert "best trial=" in said
    assert "tune: 2 trials, " in said


def test_the_command_cuts_in_three(command: Command, log: Path, tmp_path: Path) -> None:
    clicks = se.datasets.load_csv(log, timestamp="timestamp")
    cuts = ("--at", "2019-11-24", "--test-at", "2019-12-01", "--gap", "1D")
    temporal = ("--method", "temporal", "--timestamp", "timestamp")
    by_date = se.split.temporal(clicks, at="2019-11-24", test="2019-12-01", gap="1D")
    by_share = se.split.temporal(clicks, fraction=0.3 * 0.7, test=0.3)
    options = ("--factors", 2, "--format", "json")
    for position, (words, holdout) in enumerate(
        (
            ((log, *temporal, *cuts), by_date),
            ((log, *temporal, *cuts, "--only-known"), by_date.known()),
            ((log, *temporal, "--fraction", 0.3), by_share),
        )
    ):
        status, printed, said = command(
            "tune", *words, *SMALL, *options, "--out", tmp_path / str(position)
        )
        assert status == 0, said
        outcome = search((holdout.for_test(), holdout), factors=2)
        assert json.loads(printed)["test"] == outcome.test
        assert f"{holdout.test.nnz} pairs for the test" in said
    # A folder with three parts is taken as it is.
    folder = tmp_path / "three"
    assert command("split", log, *temporal, *cuts, "--out", folder)[0] == 0
    status, printed, said = command("tune", folder, *SMALL, *options, "--out", tmp_path / "0")
    assert status == 0, said
    assert json.loads(printed)["test"] == search((by_date.for_test(), by_date), factors=2).test
    for words, message in (
        ((folder, "--method", "random"), "is split in three already; leave --method"),
        ((folder, *cuts[2:4]), "--test-at cuts one file, but the test part is given already"),
        ((log, *temporal, *cuts[:2]), "--at needs --test-at here, where the test part begins"),
        ((log, *temporal, *cuts[2:]), "--test-at needs --at, where the validation part begins"),
        (
            (log, "--method", "random", *cuts[:4]),
            "--at does not apply to --method random; use --method temporal",
        ),
    ):
        status, _, said = command("tune", *words, *SMALL, "--out", tmp_path / "o")
        assert status == 2
        assert message in said.splitlines()[-1]


def test_the_command_takes_a_given_split(command: Command, log: Path, tmp_path: Path) -> None:
    clicks = se.datasets.load_csv(log).to_frame()
    late = np.arange(len(clicks)) % 5 == 0
    pairs = clicks.drop_duplicates(["user", "item"])
    for name, chosen in (("train", ~late), ("test", late)):
        pairs[chosen[pairs.index]].to_csv(tmp_path / f"{name}.csv", index=False)
    one, other = se.datasets.load_parts(tmp_path / "train.csv", tmp_path / "test.csv")
    whole = se.split.Holdout(one.matrix(), other.matrix(), one.users, one.items)
    files = (tmp_path / "train.csv", tmp_path / "test.csv")
    for method, part in (
        ((), se.split.random(whole.train)),
        (("--method", "leave-k-out", "--n", 3), se.split.leave_k_out(whole.train, k=3)),
    ):
        out = tmp_path / f"out{len(method)}"
        status, printed, said = command(
            "tune", *files, *SMALL, "--factors", 2, *method, "--out", out, "--format", "json"
        )
        assert status == 0, said
        outcome = search((whole, part), factors=2)
        assert json.loads(printed)["test"] == outcome.test


def test_the_command_draws(command: Command, log: Path, tmp_path: Path) -> None:
    status, printed, said = command(
        "tune", log, *SMALL, "--factors", "2:9", "--alpha", "1:100", "--draws", 3, "--seed", 5,
        "--patience", 1, "--monitor", "recall@5", "--out", tmp_path / "o", "--format", "csv",
    )  # fmt: skip
    assert status == 0, said
    rows = list(csv.DictReader(printed.split("\n\n")[0].splitlines()))
    drawn = Search("ndcg@10", factors="2:9", alpha="1:100", regularization=0.01, iterations=3,
                   draws=3, seed=5).trials  # fmt: skip
    assert [{name: float(row[name]) for name in PARAMETERS} for row in rows] == drawn
    best = max(rows, key=lambda row: float(row["recall@5"]))
    assert best["best"] == "True"


def test_the_command_fails_if_every_trial_does(command: Command, log: Path, tmp_path: Path) -> None:
    words = ("tune", log, *SMALL, "--factors", 2)
    status, printed, said = command(*words, "--alpha", "1,1e30", "--out", tmp_path / "one")
    assert status == 0
    assert said.splitlines()[-1] == "1 of 2 trials failed"
    assert printed.splitlines()[0].split()[-1] == "error"
    assert "is not finite; train again" in printed.splitlines()[3]
    status, printed, said = command(*words, "--alpha", "1e29,1e30", "--out", tmp_path / "all")
    assert status == 1
    assert said.splitlines()[-1] == "2 of 2 trials failed"
    assert len(printed.splitlines()) == 4
    status, printed, _ = command(
        *words, "--alpha", "1e29,1e30", "--out", tmp_path / "all", "--format", "json"
    )
    assert status == 1
    result = json.loads(printed)
    assert (result["best"], result["test"]) == (None, None)
    assert result["trials"][0]["ndcg@10"] is None
    assert result["trials"][0]["best_iteration"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--factors", "0"), "factors: expected a whole number from 1"),
        (("--factors", "8,many"), "factors: 'many' is not a whole number"),
        (("--factors", ""), "factors: '' is not a whole number"),
        (("--alpha", "1:100"), "--alpha: 1.0:100.0 is a range; say with --draws how many trials"),
        (("--alpha", "100:1", "--draws", "3"), "alpha: expected a range LOW:HIGH"),
        (("--regularization", "-1"), "regularization: expected a finite number of at least 0"),
        (("--iterations", "1.5"), "iterations: '1.5' is not a whole number"),
        (("--draws", "0"), "draws: expected a whole number of at least 1"),
        (("--draws", "9"), "draws: expected a whole number from 1 to 1"),
        (("--patience", "0"), "patience: expected a whole number of at least 1"),
        (("--monitor", "mrr@3"), "monitor is 'mrr@3', which is not among the metrics"),
        (("-m", "ndgc@10"), "did you mean 'ndcg'"),
        (("-m", "coverage"), "coverage has no cut-off"),
        (("--seed", "-1"), "seed: expected a whole number of at least 0"),
    ],
)
def test_the_command_refuses_before_it_reads(
    command: Command, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    status, printed, said = command(
        "tune", tmp_path / "missing.csv", "--out", tmp_path / "o", *words
    )
    assert (status, printed) == (2, "")
    assert message in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "o").exists()


def test_the_command_refuses_data(command: Command, log: Path, tmp_path: Path) -> None:
    few = tmp_path / "few.csv"
    few.write_text("user,item\n1,2\n1,3\n2,2\n2,4\n")
    for words, message in (
        ((tmp_path / "missing.csv",), "missing.csv: there is no such file"),
        ((few, "--method", "last-n"), "timestamps"),
        ((log, "--n", 2), "--n does not apply to --method random; use --fraction"),
        (
            (few, "--fraction", 0.5),
            "nothing is held out",
        ),  # the test part took all that can be held out
    ):
        status, printed, said = command("tune", *words, *SMALL, "--out", tmp_path / "o")
        assert (status, printed) == (2, "")
        assert message in said.splitlines()[-1]
    assert command("tune", log)[0] == 2
    assert not (tmp_path / "o" / "search.json").exists()


def test_ctrl_c_ends_the_command_and_a_rerun_goes_on(
    command: Command, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "o"
    words = ("tune", log, *SMALL, "--factors", ",".join(map(str, range(1, 13))), "--alpha", "1")
    process = start_command(*words, "--out", out, OMP_NUM_THREADS="1")
    status, printed, said = press_ctrl_c(
        process, lambda: (out / "trials.csv").exists() and len(rows_of(out)) > 1
    )
    assert status == 130, said
    assert printed == ""
    assert "Traceback" not in said
    assert sorted(content(out)) == ["search.json", "trials.csv"]
    done = rows_of(out)
    assert 1 < len(done) < 12
    status, _, said = command(*words, "--out", out)
    assert status == 0, said
    rows = rows_of(out)
    assert len(rows) == 12
    for before, after in zip(done, rows, strict=False):
        assert before | {"best": ""} == after | {"best": ""}
