"""RecTools: frames of interactions, with only relevant rows, and of recommendations."""

from functools import lru_cache

from rectools import Columns, metrics

CONVENTION = "rectools"
METRICS = {
    "ndcg@k": (metrics.NDCG, {}),
    "precision@k": (metrics.Precision, {}),
    "precision(denominator=min)@k": (metrics.Precision, {"r_precision": True}),
    "recall@k": (metrics.Recall, {}),
    "f1@k": (metrics.F1Beta, {}),
    "f1(beta=2)@k": (metrics.F1Beta, {"beta": 2.0}),
    "hit_rate@k": (metrics.HitRate, {}),
    "mrr@k": (metrics.MRR, {}),
    "map@k": (metrics.MAP, {}),
}
_TRAIN = {"has_train": ""}
NEEDS = {"novelty@k": _TRAIN, "popularity@k": _TRAIN, "serendipity@k": _TRAIN}
NOT_COMPARED = {
    "auc@k": "its PartialAUC and PAP end at the k-th miss, not at the k-th item",
    "diversity@k": "over distances that the caller gives; 0 for a list of one item",
}
PAIR = (Columns.User, Columns.Item)


@lru_cache(maxsize=1)
def frames(case):
    """Return (recommendations, interactions, earlier interactions)."""
    recommended = case.frame(case.listed(lambda rank: rank), *PAIR, Columns.Rank)
    return recommended, case.frame(case.pairs, *PAIR), case.frame(case.train, *PAIR)


def values(theirs, case):
    metric, options = theirs
    recommended, interactions, _ = frames(case)
    return of_users(case, metric(k=case.k, **options), recommended, interactions)


def of_users(case, metric, *data):
    return case.by_user(metric.calc_per_user(*data).to_dict())


def novelty(case):
    recommended, _, earlier = frames(case)
    return of_users(case, metrics.MeanInvUserFreq(k=case.k), recommended, earlier)


def popularity(case):
    recommended, _, earlier = frames(case)
    return of_users(case, metrics.AvgRecPopularity(k=case.k), recommended, earlier)


def serendipity(case):
    return of_users(case, metrics.Serendipity(k=case.k), *frames(case), range(case.n_items))


def coverage(case):
    catalogue = range(case.n_items)
    return metrics.CatalogCoverage(k=case.k, normalize=True).calc(frames(case)[0], catalogue)


def user_coverage(case):
    return metrics.CoveredUsers(k=case.k).calc(*frames(case)[:2])


FUNCTIONS = {
    "novelty@k": novelty,
    "popularity@k": popularity,
    "serendipity@k": serendipity,
    "coverage@k": coverage,
    "user_coverage@k": user_coverage,
}
