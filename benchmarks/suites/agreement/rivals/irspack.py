"""irspack: two frames that are already cut off; and an evaluator of score matrices."""

import math
from functools import lru_cache, partial

import numpy as np
import pandas as pd
from irspack.evaluation import Evaluator
from irspack.evaluation.evaluate_df_to_df import evaluate_recommendation_df
from scipy.sparse import csr_matrix

CONVENTION = "irspack"
_FULL = {"full_lists": "scores are given to whole lists only"}
NEEDS = {
    "recall(denominator=min)@k": _FULL,
    "coverage@k": _FULL,
    "gini@k": _FULL,
    "entropy@k": _FULL,
}
NOT_COMPARED = {}


@lru_cache(maxsize=1)
def of_frames(case):
    """Return means over frames; users without a list or a relevant item are in only one frame."""
    listed = [(user, item) for user in case.users for item in case.lists[user][: case.k]]
    relevant = [(user, item) for user in case.users for item in case.pairs[user]]
    frames = (pd.DataFrame(rows, columns=["user", "item"]) for rows in (listed, relevant))
    return evaluate_recommendation_df(*frames, "user", "item", n_threads=1)


@lru_cache(maxsize=1)
def of_scores(case):
    relevant = [(user, *pair) for user in case.users for pair in case.pairs[user].items()]
    users, items, gains = zip(*relevant, strict=True)
    truth = csr_matrix((np.array(gains, float), (users, items)), (len(case.lists), case.n_items))
    scores = np.full(truth.shape, -math.inf)
    for user, listed in enumerate(case.lists):
        scores[user, listed] = -np.arange(len(listed), dtype=float)
    evaluator = Evaluator(truth, cutoff=case.k, recall_with_cutoff=True, n_threads=1)
    return evaluator.get_score_from_score_matrix(scores)


def mean(found, name, case):
    return found(case)[name]


METRICS = {
    "ndcg@k": partial(mean, of_frames, "ndcg"),
    "precision@k": partial(mean, of_frames, "precision"),
    "recall@k": partial(mean, of_frames, "recall"),
    "recall(denominator=min)@k": partial(mean, of_scores, "recall"),
    "hit_rate@k": partial(mean, of_frames, "hit"),
    "map@k": partial(mean, of_frames, "map"),
    "coverage@k": partial(mean, of_scores, "catalog_coverage"),
    "gini@k": partial(mean, of_scores, "gini_index"),
    "entropy@k": partial(mean, of_scores, "entropy"),
}
