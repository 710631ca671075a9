"""TorchMetrics: one row for each score of a user and item."""

from functools import lru_cache, partial

import torch
from torchmetrics.retrieval import (
    RetrievalAUROC,
    RetrievalHitRate,
    RetrievalMAP,
    RetrievalMRR,
    RetrievalNormalizedDCG,
    RetrievalPrecision,
    RetrievalRecall,
    RetrievalRPrecision,
)

CONVENTION = "torchmetrics"
TIES = "average"
TOLERANCE = 1e-6
IMPRECISE = "computes in single precision, whatever the precision of its input"
_UNTIED = {"untied": "the order of equal scores is the sorting routine's"}
NEEDS = {
    "*": {"has_scores": "takes a score for every item"},
    "precision@k": _UNTIED,
    "recall@k": _UNTIED,
    "hit_rate@k": _UNTIED,
    "mrr@k": _UNTIED,
    "map@k": _UNTIED,
    "map": _UNTIED,
    "r_precision": _UNTIED,
    "auc": {"untied": "ours has no expectation over equal scores"},
}
NOT_COMPARED = {"auc@k": "its cut-off leaves out all that is behind it"}


@lru_cache(maxsize=1)
def tensors(case):
    """Return (scores, gains, rows of users), user by user."""
    gains = [row.get(item, 0) for row in case.stored for item in range(case.n_items)]
    users = torch.arange(len(case.lists)).repeat_interleave(case.n_items)
    # For AUROC, scores outside 0 to 1 pass through a sigmoid, which makes high scores equal.
    scores = torch.tensor(case.scores).flatten() / 1024
    return scores, torch.tensor(gains), users


def per_user(metric, case, *, graded=False, **options):
    scores, gains, users = tensors(case)
    found = metric(aggregation=lambda values, dim=None: values, **options)
    return found(scores, gains if graded else (gains > 0).long(), indexes=users).tolist()


def cut_off(metric, case, **options):
    return per_user(metric, case, top_k=case.k, **options)


METRICS = {
    "ndcg": partial(per_user, RetrievalNormalizedDCG, graded=True),
    "ndcg@k": partial(cut_off, RetrievalNormalizedDCG, graded=True),
    "precision@k": partial(cut_off, RetrievalPrecision),
    "recall@k": partial(cut_off, RetrievalRecall),
    "hit_rate@k": partial(cut_off, RetrievalHitRate),
    "mrr@k": partial(cut_off, RetrievalMRR),
    "map": partial(per_user, RetrievalMAP),
    "map@k": partial(cut_off, RetrievalMAP),
    "r_precision": partial(per_user, RetrievalRPrecision),
    "auc": partial(per_user, RetrievalAUROC),
}
