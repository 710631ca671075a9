"""rankereval: labels from a sparse matrix, rankings from an array of ids, one metric per call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rankereval import NDCG, BinaryLabels, DenseRankings

if TYPE_CHECKING:
    import numpy as np
    from harness.worker import Values
    from scipy.sparse import csr_matrix
    from suites.lists.case import Lists


class Raw(NamedTuple):
    matrix: csr_matrix
    labels: BinaryLabels
    rankings: DenseRankings


def prepare(lists: Lists) -> Raw:
    # Rows are matched by their number, so labels must only include the users with a list.
    matrix = lists.validation[lists.users]
    labels = BinaryLabels.from_matrix(matrix)
    return Raw(matrix, labels, DenseRankings.from_ranked_indices(lists.ids))


def ndcg(lists: Lists, raw: Raw) -> np.ndarray:
    return NDCG(10, log_base="2").score(raw.labels, raw.rankings)


def whole_call(lists: Lists, raw: Raw) -> np.ndarray:
    labels = BinaryLabels.from_matrix(raw.matrix)
    rankings = DenseRankings.from_ranked_indices(lists.ids)
    return NDCG(10, log_base="2").score(labels, rankings)


def ndcg_values(lists: Lists, raw: Raw, result: np.ndarray) -> Values:
    return {"ndcg@10": result}


TASKS = {"ndcg@10": (ndcg, ndcg_values), "ndcg@10, whole call": (whole_call, ndcg_values)}
