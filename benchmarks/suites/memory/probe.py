"""Measure the memory for scoring every user against every item."""

from pathlib import Path
from typing import Any

from harness.peak import peak_above_start
from harness.split import make_split, read_split

import sparse_eval as se

METRIC = "ndcg@10"


def make(folder: str, n_users: int, n_items: int) -> dict[str, int]:
    """Write a trained model and its data. This takes more memory than scoring them."""

    def train(unfinished: Path, holdout: se.Holdout) -> None:
        se.train_als(holdout.train, factors=64, iterations=3, seed=0).save(unfinished / "model.npz")

    return make_split(Path(folder), n_users, n_items, train)


def score(folder: str) -> dict[str, Any]:
    evaluate_model = se.evaluate_model  # imports are not part of scoring
    data = read_split(Path(folder))
    with peak_above_start() as peak:
        evaluation = evaluate_model(Path(folder, "model.npz"), *data, [METRIC])
    return {"bytes": peak[0], "values": evaluation.mean()}
