"""scikit-learn: dense matrices of gains and scores, one user at a time."""

from functools import partial

import numpy as np
from sklearn.metrics import (
    average_precision_score,
    dcg_score,
    fbeta_score,
    label_ranking_average_precision_score,
    ndcg_score,
    roc_auc_score,
)

CONVENTION = "sklearn"
TIES = "average"
_UNTIED = {"untied": "an item has the last rank of its equals, which is not an expectation"}
NEEDS = {
    "*": {"has_scores": "takes a score for every item"},
    "map": _UNTIED | {"all_relevant": "1 for a user without relevant items"},
    "pr_auc": {"untied": "items of equal score share a threshold", "all_relevant": ""},
    "f1@k": {"untied": "takes a list, not scores"},
    "f1(beta=0.5)@k": {"untied": "takes a list, not scores"},
    "f1(beta=2)@k": {"untied": "takes a list, not scores"},
    "auc": {"all_relevant": ""},
}
NOT_COMPARED = {}


def graded(metric, case, **options):
    gains, scores = matrices(case)
    rows = range(len(gains))
    return [float(metric(gains[[row]], scores[[row]], **options)) for row in rows]


def cut_off(metric, case):
    return graded(metric, case, k=case.k)


def binary(metric, case):
    gains, scores = matrices(case)
    return [float(metric(true, score)) for true, score in zip((gains > 0) * 1, scores, strict=True)]


def fbeta(beta, case):
    gains, _ = matrices(case)
    listed = np.zeros_like(gains)
    for row, items in zip(listed, case.lists, strict=True):
        row[items[: case.k]] = 1
    pairs = zip(gains > 0, listed, strict=True)
    return [float(fbeta_score(true, shown, beta=beta, zero_division=0)) for true, shown in pairs]


def average_precision(case):
    return binary(lambda true, score: label_ranking_average_precision_score([true], [score]), case)


def matrices(case):
    gains = np.zeros((len(case.lists), case.n_items))
    for user, row in enumerate(case.stored):
        gains[user, list(row)] = list(row.values())
    return gains, np.array(case.scores, float)


METRICS = {
    "dcg": partial(graded, dcg_score),
    "dcg@k": partial(cut_off, dcg_score),
    "ndcg": partial(graded, ndcg_score),
    "ndcg@k": partial(cut_off, ndcg_score),
    "map": average_precision,
    "pr_auc": partial(binary, average_precision_score),
    "auc": partial(binary, roc_auc_score),
    "f1@k": partial(fbeta, 1),
    "f1(beta=0.5)@k": partial(fbeta, 0.5),
    "f1(beta=2)@k": partial(fbeta, 2),
}
