"""implicit: a model's `recommend` for all users at once, and its own evaluation of a model.

Both are fastest with BLAS on one thread, because their own threads call it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from implicit.evaluation import ranking_metrics_at_k
from threadpoolctl import threadpool_limits

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.checkpoint.case import Checkpoint


def prepare(case: Checkpoint) -> AlternatingLeastSquares:
    """Return a model with these factors; the thread limit of BLAS is permanent."""
    threadpool_limits(1, user_api="blas")
    model = AlternatingLeastSquares(
        factors=case.item_factors.shape[1], num_threads=case.threads, random_state=0
    )
    model.user_factors, model.item_factors = case.user_factors, case.item_factors
    return model


def recommend(case: Checkpoint, model: AlternatingLeastSquares) -> np.ndarray:
    ids, _ = model.recommend(
        case.users, case.train[case.users], N=case.k, filter_already_liked_items=True
    )
    return ids


def lists(case: Checkpoint, model: AlternatingLeastSquares, result: np.ndarray) -> Values:
    return {"ids": result}


def metrics(case: Checkpoint, model: AlternatingLeastSquares) -> dict[str, float]:
    return ranking_metrics_at_k(
        model,
        case.train,
        case.validation,
        K=case.k,
        show_progress=False,
        num_threads=case.threads,
    )


def ndcg(case: Checkpoint, model: AlternatingLeastSquares, result: dict[str, float]) -> Values:
    return {"ndcg": np.array(result["ndcg"])}


TASKS = {"recommend": (recommend, lists), "ranking_metrics_at_k": (metrics, ndcg)}
