"""pytrec_eval: trec_eval itself, on dictionaries. A user without a list is not in the run."""

import math
from functools import lru_cache, partial

import pytrec_eval

CONVENTION = "trec_eval"
TIES = "item_descending"
NEEDS = {}
NOT_COMPARED = {"rbp": "first in trec_eval 10"}

#: Our name of a metric, the measure, and the suffix of its name in the results.
NAMES = {
    "ndcg": ("ndcg", ""),
    "ndcg@k": ("ndcg_cut.{k}", ""),
    "precision@k": ("P.{k}", ""),
    "precision(denominator=min)@k": ("relative_P.{k}", ""),
    "recall": ("set_recall", ""),
    "recall@k": ("recall.{k}", ""),
    "hit_rate@k": ("success.{k}", ""),
    "mrr": ("recip_rank", ""),
    "map": ("map", ""),
    "map@k": ("map_cut.{k}", ""),
    "r_precision": ("Rprec", ""),
    "bpref": ("bpref", ""),
    "infap": ("infAP", ""),
    "iprec_at_recall": ("11pt_avg", ""),
    "set_precision": ("set_P", ""),
    "set_relative_precision": ("set_relative_P", ""),
    "set_map": ("set_map", ""),
    "set_f": ("set_F", ""),
    "utility": ("utility", ""),
    "num_ret": ("num_ret", ""),
    "num_rel": ("num_rel", ""),
    "num_rel_ret": ("num_rel_ret", ""),
    "num_nonrel_judged_ret": ("num_nonrel_judged_ret", ""),
}
NAMES |= {
    f"iprec_at_recall(level={level / 10:g})": ("iprec_at_recall", f"_{level / 10:.2f}")
    for level in range(11)
}
NAMES |= {
    f"r_precision(multiple={fifths / 5:g})": ("Rprec_mult", f"_{fifths / 5:.2f}")
    for fifths in (1, 2, 3, 4, 6, 7, 8, 9, 10)
}

#: The metrics that are also computed from only judged items.
JUDGED = ("ndcg", "precision@k", "map", "mrr", "r_precision", "infap", "set_f", "num_ret")

#: Measures whose results are logarithms, which are averaged.
GEOMETRIC = {"map(average=geometric)": "gm_map", "bpref(average=geometric)": "gm_bpref"}

#: Measures without a number for each user: `relstring` is text, the others are for a whole run.
NO_NUMBER = {"num_q", "relstring", "runid"}
EXPERIMENTS = {"ndcg_rel", "Rndcg", "G", "binG"}  # not published, and not in this package

_known = {measure.partition(".")[0] for measure, _ in NAMES.values()} | set(GEOMETRIC.values())
if _known | NO_NUMBER | EXPERIMENTS != pytrec_eval.supported_measures:
    raise SystemExit(f"other measures: {_known ^ pytrec_eval.supported_measures}")


@lru_cache(maxsize=2)
def scores(case, judged_only):
    qrels = {
        f"{user}": {document(item): gain for item, gain in row.items()}
        for user, row in enumerate(case.stored)
        if row
    }
    run = {f"{user}": scored(case, user) for user in case.users if case.lists[user]}
    measures = {measure.format(k=case.k) for measure, _ in NAMES.values()} | {*GEOMETRIC.values()}
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, measures, judged_docs_only_flag=judged_only)
    return evaluator.evaluate(run)


def scored(case, user):
    if case.scores:
        return {document(item): float(score) for item, score in enumerate(case.scores[user])}
    return {document(item): float(-rank) for rank, item in enumerate(case.lists[user])}


def document(item):
    return f"{item:03d}"  # equal scores are ordered by the text


def values(measure, added, judged_only, case):
    key = measure.format(k=case.k).replace(".", "_") + added
    found = scores(case, judged_only)
    return [found[f"{user}"][key] if f"{user}" in found else None for user in case.users]


def geometric_mean(measure, case):
    found = [value for value in values(measure, "", False, case) if value is not None]
    return math.exp(sum(found) / len(found))


METRICS = {
    **{ours: partial(values, *theirs, False) for ours, theirs in NAMES.items()},
    **{f"{ours} (judged)": partial(values, *NAMES[ours], True) for ours in JUDGED},
    **{ours: partial(geometric_mean, measure) for ours, measure in GEOMETRIC.items()},
}
