"""implicit: a model's `recommend` for all users at once, and its own evaluation of a model.

Both are fastest with BLAS on one thread, because their own threads call it.
"""

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from implicit.evaluation import ranking_metrics_at_k
from threadpoolctl import threadpool_limits


def prepare(case):
    """Make a model with these factors; the thread limit of BLAS is permanent."""
    threadpool_limits(1, user_api="blas")
    factors = case.item_factors.shape[1]
    model = AlternatingLeastSquares(factors=factors, num_threads=case.threads, random_state=0)
    model.user_factors, model.item_factors = case.user_factors, case.item_factors

    def recommend():
        seen = case.train[case.users]
        ids, _ = model.recommend(case.users, seen, N=case.k, filter_already_liked_items=True)
        return ids

    def metrics():
        options = {"show_progress": False, "num_threads": case.threads}
        return ranking_metrics_at_k(model, case.train, case.validation, K=case.k, **options)

    return {
        "recommend": (recommend, lambda ids: {"ids": ids}),
        "ranking_metrics_at_k": (metrics, lambda found: {"ndcg": np.array(found["ndcg"])}),
    }
