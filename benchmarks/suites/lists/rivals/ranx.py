"""ranx: a Qrels and a Run, built once from dictionaries; numba in parallel."""

import numpy as np
from ranx import Qrels, Run, evaluate

from ..case import SEVERAL, dictionaries


def prepare(lists):
    relevant, recommended = dictionaries(lists)
    qrels, run = Qrels(relevant), Run(recommended)

    def ndcg(*data):
        # It also stores the values in the Run. Without this, it fails for a single metric.
        return evaluate(*data, "ndcg@10", return_mean=False)

    def several():
        return evaluate(qrels, run, SEVERAL, return_mean=False, save_results_in_run=False)

    def values(result):
        # Users are returned in the order of their ids as strings.
        order = np.argsort(np.array([int(user) for user in run.get_query_ids()]))
        return {name: np.asarray(column)[order] for name, column in result.items()}

    def of_ndcg(result):
        return values({"ndcg@10": result})

    return {
        "ndcg@10": (lambda: ndcg(qrels, run), of_ndcg),
        "ndcg@10, whole call": (lambda: ndcg(Qrels(relevant), Run(recommended)), of_ndcg),
        "several metrics": (several, values),
    }
