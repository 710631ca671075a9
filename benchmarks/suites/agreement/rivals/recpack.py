"""RecPack: sparse matrices of the truth and of predicted scores; its data are binary."""

from functools import lru_cache, partial

import numpy as np
from recpack.metrics import (
    DCGK,
    NDCGK,
    CalibratedRecallK,
    CoverageK,
    HitK,
    PrecisionK,
    RecallK,
    ReciprocalRankK,
)
from scipy.sparse import csr_matrix

CONVENTION = "recpack"
NEEDS = {"*": {"binary": "a gain also enters the discount: 1 / log2(g·r + 1)"}}
NOT_COMPARED = {
    "percentile_rank": "as 100·(r − 1) / N, and an item that is not in the list by another rule",
    "diversity@k": "Jaccard distance instead of the cosine",
}


@lru_cache(maxsize=1)
def matrices(case):
    """Return (true, predicted)."""
    return (
        matrix(case, [list(row.items()) for row in case.stored]),
        # the later an item the lower its score, always above 0
        matrix(case, [[(i, 1 / rank) for rank, i in enumerate(row, 1)] for row in case.lists]),
    )


def matrix(case, rows):
    found = [(user, item, value) for user, row in enumerate(rows) for item, value in row]
    users, items, values = zip(*found, strict=True) if found else ((), (), ())
    return csr_matrix((np.array(values, float), (users, items)), (len(rows), case.n_items))


def per_user(metric, case):
    found = metric(K=case.k)
    found.calculate(*matrices(case))
    results = found.results
    values = dict(zip(results["user_id"].astype(int), results["score"], strict=True))
    return [values.get(user) for user in case.users]


def one_number(metric, case):
    found = metric(K=case.k)
    found.calculate(*matrices(case))
    return float(found.value)


METRICS = {
    "cg@k": partial(one_number, HitK),
    "dcg@k": partial(per_user, DCGK),
    "ndcg@k": partial(per_user, NDCGK),
    "precision@k": partial(per_user, PrecisionK),
    "recall@k": partial(per_user, RecallK),
    "recall(denominator=min)@k": partial(per_user, CalibratedRecallK),
    "mrr@k": partial(per_user, ReciprocalRankK),
    "coverage@k": partial(one_number, CoverageK),
}
