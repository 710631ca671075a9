"""pyxclib 0.97 (github.com/kunaldahiya/pyxclib, 5d13086): sparse matrices of scores and labels.

It is not on a package index. Its folder must be on PYTHONPATH. The top k come from its numba code;
its Cython module, which is replaced here, gives different ones.
"""

import sys
from functools import lru_cache
from types import SimpleNamespace

sys.modules["xclib.utils._sparse"] = SimpleNamespace(  # type: ignore[assignment]
    _rank=None, _topk=None, read_file=None, read_file_safe=None
)

from xclib.evaluation import xc_metrics  # noqa: E402

#: The metric, and the constants of its propensities.
METRICS = {
    "precision@k": (xc_metrics.precision,),
    "recall@k": (xc_metrics.recall,),
    "hit_rate@k": (xc_metrics.hits,),
    "ndcg@k": (xc_metrics.ndcg,),
    "psp@k": (xc_metrics.psprecision, 0.55, 1.5),
    "psp(a=0.6,b=2.6)@k": (xc_metrics.psprecision, 0.6, 2.6),
    "psrecall@k": (xc_metrics.psrecall, 0.55, 1.5),
    "psndcg@k": (xc_metrics.psndcg, 0.55, 1.5),
}


@lru_cache(maxsize=1)
def matrices(case):
    """Return (scores of lists, labels)."""
    return case.matrix(case.listed(lambda rank: 1 / rank)), case.matrix(
        [list(row) for row in case.relevant]
    )


def values(theirs, case):
    """Return the value at k; it returns the values at 1 to k."""
    metric, *constants = theirs
    options = {}
    if constants:
        # Only users with an item in train, as in ours: its N is the number of rows.
        train = case.matrix([row for row in case.train if row])
        options["inv_psp"] = xc_metrics.compute_inv_propesity(train, *constants)
    return float(metric(*matrices(case), k=case.k, **options)[-1])
