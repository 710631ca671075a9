"""RecTools: a frame of recommendations, and a frame of interactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from rectools import Columns
from rectools.metrics import MAP, MRR, NDCG, HitRate, Precision, Recall, calc_metrics

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.lists.case import Lists

CUT_OFFS = (1, 3, 5, 10)
METRICS = {
    f"{name}@{k}": metric(k=k)
    for k in CUT_OFFS
    for name, metric in {
        "precision": Precision,
        "recall": Recall,
        "hit_rate": HitRate,
        "mrr": MRR,
        "map": MAP,
    }.items()
}
# The default divides by the ideal of a full list, for any number of relevant items.
METRICS |= {f"ndcg@{k}": NDCG(k=k, divide_by_achievable=True) for k in CUT_OFFS}


class Raw(NamedTuple):
    recommendations: pd.DataFrame
    interactions: pd.DataFrame


def prepare(lists: Lists) -> Raw:
    length = lists.ids.shape[1]
    recommendations = pd.DataFrame(
        {
            Columns.User: np.repeat(lists.users, length),
            Columns.Item: lists.ids.ravel(),
            Columns.Rank: np.tile(np.arange(1, length + 1), len(lists.users)),
        }
    )
    entries = lists.validation.tocoo()
    interactions = pd.DataFrame({Columns.User: entries.row, Columns.Item: entries.col})
    return Raw(recommendations, interactions)


def ndcg(lists: Lists, raw: Raw) -> pd.Series:
    return METRICS["ndcg@10"].calc_per_user(raw.recommendations, raw.interactions)


def ndcg_values(lists: Lists, raw: Raw, result: pd.Series) -> Values:
    return {"ndcg@10": result.reindex(lists.users).to_numpy()}


def several(lists: Lists, raw: Raw) -> dict[str, float]:
    return calc_metrics(METRICS, raw.recommendations, raw.interactions)


def several_values(lists: Lists, raw: Raw, result: dict[str, float]) -> Values:
    return {name: np.array([mean]) for name, mean in result.items()}


# It uses frames directly: there are no objects to make first.
TASKS = {
    "ndcg@10": (ndcg, ndcg_values),
    "ndcg@10, whole call": (ndcg, ndcg_values),
    "several metrics": (several, several_values),
}
