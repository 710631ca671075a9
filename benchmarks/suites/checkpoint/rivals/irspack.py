"""irspack: its evaluator, in C++, over blocks of scores from a recommender."""

import numpy as np
from irspack.evaluation import Evaluator
from irspack.recommenders.base import BaseRecommender

# Users at once. The default, 128, takes a quarter longer.
BLOCK = 1024


class Factors(BaseRecommender):
    """Scores by the product of its factors, as irspack's own factor models do."""

    def _learn(self):
        """Do nothing, because the factors exist."""

    def get_score(self, user_indices):
        return self.user_factors[user_indices] @ self.item_factors.T

    def get_score_block(self, begin, end):
        return self.user_factors[begin:end] @ self.item_factors.T


def prepare(case):
    model = Factors(case.train[case.users])
    model.user_factors = case.user_factors[case.users]
    model.item_factors = case.item_factors
    options = {"cutoff": case.k, "n_threads": case.threads, "mb_size": BLOCK}
    evaluator = Evaluator(case.validation[case.users], **options)
    return {
        "Evaluator": (
            lambda: evaluator.get_score(model),
            lambda found: {"ndcg": np.array(found["ndcg"])},
        )
    }
