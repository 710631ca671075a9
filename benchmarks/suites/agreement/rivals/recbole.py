"""RecBole: its collector, with a score for every item, and its evaluator, which returns means."""

import logging
from collections import Counter
from functools import lru_cache

import numpy as np
import torch
from recbole.data.interaction import Interaction
from recbole.evaluator import Collector, Evaluator

METRICS = {
    "ndcg@k": "NDCG",
    "precision@k": "Precision",
    "recall@k": "Recall",
    "hit_rate@k": "Hit",
    "mrr@k": "MRR",
    "map@k": "MAP",
    "popularity@k": "AveragePopularity",
    "aplt@k": "TailPercentage",
}
OF_TRAIN = ("popularity@k", "aplt@k")

logging.disable()
for name, kind in {"float": float, "bool": bool, "int": int}.items():
    setattr(np, name, kind)  # removed from NumPy; its Config does the same


@lru_cache(maxsize=1)
def means(case):
    config = {
        "metrics": [
            theirs for ours, theirs in METRICS.items() if case.has_train or ours not in OF_TRAIN
        ],
        "topk": [case.k],
        "eval_args": {"mode": {"valid": "full", "test": "full"}},
        "device": torch.device("cpu"),
        "metric_decimal_place": 15,
        "tail_ratio": None,
        "ITEM_ID_FIELD": "item_id",
        "USER_ID_FIELD": "user_id",
    }
    collector = Collector(config)
    # It leaves out users without relevant items. The first item is padding.
    users = [user for user in case.users if case.pairs[user]]
    scores = torch.full((len(users), case.n_items + 1), -torch.inf)
    for row, user in enumerate(users):
        items = torch.tensor(case.lists[user]) + 1
        scores[row, items] = -torch.arange(len(items), dtype=torch.float32)
    positive = [(row, item + 1) for row, user in enumerate(users) for item in case.pairs[user]]
    rows, items = torch.tensor(positive).T
    collector.eval_batch_collect(scores, Interaction({}), rows, items)
    collected = collector.get_data_struct()
    counts = Counter(item + 1 for row in case.train for item in row)
    collected.set("data.count_items", counts)  # set at the end, because it fails to collect it
    return Evaluator(config).evaluate(collected)


def values(name, case):
    return float(means(case)[f"{name.lower()}@{case.k}"])
