"""Elliot 0.3.1 (github.com/sisinflab/elliot, fc27efe): its metrics, called as by its Evaluator.

It is not on a package index. Its folder must be on PYTHONPATH.
"""

from functools import lru_cache, partial
from types import SimpleNamespace

import numpy as np
from elliot.evaluation import metrics
from elliot.evaluation.popularity_utils import Popularity
from elliot.evaluation.relevance import Relevance
from scipy.sparse import csr_matrix

CONVENTION = "elliot"
_TRAIN = {"train_has_all": "", "stored_are_relevant": "it evaluates all users with stored pairs"}
NEEDS = {
    "entropy@k": {
        "full_lists": "weighs a recommendation by the length of its list",
        "stored_are_relevant": "it evaluates all users with stored pairs",
    },
    "popularity@k": _TRAIN,
    "aplt@k": _TRAIN,
    "aclt@k": _TRAIN,
    "epc@k": _TRAIN,
    "efd@k": _TRAIN,
    "pop_rsp@k": _TRAIN,
    "pop_reo@k": _TRAIN,
}
NOT_COMPARED = {
    "auc": "of other ranks than the pairs of relevant and other items give",
    "coverage@k": "the number of items",
    "gini@k": "1 − the Gini index, which is divided by N − 1",
    "map@k": "the mean of the precisions at the ranks from 1 to k",
    "mar@k": "the mean of the recalls at the ranks from 1 to k",
    "user_coverage@k": "the number of users",
}
PER_USER = {
    "ndcg@k": "nDCG",
    "ndcg(gain=binary)@k": "nDCGRendle2020",
    "precision@k": "Precision",
    "recall@k": "Recall",
    "hit_rate@k": "HR",
    "mrr@k": "MRR",
    "f1@k": "F1",
    "popularity@k": "ARP",
    "aplt@k": "APLT",
    "aclt@k": "ACLT",
    "epc@k": "EPC",
    "efd@k": "EFD",
}
OF_ALL = {"entropy@k": "ShannonEntropy", "pop_reo@k": "PopREO", "pop_rsp@k": "PopRSP"}


class Seen(dict):
    """The items that users have seen; users who have seen nothing are missing."""

    def __missing__(self, user):
        return {}


@lru_cache(maxsize=1)
def given(case):
    """Return (recommendations, the argument that its Evaluator passes to metrics)."""
    test = {user: row for user, row in enumerate(case.stored) if row}
    users = np.repeat(np.arange(len(case.train)), [len(row) for row in case.train])
    items = [item for row in case.train for item in row]
    train = csr_matrix((np.ones(len(items)), (users, items)), (len(case.train), case.n_items))
    data = SimpleNamespace(
        sp_i_train=train,
        private_items={item: item for item in range(case.n_items)},
        transactions=len(items),
        train_dict=Seen(
            (user, dict.fromkeys(row, 1)) for user, row in enumerate(case.train) if row
        ),
    )
    objects = SimpleNamespace(
        relevance=Relevance(test, 1),
        pop=Popularity(data),
        num_items=case.n_items,
        data=data,
        cutoff=case.k,
    )
    lists = {user: [(item, 1.0) for item in case.lists[user]] for user in test if case.lists[user]}
    return lists, objects


def metric(name, case):
    lists, objects = given(case)
    return getattr(metrics, name)(lists, None, None, objects)


def per_user(name, case):
    found = metric(name, case).eval_user_metric()
    return [None if user not in found else float(found[user]) for user in case.users]


def of_all(name, case):
    return float(metric(name, case).eval())


METRICS = {ours: partial(per_user, theirs) for ours, theirs in PER_USER.items()} | {
    ours: partial(of_all, theirs) for ours, theirs in OF_ALL.items()
}
