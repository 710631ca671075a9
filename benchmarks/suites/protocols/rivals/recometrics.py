"""recometrics: every user's metrics from factors and biases of items, with all items ranked."""

import numpy as np
from recometrics import calc_reco_metrics

PROTOCOL = "biases"
SUBJECT = "factors with biases of items"
NAMES = {
    "precision@k": "P@K",
    "recall(denominator=min)@k": "TP@K",
    "recall@k": "R@K",
    "map@k": "AP@K",
    "map(normalizer=min)@k": "TAP@K",
    "ndcg@k": "NDCG@K",
    "hit_rate@k": "Hit@K",
    "mrr@k": "RR@K",
    "auc": "ROC_AUC",
    "map": "PR_AUC",
}


def answer(problem):
    found = calc_reco_metrics(
        problem.train,
        problem.validation,
        problem.user_factors.astype(np.float64),  # otherwise, it computes in single precision
        problem.item_factors.astype(np.float64),
        k=problem.k,
        item_biases=problem.item_biases.astype(np.float64),
        as_df=False,
        all_metrics=True,
        break_ties_with_noise=False,
        nthreads=1,
    )
    return {"values": {ours: values(found[theirs]) for ours, theirs in NAMES.items()}}


def values(found):
    """Return the values of users; users without a relevant item have NaN."""
    return [None if np.isnan(value) else value for value in found.tolist()]
