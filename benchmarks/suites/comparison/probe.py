"""Compare five models of 50,000 users."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from harness.split import make_split, read_split
from suites.lists.case import SEVERAL

import sparse_eval as se

N_MODELS = 5
K = 20


def make(folder: str, n_users: int, n_items: int) -> dict[str, int]:
    """Write the lists of five models, and their data."""

    def rank(unfinished: Path, holdout: se.Holdout) -> None:
        users = np.flatnonzero(np.diff(holdout.validation.indptr))
        lists = {"users": users}
        for number in range(N_MODELS):
            model = se.train_als(holdout.train, factors=8 * (number + 1), iterations=3, seed=0)
            found = se.top_k(model, k=K, train=holdout.train, users=holdout.users[users])
            lists[f"model{number}"] = found.ids
        np.savez(unfinished / "lists.npz", **lists)

    make_split(Path(folder), n_users, n_items, rank)
    _, validation = read_split(Path(folder))
    users = np.count_nonzero(np.diff(validation.indptr))
    return {"n_models": N_MODELS, "k": K, "n_users": users, "n_items": validation.shape[1]}


class Models:
    """The lists of the five models, to be evaluated repeatedly, without cached results."""

    def __init__(self, folder: str) -> None:
        self.train, self.validation = read_split(Path(folder))
        with np.load(Path(folder, "lists.npz"), allow_pickle=False) as lists:
            users = lists["users"]
            self.rankings = {
                name: se.Rankings.from_topk(
                    lists[name], user_rows=users, shape=self.validation.shape
                )
                for name in lists.files
                if name != "users"
            }

    def evaluate(self, metrics: list[str]) -> dict[str, se.Evaluation]:
        return {
            name: se.evaluate(rankings, self.validation, metrics, train=self.train)
            for name, rankings in self.rankings.items()
        }


def compare_several(folder: str) -> dict[str, Any]:
    """Time the metrics that ranx has too."""
    models = Models(folder)
    se.compare(models.evaluate(SEVERAL))  # compiles
    start = time.perf_counter()
    se.compare(models.evaluate(SEVERAL), correction="none")
    seconds = time.perf_counter() - start
    means = {name: ev.mean() for name, ev in models.evaluate(SEVERAL).items()}
    return {"seconds": seconds, "values": means}
