"""RecTools: frames of interactions, with only relevant rows, and of recommendations."""

from functools import lru_cache

from rectools import Columns, metrics

#: The metric and its options, and the places of its data in `frames`.
METRICS = {
    "ndcg@k": (metrics.NDCG, {}, (0, 1)),
    "precision@k": (metrics.Precision, {}, (0, 1)),
    "precision(denominator=min)@k": (metrics.Precision, {"r_precision": True}, (0, 1)),
    "recall@k": (metrics.Recall, {}, (0, 1)),
    "f1@k": (metrics.F1Beta, {}, (0, 1)),
    "f1(beta=2)@k": (metrics.F1Beta, {"beta": 2.0}, (0, 1)),
    "hit_rate@k": (metrics.HitRate, {}, (0, 1)),
    "mrr@k": (metrics.MRR, {}, (0, 1)),
    "map@k": (metrics.MAP, {}, (0, 1)),
    "novelty@k": (metrics.MeanInvUserFreq, {}, (0, 2)),
    "popularity@k": (metrics.AvgRecPopularity, {}, (0, 2)),
    "serendipity@k": (metrics.Serendipity, {}, (0, 1, 2, 3)),
}
PAIR = (Columns.User, Columns.Item)


@lru_cache(maxsize=1)
def frames(case):
    """Return (recommendations, interactions, earlier interactions, catalogue)."""
    recommended = case.frame(case.listed(lambda rank: rank), *PAIR, Columns.Rank)
    true, earlier = case.frame(case.pairs, *PAIR), case.frame(case.train, *PAIR)
    return recommended, true, earlier, range(case.n_items)


def values(theirs, case):
    metric, options, places = theirs
    data = [frames(case)[place] for place in places]
    return case.by_user(metric(k=case.k, **options).calc_per_user(*data).to_dict())


def coverage(case):
    recommended, *_, catalogue = frames(case)
    return metrics.CatalogCoverage(k=case.k, normalize=True).calc(recommended, catalogue)


def user_coverage(case):
    return metrics.CoveredUsers(k=case.k).calc(*frames(case)[:2])


FUNCTIONS = {"coverage@k": coverage, "user_coverage@k": user_coverage}
