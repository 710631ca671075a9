"""Models of every family to train with a callback, and without one."""

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.cpu.lmf import LogisticMatrixFactorization

from sparse_eval import EvaluationCallback

N_USERS, N_ITEMS, ITERATIONS = 120, 40, 12
METRICS = ["ndcg@10", "recall@5"]
ONE = {"random_state": 0, "num_threads": 1}  # several threads of BPR race each other

#: Settings with which ndcg@10 soon gets worse, and how long to wait for that.
FAMILIES = {
    "als": (AlternatingLeastSquares, {"factors": 16, "regularization": 0.001, "alpha": 40.0}, 3),
    "als64": (AlternatingLeastSquares, {"factors": 8, "dtype": np.float64, "use_cg": False}, 1),
    "bpr": (BayesianPersonalizedRanking, {"factors": 16, "learning_rate": 0.3}, 3),
    "lmf": (LogisticMatrixFactorization, {"factors": 8}, 1),
}


def make(family, iterations=ITERATIONS, **options):
    kind, settings, _ = FAMILIES[family]
    return kind(**(settings | ONE | {"iterations": iterations} | options))


def trained(family, holdout, iterations=ITERATIONS):
    """Return a model that was trained without a callback."""
    model = make(family, iterations)
    model.fit(holdout.train.csr, show_progress=False)
    return model


def evaluating(holdout, metrics=METRICS, **options):
    return EvaluationCallback(holdout.train, holdout.validation, metrics, **options)


def bits(model):
    return model.user_factors.tobytes(), model.item_factors.tobytes()


def stop_of(values, patience):
    """Return the number of iterations of a training that stops early, and the best of them."""
    for done in range(1, len(values) + 1):
        best = values.index(max(values[:done])) + 1
        if done - best == patience:
            return done, best
    raise AssertionError("these settings do not stop early")
