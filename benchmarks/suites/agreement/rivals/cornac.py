"""cornac: its metrics, called with a user's ranking as by its ranking_eval."""

import numpy as np
from cornac import metrics

CONVENTION = "cornac"
_ALL_SCORED = {
    "has_scores": "it ranks all items by their scores",
    "untied": "an irrelevant item with the score of a relevant one is above it",
}
NEEDS = {
    "auc": _ALL_SCORED | {"some_irrelevant": ""},
    "map": _ALL_SCORED,
    "mrr": {"has_scores": "it ranks all items by their scores"},
}
NOT_COMPARED = {"arhr@k": "its NCRR is divided by that of the ideal list"}
METRICS = {
    "ndcg@k": metrics.NDCG,
    "precision@k": metrics.Precision,
    "recall@k": metrics.Recall,
    "f1@k": metrics.FMeasure,
    "hit_rate@k": metrics.HitRatio,
    "auc": lambda _: metrics.AUC(),
    "map": lambda _: metrics.MAP(),
    "mrr": lambda _: metrics.MRR(),
}


def values(make, case):
    return [
        float(make(case.k).compute(**ranking(case, user))) if case.relevant[user] else None
        for user in case.users
    ]


def ranking(case, user):
    return {
        "gt_pos": np.array(sorted(case.relevant[user])),
        "pd_rank": np.array(case.lists[user], int),
        "pd_scores": None if case.scores is None else np.array(case.scores[user], float),
        "item_indices": np.arange(case.n_items),
    }
