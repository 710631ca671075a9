"""rankereval: labels from a sparse matrix, rankings from lists of ids."""

from functools import lru_cache

import numpy as np
import rankereval as library

#: The metric, its options, and whether it reads gains.
METRICS = {
    "dcg@k": (library.DCG, {"log_base": "2"}, True),
    "ndcg@k": (library.NDCG, {"log_base": "2"}, True),
    "ndcg(gain=binary)@k": (library.NDCG, {"log_base": "2"}, False),
    "precision@k": (library.Precision, {}, False),
    "precision(denominator=length)@k": (library.Precision, {"truncated": True}, False),
    "recall@k": (library.Recall, {}, False),
    "recall(denominator=min)@k": (library.Recall, {"truncated": True}, False),
    "f1@k": (library.F1, {}, False),
    "mrr@k": (library.ReciprocalRank, {}, False),
    "map@k": (library.AP, {}, False),
}


@lru_cache(maxsize=1)
def objects(case):
    """Return rankings, and labels by whether they have gains."""
    gains = case.matrix(case.pairs, np.float32)
    return library.Rankings.from_ranked_indices(case.lists), {
        True: library.NumericLabels.from_matrix(gains),
        False: library.BinaryLabels.from_matrix(gains.sign()),
    }


def values(theirs, case):
    metric, options, graded = theirs
    rankings, labels = objects(case)
    return metric(case.k, **options).score(labels[graded], rankings)  # NaN for users left out
