"""LightFM: a model with a factor for each user, which gives items the scores of the case."""

from functools import lru_cache

import numpy as np
from lightfm import LightFM
from lightfm.evaluation import auc_score, precision_at_k, recall_at_k, reciprocal_rank
from scipy.sparse import identity

METRICS = {
    "precision@k": lambda k, *data: precision_at_k(*data, k=k, preserve_rows=True),
    "recall@k": lambda k, *data: recall_at_k(*data, k=k, preserve_rows=True),
    "auc": lambda _, *data: auc_score(*data, preserve_rows=True),
    "mrr": lambda _, *data: reciprocal_rank(*data, preserve_rows=True),
}


@lru_cache(maxsize=1)
def fitted(case):
    """Return (model, test interactions)."""
    test = case.matrix(case.pairs, np.float32)
    n_users, n_items = case.shape
    factors = identity(n_users, np.float32, "csr").toarray(), np.array(case.scores, np.float32).T
    return model(test, *factors, np.zeros(n_users), np.zeros(n_items)), test


def model(interactions, user_factors, item_factors, user_biases, item_biases):
    """Return a model with these parameters, in single precision."""
    made = LightFM(no_components=user_factors.shape[1])
    made.fit_partial(interactions, epochs=0)  # it requires a call
    made.user_embeddings, made.user_biases = user_factors, user_biases.astype(np.float32)
    made.item_embeddings, made.item_biases = item_factors.copy(), item_biases.astype(np.float32)
    return made


def values(metric, case):
    """Return the values of users, None for users that it leaves out unless rows are preserved.

    Without preserved rows, it fails for a single user.
    """
    fit, test = fitted(case)
    found = np.atleast_1d(metric(case.k, fit, test)).tolist()
    return [value if n else None for value, n in zip(found, np.diff(test.indptr), strict=True)]
