"""recometrics: every user's metrics from factors and biases of items, with all items ranked."""

import numpy as np
from recometrics import calc_reco_metrics
from suites.agreement.rivals.recometrics import METRICS


def answer(problem):
    found = calc_reco_metrics(
        problem.train,
        problem.validation,
        problem.user_factors.astype(np.float64),  # otherwise, it computes in single precision
        problem.item_factors.astype(np.float64),
        k=problem.k,
        item_biases=problem.item_biases.astype(np.float64),
        as_df=False,
        all_metrics=True,
        break_ties_with_noise=False,
        nthreads=1,
    )
    return {"values": {ours: found[theirs] for ours, theirs in METRICS.items()}}
