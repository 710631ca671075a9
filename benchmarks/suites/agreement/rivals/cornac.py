"""cornac: its metrics, called with a user's ranking as by its ranking_eval."""

from functools import partial

import numpy as np
from cornac.metrics import AUC, MAP, MRR, NDCG, FMeasure, HitRatio, Precision, Recall

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
CUT = {
    "ndcg@k": NDCG,
    "precision@k": Precision,
    "recall@k": Recall,
    "f1@k": FMeasure,
    "hit_rate@k": HitRatio,
}
UNCUT = {"auc": AUC, "map": MAP, "mrr": MRR}


def per_user(make, case):
    return [
        float(make(case).compute(**ranking(case, user))) if case.relevant[user] else None
        for user in case.users
    ]


def ranking(case, user):
    items = np.arange(case.n_items)
    return {
        "gt_pos": np.array(sorted(case.relevant[user])),
        "pd_rank": np.array(case.lists[user], int),
        "pd_scores": None if case.scores is None else np.array(case.scores[user], float),
        "item_indices": items,
    }


def cut(metric, case):
    return metric(k=case.k)


def uncut(metric, case):
    return metric()


METRICS = {name: partial(per_user, partial(cut, metric)) for name, metric in CUT.items()} | {
    name: partial(per_user, partial(uncut, metric)) for name, metric in UNCUT.items()
}
