"""rankereval: labels from a sparse matrix, rankings from lists of ids."""

from functools import lru_cache, partial

import numpy as np
from rankereval import (
    AP,
    DCG,
    F1,
    NDCG,
    BinaryLabels,
    NumericLabels,
    Precision,
    Rankings,
    Recall,
    ReciprocalRank,
)
from scipy.sparse import csr_matrix

CONVENTION = "rankereval"
NEEDS = {
    "precision(denominator=length)@k": {"all_lists": "undefined for an empty list"},
}
NOT_COMPARED = {
    "ndcg(gain=exp)@k": "its option power is g² − 1",
    "mean_rank": "an item that is not in the list has rank 0",
    "hit_rate@k": "only for users with one relevant item",
}


@lru_cache(maxsize=1)
def objects(case):
    """Return (rankings, labels of 1, labels with gains)."""
    found = [
        (user, item, gain) for user, row in enumerate(case.pairs) for item, gain in row.items()
    ]
    users, items, gains = (np.array(column) for column in zip(*found, strict=True))
    shape = (len(case.lists), case.n_items)
    ones = np.sign(gains).astype(np.float32)
    return (
        Rankings.from_ranked_indices(case.lists),
        BinaryLabels.from_matrix(csr_matrix((ones, (users, items)), shape)),
        NumericLabels.from_matrix(csr_matrix((gains.astype(np.float32), (users, items)), shape)),
    )


def binary(metric, options, case):
    rankings, labels, _ = objects(case)
    return values(metric(case.k, **options).score(labels, rankings))


def graded(metric, case):
    rankings, _, labels = objects(case)
    return values(metric(case.k, log_base="2").score(labels, rankings))


def values(found):
    return [None if np.isnan(value) else float(value) for value in found]


METRICS = {
    "dcg@k": partial(graded, DCG),
    "ndcg@k": partial(graded, NDCG),
    "ndcg(gain=binary)@k": partial(binary, NDCG, {"log_base": "2"}),
    "precision@k": partial(binary, Precision, {}),
    "precision(denominator=length)@k": partial(binary, Precision, {"truncated": True}),
    "recall@k": partial(binary, Recall, {}),
    "recall(denominator=min)@k": partial(binary, Recall, {"truncated": True}),
    "f1@k": partial(binary, F1, {}),
    "mrr@k": partial(binary, ReciprocalRank, {}),
    "map@k": partial(binary, AP, {}),
}
