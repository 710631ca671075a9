"""sparse_eval itself: with Rankings and Relevance in hand, and from raw arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import sparse_eval as se

if TYPE_CHECKING:
    import numpy as np
    from harness.worker import Values
    from suites.lists.case import Lists

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
ALL = (*SEVERAL, "mar", "r_precision", "fcp", "auc", "err", "rbp")
UNCUT = ("mean_rank", "percentile_rank")


class Raw(NamedTuple):
    rankings: se.Rankings
    relevance: se.Relevance


def prepare(lists: Lists) -> Raw:
    return Raw(_rankings(lists), se.Relevance.from_csr(lists.validation))


def _rankings(lists: Lists) -> se.Rankings:
    return se.Rankings.from_topk(lists.ids, user_rows=lists.users, shape=lists.validation.shape)


def ndcg(lists: Lists, raw: Raw) -> np.ndarray:
    return se.evaluate(raw.rankings, raw.relevance, ["ndcg@10"]).values("ndcg@10")


def whole_call(lists: Lists, raw: Raw | None) -> np.ndarray:
    """Score raw arrays; the time includes every check of the lists and of the matrix."""
    return se.evaluate(_rankings(lists), lists.validation, ["ndcg@10"]).values("ndcg@10")


def ndcg_values(lists: Lists, raw: Raw, result: np.ndarray) -> Values:
    return {"ndcg@10": result[lists.users]}


def several(lists: Lists, raw: Raw) -> dict[str, np.ndarray]:
    return at_all_cut_offs(raw, SEVERAL)


def everything(lists: Lists, raw: Raw) -> dict[str, np.ndarray]:
    return at_all_cut_offs(raw, ALL, UNCUT)


def at_all_cut_offs(
    raw: Raw, names: tuple[str, ...], uncut: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    cut_offs = ",".join(map(str, CUT_OFFS))
    metrics = [*(f"{name}@{{{cut_offs}}}" for name in names), *uncut]
    evaluation = se.evaluate(raw.rankings, raw.relevance, metrics)
    return {name: evaluation.values(name) for name in evaluation.names}


def diversity(lists: Lists, raw: Raw) -> np.ndarray:
    """Score from the training matrix; the timed call includes the preparation of item data."""
    ev = se.evaluate(raw.rankings, raw.relevance, ["diversity@10"], train=lists.train)
    return ev.values("diversity@10")


def diversity_values(lists: Lists, raw: Raw, result: np.ndarray) -> Values:
    return {"diversity@10": result[lists.users]}


def several_values(lists: Lists, raw: Raw, result: dict[str, np.ndarray]) -> Values:
    return {name: column[lists.users] for name, column in result.items()}


TASKS = {
    "ndcg@10": (ndcg, ndcg_values),
    "ndcg@10, whole call": (whole_call, ndcg_values),
    "several metrics": (several, several_values),
    "all accuracy metrics": (everything, several_values),
    "diversity@10": (diversity, diversity_values),
}
