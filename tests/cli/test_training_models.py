"""Test which models the commands train, with which options, and how a training is evaluated."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from commands import Command, press_ctrl_c, start_command
from implicit.cpu.bpr import BayesianPersonalizedRanking

import sparse_eval as se
from sparse_eval.models.checkpoints import read_checkpoint

QUICK = ("--factors", 4, "--iterations", 2)
WORDS: dict[str, tuple[object, ...]] = {
    "als": QUICK,
    "bpr": (*QUICK, "--learning-rate", 0.1),
    "lmf": (*QUICK, "--regularization", 0.5),
    "cosine": ("--neighbors", 5),
    "tfidf": (),
    "bm25": ("--k1", 1, "--b", 0.5),
    "item-item": (),
}


@pytest.fixture
def log(tmp_path: Path) -> Path:
    clicks = se.datasets.synthetic(n_users=80, n_items=60, seed=1)
    clicks.to_frame().to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


@pytest.fixture
def split(tmp_path: Path) -> Path:
    clicks = se.datasets.synthetic(n_users=80, n_items=60, seed=1)
    se.split.random(clicks, seed=0).save(tmp_path / "split")
    return tmp_path / "split"


@pytest.mark.parametrize("model", WORDS)
def test_trains_every_model(
    command: Command, log: Path, split: Path, tmp_path: Path, model: str
) -> None:
    out, options = tmp_path / "m.npz", ("--model", model, *WORDS[model])
    files = []
    for _ in range(2):  # with the same bits
        status, _, said = command("train", split, *options, "--out", out)
        assert status == 0, said
        files.append(read_checkpoint(out).model)
    for name in ("user_factors", "item_factors"):
        if getattr(files[0], name, None) is not None:
            assert getattr(files[0], name).tobytes() == getattr(files[1], name).tobytes()
    status, printed, said = command(
        "run", log, *options, "-m", "ndcg@5", "--format", "json", "--out", tmp_path / "r"
    )
    assert status == 0, said
    status, again, _ = command("score", out, "--split", split, "-m", "ndcg@5", "--format", "json")
    assert json.loads(again)[0]["metrics"] == json.loads(printed)["metrics"]
    about = json.loads((tmp_path / "r" / "summary.json").read_text())["about"]
    assert about["model"]["class"].replace("-", "").lower() == model.replace("-", "")
    given = dict(zip(WORDS[model][::2], WORDS[model][1::2], strict=True))
    for option, value in given.items():
        assert about["model"][str(option)[2:].replace("-", "_")] == value


def test_bpr_is_that_of_one_thread(command: Command, split: Path, tmp_path: Path) -> None:
    words = ("train", split, "--model", "bpr", *QUICK, "--seed", 3, "--out", tmp_path / "m.npz")
    assert command(*words)[0] == 0
    bpr = BayesianPersonalizedRanking(4, iterations=2, random_state=3, num_threads=1)
    expected = se.train_model(bpr, se.Holdout.load(split).train)
    kept = read_checkpoint(tmp_path / "m.npz").model
    assert kept.user_factors is not None
    assert kept.user_factors.tobytes() == expected.user_factors.tobytes()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (
            ("--model", "bpr", "--alpha", 1),
            "--alpha does not apply to --model bpr, which has",
        ),
        (("--model", "cosine", "--factors", 8), "--model cosine, which has --neighbors"),
        (("--model", "lmf", "--learning-rate", -1), "Invalid value for '--learning-rate'"),
        (("--model", "bpr", "--learning-rate", 0), "--learning-rate: expected a finite number"),
        (("--model", "bpr", "--learning-rate", "nan"), "--learning-rate"),
    ],
)
def test_refuses_what_does_not_apply(
    command: Command, tmp_path: Path, words: tuple[object, ...], says: str
) -> None:
    for other in (("run", "missing.csv"), ("train", "missing.csv", "--out", tmp_path / "m.npz")):
        status, _, said = command(*other, *words)
        assert status == 2
        assert says in said


def test_refuses_new_users_before_it_trains(command: Command, log: Path, tmp_path: Path) -> None:
    assert command("split", log, "--method", "users", "--out", tmp_path / "users")[0] == 0
    train = ("train", tmp_path / "users", "--patience", 2, "--out", tmp_path / "m.npz")
    for words in (("run", "missing.csv", "--method", "users"), train):
        status, _, said = command(*words, "--model", "bpr")
        assert status == 2
        assert "and --model bpr cannot fold them in; use als or a model of neighbors" in said


def test_evaluates_stops_early_and_keeps_the_best(
    command: Command, split: Path, tmp_path: Path
) -> None:
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
        (("log", "--patience", 2), "--patience needs --validation, or a folder"),
        (("split", "--model", "tfidf", "--patience", 2), "--patience is for models that are trai"),
        (("split", "--keep-best"), "--keep-best needs checkpoints; name their folder with"),
        (("split", "--validation", "split"), "has its own validation part; leave out --val"),
    ],
)
def test_refuses_evaluations_that_cannot_be(
    command: Command,
    log: Path,
    split: Path,
    tmp_path: Path,
    words: tuple[object, ...],
    says: str,
) -> None:
    places: dict[object, Any] = {"log": log, "split": split}
    given = [places.get(word, word) for word in words]
    status, _, said = command("train", *given, "--out", tmp_path / "m.npz")
    assert status == 2
    assert says in said
    assert not (tmp_path / "m.npz").exists()


@pytest.mark.parametrize("resume", [False, True])
def test_an_interrupted_training_says_where_its_checkpoints_are(
    split: Path, tmp_path: Path, resume: bool
) -> None:
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
