"""ir_measures: measures as objects; a user without a list counts 0."""

from functools import lru_cache, partial

import ir_measures
from ir_measures import (
    AP,
    RR,
    Bpref,
    IPrec,
    Judged,
    NumRel,
    NumRelRet,
    P,
    Qrel,
    R,
    Rprec,
    ScoredDoc,
    SetAP,
    SetF,
    SetP,
    SetR,
    SetRelP,
    Success,
    infAP,
    nDCG,
)

CONVENTION = "trec_eval"
TIES = "item_descending"
NEEDS = {
    "*": {"all_lists": "a user without a list counts 0, as with trec_eval's option -c"},
    "judged@k": {"untied": "comes from another program, which orders equal scores otherwise"},
}
NOT_COMPARED = {
    "err@k": "printed with five decimals by the script that is called for it",
    "ndcg(gain=exp)@k": "printed with five decimals by the script that is called for it",
    "num_ret": "beside num_rel_ret it gives the same number for both",
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
    "bpref": lambda _: Bpref,
    "infap": lambda _: infAP,
    "iprec_at_recall(level=0.2)": lambda _: IPrec @ 0.2,
    "iprec_at_recall(level=0.7)": lambda _: IPrec @ 0.7,
    "set_precision": lambda _: SetP,
    "set_relative_precision": lambda _: SetRelP,
    "set_map": lambda _: SetAP,
    "set_f": lambda _: SetF,
    "set_f(beta=1.4142135623730951)": lambda _: SetF(beta=2.0),  # it does not square beta
    "num_rel": lambda _: NumRel,
    "num_rel_ret": lambda _: NumRelRet,
    "judged@k": lambda k: Judged @ k,
    "precision@k (judged)": lambda k: P(judged_only=True) @ k,
    "map (judged)": lambda _: AP(judged_only=True),
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
