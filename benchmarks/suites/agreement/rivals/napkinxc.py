"""napkinXC: lists of labels; means only. A user is an instance, an item a label."""

from functools import partial

import numpy as np
from napkinxc import metrics
from scipy.sparse import csr_matrix

CONVENTION = "napkinxc"
_OF_TRAIN = {"train_of_three": ""}
NEEDS = {
    "psp@k": _OF_TRAIN,
    "psp(a=0.6,b=2.6)@k": _OF_TRAIN,
    "psrecall@k": _OF_TRAIN,
    "psndcg@k": _OF_TRAIN,
}
NOT_COMPARED = {
    "coverage@k": "the share of what is relevant to anyone that is found by anyone",
    "f1@k": "a mean over items",
}


def last(metric, case, **options):
    """Return the value at k; it returns the values at 1 to k."""
    relevant = [list(row) for row in case.pairs]
    return float(metric(relevant, case.lists, k=case.k, **options)[-1])


def propensity_scored(metric, options, case):
    # Only users with an item in train, as in ours: its N is the number of rows.
    rows = [row for row in case.train if row]
    items = [item for row in rows for item in row]
    users = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
    train = csr_matrix((np.ones(len(items)), (users, items)), (len(rows), case.n_items))
    inverse = metrics.Jain_et_al_inverse_propensity(train, **options)
    return last(metric, case, inv_ps=np.ravel(inverse))


METRICS = {
    "precision@k": partial(last, metrics.precision_at_k),
    "recall@k": partial(last, metrics.recall_at_k),
    "hit_rate@k": partial(last, metrics.abandonment_at_k),
    "dcg@k": partial(last, metrics.dcg_at_k),
    "ndcg@k": partial(last, metrics.ndcg_at_k),
    "psp@k": partial(propensity_scored, metrics.psprecision_at_k, {}),
    "psp(a=0.6,b=2.6)@k": partial(
        propensity_scored, metrics.psprecision_at_k, {"A": 0.6, "B": 2.6}
    ),
    "psrecall@k": partial(propensity_scored, metrics.psrecall_at_k, {}),
    "psndcg@k": partial(propensity_scored, metrics.psndcg_at_k, {}),
}
