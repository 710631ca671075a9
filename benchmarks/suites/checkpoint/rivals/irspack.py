"""irspack: its evaluator, in C++, over blocks of scores from a recommender."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from irspack.evaluation import Evaluator
from irspack.recommenders.base import BaseRecommender

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.checkpoint.case import Checkpoint

# Users at once. The default, 128, takes a quarter longer.
BLOCK = 1024


class Factors(BaseRecommender):
    """Scores by the product of its factors, as irspack's own factor models do."""

    def _learn(self) -> None:
        """Do nothing, because the factors exist."""

    def get_score(self, user_indices: np.ndarray) -> np.ndarray:
        return self.user_factors[user_indices] @ self.item_factors.T

    def get_score_block(self, begin: int, end: int) -> np.ndarray:
        return self.user_factors[begin:end] @ self.item_factors.T


class Raw(NamedTuple):
    model: Factors
    evaluator: Evaluator


def prepare(case: Checkpoint) -> Raw:
    model = Factors(case.train[case.users])
    model.user_factors = case.user_factors[case.users]
    model.item_factors = case.item_factors
    evaluator = Evaluator(
        case.validation[case.users], cutoff=case.k, n_threads=case.threads, mb_size=BLOCK
    )
    return Raw(model, evaluator)


def evaluate(case: Checkpoint, raw: Raw) -> dict[str, float]:
    return raw.evaluator.get_score(raw.model)


def ndcg(case: Checkpoint, raw: Raw, result: dict[str, float]) -> Values:
    return {"ndcg": np.array(result["ndcg"])}


TASKS = {"Evaluator": (evaluate, ndcg)}
