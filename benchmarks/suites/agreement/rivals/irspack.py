"""irspack: two frames that are already cut off; and an evaluator of score matrices."""

import math
from functools import lru_cache

import numpy as np
from irspack.evaluation import Evaluator
from irspack.evaluation.evaluate_df_to_df import evaluate_recommendation_df


@lru_cache(maxsize=1)
def of_frames(case):
    """Return means over frames; users without a list or a relevant item are in only one frame."""
    frames = (case.frame(rows, "user", "item") for rows in (case.first_k, case.pairs))
    return evaluate_recommendation_df(*frames, "user", "item", n_threads=1)


@lru_cache(maxsize=1)
def of_scores(case):
    scores = np.full(case.shape, -math.inf)
    for user, listed in enumerate(case.lists):
        scores[user, listed] = -np.arange(len(listed), dtype=float)
    truth = case.matrix(case.pairs)
    evaluator = Evaluator(truth, cutoff=case.k, recall_with_cutoff=True, n_threads=1)
    return evaluator.get_score_from_score_matrix(scores)


METRICS = {
    "ndcg@k": (of_frames, "ndcg"),
    "precision@k": (of_frames, "precision"),
    "recall@k": (of_frames, "recall"),
    "recall(denominator=min)@k": (of_scores, "recall"),
    "hit_rate@k": (of_frames, "hit"),
    "map@k": (of_frames, "map"),
    "coverage@k": (of_scores, "catalog_coverage"),
    "gini@k": (of_scores, "gini_index"),
    "entropy@k": (of_scores, "entropy"),
}


def values(theirs, case):
    evaluate, name = theirs
    return evaluate(case)[name]
