"""RecPack: sparse matrices of the truth and of predicted scores; its data are binary."""

from functools import lru_cache

from recpack import metrics

METRICS = {
    "cg@k": metrics.HitK,
    "dcg@k": metrics.DCGK,
    "ndcg@k": metrics.NDCGK,
    "precision@k": metrics.PrecisionK,
    "recall@k": metrics.RecallK,
    "recall(denominator=min)@k": metrics.CalibratedRecallK,
    "mrr@k": metrics.ReciprocalRankK,
    "coverage@k": metrics.CoverageK,
}
#: These have no value for each user, or sums of several.
ONE_NUMBER = (metrics.HitK, metrics.CoverageK)


@lru_cache(maxsize=1)
def matrices(case):
    """Return (true, predicted); the later an item the lower its score, always above 0."""
    return case.matrix(case.stored), case.matrix(case.listed(lambda rank: 1 / rank))


def values(metric, case):
    found = metric(K=case.k)
    found.calculate(*matrices(case))
    return float(found.value) if metric in ONE_NUMBER else of_users(found, case.users)


def of_users(metric, users):
    """Return the value of each user, None for users that it leaves out."""
    results = metric.results
    found = dict(zip(results["user_id"].astype(int), results["score"], strict=True))
    return [found.get(user) for user in users]
