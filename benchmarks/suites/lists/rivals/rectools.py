"""RecTools: a frame of recommendations, and a frame of interactions."""

import numpy as np
import pandas as pd
from rectools import Columns
from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall, calc_metrics

NAMES = {"precision": Precision, "recall": Recall, "hit_rate": HitRate, "mrr": MRR, "map": MAP}
CUT_OFFS = (1, 3, 5, 10)
METRICS = {f"{name}@{k}": metric(k=k) for k in CUT_OFFS for name, metric in NAMES.items()}
# The default divides by the ideal of a full list, for any number of relevant items.
METRICS |= {f"ndcg@{k}": NDCG(k=k, divide_by_achievable=True) for k in CUT_OFFS}


def prepare(lists):
    length = lists.ids.shape[1]
    recommendations = pd.DataFrame(
        {
            Columns.User: np.repeat(lists.users, length),
            Columns.Item: lists.ids.ravel(),
            Columns.Rank: np.tile(np.arange(1, length + 1), len(lists.users)),
        }
    )
    entries = lists.validation.tocoo()
    interactions = pd.DataFrame({Columns.User: entries.row, Columns.Item: entries.col})

    def ndcg():
        return METRICS["ndcg@10"].calc_per_user(recommendations, interactions)

    def of_users(result):
        return {"ndcg@10": result.reindex(lists.users).to_numpy()}

    def means(result):
        return {name: np.array([mean]) for name, mean in result.items()}

    return {
        "ndcg@10": (ndcg, of_users),
        "ndcg@10, whole call": (ndcg, of_users),  # there are no objects to make first
        "several metrics": (lambda: calc_metrics(METRICS, recommendations, interactions), means),
    }
