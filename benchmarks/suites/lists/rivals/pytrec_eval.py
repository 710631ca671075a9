"""pytrec_eval: dictionaries of dictionaries, read by trec_eval's own C code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from pytrec_eval import RelevanceEvaluator

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.lists.case import Lists

CUT_OFFS = (1, 3, 5, 10)
NAMES = {
    f"{ours}@{k}": f"{theirs}_{k}"
    for k in CUT_OFFS
    for ours, theirs in {
        "ndcg": "ndcg_cut",
        "precision": "P",
        "recall": "recall",
        "hit_rate": "success",
        "map": "map_cut",
    }.items()
}
# The reciprocal rank has no cut-off here: it uses the whole list, which has ten items.
NAMES["mrr@10"] = "recip_rank"


class Raw(NamedTuple):
    relevance: dict[str, dict[str, int]]
    ndcg: RelevanceEvaluator
    several: RelevanceEvaluator
    run: dict[str, dict[str, float]]


def prepare(lists: Lists) -> Raw:
    length = lists.ids.shape[1]
    scores = [float(length - rank) for rank in range(length)]
    users = [str(user) for user in lists.users]
    run = {
        user: dict(zip(map(str, items), scores, strict=True))
        for user, items in zip(users, lists.ids.tolist(), strict=True)
    }
    rows = lists.validation[lists.users]
    relevant = np.split(rows.indices, rows.indptr[1:-1])
    relevance = {
        user: dict.fromkeys(map(str, items.tolist()), 1)
        for user, items in zip(users, relevant, strict=True)
    }
    return Raw(
        relevance,
        RelevanceEvaluator(relevance, {"ndcg_cut_10"}),
        RelevanceEvaluator(relevance, set(NAMES.values())),
        run,
    )


def ndcg(lists: Lists, raw: Raw) -> dict[str, dict[str, float]]:
    return raw.ndcg.evaluate(raw.run)


def whole_call(lists: Lists, raw: Raw) -> dict[str, dict[str, float]]:
    return RelevanceEvaluator(raw.relevance, {"ndcg_cut_10"}).evaluate(raw.run)


def several(lists: Lists, raw: Raw) -> dict[str, dict[str, float]]:
    return raw.several.evaluate(raw.run)


def values(lists: Lists, raw: Raw, result: dict[str, dict[str, float]]) -> Values:
    per_user = [result[str(user)] for user in lists.users]
    return {
        ours: np.array([row[theirs] for row in per_user])
        for ours, theirs in NAMES.items()
        if theirs in per_user[0]
    }


TASKS = {
    "ndcg@10": (ndcg, values),
    "ndcg@10, whole call": (whole_call, values),
    "several metrics": (several, values),
}
