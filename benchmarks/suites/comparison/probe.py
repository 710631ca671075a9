"""Comparing and reporting five models of 50,000 users, timed within one process.

    python -P probe.py make FOLDER N_USERS N_ITEMS    writes five models' lists, and their data
    python -P probe.py all FOLDER                     compares and reports all metrics
    python -P probe.py several FOLDER                 compares the metrics that ranx has too

Each prints one JSON object.
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats  # noqa: F401 - imported before the clock runs, as matplotlib is
from scipy.sparse import load_npz, save_npz

import sparse_eval as se
import sparse_eval.report.style
from sparse_eval.metrics import REGISTRY

N_MODELS = 5
K = 20
SEVERAL = [
    f"{name}@{k}"
    for name in ("ndcg", "precision", "recall", "hit_rate", "mrr", "map")
    for k in (1, 3, 5, 10)
]


def make(folder: Path, n_users: str, n_items: str) -> dict[str, int]:
    folder.mkdir(parents=True, exist_ok=True)
    clicks = se.datasets.synthetic(n_users=int(n_users), n_items=int(n_items), seed=0)
    holdout = se.split.random(clicks, seed=0)
    save_npz(folder / "train.npz", holdout.train.csr)
    save_npz(folder / "validation.npz", holdout.validation.csr)
    users = np.flatnonzero(np.diff(holdout.validation.indptr))
    lists = {"users": users}
    for number in range(N_MODELS):
        model = se.train_als(holdout.train, factors=8 * (number + 1), iterations=3, seed=0)
        found = se.top_k(model, k=K, seen=holdout.train, users=holdout.users[users])
        lists[f"model{number}"] = found.ids
    np.savez(folder / "lists.npz", **lists)
    shape = {"n_users": len(users), "n_items": holdout.train.shape[1]}
    return {"n_models": N_MODELS, "k": K} | shape


def all_metrics() -> list[str]:
    """Return every metric that needs at most training data, at one cut-off or at three."""
    names = []
    for name, entry in REGISTRY.items():
        if not set(entry.needs) <= {"train"}:
            continue
        cutoffs = "@{5,10,20}" if entry.over == "statistics" else "@10"
        names.append(name + ("" if entry.cutoff == "none" else cutoffs))
    return [*names, "recall(average=micro)@10", "precision(average=micro)@10"]


class Models:
    """The lists of the five models, to be evaluated repeatedly, without cached results."""

    def __init__(self, folder: Path) -> None:
        self.train = load_npz(folder / "train.npz")
        self.validation = load_npz(folder / "validation.npz")
        with np.load(folder / "lists.npz", allow_pickle=False) as lists:
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


def compare_all(folder: Path) -> dict[str, Any]:
    models, metrics = Models(folder), all_metrics()
    models.evaluate(metrics)  # compiles
    seconds: dict[str, float] = {}
    n_differences = 0
    for test in ("t", "wilcoxon"):
        for correction in ("holm", "bh"):
            evaluations = models.evaluate(metrics)
            start = time.perf_counter()
            found = se.compare(evaluations, test=test, correction=correction)
            seconds[f"compare, {test}, {correction}"] = time.perf_counter() - start
            n_differences = len(found.table)
    evaluations = models.evaluate(metrics)
    start = time.perf_counter()
    se.compare(evaluations, metrics="ndcg@10", test="permutation")
    seconds["compare ndcg@10, permutation"] = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as place:
        page = Path(place, "report.html")
        evaluations = models.evaluate(metrics)
        start = time.perf_counter()
        se.write_report(evaluations, page)
        seconds["report"] = time.perf_counter() - start
        for name, ev in evaluations.items():
            ev.save(Path(place, name))
        start = time.perf_counter()
        saved = {name: se.Evaluation.load(Path(place, name)) for name in evaluations}
        se.write_report(saved, page)
        seconds["report of saved results"] = time.perf_counter() - start
        n_bytes = page.stat().st_size
    n_metrics = len(next(iter(evaluations.values())).names)
    return {
        "seconds": seconds,
        "n_metrics": n_metrics,
        "n_differences": n_differences,
        "page_bytes": n_bytes,
    }


def compare_several(folder: Path) -> dict[str, Any]:
    models = Models(folder)
    se.compare(models.evaluate(SEVERAL))  # compiles
    start = time.perf_counter()
    se.compare(models.evaluate(SEVERAL), correction="none")
    seconds = time.perf_counter() - start
    means = {name: ev.mean() for name, ev in models.evaluate(SEVERAL).items()}
    return {"seconds": seconds, "means": means}


JOBS = {"make": make, "all": compare_all, "several": compare_several}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
