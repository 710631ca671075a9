"""Comparing and reporting five models of 50,000 users."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.stats  # noqa: F401 - imported before the clock runs, as matplotlib is
from harness.split import make_split, read_split
from suites.lists.case import SEVERAL

import sparse_eval as se
import sparse_eval.report.style
from sparse_eval.metrics import REGISTRY

N_MODELS = 5
K = 20


def make(folder: str, n_users: int, n_items: int) -> dict[str, int]:
    """Write the lists of five models, and their data."""

    def rank(unfinished: Path, holdout: se.Holdout) -> None:
        users = np.flatnonzero(np.diff(holdout.validation.indptr))
        lists = {"users": users}
        for number in range(N_MODELS):
            model = se.train_als(holdout.train, factors=8 * (number + 1), iterations=3, seed=0)
            found = se.top_k(model, k=K, seen=holdout.train, users=holdout.users[users])
            lists[f"model{number}"] = found.ids
        np.savez(unfinished / "lists.npz", **lists)

    make_split(Path(folder), n_users, n_items, rank)
    _, validation = read_split(Path(folder))
    users = np.count_nonzero(np.diff(validation.indptr))
    return {"n_models": N_MODELS, "k": K, "n_users": users, "n_items": validation.shape[1]}


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


def compare_all(folder: str) -> dict[str, Any]:
    """Time each comparison and report, with new evaluations."""
    models, metrics = Models(folder), all_metrics()
    models.evaluate(metrics)  # compiles
    seconds: dict[str, float] = {}

    def timed(title: str, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        evaluations = models.evaluate(metrics)
        start = time.perf_counter()
        found = call(evaluations, *arguments, **options)
        seconds[title] = time.perf_counter() - start
        return found

    for test in ("t", "wilcoxon"):
        found = timed(f"compare, {test}, holm", se.compare, test=test)
    timed("compare ndcg@10, permutation", se.compare, metrics="ndcg@10", test="permutation")
    with tempfile.TemporaryDirectory() as place:
        page = Path(place, "report.html")
        timed("report", se.write_report, page)
        evaluations = models.evaluate(metrics)
        for name, ev in evaluations.items():
            ev.save(Path(place, name))

        def load_and_report(_: Any) -> None:
            saved = {name: se.Evaluation.load(Path(place, name)) for name in evaluations}
            se.write_report(saved, page)

        timed("report of saved results", load_and_report)
        n_bytes = page.stat().st_size
    return {
        "seconds": seconds,
        "n_metrics": len(next(iter(evaluations.values())).names),
        "n_differences": len(found.table),
        "page_bytes": n_bytes,
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
