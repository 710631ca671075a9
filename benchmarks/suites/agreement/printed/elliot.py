"""Elliot 0.3.1 (github.com/sisinflab/elliot, fc27efe): its metrics, called as by its Evaluator.

It is not on a package index. Its folder must be on PYTHONPATH.
"""

from functools import lru_cache
from types import SimpleNamespace

from elliot.evaluation import metrics
from elliot.evaluation.popularity_utils import Popularity
from elliot.evaluation.relevance import Relevance

CONVENTION = "elliot"
_STORED = {"stored_are_relevant": "it evaluates all users with stored pairs"}
_OF_TRAIN = ("popularity@k", "aplt@k", "aclt@k", "epc@k", "efd@k", "pop_rsp@k", "pop_reo@k")
NEEDS = {
    "entropy@k": {"full_lists": "weighs a recommendation by the length of its list"} | _STORED,
    **dict.fromkeys(_OF_TRAIN, {"train_has_all": ""} | _STORED),
}
NOT_COMPARED = {
    "auc": "of other ranks than the pairs of relevant and other items give",
    "coverage@k": "the number of items",
    "gini@k": "1 − the Gini index, which is divided by N − 1",
    "map@k": "the mean of the precisions at the ranks from 1 to k",
    "mar@k": "the mean of the recalls at the ranks from 1 to k",
    "user_coverage@k": "the number of users",
}
METRICS = {
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
    "entropy@k": "ShannonEntropy",
    "pop_reo@k": "PopREO",
    "pop_rsp@k": "PopRSP",
}
#: These are numbers of all users together.
OF_ALL = ("ShannonEntropy", "PopREO", "PopRSP")


class Seen(dict):
    """The items that users have seen; users who have seen nothing are missing."""

    def __missing__(self, user):
        return {}


@lru_cache(maxsize=1)
def given(case):
    """Return (recommendations, the argument that its Evaluator passes to metrics)."""
    test = {user: row for user, row in enumerate(case.stored) if row}
    train = case.matrix(case.train)
    data = SimpleNamespace(
        sp_i_train=train,
        private_items={item: item for item in range(case.n_items)},
        transactions=train.nnz,
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


def values(name, case):
    lists, objects = given(case)
    metric = getattr(metrics, name)(lists, None, None, objects)
    if name in OF_ALL:
        return float(metric.eval())
    found = metric.eval_user_metric()
    return case.by_user({user: float(value) for user, value in found.items()})
