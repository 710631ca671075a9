"""pytrec_eval: trec_eval itself, on dictionaries. A user without a list is not in the run."""

from functools import lru_cache, partial

import pytrec_eval

CONVENTION = "trec_eval"
TIES = "item_descending"
NEEDS = {}
NOT_COMPARED = {}

NAMES = {
    "ndcg": "ndcg",
    "ndcg@k": "ndcg_cut.{k}",
    "precision@k": "P.{k}",
    "precision(denominator=min)@k": "relative_P.{k}",
    "recall": "set_recall",
    "recall@k": "recall.{k}",
    "hit_rate@k": "success.{k}",
    "mrr": "recip_rank",
    "map": "map",
    "map@k": "map_cut.{k}",
    "r_precision": "Rprec",
}


@lru_cache(maxsize=1)
def scores(case):
    qrels = {
        f"{user}": {document(item): gain for item, gain in row.items()}
        for user, row in enumerate(case.stored)
        if row
    }
    run = {f"{user}": scored(case, user) for user in case.users if case.lists[user]}
    measures = {name.format(k=case.k) for name in NAMES.values()}
    return pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)


def scored(case, user):
    if case.scores:
        return {document(item): float(score) for item, score in enumerate(case.scores[user])}
    return {document(item): float(-rank) for rank, item in enumerate(case.lists[user])}


def document(item):
    return f"{item:03d}"  # equal scores are ordered by the text


def values(name, case):
    key = name.format(k=case.k).replace(".", "_")
    found = scores(case)
    return [found[f"{user}"][key] if f"{user}" in found else None for user in case.users]


METRICS = {ours: partial(values, theirs) for ours, theirs in NAMES.items()}
