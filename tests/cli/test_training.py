"""Test the commands that split data, train models and recommend: demo, run, split, train."""

import json
import signal
from pathlib import Path

import pandas as pd
import pytest
from commands import SMALL, press_ctrl_c, start_command
from failing import full
from implicit.cpu.bpr import BayesianPersonalizedRanking

import sparse_eval as se
from sparse_eval.models.checkpoints import read_checkpoint

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
    assert sorted(p.name for p in out.iterdir()) == [
        "model.npz", "per_user.csv", "split", "summary.json", "totals.npz",
    ]  # fmt: skip
    saved = se.Evaluation.load(out)
    assert saved.about == {
        "command": f"sparse-eval demo --users 100 --items 80 --factors 4 --seed 3 --out {out}",
        "data": "synthetic",
        "model": {
            "class": "ALS", "factors": 4, "regularization": 0.1, "alpha": 40.0, "iterations": 15,
        },
        "seed": 3,
    }  # fmt: skip
    # The files are enough to get the same numbers again.
    again = ("score", out / "model.npz", "--split", out / "split", "--out", tmp_path / "again")
    assert command(*again)[:2] == (0, printed)
    scored = se.Evaluation.load(tmp_path / "again")
    about = scored.about["checkpoint"]
    assert (about["file"], len(about["sha256"])) == (str(out / "model.npz"), 64)
    ev = se.evaluate_model(out / "model.npz", se.Holdout.load(out / "split"), "ndcg@10")
    assert saved["ndcg@10"] == scored["ndcg@10"] == ev["ndcg@10"]


def test_a_run_keeps_what_is_there_if_there_is_no_room_for_the_split(
    command, log, tmp_path, monkeypatch
):
    def contents():
        files = [path for path in out.rglob("*") if path.is_file()]
        return {str(path.relative_to(out)): path.read_bytes() for path in files}

    out = tmp_path / "results"
    assert command("run", log, *SMALL, "--out", out)[0] == 0
    before = contents()
    monkeypatch.setattr("scipy.sparse.save_npz", full)
    status, _, said = command("run", log, *SMALL, "--seed", 1, "--out", out)
    assert status == 75  # try again later
    assert said.endswith("train.npz: cannot be written: No space left on device\n")
    assert contents() == before
    assert {"model.npz", "summary.json", "split/labels.npz"} <= before.keys()


@pytest.mark.parametrize("model", MODELS)
def test_split_train_and_score_equal_run(command, log, split, tmp_path, model):
    out, options = tmp_path / "m" / "a.npz", ("--model", model, *MODELS[model].split())
    files = []
    for _ in range(2):  # with the same bits
        status, _, said = command("train", split, *options, "--out", out)
        assert status == 0, said
        files.append(read_checkpoint(out).model)
    for name in ("user_factors", "item_factors"):
        if getattr(files[0], name, None) is not None:
            assert getattr(files[0], name).tobytes() == getattr(files[1], name).tobytes()
    metrics = ("-m", "ndcg@{5,10}", "--format", "json")
    status, printed, said = command("run", log, *options, *metrics, "--out", tmp_path / "r")
    assert status == 0, said
    scored = command("score", out, "--split", split, *metrics, "--out", tmp_path / "s")[1]
    (row,) = json.loads(scored)
    expected = {name: row[name] for name in ("file", "sha256", "best", "status", "error")}
    assert row == expected | json.loads(printed)
    origin = json.loads((tmp_path / "r" / "summary.json").read_text())["about"]
    assert (origin["data"], origin["split"]) == (str(log), "random")
    assert json.loads((tmp_path / "s" / "summary.json").read_text())["about"]["data"] == str(split)
    about = origin["model"]
    assert about["class"].replace("-", "").lower() == model.replace("-", "")
    given = MODELS[model].split()
    for option, value in zip(given[::2], given[1::2], strict=True):
        assert about[option[2:].replace("-", "_")] == float(value)


def test_run_uses_a_ready_made_split(command, tmp_path):
    parts = (tmp_path / "train.txt", tmp_path / "test.txt")
    parts[0].write_text("0 0 1 2\n1 1 2\n2 0 2 3\n3 3\n")
    parts[1].write_text("0 3\n1 0\n2 1\n3\n")
    words = ("run", *parts, *SMALL, "-m", "recall@2", "--out", tmp_path / "r")
    status, printed, said = command(*words)
    assert status == 0, said
    assert "means over 3 users, 1 left out (nothing relevant)" in printed
    words = ("--train", parts[0], "--validation", parts[1], "-m", "recall@2")
    assert command("score", tmp_path / "r" / "model.npz", *words)[:2] == (0, printed)
    parts[1].write_text("0 4\n1 5\n2 4 5\n")
    status, _, said = command("run", *parts, *SMALL, "--only-known")
    assert status == 2
    assert "nothing is held out for validation: every pair has a user or item without" in said


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("--fraction 0.3 --seed 2", lambda clicks: se.split.random(clicks, fraction=0.3, seed=2)),
        ("--method leave-k-out", lambda clicks: se.split.leave_k_out(clicks, seed=0)),
        ("--method last-n --n 2", lambda clicks: se.split.last_n(clicks, n=2)),
        ("--method temporal", lambda clicks: se.split.temporal(clicks, fraction=0.2)),
        (
            "--at 1574208000 --gap 43200",
            lambda clicks: se.split.temporal(clicks, at=1574208000, gap=43200),
        ),
        (
            "--at 2019-11-20 --test-at 1575158400 --gap 12h --only-known",
            lambda clicks: se.split.temporal(
                clicks, at="2019-11-20", test="2019-12-01", gap="12h"
            ).known(),
        ),
        (
            "--method users --fold-in 0.5 --order time",
            lambda clicks: se.split.users(clicks, fraction=0.2, fold_in=0.5, order="time", seed=0),
        ),
    ],
)
def test_splits_as_python_does(command, log, tmp_path, words, expected):
    holdout = expected(se.datasets.load_csv(log, timestamp="timestamp"))
    assert command("split", log, *words.split(), "--out", tmp_path / "s" / "split")[0] == 0
    folders = ["s"]
    described = {
        "--at 2019": "temporal, at 2019-11-20, gap 12h, test 1575158400",
        "--method users": "users, fold_in 0.5, order time",
    }
    for start, text in described.items():
        if words.startswith(start):
            assert command("run", log, *words.split(), *SMALL, "--out", tmp_path / "r")[0] == 0
            about = json.loads((tmp_path / "r" / "summary.json").read_text())["about"]
            assert about["split"] == text
            folders.append("r")
    for folder in folders:
        found = se.Holdout.load(tmp_path / folder / "split")
        assert repr(found) == repr(holdout)
        for part in ("train", "validation", "test", "fold_in"):
            one, other = getattr(found, part), getattr(holdout, part)
            assert (one is None) == (other is None)
            assert one is None or (one.csr != other.csr).nnz == 0


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--at 14.11.2019", "error: --at: expected a date such as '2019-11-14'"),
        (f"--at {'1' * 4301}", "error: --at: expected a date such as '2019-11-14'"),
        ("--at 2019-11-14 --gap soon", "error: --gap: expected a duration such as '1D'"),
        ("--at 2019-11-14 --fraction 0.1", "--fraction: cannot be combined with --at; "),
        ("--test-at 2019-11-13", "--test-at needs --at, where the validation part begins"),
        ("--at 2019-11-14 --timestamp day", "pass --at as a whole number in their unit"),
    ],
)
def test_refuses_dates(command, tmp_path, words, says):
    frame = CLICKS.to_frame().assign(day=range(len(CLICKS)))
    frame.to_csv(tmp_path / "clicks.csv", index=False)
    line = ("split", tmp_path / "clicks.csv", "--method", "temporal", "--timestamp", "timestamp")
    status, printed, said = command(*line, *words.split(), "--out", tmp_path / "s")
    assert (status, printed) == (2, "")
    assert says in said.splitlines()[-1]
    assert not (tmp_path / "s").exists()
    assert command(*line, "--timestamp", "day", "--at", 2, "--out", tmp_path / "s")[0] == 0


def test_users_are_split_trained_and_scored(command, tmp_path):
    frame = se.datasets.synthetic(n_users=80, n_items=60, n_interactions=900, seed=0).to_frame()
    frame["item"] = frame["item"].str[:2]  # so that users come back to items
    frame.to_csv(tmp_path / "clicks.csv", index=False)
    split, model = tmp_path / "split", tmp_path / "als.npz"
    options = ("--method", "users", "--fold-in", "0.5", "--order", "time", "--seed", "1")
    status, _, said = command("split", tmp_path / "clicks.csv", *options, "--out", split)
    assert status == 0
    assert "fold_in.npz" in said
    assert "16 users not in train" in said
    assert command("train", split, "--out", model, "--iterations", "2")[0] == 0
    score = ("--split", split, "-m", "recall@3", "--format", "json")
    holdout = se.Holdout.load(split)
    expected = se.evaluate_model(model, holdout, "recall@3")["recall@3"]
    assert json.loads(command("score", model, *score)[1])[0]["metrics"]["recall@3"]["mean"] == (
        expected
    )
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
    for words, says in (
        (("--users", "nobody"), "the model knows no user 'nobody'"),
        (("-k", 0), "error: --k: expected a whole number"),
        (("--out", "recs.txt"), "--out is 'recs.txt'; expected .csv"),
    ):
        status, printed, said = command("recommend", model, log, *words)
        assert (status, printed) == (2, "")
        assert says in said


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


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("run missing --model bpr --alpha 1", "--alpha does not apply to --model bpr, which has"),
        ("train missing --model cosine --factors 8", "--model cosine, which has --neighbors"),
        ("run missing --model lmf --learning-rate -1", "Invalid value for '--learning-rate'"),
        ("run missing --model bpr --learning-rate 0", "--learning-rate: expected a finite number"),
        ("run missing --model bpr --method users", "cannot fold them in; use als or a model of"),
        ("train users --model bpr --patience 2", "cannot fold them in; use als or a model of"),
        ("train log --patience 2", "--patience needs --validation, or a folder"),
        ("train split --model tfidf --patience 2", "--patience is for models that are trai"),
        ("train split --keep-best", "--keep-best needs checkpoints; name their folder with"),
        ("train split --validation split", "has its own validation part; leave out --val"),
    ],
)
def test_refuses_what_does_not_apply(command, log, split, monkeypatch, words, says):
    monkeypatch.chdir(split.parent)
    log.rename("log")
    se.split.users(CLICKS, seed=0).save("users")
    status, _, said = command(*words.split(), "--out", "m.npz")
    assert status == 2
    assert says in said
    assert not Path("m.npz").exists()


def test_the_test_of_a_search_is_about_users_of_train(command, split):
    status, _, said = command("tune", split, "--method", "users", "--out", split.parent / "search")
    assert status == 2
    assert "the given test part has users of train" in said


@pytest.mark.parametrize("resume", [False, pytest.param(True, marks=pytest.mark.long)])
def test_an_interrupted_training_says_where_its_checkpoints_are(split, tmp_path, resume):
    folder = tmp_path / "c"
    words = ("train", split, "--factors", 8, "--iterations", 10**6, "--checkpoints", folder)
    status, _, said = press_ctrl_c(
        start_command(*words, "--keep-best", *["--resume"] * resume, "--out", tmp_path / "m.npz"),
        lambda: (folder / "best.npz").exists(),
        signal.SIGTERM,
    )
    assert status == 143, said
    assert "Traceback" not in said
    go_on = "repeat the command to continue"
    if not resume:
        go_on = f"compare them with: sparse-eval score {folder} --split {split}"
        assert [path.name for path in folder.iterdir()] == ["best.npz"]
    last = said.splitlines()[-1]
    assert last == f"interrupted: checkpoints so far are in {folder}; {go_on}"
    assert read_checkpoint(folder / "best.npz").model.user_factors is not None
