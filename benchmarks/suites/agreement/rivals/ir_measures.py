"""ir_measures: measures as objects; a user without a list counts 0."""

from functools import lru_cache, partial

import ir_measures
from ir_measures import AP, RR, P, Qrel, R, Rprec, ScoredDoc, SetR, Success, nDCG

CONVENTION = "trec_eval"
TIES = "item_descending"
NEEDS = {"*": {"all_lists": "a user without a list counts 0, as with trec_eval's option -c"}}
NOT_COMPARED = {
    "err@k": "printed with five decimals by the script that is called for it",
    "ndcg(gain=exp)@k": "printed with five decimals by the script that is called for it",
    "mrr@k": "comes from another program, which orders equal scores the other way round",
}

MEASURES = {
    "ndcg": lambda _: nDCG,
    "ndcg@k": lambda k: nDCG @ k,
    "precision@k": lambda k: P @ k,
    "recall": lambda _: SetR,
    "recall@k": lambda k: R @ k,
    "hit_rate@k": lambda k: Success @ k,
    "mrr": lambda _: RR,
    "map": lambda _: AP,
    "map@k": lambda k: AP @ k,
    "r_precision": lambda _: Rprec,
}


@lru_cache(maxsize=1)
def scores(case):
    qrels = [
        Qrel(f"{user}", document(item), gain)
        for user, row in enumerate(case.stored)
        for item, gain in row.items()
    ]
    measures = [measure(case.k) for measure in MEASURES.values()]
    run = [found for user in case.users for found in scored(case, user)]
    found = ir_measures.iter_calc(measures, qrels, run)
    return {(metric.measure, int(metric.query_id)): metric.value for metric in found}


def scored(case, user):
    if case.scores:
        pairs = enumerate(case.scores[user])
    else:
        pairs = ((item, -rank) for rank, item in enumerate(case.lists[user]))
    return [ScoredDoc(f"{user}", document(item), float(score)) for item, score in pairs]


def document(item):
    return f"{item:03d}"  # equal scores are ordered by the text


def values(measure, case):
    return [scores(case).get((measure(case.k), user)) for user in case.users]


METRICS = {ours: partial(values, measure) for ours, measure in MEASURES.items()}
