"""Elliot 0.3.1 (github.com/sisinflab/elliot, fc27efe): its metrics, called as by its Evaluator.

It is not on a package index. Its folder must be on PYTHONPATH.
"""

from functools import lru_cache
from types import SimpleNamespace

from elliot.evaluation import metrics
from elliot.evaluation.popularity_utils import Popularity
from elliot.evaluation.relevance import Relevance

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
