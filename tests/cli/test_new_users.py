"""Splits by users and repeat consumption on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Command

import sparse_eval as se


@pytest.fixture
def clicks(tmp_path: Path) -> Path:
    frame = se.datasets.synthetic(n_users=80, n_items=60, n_interactions=900, seed=0).to_frame()
    frame["item"] = frame["item"].str[:2]  # so that users come back to items
    frame.to_csv(tmp_path / "clicks.csv", index=False)
    return tmp_path / "clicks.csv"


def test_users_are_split_trained_and_scored(command: Command, clicks: Path, tmp_path: Path) -> None:
    split, model = tmp_path / "split", tmp_path / "als.npz"
    options = ("--method", "users", "--fold-in", "0.5", "--order", "time", "--seed", "1")
    status, _, said = command("split", clicks, *options, "--out", split)
    assert status == 0
    assert "fold_in.npz" in said
    assert "16 users not in train" in said
    assert command("train", split, "--out", model, "--iterations", "2")[0] == 0
    score = ("--split", split, "-m", "recall@3", "--format", "json")
    status, printed, _ = command("score", model, *score)
    assert status == 0
    holdout = se.Holdout.load(split)
    expected = se.evaluate_model(model, holdout, "recall@3")["recall@3"]
    assert json.loads(printed)[0]["metrics"]["recall@3"]["mean"] == expected
    user = holdout.users[(holdout.fold_in.csr.getnnz(axis=1) > 0).argmax()]
    status, printed, _ = command(
        "recommend", model, split, "-k", "2", "--users", user, "--format", "json"
    )
    assert status == 0
    recs = se.recommend(model, holdout, 2, users=[user])
    assert [row["item"] for row in json.loads(printed)] == recs["item"].tolist()
