"""Candidates, and models that are item-item matrices, on the command line."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from commands import Command
from scipy import sparse

import sparse_eval as se

METRICS = ["recall@5", "ndcg@5", "auc"]


@pytest.mark.filterwarnings("ignore:.*relevant items are not candidates")
def test_models_are_scored_among_candidates(command: Command, tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=60, n_items=50, n_interactions=700, seed=0)
    holdout = se.split.random(clicks, seed=0)
    holdout.save(tmp_path / "split")
    rng = np.random.default_rng(0)
    rows = [(user, item) for user in holdout.users for item in rng.choice(holdout.items, 20)]
    candidates = pd.DataFrame(rows, columns=["user", "item"]).drop_duplicates()
    candidates.to_csv(tmp_path / "candidates.csv", index=False)
    models = [tmp_path / name for name in ("factors.npz", "dense.npy", "sparse.npz")]
    np.savez(models[0], user_factors=rng.random((60, 3)), item_factors=rng.random((50, 3)))
    weights = np.where(rng.random((50, 50)) < 0.3, rng.normal(size=(50, 50)), 0)
    np.save(models[1], weights)
    sparse.save_npz(models[2], sparse.csr_matrix(weights))
    data = (
        "--split", tmp_path / "split", "-m", ",".join(METRICS),
        "--candidates", tmp_path / "candidates.csv",
    )  # fmt: skip
    words = ("score", *models, *data, "--out", tmp_path / "out")
    status, printed, said = command(*words, "--format", "csv")
    assert status == 0, said
    rows = list(csv.DictReader(printed.splitlines()))
    for row, path in zip(rows, models, strict=True):
        ev = se.evaluate_model(path, holdout, METRICS, candidates=candidates)
        for name, value in ev.mean().items():
            assert float(row[f"{name} (candidates)"]) == value
    status, _, said = command(*words[:-4], "--out", tmp_path / "out")
    assert status == 2
    assert "(now None)" in said
    assert command("score", models[1], *data, "--out", tmp_path / "one")[0] == 0
    saved = se.Evaluation.load(tmp_path / "one")
    expected = se.evaluate_model(models[1], holdout, METRICS, candidates=candidates, baselines=True)
    assert saved.mean() == expected.mean()
    assert saved.baselines["popularity"].mean() == expected.baselines["popularity"].mean()
    assert saved.about["checkpoint"]["file"] == str(models[1])
