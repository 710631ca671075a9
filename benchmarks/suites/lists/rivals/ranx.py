"""ranx: a Qrels and a Run, built once from dictionaries; numba in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from ranx import Qrels, Run, evaluate

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.lists.case import Lists

SEVERAL = [
    f"{name}@{k}"
    for name in ("ndcg", "precision", "recall", "hit_rate", "mrr", "map")
    for k in (1, 3, 5, 10)
]


class Raw(NamedTuple):
    relevance: dict[str, dict[str, int]]
    recommended: dict[str, dict[str, float]]
    qrels: Qrels
    run: Run


def prepare(lists: Lists) -> Raw:
    length = lists.ids.shape[1]
    scores = [float(length - rank) for rank in range(length)]
    users = [str(user) for user in lists.users]
    recommended = {
        user: dict(zip(map(str, items), scores, strict=True))
        for user, items in zip(users, lists.ids.tolist(), strict=True)
    }
    rows = lists.validation[lists.users]
    relevant = np.split(rows.indices, rows.indptr[1:-1])
    relevance = {
        user: dict.fromkeys(map(str, items.tolist()), 1)
        for user, items in zip(users, relevant, strict=True)
    }
    return Raw(relevance, recommended, Qrels(relevance), Run(recommended))


def ndcg(lists: Lists, raw: Raw) -> np.ndarray:
    # It also stores the values in the Run. Without this, it fails for a single metric.
    return evaluate(raw.qrels, raw.run, "ndcg@10", return_mean=False)


def whole_call(lists: Lists, raw: Raw) -> np.ndarray:
    qrels, run = Qrels(raw.relevance), Run(raw.recommended)
    return evaluate(qrels, run, "ndcg@10", return_mean=False)


def several(lists: Lists, raw: Raw) -> dict[str, np.ndarray]:
    return evaluate(raw.qrels, raw.run, SEVERAL, return_mean=False, save_results_in_run=False)


def ndcg_values(lists: Lists, raw: Raw, result: np.ndarray) -> Values:
    return several_values(lists, raw, {"ndcg@10": result})


def several_values(lists: Lists, raw: Raw, result: dict[str, np.ndarray]) -> Values:
    # Users are returned in the order of their ids as strings.
    order = np.argsort(np.array([int(user) for user in raw.run.get_query_ids()]))
    return {name: np.asarray(column)[order] for name, column in result.items()}


TASKS = {
    "ndcg@10": (ndcg, ndcg_values),
    "ndcg@10, whole call": (whole_call, ndcg_values),
    "several metrics": (several, several_values),
}
