"""sparse_eval itself: with Rankings and Relevance in hand, and from raw arrays on."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import sparse_eval as se

if TYPE_CHECKING:
    import numpy as np
    from worker import Lists, Values

CUT_OFFS = (1, 3, 5, 10)
SEVERAL = (
    "cg",
    "dcg",
    "idcg",
    "ndcg",
    "precision",
    "recall",
    "hit_rate",
    "f1",
    "mrr",
    "arhr",
    "map",
)


class Raw(NamedTuple):
    rankings: se.Rankings
    relevance: se.Relevance


def prepare(lists: Lists) -> Raw:
    return Raw(_rankings(lists), se.Relevance.from_csr(lists.validation))


def _rankings(lists: Lists) -> se.Rankings:
    return se.Rankings.from_topk(lists.ids, users=lists.users, shape=lists.validation.shape)


def ndcg(lists: Lists, raw: Raw) -> np.ndarray:
    return se.evaluate(raw.rankings, raw.relevance, ["ndcg@10"]).values("ndcg@10")


def whole_call(lists: Lists, raw: Raw | None) -> np.ndarray:
    """Score raw arrays: every check of the lists and of the matrix is in the time."""
    return se.evaluate(_rankings(lists), lists.validation, ["ndcg@10"]).values("ndcg@10")


def ndcg_values(lists: Lists, raw: Raw, result: np.ndarray) -> Values:
    return {"ndcg@10": result[lists.users]}


def several(lists: Lists, raw: Raw) -> dict[str, np.ndarray]:
    metrics = [f"{name}@{{{','.join(map(str, CUT_OFFS))}}}" for name in SEVERAL]
    evaluation = se.evaluate(raw.rankings, raw.relevance, metrics)
    names = [f"{name}@{k}" for name in SEVERAL for k in CUT_OFFS]
    return {name: evaluation.values(name) for name in names}


def several_values(lists: Lists, raw: Raw, result: dict[str, np.ndarray]) -> Values:
    return {name: column[lists.users] for name, column in result.items()}


TASKS = {
    "ndcg@10": (ndcg, ndcg_values),
    "ndcg@10, whole call": (whole_call, ndcg_values),
    "several metrics": (several, several_values),
}
