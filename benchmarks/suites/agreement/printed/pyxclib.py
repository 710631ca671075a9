"""pyxclib 0.97 (github.com/kunaldahiya/pyxclib, 5d13086): sparse matrices of scores and labels.

It is not on a package index. Its folder must be on PYTHONPATH. The top k come from its numba code;
its Cython module, which is replaced here, gives different ones.
"""

import sys
from functools import lru_cache, partial
from types import SimpleNamespace

import numpy as np
from scipy.sparse import csr_matrix

sys.modules["xclib.utils._sparse"] = SimpleNamespace(  # type: ignore[assignment]
    _rank=None, _topk=None, read_file=None, read_file_safe=None
)

from xclib.evaluation import xc_metrics  # noqa: E402

CONVENTION = "pyxclib"
TOLERANCE = 1e-6
IMPRECISE = "computes ndcg and psndcg in single precision"
_OF_TRAIN = {"train_of_three": ""}
NEEDS = {
    "psp@k": _OF_TRAIN,
    "psp(a=0.6,b=2.6)@k": _OF_TRAIN,
    "psrecall@k": _OF_TRAIN,
    "psndcg@k": _OF_TRAIN,
}
NOT_COMPARED = {"auc": "of the pairs within the first k items of the list"}


def matrix(rows, shape):
    """Return the values of rows of (item, value)."""
    users = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    items, values = zip(*(pair for row in rows for pair in row), strict=True)
    return csr_matrix((np.array(values, float), (users, items)), shape)


@lru_cache(maxsize=1)
def matrices(case):
    """Return (scores of lists, labels)."""
    shape = (len(case.lists), case.n_items)
    lists = [[(item, 1 / rank) for rank, item in enumerate(row, 1)] for row in case.lists]
    return matrix(lists, shape), matrix([[(i, 1) for i in row] for row in case.relevant], shape)


def last(metric, case, **options):
    """Return the value at k; it returns the values at 1 to k."""
    return float(metric(*matrices(case), k=case.k, **options)[-1])


def propensity_scored(metric, a, b, case):
    # Only users with an item in train, as in ours: its N is the number of rows.
    rows = [[(item, 1) for item in row] for row in case.train if row]
    inverse = xc_metrics.compute_inv_propesity(matrix(rows, (len(rows), case.n_items)), a, b)
    return last(metric, case, inv_psp=inverse)


METRICS = {
    "precision@k": partial(last, xc_metrics.precision),
    "recall@k": partial(last, xc_metrics.recall),
    "hit_rate@k": partial(last, xc_metrics.hits),
    "ndcg@k": partial(last, xc_metrics.ndcg),
    "psp@k": partial(propensity_scored, xc_metrics.psprecision, 0.55, 1.5),
    "psp(a=0.6,b=2.6)@k": partial(propensity_scored, xc_metrics.psprecision, 0.6, 2.6),
    "psrecall@k": partial(propensity_scored, xc_metrics.psrecall, 0.55, 1.5),
    "psndcg@k": partial(propensity_scored, xc_metrics.psndcg, 0.55, 1.5),
}
