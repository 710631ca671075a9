"""RecPack: its strong generalization, with new users that its EASE was not trained on.

The steps follow its pipeline, which cannot be imported with the setuptools that torch installs.
"""

import numpy as np
import pandas as pd
from recpack.algorithms import EASE
from recpack.matrix import InteractionMatrix
from recpack.scenarios import StrongGeneralization
from suites.agreement.rivals.recpack import METRICS, of_users

NAMES = ("ndcg@k", "precision@k", "recall@k", "recall(denominator=min)@k", "mrr@k")
REGULARIZATION = 200.0


def answer(problem):
    frame = pd.DataFrame(problem.events, columns=["user", "item", "time"])
    data = InteractionMatrix(frame, "item", "user", timestamp_ix="time", shape=problem.shape)
    scenario = StrongGeneralization(0.7, 0.6, seed=len(frame))
    scenario.split(data)
    train = scenario.full_training_data.binary_values
    fold_in, held_out = (part.binary_values for part in scenario.test_data)
    ease = EASE(l2=REGULARIZATION).fit(train)
    predicted = ease.predict(fold_in)
    predicted = predicted - predicted.multiply(fold_in)
    held_out = held_out.multiply(separate(predicted.toarray(), problem.k)[:, None]).tocsr()
    held_out.eliminate_zeros()
    if np.count_nonzero(held_out.getnnz(axis=1)) < 2:
        return None
    values = {}
    for name in NAMES:
        metric = METRICS[name](problem.k)
        metric.calculate(held_out, predicted)
        values[name] = of_users(metric, range(held_out.shape[0]))
    given = {"train": train, "fold_in": fold_in, "validation": held_out}
    return {
        "values": values,
        "given": given | {"weights": ease.similarity_matrix_, "regularization": REGULARIZATION},
    }


def separate(scores, k):
    """Return 1 for users whose best scores are different and above 0, and 0 for other users."""
    best = -np.sort(-scores, axis=1)[:, : k + 1]
    return ((best[:, :k] > 0) & (best[:, :-1] - best[:, 1:] > 1e-9)).all(axis=1).astype(float)
