"""scikit-learn's ndcg_score: dense truth and dense scores, one column per item."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from sklearn.metrics import ndcg_score

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.lists.case import Lists


class Raw(NamedTuple):
    truth: np.ndarray
    scores: np.ndarray


def prepare(lists: Lists) -> Raw:
    truth = lists.validation[lists.users].toarray()
    scores = np.zeros_like(truth)
    length = lists.ids.shape[1]
    np.put_along_axis(scores, lists.ids.astype(np.int64), np.arange(length, 0, -1.0), axis=1)
    return Raw(truth, scores)


def ndcg(lists: Lists, raw: Raw) -> float:
    # No two items of a list have the same score; without averaging over ties it is faster.
    return ndcg_score(raw.truth, raw.scores, k=10, ignore_ties=True)


def ndcg_values(lists: Lists, raw: Raw, result: float) -> Values:
    """Return one value per user: the mean of one row is that row's value."""
    rows = zip(raw.truth, raw.scores, strict=True)
    per_user = [
        ndcg_score(truth[None], scores[None], k=10, ignore_ties=True) for truth, scores in rows
    ]
    if not np.isclose(np.mean(per_user), result, rtol=0, atol=1e-12):
        raise ValueError("the mean of the rows' values is not the value of all rows")
    return {"ndcg@10": np.array(per_user)}


TASKS = {"ndcg@10": (ndcg, ndcg_values)}
