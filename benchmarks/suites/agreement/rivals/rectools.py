"""RecTools: frames of interactions, with only relevant rows, and of recommendations."""

from functools import lru_cache, partial

import pandas as pd
from rectools import Columns
from rectools.metrics import (
    MAP,
    MRR,
    NDCG,
    AvgRecPopularity,
    CatalogCoverage,
    CoveredUsers,
    F1Beta,
    HitRate,
    MeanInvUserFreq,
    Precision,
    Recall,
    Serendipity,
)

CONVENTION = "rectools"
_TRAIN = {"has_train": ""}
NEEDS = {
    "novelty@k": _TRAIN,
    "popularity@k": _TRAIN,
    "serendipity@k": _TRAIN,
}
NOT_COMPARED = {
    "auc@k": "its PartialAUC and PAP end at the k-th miss, not at the k-th item",
    "diversity@k": "over distances that the caller gives; 0 for a list of one item",
}


@lru_cache(maxsize=1)
def frames(case):
    """Return (recommendations, interactions, earlier interactions)."""
    recommended = [
        (user, item, rank)
        for user, items in enumerate(case.lists)
        for rank, item in enumerate(items, start=1)
    ]
    return (
        pd.DataFrame(recommended, columns=[Columns.User, Columns.Item, Columns.Rank]),
        pairs(case.pairs),
        pairs(case.train),
    )


def pairs(rows):
    found = [(user, item) for user, items in enumerate(rows) for item in items]
    return pd.DataFrame(found, columns=[Columns.User, Columns.Item], dtype="int64")


def per_user(case, found):
    """Return the values in the order of the users, None for missing users."""
    found = found.to_dict()
    return [found.get(user) for user in case.users]


def accuracy(metric, options, case):
    recommended, interactions, _ = frames(case)
    return per_user(case, metric(k=case.k, **options).calc_per_user(recommended, interactions))


def over_lists(metric, case):
    recommended, _, earlier = frames(case)
    return per_user(case, metric(k=case.k).calc_per_user(recommended, earlier))


def serendipity(case):
    recommended, interactions, earlier = frames(case)
    metric = Serendipity(k=case.k)
    catalogue = range(case.n_items)
    return per_user(case, metric.calc_per_user(recommended, interactions, earlier, catalogue))


def coverage(case):
    recommended, _, _ = frames(case)
    return CatalogCoverage(k=case.k, normalize=True).calc(recommended, range(case.n_items))


def user_coverage(case):
    recommended, interactions, _ = frames(case)
    return CoveredUsers(k=case.k).calc(recommended, interactions)


METRICS = {
    "ndcg@k": partial(accuracy, NDCG, {}),
    "precision@k": partial(accuracy, Precision, {}),
    "precision(denominator=min)@k": partial(accuracy, Precision, {"r_precision": True}),
    "recall@k": partial(accuracy, Recall, {}),
    "f1@k": partial(accuracy, F1Beta, {}),
    "f1(beta=2)@k": partial(accuracy, F1Beta, {"beta": 2.0}),
    "hit_rate@k": partial(accuracy, HitRate, {}),
    "mrr@k": partial(accuracy, MRR, {}),
    "map@k": partial(accuracy, MAP, {}),
    "novelty@k": partial(over_lists, MeanInvUserFreq),
    "popularity@k": partial(over_lists, AvgRecPopularity),
    "serendipity@k": serendipity,
    "coverage@k": coverage,
    "user_coverage@k": user_coverage,
}
