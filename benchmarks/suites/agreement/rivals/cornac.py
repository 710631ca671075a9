"""cornac: its metrics, called with a user's ranking as by its ranking_eval."""

import numpy as np
from cornac import metrics

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
