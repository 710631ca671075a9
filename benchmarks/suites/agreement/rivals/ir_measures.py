"""ir_measures: measures as objects; a user without a list counts 0."""

from functools import lru_cache

import ir_measures as ir

METRICS = {
    "ndcg": lambda _: ir.nDCG,
    "ndcg@k": lambda k: ir.nDCG @ k,
    "precision@k": lambda k: ir.P @ k,
    "recall": lambda _: ir.SetR,
    "recall@k": lambda k: ir.R @ k,
    "hit_rate@k": lambda k: ir.Success @ k,
    "mrr": lambda _: ir.RR,
    "map": lambda _: ir.AP,
    "map@k": lambda k: ir.AP @ k,
    "r_precision": lambda _: ir.Rprec,
    "bpref": lambda _: ir.Bpref,
    "infap": lambda _: ir.infAP,
    "iprec_at_recall(level=0.2)": lambda _: ir.IPrec @ 0.2,
    "iprec_at_recall(level=0.7)": lambda _: ir.IPrec @ 0.7,
    "set_precision": lambda _: ir.SetP,
    "set_relative_precision": lambda _: ir.SetRelP,
    "set_map": lambda _: ir.SetAP,
    "set_f": lambda _: ir.SetF,
    "set_f(beta=1.4142135623730951)": lambda _: ir.SetF(beta=2.0),  # it does not square beta
    "num_rel": lambda _: ir.NumRel,
    "num_rel_ret": lambda _: ir.NumRelRet,
    "judged@k": lambda k: ir.Judged @ k,
    "precision@k (judged)": lambda k: ir.P(judged_only=True) @ k,
    "map (judged)": lambda _: ir.AP(judged_only=True),
}


@lru_cache(maxsize=1)
def scores(case):
    measures = [make(case.k) for make in METRICS.values()]
    found = ir.iter_calc(measures, case.named(case.stored), case.named(case.run()))
    return {(metric.measure, int(metric.query_id)): metric.value for metric in found}


def values(measure, case):
    return [scores(case).get((measure(case.k), user)) for user in case.users]
