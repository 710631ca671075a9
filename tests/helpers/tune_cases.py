"""A small search, and what the tests read of its files."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd

import sparse_eval as se
import sparse_eval.models.tune as tuning

N_USERS, N_ITEMS = 60, 30
METRICS = ["ndcg@10", "recall@5"]
PARAMETERS = ["factors", "alpha", "regularization", "iterations"]

GRID: dict[str, Any] = {
    "factors": [2, 6],
    "alpha": [1.0, 40.0],
    "regularization": 0.01,
    "iterations": 3,
}
FILES = ["model.npz", "per_user.csv", "search.json", "summary.json", "trials.csv"]


def three_parts(seed: int = 0) -> tuple[Any, Any]:
    """Return the split that holds the test part out, and the split of the rest."""
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=700, seed=3)
    whole = se.split.random(clicks, fraction=0.2, seed=seed)
    return whole, se.split.random(whole.train, fraction=0.3, seed=seed)


def search(
    parts: Any, metrics: Any = METRICS, tested: bool = True, **options: Any
) -> tuning.Tuning:
    whole, part = parts
    test = {"test": whole.validation} if tested else {}
    return se.tune(part.train, part.validation, metrics, **(GRID | test | options))


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "trials.csv").open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def same_search(first: tuning.Tuning, second: tuning.Tuning) -> bool:
    """Return True if two results are equal, apart from the durations; raise otherwise."""
    pd.testing.assert_frame_equal(
        first.trials.drop(columns="seconds"),
        second.trials.drop(columns="seconds"),
        check_exact=True,
    )
    assert first[1:] == second[1:]
    return True


def bits(model: Any) -> tuple[bytes, bytes]:
    return model.user_factors.tobytes(), model.item_factors.tobytes()


def curve(part: Any, parameters: dict[str, Any], metrics: Any = METRICS) -> list[dict[str, float]]:
    """Return the metrics after each number of iterations, each from a separate training."""
    return [
        se.evaluate_model(
            se.train_als(part.train, **(parameters | {"iterations": n})),
            part.train,
            part.validation,
            metrics,
        ).mean()
        for n in range(1, parameters["iterations"] + 1)
    ]
