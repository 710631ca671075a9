"""RePlay: frames of recommendations and of the truth, with only relevant rows."""

from functools import lru_cache

from replay import metrics

#: The metric, and the frame that it compares with the recommendations.
METRICS = {
    "ndcg@k": (metrics.NDCG, "true"),
    "precision@k": (metrics.Precision, "true"),
    "recall@k": (metrics.Recall, "true"),
    "hit_rate@k": (metrics.HitRate, "true"),
    "mrr@k": (metrics.MRR, "true"),
    "map@k": (metrics.MAP, "true"),
    "auc@k": (metrics.RocAuc, "true"),
    "novelty@k": (metrics.Novelty, "train"),
    "surprisal@k": (metrics.Surprisal, "train"),
    "novelty(form=relative)@k": (metrics.Surprisal, "train"),
}
PAIR = ("query_id", "item_id")


@lru_cache(maxsize=1)
def frames(case):
    return {
        "lists": case.frame(case.listed(), *PAIR, "rating"),
        "true": case.frame(case.pairs, *PAIR),
        "train": case.frame(case.train, *PAIR),
    }


def values(theirs, case):
    metric, other = theirs
    by_user = metric(case.k, mode=metrics.PerUser())
    (found,) = by_user(frames(case)["lists"], frames(case)[other]).values()
    return case.by_user(found)


def categorical_diversity(case):
    listed = frames(case)["lists"]
    groups = listed["item_id"].map(dict(enumerate(case.groups)))
    by_user = metrics.CategoricalDiversity(case.k, mode=metrics.PerUser())
    (found,) = by_user(listed.drop(columns="item_id").assign(category_id=groups)).values()
    return case.by_user(found)


def coverage(case):
    (found,) = metrics.Coverage(case.k)(frames(case)["lists"], frames(case)["train"]).values()
    return found


FUNCTIONS = {"categorical_diversity@k": categorical_diversity, "coverage@k": coverage}
