"""Candidates, and models that are item-item matrices, on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import Command
from scipy import sparse

import sparse_eval as se

pytestmark = pytest.mark.filterwarnings("ignore:.*relevant items are no candidates")

METRICS = ["recall@5", "ndcg@5", "auc"]


@pytest.fixture
def holdout(tmp_path: Path) -> se.Holdout:
    clicks = se.datasets.synthetic(n_users=60, n_items=50, n_interactions=700, seed=0)
    clicks.to_frame().to_csv(tmp_path / "clicks.csv", index=False)
    holdout = se.split.random(clicks, seed=0)
    holdout.save(tmp_path / "split")
    return holdout


@pytest.fixture
def candidates(holdout: se.Holdout, tmp_path: Path) -> pd.DataFrame:
    """Write 20 candidates of each user, and return them."""
    rng = np.random.default_rng(0)
    rows = [(user, item) for user in holdout.users for item in rng.choice(holdout.items, 20)]
    frame = pd.DataFrame(rows, columns=["user", "item"]).drop_duplicates()
    frame.to_csv(tmp_path / "candidates.csv", index=False)
    return frame


@pytest.fixture
def models(tmp_path: Path) -> dict[str, Path]:
    """Write a pair of factors, and an item-item matrix, dense and sparse."""
    rng = np.random.default_rng(1)
    paths = {name: tmp_path / name for name in ("factors.npz", "dense.npy", "sparse.npz")}
    np.savez(
        paths["factors.npz"],
        user_factors=rng.normal(size=(60, 3)).astype(np.float32),
        item_factors=rng.normal(size=(50, 3)).astype(np.float32),
    )
    weights = np.where(rng.random((50, 50)) < 0.3, rng.normal(size=(50, 50)), 0)
    np.save(paths["dense.npy"], weights)
    sparse.save_npz(paths["sparse.npz"], sparse.csr_matrix(weights))
    return paths


def test_one_model_is_scored(
    command: Command, tmp_path: Path, holdout: se.Holdout, candidates: pd.DataFrame,
    models: dict[str, Path],
) -> None:  # fmt: skip
    data = ("--split", tmp_path / "split", "-m", ",".join(METRICS), "--no-progress")
    among = ("--candidates", tmp_path / "candidates.csv")
    for path in models.values():
        for words, options in (((), {}), (among, {"candidates": candidates})):
            status, printed, said = command("score", path, *data, *words, "--format", "json")
            assert status == 0, said
            result = json.loads(printed)
            ev = se.evaluate_model(path, holdout, METRICS, **options, baselines=True)
            means = {name: row["mean"] for name, row in result["metrics"].items()}
            assert means == ev.mean()
            popular = {name: row["popularity"] for name, row in result["metrics"].items()}
            assert popular == ev.baselines["popularity"].mean()
    status, printed, _ = command("score", models["dense.npy"], *data, *among)
    assert status == 0
    assert "auc (candidates)" in printed
    saved = tmp_path / "saved"
    assert command("score", models["dense.npy"], *data, *among, "--out", saved)[0] == 0
    again = se.Evaluation.load(saved)
    assert again.mean() == ev.mean()
    assert again.about["checkpoint"]["file"] == str(models["dense.npy"])


def test_several_models_are_scored(
    command: Command, tmp_path: Path, holdout: se.Holdout, candidates: pd.DataFrame,
    models: dict[str, Path],
) -> None:  # fmt: skip
    words = (
        "score", *models.values(), "--split", tmp_path / "split", "-m", ",".join(METRICS),
        "--candidates", tmp_path / "candidates.csv", "--no-progress",
    )  # fmt: skip
    status, printed, said = command(*words, "--format", "csv", "--out", tmp_path / "out")
    assert status == 0, said
    rows = list(csv.DictReader(printed.splitlines()))
    for row, path in zip(rows, models.values(), strict=True):
        ev = se.evaluate_model(path, holdout, METRICS, candidates=candidates)
        for name, value in ev.mean().items():
            assert float(row[f"{name} (candidates)"]) == value
    status, printed, _ = command(*words)
    assert status == 0
    assert "recall@5 (candidates)" in printed
    status, _, said = command(*words[:-3], "--out", tmp_path / "out")
    assert status == 2
    assert "(here none)" in said


def test_hyperparameters_are_searched(
    command: Command, tmp_path: Path, candidates: pd.DataFrame
) -> None:
    words = (
        "tune", tmp_path / "clicks.csv", "--factors", "2,3", "--iterations", "1", "-m", "ndcg@5",
        "--out", tmp_path / "out", "--candidates", tmp_path / "candidates.csv", "--no-progress",
    )  # fmt: skip
    status, printed, said = command(*words)
    assert status == 0, said
    assert printed.count("ndcg@5 (candidates)") == 2
    clicks = se.datasets.load_csv(tmp_path / "clicks.csv")
    whole = se.split.random(clicks, seed=0)
    part = se.split.random(whole.train, seed=0)
    result = se.tune(
        part.train, part.validation, "ndcg@5", space={"factors": [2, 3], "iterations": 1},
        test=whole.validation, candidates=candidates,
    )  # fmt: skip
    again = json.loads(command(*words, "--format", "json")[1])
    column = "ndcg@5 (candidates)"
    assert [row[column] for row in again["trials"]] == result.trials[column].tolist()
    assert result.test is not None
    assert again["test"] == result.test.to_dict()
    status, _, said = command(*words[:-3], "--no-progress")
    assert status == 2
    assert "is of another search: candidates" in said
