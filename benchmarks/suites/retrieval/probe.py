"""Measure the cost of ranking while a model is trained, and of a million users and items."""

import time
from pathlib import Path
from typing import Any

import numpy as np
from harness.peak import peak_above_start
from harness.split import make_split, read_split
from implicit.cpu.als import AlternatingLeastSquares
from implicit.evaluation import ranking_metrics_at_k
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

import sparse_eval as se

from . import inputs
from .inputs import FACTORS, SEED

METRIC = "ndcg@10"
K = 10
ITERATIONS = 15


def make(folder: str, n_users: int, n_items: int) -> dict[str, int]:
    return make_split(Path(folder), n_users, n_items) | {"n_factors": FACTORS}


def draw(folder: str, n_users: int, n_items: int) -> dict[str, Any]:
    return inputs.draw(Path(folder), n_users, n_items)


def train(folder: str, evaluator: str) -> dict[str, Any]:
    """Train once, with an evaluation by one of `EVALUATORS` after every iteration, or without."""
    seen, held_out = read_split(Path(folder))
    evaluate = EVALUATORS[evaluator]
    relevance = se.Relevance.from_csr(held_out)
    values: list[float] = []
    seconds: list[float] = []

    def callback(iteration: int, elapsed: float, loss: float | None) -> None:
        start = time.perf_counter()
        values.append(evaluate(model, seen, relevance, held_out))
        seconds.append(time.perf_counter() - start)

    start = time.perf_counter()
    with threadpool_limits(1, user_api="blas"):  # as implicit recommends
        model = AlternatingLeastSquares(
            factors=FACTORS,
            regularization=0.1,
            alpha=40.0,
            iterations=ITERATIONS,
            random_state=SEED,
        )
        model.fit(seen, show_progress=False, callback=callback if evaluate else None)
    total = time.perf_counter() - start
    found = {"seconds": total, "evaluation_seconds": seconds}
    return found | {"values": {METRIC: values} if evaluate else {}}


def by_sparse_eval(model: Any, seen: csr_matrix, relevance: se.Relevance, _: csr_matrix) -> float:
    return se.evaluate_model(model, seen, relevance, [METRIC], progress=False)[METRIC]


def by_implicit(model: Any, seen: csr_matrix, _: se.Relevance, held_out: csr_matrix) -> float:
    found = ranking_metrics_at_k(model, seen, held_out, K=K, show_progress=False, num_threads=0)
    return found["ndcg"]


EVALUATORS = {
    "nobody": None,
    "evaluate_model": by_sparse_eval,
    "ranking_metrics_at_k": by_implicit,
}


def rank(folder: str) -> dict[str, Any]:
    """Find the rank of one held-out item of every user, if it is among the first k."""
    parts = {path.stem: np.load(path, allow_pickle=False) for path in Path(folder).glob("*.npy")}
    users, items = parts["users"], parts["items"]
    shape = (len(users), len(items))
    indices, indptr = parts["seen_indices"], parts["seen_indptr"]
    seen = csr_matrix((np.ones(len(indices), np.int8), indices, indptr), shape)
    indptr = np.arange(len(users) + 1)
    held_out = csr_matrix((np.ones(len(users), np.int8), parts["held_out"], indptr), shape)

    few = slice(1000)  # the first call loads kernels
    se.ranks((users[few], items), held_out[few], k=K, train=seen[few], progress=False)
    start = time.perf_counter()
    with peak_above_start() as peak:
        found = se.ranks((users, items), held_out, k=K, train=seen, progress=False)
    return {
        "seconds": time.perf_counter() - start,
        "bytes": peak[0],
        "n_seen": seen.nnz,
        "hit_rate": len(found.items) / len(users),
    }
