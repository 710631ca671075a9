"""TorchMetrics: one row for each score of a user and item."""

from functools import lru_cache

import torch
from torchmetrics import retrieval

#: The metric, and whether it has the cut-off.
METRICS = {
    "ndcg": (retrieval.RetrievalNormalizedDCG, False),
    "ndcg@k": (retrieval.RetrievalNormalizedDCG, True),
    "precision@k": (retrieval.RetrievalPrecision, True),
    "recall@k": (retrieval.RetrievalRecall, True),
    "hit_rate@k": (retrieval.RetrievalHitRate, True),
    "mrr@k": (retrieval.RetrievalMRR, True),
    "map": (retrieval.RetrievalMAP, False),
    "map@k": (retrieval.RetrievalMAP, True),
    "r_precision": (retrieval.RetrievalRPrecision, False),
    "auc": (retrieval.RetrievalAUROC, False),
}


@lru_cache(maxsize=1)
def tensors(case):
    """Return (scores, gains, rows of users), user by user."""
    gains = [row.get(item, 0) for row in case.stored for item in range(case.n_items)]
    users = torch.arange(len(case.lists)).repeat_interleave(case.n_items)
    # For AUROC, scores outside 0 to 1 pass through a sigmoid, which makes high scores equal.
    scores = torch.tensor(case.scores).flatten() / 1024
    return scores, torch.tensor(gains), users


def values(theirs, case):
    metric, cut = theirs
    scores, gains, users = tensors(case)
    if metric is not retrieval.RetrievalNormalizedDCG:
        gains = (gains > 0).long()
    options = {"top_k": case.k} if cut else {}
    found = metric(aggregation=lambda values, dim=None: values, **options)
    return found(scores, gains, indexes=users).tolist()
