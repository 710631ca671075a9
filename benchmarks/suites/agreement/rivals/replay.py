"""RePlay: frames of recommendations and of the truth, with only relevant rows."""

from functools import lru_cache, partial

import pandas as pd
from replay.metrics import (
    MAP,
    MRR,
    NDCG,
    CategoricalDiversity,
    Coverage,
    HitRate,
    Novelty,
    PerUser,
    Precision,
    Recall,
    RocAuc,
    Surprisal,
)

CONVENTION = "replay"
_TRAIN = {"has_train": ""}
NEEDS = {
    "novelty@k": _TRAIN
    | {
        "all_lists": "1 for a user in train without a list",
        "listed_in_train": "leaves out a user who is not in train",
    },
    "surprisal@k": _TRAIN,
    "novelty(form=relative)@k": _TRAIN,
    "coverage@k": {"train_has_all": "its catalogue is the items of train"},
}
NOT_COMPARED = {}


@lru_cache(maxsize=1)
def frames(case):
    """Return (recommendations, true, train)."""
    recommended = [
        (user, item, float(-rank))
        for user, items in enumerate(case.lists)
        for rank, item in enumerate(items)
    ]
    return (
        pd.DataFrame(recommended, columns=["query_id", "item_id", "rating"]),
        pairs(case.pairs),
        pairs(case.train),
    )


def pairs(rows):
    found = [(user, item) for user, items in enumerate(rows) for item in items]
    return pd.DataFrame(found, columns=["query_id", "item_id"])


def per_user(metric, case):
    recommended, true, _ = frames(case)
    (found,) = metric(case.k, mode=PerUser())(recommended, true).values()
    return [found.get(user) for user in case.users]


def over_lists(metric, case):
    recommended, _, train = frames(case)
    (found,) = metric(case.k, mode=PerUser())(recommended, train).values()
    return [found.get(user) for user in case.users]


def categorical_diversity(case):
    listed = [
        (user, case.groups[item], float(-rank))
        for user, items in enumerate(case.lists)
        for rank, item in enumerate(items)
    ]
    frame = pd.DataFrame(listed, columns=["query_id", "category_id", "rating"])
    (found,) = CategoricalDiversity(case.k, mode=PerUser())(frame).values()
    return [found.get(user) for user in case.users]


def coverage(case):
    recommended, _, train = frames(case)
    (found,) = Coverage(case.k)(recommended, train).values()
    return found


METRICS = {
    "ndcg@k": partial(per_user, NDCG),
    "precision@k": partial(per_user, Precision),
    "recall@k": partial(per_user, Recall),
    "hit_rate@k": partial(per_user, HitRate),
    "mrr@k": partial(per_user, MRR),
    "map@k": partial(per_user, MAP),
    "auc@k": partial(per_user, RocAuc),
    "novelty@k": partial(over_lists, Novelty),
    "categorical_diversity@k": categorical_diversity,
    "surprisal@k": partial(over_lists, Surprisal),
    "novelty(form=relative)@k": partial(over_lists, Surprisal),
    "coverage@k": coverage,
}
