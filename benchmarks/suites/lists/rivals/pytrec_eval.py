"""pytrec_eval: dictionaries of dictionaries, read by trec_eval's own C code."""

import numpy as np
from pytrec_eval import RelevanceEvaluator

from ..case import CUT_OFFS, dictionaries

NAMES = {
    "ndcg": "ndcg_cut",
    "precision": "P",
    "recall": "recall",
    "hit_rate": "success",
    "map": "map_cut",
}
MEASURES = {f"{ours}@{k}": f"{theirs}_{k}" for k in CUT_OFFS for ours, theirs in NAMES.items()}
# The reciprocal rank has no cut-off here: it uses the whole list, which has ten items.
MEASURES["mrr@10"] = "recip_rank"


def prepare(lists):
    relevant, run = dictionaries(lists)

    def evaluator():
        return RelevanceEvaluator(relevant, {"ndcg_cut_10"})

    in_hand = evaluator()
    several = RelevanceEvaluator(relevant, set(MEASURES.values()))

    def values(result):
        per_user = [result[str(user)] for user in lists.users]
        return {
            ours: np.array([row[theirs] for row in per_user])
            for ours, theirs in MEASURES.items()
            if theirs in per_user[0]
        }

    return {
        "ndcg@10": (lambda: in_hand.evaluate(run), values),
        "ndcg@10, whole call": (lambda: evaluator().evaluate(run), values),
        "several metrics": (lambda: several.evaluate(run), values),
    }
