"""LightFM: a model with a factor for each user, which gives items the scores of the case."""

from functools import lru_cache, partial

import numpy as np
from lightfm import LightFM
from lightfm.evaluation import auc_score, precision_at_k, recall_at_k, reciprocal_rank
from scipy.sparse import csr_matrix, identity

CONVENTION = "lightfm"
TOLERANCE = 1e-6
IMPRECISE = "computes in single precision"
NEEDS = {
    "*": {
        "has_scores": "it ranks all items by their scores",
        "untied": "an item has the worst rank of all that have its score",
    },
    "auc": {"some_irrelevant": ""},
}
NAMES = {
    "precision@k": precision_at_k,
    "recall@k": recall_at_k,
    "auc": auc_score,
    "mrr": reciprocal_rank,
}


@lru_cache(maxsize=1)
def fitted(case):
    """Return (model, test interactions)."""
    n_users = len(case.lists)
    test = matrix(case.pairs, (n_users, case.n_items))
    model = LightFM(no_components=n_users)
    model.fit_partial(test, epochs=0)  # it requires a call
    model.user_embeddings = identity(n_users, np.float32, "csr").toarray()
    model.item_embeddings = np.array(case.scores, np.float32).T.copy()
    model.user_biases = np.zeros(n_users, np.float32)
    model.item_biases = np.zeros(case.n_items, np.float32)
    return model, test


def matrix(rows, shape):
    found = [(user, item, gain) for user, row in enumerate(rows) for item, gain in row.items()]
    users, items, gains = zip(*found, strict=True)
    return csr_matrix((np.array(gains, np.float32), (users, items)), shape)


def values(name, case):
    """Return the values of users, None for users that it leaves out unless rows are preserved."""
    model, test = fitted(case)
    options = {"k": case.k} if name.endswith("@k") else {}
    # Without preserved rows, it fails for a single user.
    found = NAMES[name](model, test, **options, preserve_rows=True)
    kept = np.diff(test.indptr) > 0
    return [
        float(value) if is_kept else None
        for value, is_kept in zip(np.atleast_1d(found), kept, strict=True)
    ]


METRICS = {name: partial(values, name) for name in NAMES}
