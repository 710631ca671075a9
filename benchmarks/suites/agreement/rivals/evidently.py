"""Evidently: one table of ranked items and their gains; means only."""

from functools import lru_cache, partial

import pandas as pd
from evidently.legacy import metrics
from evidently.legacy.calculations.recommender_systems import collect_dataset
from evidently.legacy.metrics.recsys.precision_recall_k import PrecisionRecallCalculation
from evidently.legacy.pipeline.column_mapping import RecomType

COLUMNS = ("user", "item", "prediction")


@lru_cache(maxsize=1)
def table(case):
    """Return users, items, gains and ranks, first of the list, then of other relevant items."""
    rows = [
        (user, item, gains.get(item, 0), rank)
        for user, (items, gains) in enumerate(zip(case.lists, case.pairs, strict=True))
        for rank, item in enumerate([*items, *sorted(set(gains).difference(items))], start=1)
    ]
    return pd.DataFrame(rows, columns=["user", "item", "target", "prediction"])


def collected(case, *, binary):
    frame = table(case)
    columns = (frame["user"], frame["target"], frame["prediction"])
    return collect_dataset(*columns, RecomType.RANK, None, no_feedback_users=False, bin_data=binary)


@lru_cache(maxsize=1)
def precision_and_recall(case):
    calculation = PrecisionRecallCalculation(case.k)
    return calculation.get_precision_and_recall_dict(collected(case, binary=True), case.k)


def values(name, case):
    return precision_and_recall(case)[name][case.k - 1]


def ndcg(case):
    metric = metrics.NDCGKMetric(k=case.k)
    return float(metric.calculate_ndcg(collected(case, binary=False), case.k)[case.k])


def first_hits(metric, case):
    found = metric(k=case.k).get_values(collected(case, binary=True), case.k)
    return float(found.iloc[case.k - 1])


@lru_cache(maxsize=1)
def users_of_items(case):
    frame = case.frame(case.train, "user", "item")
    return frame.groupby("item")["user"].nunique(), frame["user"].nunique()


def popularity(case):
    metric, (counts, _) = metrics.PopularityBias(k=case.k), users_of_items(case)
    value, _ = metric.get_apr(case.k, table(case), counts, False, "prediction", "user", "item")
    return value


def coverage(case):
    metric, (counts, _) = metrics.PopularityBias(k=case.k), users_of_items(case)
    return metric.get_coverage(case.k, table(case), counts, "prediction", "item")


def novelty(case):
    counts, n_users = users_of_items(case)
    metric, shares = metrics.NoveltyMetric(k=case.k), counts / n_users
    _, value = metric.get_miuf(table(case), case.k, RecomType.RANK, *COLUMNS, shares)
    return value


def personalization(case):
    metric = metrics.PersonalizationMetric(k=case.k)
    value, _ = metric.get_diversity(table(case), *COLUMNS, case.k, RecomType.RANK)
    return value


METRICS = {"precision@k": "precision", "recall@k": "recall", "map@k": "map", "mar@k": "mar"}
FUNCTIONS = {
    "ndcg@k": ndcg,
    "hit_rate@k": partial(first_hits, metrics.HitRateKMetric),
    "mrr@k": partial(first_hits, metrics.MRRKMetric),
    "coverage@k": coverage,
    "novelty@k": novelty,
    "popularity@k": popularity,
    "personalization@k": personalization,
}
