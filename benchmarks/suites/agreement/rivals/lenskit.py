"""LensKit: a run analysis over item lists. A user without a list has an empty one in the run."""

from functools import lru_cache

import numpy as np
from lenskit import metrics
from lenskit.data import ItemList, ItemListCollection
from lenskit.metrics.ranking import DCG, AveragePrecision, ListGini

CONVENTION = "lenskit"
NEEDS = {
    "map@k": {"all_relevant": "divides by zero for a user without relevant items"},
    "gini@k": {"all_lists": "fails on an empty list"},
}
NOT_COMPARED = {"popularity@k": "a mean of popularity ranks"}
METRICS = {
    "dcg(gain=binary)@k": lambda k: DCG(k),
    "dcg(gain=linear)@k": lambda k: DCG(k, gain="rating"),
    "ndcg(gain=binary)@k": lambda k: metrics.NDCG(k),
    "ndcg(gain=linear)@k": lambda k: metrics.NDCG(k, gain="rating"),
    "precision@k": lambda k: metrics.Precision(k),
    "recall@k": lambda k: metrics.Recall(k),
    "hit_rate@k": lambda k: metrics.Hit(k),
    "mrr@k": lambda k: metrics.RecipRank(k),
    "map@k": lambda k: AveragePrecision(k),
    "rbp(p=0.85)@k": lambda k: metrics.RBP(k),
    "rbp(p=0.6)@k": lambda k: metrics.RBP(k, patience=0.6),
}


@lru_cache(maxsize=1)
def collections(case):
    """Return (the run, the truth)."""
    run = {
        user: ItemList(item_ids=np.array(items, np.int64), ordered=True)
        for user, items in enumerate(case.lists)
    }
    true = {
        user: ItemList(
            item_ids=np.array(list(row), np.int64), rating=np.array(list(row.values()), float)
        )
        for user, row in enumerate(case.pairs)
    }
    return tuple(ItemListCollection.from_dict(each, "user_id") for each in (run, true))


def values(make, case):
    found = metrics.RunAnalysis(make(case.k)).measure(*collections(case))
    ((_, column),) = found.list_metrics().items()
    return column.tolist()


def gini(case):
    analysis = metrics.RunAnalysis(ListGini(case.k, items=case.n_items))
    return float(analysis.measure(*collections(case)).global_metrics().iloc[0])


FUNCTIONS = {"gini@k": gini}
