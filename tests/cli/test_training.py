"""Test the commands that split data, train models and recommend: demo, run, split, train."""

import json
from shlex import quote

import numpy as np
import pandas as pd
import pytest
from cross_cases import content
from failing import full
from implicit.cpu.bpr import BayesianPersonalizedRanking

import sparse_eval as se
from sparse_eval.models.checkpoints import read_checkpoint

#: Options of a quick training.
SMALL = ("--factors", "4", "--iterations", "2")
CLICKS = se.datasets.synthetic(n_users=80, n_items=60, seed=1)

#: Every model, with options of its own.
MODELS = {
    "als": "--factors 4 --iterations 2",
    "bpr": "--factors 4 --iterations 2 --learning-rate 0.1",
    "lmf": "--factors 4 --iterations 2 --regularization 0.5",
    "cosine": "--neighbors 5",
    "tfidf": "",
    "bm25": "--k1 1 --b 0.5",
    "item-item": "",
}


@pytest.fixture
def log(tmp_path):
    """Write a click log as CSV."""
    CLICKS.to_frame().to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


@pytest.fixture
def split(tmp_path):
    se.split.random(CLICKS, seed=0).save(tmp_path / "split")
    return tmp_path / "split"


def test_demo_runs_every_step(command, tmp_path):
    out = tmp_path / "demo"
    words = ("demo", "--users", 100, "--items", 80, "--factors", 4, "--seed", 3, "--out", out)
    status, printed, said = command(*words)
    assert status == 0, said
    names = {path.name for path in out.iterdir()}
    assert names >= {"model.npz", "split", "summary.json", "metrics.parquet", "per_user.parquet"}
    saved = se.Evaluation.load(out)
    settings = {"factors": 4, "regularization": 0.1, "alpha": 40.0, "iterations": 15}
    assert saved.about == {
        "command": "sparse-eval demo --users 100 --items 80 --factors 4 --seed 3 "
        f"--out {quote(str(out))}",
        "data": "synthetic",
        "model": {"class": "ALS", **settings},
        "seed": 3,
    }
    # The files are enough to get the same numbers again.
    again = ("score", out / "model.npz", "--split", out / "split", "--out", tmp_path / "again")
    assert command(*again)[:2] == (0, printed)
    about = se.Evaluation.load(tmp_path / "again").about["checkpoint"]
    assert (about["file"], len(about["sha256"])) == (str(out / "model.npz"), 64)
    ev = se.evaluate_model(out / "model.npz", se.Holdout.load(out / "split"), "ndcg@10")
    assert saved["ndcg@10"] == ev["ndcg@10"]


def test_a_run_keeps_what_is_there_if_there_is_no_room_for_the_split(
    command, log, tmp_path, monkeypatch
):
    out = tmp_path / "results"
    assert command("run", log, *SMALL, "--out", out)[0] == 0
    before = content(out)
    monkeypatch.setattr("scipy.sparse.save_npz", full)
    status, _, said = command("run", log, *SMALL, "--seed", 1, "--out", out)
    assert status == 75  # try again later
    assert said.endswith("train.npz: cannot be written: No space left on device\n")
    assert content(out) == before
    assert {"model.npz", "summary.json", "split/labels.npz"} <= before.keys()


@pytest.mark.long
@pytest.mark.parametrize("model", MODELS)
def test_split_train_and_score_equal_run(command, log, split, tmp_path, model):
    options = ("--model", model, *MODELS[model].split())
    for out in ("a.npz", "b.npz"):
        status, _, said = command("train", split, *options, "--out", tmp_path / "m" / out)
        assert status == 0, said
    assert arrays_of(tmp_path / "m" / "a.npz") == arrays_of(tmp_path / "m" / "b.npz")
    metrics = ("-m", "ndcg@{5,10}", "--format", "json")
    status, printed, said = command("run", log, *options, *metrics, "--out", tmp_path / "r")
    assert status == 0, said
    score = ("score", tmp_path / "m" / "a.npz", "--split", split, "--out", tmp_path / "s")
    (row,) = json.loads(command(*score, *metrics)[1])
    expected = {name: row[name] for name in ("file", "sha256", "best", "status", "error")}
    assert row == expected | json.loads(printed)
    assert se.Evaluation.load(tmp_path / "s").about["data"] == str(split)
    about = se.Evaluation.load(tmp_path / "r").about
    assert (about["data"], about["split"]) == (str(log), "random")
    assert about["model"]["class"].replace("-", "").lower() == model.replace("-", "")
    given = MODELS[model].split()
    for option, value in zip(given[::2], given[1::2], strict=True):
        assert about["model"][option[2:].replace("-", "_")] == float(value)


def arrays_of(path):
    with np.load(path) as arrays:
        return {name: array.tobytes() for name, array in arrays.items()}


def test_run_uses_a_ready_made_split(command, tmp_path):
    parts = (tmp_path / "train.txt", tmp_path / "test.txt")
    parts[0].write_text("0 0 1 2\n1 1 2\n2 0 2 3\n3 3\n")
    parts[1].write_text("0 3\n1 0\n2 1\n3\n")
    kind = ("--input-format", "adjacency")
    words = ("run", *parts, *kind, *SMALL, "-m", "recall@2", "--out", tmp_path / "r")
    status, printed, said = command(*words)
    assert status == 0, said
    assert "means over 3 users, 1 left out (nothing relevant)" in printed
    words = ("--train", parts[0], "--validation", parts[1], "-m", "recall@2")
    assert command("score", tmp_path / "r" / "model.npz", *words, *kind)[:2] == (0, printed)
    parts[1].write_text("0 4\n1 5\n2 4 5\n")
    status, _, said = command("run", *parts, *kind, *SMALL, "--only-known")
    assert status == 2
    assert "nothing is held out for validation: every pair has a user or item without" in said


#: Options of `split`, and the call in Python.
SPLITS = {
    "--fraction 0.3 --seed 2": lambda log: se.split.random(log, fraction=0.3, seed=2),
    "--method leave-k-out": lambda log: se.split.leave_k_out(log, seed=0),
    "--method last-n --n 2": lambda log: se.split.last_n(log, n=2),
    "--method temporal": lambda log: se.split.temporal(log, fraction=0.2),
    "--at 1574208000 --gap 43200": lambda log: se.split.temporal(log, at=1574208000, gap=43200),
    "--at 2019-11-20 --test-at 1575158400 --gap 12h --only-known": lambda log: se.split.temporal(
        log, at="2019-11-20", test="2019-12-01", gap="12h"
    ).known(),
    "--method users --fold-in 0.5 --order time": lambda log: se.split.users(
        log, fraction=0.2, fold_in=0.5, order="time", seed=0
    ),
}


@pytest.mark.parametrize("words", SPLITS)
def test_splits_as_python_does(command, log, tmp_path, words):
    holdout = SPLITS[words](se.datasets.load(log, timestamp="timestamp"))
    assert command("split", log, *words.split(), "--out", tmp_path / "s")[0] == 0
    folders = [tmp_path / "s"]
    for start, text in (
        ("--at 2019", "temporal, at 2019-11-20, gap 12h, test 1575158400"),
        ("--method users", "users, fold_in 0.5, order time"),
    ):
        if words.startswith(start):
            assert command("run", log, *words.split(), *SMALL, "--out", tmp_path / "r")[0] == 0
            assert se.Evaluation.load(tmp_path / "r").about["split"] == text
            folders.append(tmp_path / "r" / "split")
    for folder in folders:
        found = se.Holdout.load(folder)
        assert repr(found) == repr(holdout)
        for part in ("train", "validation", "test", "fold_in"):
            one, other = getattr(found, part), getattr(holdout, part)
            assert (one is None) == (other is None)
            assert one is None or (one.csr != other.csr).nnz == 0


def test_users_are_split_trained_and_scored(command, log, tmp_path):
    split, model = tmp_path / "split", tmp_path / "als.npz"
    options = ("--method", "users", "--fold-in", "0.5", "--order", "time", "--seed", "1")
    status, _, said = command("split", log, *options, "--out", split)
    assert status == 0
    assert "fold_in.npz" in said
    assert "16 users not in train" in said
    assert command("train", split, "--out", model, "--iterations", "2")[0] == 0
    holdout = se.Holdout.load(split)
    (row,) = json.loads(command("score", model, "--split", split, "--format", "json")[1])
    ev = se.evaluate_model(model, holdout, "recall@5")
    assert row["metrics"]["recall@5"]["mean"] == ev["recall@5"]
    user = holdout.users[(holdout.fold_in.csr.getnnz(axis=1) > 0).argmax()]
    words = ("recommend", model, split, "-k", "2", "--users", user, "--format", "json")
    recs = se.recommend(model, holdout, 2, users=[user])
    assert [row["item"] for row in json.loads(command(*words)[1])] == recs["item"].tolist()


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_recommends_in_a_file(command, log, split, suffix):
    model, out = split / "als.npz", split / "new" / f"recs.{suffix}"
    se.save_model(se.train_als(se.datasets.load(log), factors=4), model)
    status, printed, said = command("recommend", model, log, "-k", 3, "--out", out)
    assert (status, printed) == (0, ""), said
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet, "jsonl": pd.read_json}[suffix]
    found = read(out, **{"lines": True} if suffix == "jsonl" else {})
    expected = se.recommend(model, pd.read_csv(log), 3)
    assert found[["user", "item"]].equals(expected[["user", "item"]].astype(found["user"].dtype))
    assert found["score"].tolist() == pytest.approx(expected["score"].tolist())


def test_evaluates_stops_early_and_keeps_the_best(command, split, tmp_path):
    folder, out = tmp_path / "checkpoints", tmp_path / "m.npz"
    options = ("--model", "bpr", "--factors", 8, "--iterations", 30, "--learning-rate", 0.5)
    status, printed, said = command(
        "train", split, *options, "-m", "ndcg@5", "-m", "recall@5", "--patience", 2,
        "--checkpoints", folder, "--keep-best", "--out", out,
    )  # fmt: skip
    assert (status, printed) == (0, ""), said
    assert [path.name for path in folder.iterdir()] == ["best.npz"]
    holdout = se.Holdout.load(split)
    callback = se.EvaluationCallback(holdout, ["ndcg@5", "recall@5"], patience=2)
    bpr = BayesianPersonalizedRanking(8, 0.5, iterations=30, random_state=0, num_threads=1)
    expected = callback.fit(bpr)
    assert len(callback.history) < 30
    for path in (out, folder / "best.npz"):
        kept = read_checkpoint(path).model
        assert kept.item_factors is not None
        assert kept.item_factors.tobytes() == expected.item_factors.tobytes()
    assert f"train: BPR, 8 factors, 30 iterations, {callback.describe()}, " in said
    assert f"after iteration {callback.best_iteration}" in callback.describe()
