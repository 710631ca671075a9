"""recometrics: every test user's metrics from the factors, in C++; it scores and ranks all items.

Only ndcg is requested. No noise is added to the scores; it would break ties and take longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recometrics import calc_reco_metrics

if TYPE_CHECKING:
    import numpy as np
    from harness.worker import Values
    from scipy.sparse import csr_matrix
    from suites.checkpoint.case import Checkpoint


class Raw(NamedTuple):
    user_factors: np.ndarray
    train: csr_matrix
    validation: csr_matrix


def prepare(case: Checkpoint) -> Raw:
    users = case.users
    return Raw(case.user_factors[users], case.train[users], case.validation[users])


def evaluate(case: Checkpoint, raw: Raw) -> np.ndarray:
    return calc_reco_metrics(
        raw.train,
        raw.validation,
        raw.user_factors,
        case.item_factors,
        k=case.k,
        precision=False,
        average_precision=False,
        break_ties_with_noise=False,
        as_df=False,
        nthreads=case.threads,
    )["NDCG@K"]


def ndcg(case: Checkpoint, raw: Raw, result: np.ndarray) -> Values:
    return {"ndcg_of_users": result}


TASKS = {"calc_reco_metrics": (evaluate, ndcg)}
