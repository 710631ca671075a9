"""LightGCN's code for TensorFlow (github.com/kuandeng/LightGCN, b067ec0): its Python evaluator.

It is not on a package index. Its folder must be on PYTHONPATH.
"""

import numpy as np

np.float = float  # noqa: NPY001 - NumPy has it no more

from evaluator.python import evaluate_foldout as evaluation  # noqa: E402 - reads it

METRICS = {f"{name}@k": name for name in ("precision", "recall", "map", "ndcg", "mrr")}


def values(name, case):
    """Return the values of users, None for users that it does not test."""
    metric = getattr(evaluation, name)
    return [
        float(metric(case.lists[user][: case.k], set(case.relevant[user]))[-1])
        if case.relevant[user]
        else None
        for user in case.users
    ]
