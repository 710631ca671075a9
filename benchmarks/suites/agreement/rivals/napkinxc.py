"""napkinXC: lists of labels; means only. A user is an instance, an item a label."""

import numpy as np
from napkinxc import metrics

METRICS = {
    "precision@k": (metrics.precision_at_k,),
    "recall@k": (metrics.recall_at_k,),
    "hit_rate@k": (metrics.abandonment_at_k,),
    "dcg@k": (metrics.dcg_at_k,),
    "ndcg@k": (metrics.ndcg_at_k,),
    "psp@k": (metrics.psprecision_at_k, {}),
    "psp(a=0.6,b=2.6)@k": (metrics.psprecision_at_k, {"A": 0.6, "B": 2.6}),
    "psrecall@k": (metrics.psrecall_at_k, {}),
    "psndcg@k": (metrics.psndcg_at_k, {}),
}


def values(theirs, case):
    """Return the value at k; it returns the values at 1 to k. Options are of propensities."""
    metric, *options = theirs
    given = {}
    if options:
        # Only users with an item in train, as in ours: its N is the number of rows.
        train = case.matrix([row for row in case.train if row])
        inverse = metrics.Jain_et_al_inverse_propensity(train, **options[0])
        given["inv_ps"] = np.ravel(inverse)
    return float(metric([list(row) for row in case.pairs], case.lists, k=case.k, **given)[-1])
