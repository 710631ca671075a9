"""recometrics: users' factors are unit vectors, which give items the scores of the case."""

from functools import lru_cache, partial

import numpy as np
from recometrics import calc_reco_metrics
from scipy.sparse import csr_matrix

CONVENTION = "recometrics"
_LEFT = {"more_than_k": "it leaves out users with no more than k candidates"}
_IRRELEVANT = {"some_irrelevant": ""}
NEEDS = {
    "*": {
        "has_scores": "it ranks all items by their scores",
        "untied": "equal scores are in a random order",
    },
    "precision@k": _LEFT | _IRRELEVANT,
    "recall(denominator=min)@k": _LEFT | _IRRELEVANT,
    "recall@k": _LEFT | _IRRELEVANT,
    "hit_rate@k": _LEFT | _IRRELEVANT,
    "map@k": _IRRELEVANT,
    "map(normalizer=min)@k": _IRRELEVANT,
    "mrr@k": _IRRELEVANT,
    "auc": _IRRELEVANT,
    "map": _IRRELEVANT,
}
NAMES = {
    "precision@k": "P@K",
    "recall(denominator=min)@k": "TP@K",
    "recall@k": "R@K",
    "map@k": "AP@K",
    "map(normalizer=min)@k": "TAP@K",
    "ndcg@k": "NDCG@K",
    "hit_rate@k": "Hit@K",
    "mrr@k": "RR@K",
    "auc": "ROC_AUC",
    "map": "PR_AUC",
}


@lru_cache(maxsize=1)
def found(case):
    n_users = len(case.lists)
    gains_of = enumerate(case.pairs)
    rows = [(user, item, gain) for user, row in gains_of for item, gain in row.items()]
    users, items, gains = zip(*rows, strict=True)
    test = csr_matrix((np.array(gains, float), (users, items)), (n_users, case.n_items))
    return calc_reco_metrics(
        None,
        test,
        np.eye(n_users),
        np.array(case.scores, float).T.copy(),
        k=case.k,
        as_df=False,
        all_metrics=True,
        break_ties_with_noise=False,
        nthreads=1,
    )


def values(name, case):
    """Return the values of users; users without a relevant item have NaN."""
    return [None if np.isnan(value) else value for value in found(case)[name].tolist()]


METRICS = {ours: partial(values, theirs) for ours, theirs in NAMES.items()}
