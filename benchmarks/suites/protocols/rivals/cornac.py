"""cornac: its MF and BPR, whose factors and biases are set, evaluated after its ratio split."""

import numpy as np
from cornac.eval_methods import RatioSplit
from cornac.models import BPR, MF
from scipy.sparse import csr_matrix
from suites.agreement.rivals.cornac import METRICS


def answer(problem):
    pairs = np.unique(problem.events[:, :2], axis=0).tolist()
    split = RatioSplit([(user, item, 1.0) for user, item in pairs], test_size=0.3, seed=len(pairs))
    users, items = list(split.train_set.uid_map), list(split.train_set.iid_map)
    seen = split.train_set.csr_matrix.getnnz(axis=1)
    if len(items) - seen.max() < problem.k:
        return None
    model = make(problem, users, items)
    found = {}
    for cut in (True, False):  # separate calls: it ranks only down to the largest cut-off of a call
        metrics = {
            name: make_metric(problem.k)
            for name, make_metric in METRICS.items()
            if name.endswith("@k") == cut
        }
        result, _ = split.evaluate(model, list(metrics.values()), user_based=True)
        for name, metric in metrics.items():
            of_users = result.metric_user_results[metric.name]
            values = {users[place]: float(value) for place, value in of_users.items()}
            found[name] = [values.get(user) for user in range(problem.shape[0])]
    parts = {"train": split.train_set, "validation": split.test_set}
    given = {name: numbered(part, users, items, problem.shape) for name, part in parts.items()}
    return {"values": found, "given": given | {"candidates": sorted(items), "biased": True}}


def numbered(part, users, items, shape):
    """Return a part of its split with our numbers, without pairs unknown to its training."""
    pairs = [
        (users[user], items[item])
        for user, item, _ in zip(*part.uir_tuple, strict=True)
        if user < len(users) and item < len(items)
    ]
    return csr_matrix((np.ones(len(pairs)), np.transpose(pairs)), shape)


def make(problem, users, items):
    """Return a model that keeps the numbers of users and items."""
    given = {
        "U": problem.user_factors[users],
        "V": problem.item_factors[items],
        "Bi": problem.item_biases[items],
    }
    options = {"k": problem.user_factors.shape[1], "trainable": False}
    if len(users) % 2:
        return BPR(init_params=given, **options)
    return MF(init_params=given | {"Bu": problem.user_biases[users]}, **options)
