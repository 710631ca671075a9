"""LensKit: a run analysis over item lists. A user without a list has an empty one in the run."""

from functools import lru_cache

import numpy as np
from lenskit import metrics
from lenskit.data import ItemList, ItemListCollection
from lenskit.metrics.ranking import DCG, AveragePrecision, ListGini

#: The metric, and its options.
METRICS = {
    "dcg(gain=binary)@k": (DCG, {}),
    "dcg(gain=linear)@k": (DCG, {"gain": "rating"}),
    "ndcg(gain=binary)@k": (metrics.NDCG, {}),
    "ndcg(gain=linear)@k": (metrics.NDCG, {"gain": "rating"}),
    "precision@k": (metrics.Precision, {}),
    "recall@k": (metrics.Recall, {}),
    "hit_rate@k": (metrics.Hit, {}),
    "mrr@k": (metrics.RecipRank, {}),
    "map@k": (AveragePrecision, {}),
    "rbp(p=0.85)@k": (metrics.RBP, {}),
    "rbp(p=0.6)@k": (metrics.RBP, {"patience": 0.6}),
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


def values(theirs, case):
    metric, options = theirs
    found = metrics.RunAnalysis(metric(case.k, **options)).measure(*collections(case))
    ((_, column),) = found.list_metrics().items()
    return column.tolist()


def gini(case):
    analysis = metrics.RunAnalysis(ListGini(case.k, items=case.n_items))
    return float(analysis.measure(*collections(case)).global_metrics().iloc[0])


FUNCTIONS = {"gini@k": gini}
