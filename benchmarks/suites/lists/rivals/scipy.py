"""SciPy: the cosines of all pairs of items that occur together, as one product of matrices."""

import numpy as np
from scipy.sparse import csr_matrix, diags


def prepare(lists):
    return {"diversity@10": (lambda: diversity(lists), lambda result: {"diversity@10": result})}


def diversity(lists):
    norms = np.sqrt(np.maximum(np.asarray(lists.train.sum(axis=0)).ravel(), 1.0))
    unit = csr_matrix(lists.train @ diags(1.0 / norms))
    cosines = csr_matrix(unit.T @ unit)
    first, second = np.triu_indices(lists.ids.shape[1], 1)
    pairs = cosines[lists.ids[:, first].ravel(), lists.ids[:, second].ravel()]
    return 1.0 - np.asarray(pairs).reshape(len(lists.ids), -1).mean(axis=1)
