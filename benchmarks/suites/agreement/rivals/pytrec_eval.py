"""pytrec_eval: trec_eval itself, on dictionaries. A user without a list is not in the run."""

import math
from functools import lru_cache, partial

import pytrec_eval

#: Our name of a metric, and the measure. A suffix of its name in the results is behind a space.
METRICS = {
    **{name: name for name in ("ndcg", "map", "bpref", "set_map", "utility")},
    **{name: name for name in ("num_ret", "num_rel", "num_rel_ret", "num_nonrel_judged_ret")},
    "ndcg@k": "ndcg_cut.{k}",
    "precision@k": "P.{k}",
    "precision(denominator=min)@k": "relative_P.{k}",
    "recall": "set_recall",
    "recall@k": "recall.{k}",
    "hit_rate@k": "success.{k}",
    "mrr": "recip_rank",
    "map@k": "map_cut.{k}",
    "r_precision": "Rprec",
    "infap": "infAP",
    "iprec_at_recall": "11pt_avg",
    "set_precision": "set_P",
    "set_relative_precision": "set_relative_P",
    "set_f": "set_F",
}
METRICS |= {
    f"iprec_at_recall(level={level / 10:g})": f"iprec_at_recall _{level / 10:.2f}"
    for level in range(11)
}
METRICS |= {
    f"r_precision(multiple={fifths / 5:g})": f"Rprec_mult _{fifths / 5:.2f}"
    for fifths in (1, 2, 3, 4, 6, 7, 8, 9, 10)
}

#: The metrics that are also computed from only judged items.
JUDGED = ("ndcg", "precision@k", "map", "mrr", "r_precision", "infap", "set_f", "num_ret")

#: Measures whose results are logarithms, which are averaged.
GEOMETRIC = {"map(average=geometric)": "gm_map", "bpref(average=geometric)": "gm_bpref"}

#: Measures without a number for each user: `relstring` is text, the others are for a whole run.
NO_NUMBER = {"num_q", "relstring", "runid"}
EXPERIMENTS = {"ndcg_rel", "Rndcg", "G", "binG"}  # not published, and not in this package

MEASURES = {name.partition(" ")[0] for name in (*METRICS.values(), *GEOMETRIC.values())}
_known = {measure.partition(".")[0] for measure in MEASURES}
if _known | NO_NUMBER | EXPERIMENTS != pytrec_eval.supported_measures:
    raise SystemExit(f"other measures: {_known ^ pytrec_eval.supported_measures}")


@lru_cache(maxsize=2)
def scores(case, judged_only):
    listed = zip(case.run(), case.lists, strict=True)
    run = case.named([row if items else {} for row, items in listed])
    measures = {measure.format(k=case.k) for measure in MEASURES}
    evaluator = pytrec_eval.RelevanceEvaluator(
        case.named(case.stored), measures, judged_docs_only_flag=judged_only
    )
    return evaluator.evaluate(run)


def values(measure, case, *, judged_only=False):
    name, _, suffix = measure.partition(" ")
    key = name.format(k=case.k).replace(".", "_") + suffix
    found = scores(case, judged_only)
    return [found[f"{user}"][key] if f"{user}" in found else None for user in case.users]


def geometric_mean(measure, case):
    found = [value for value in values(measure, case) if value is not None]
    return math.exp(sum(found) / len(found))


FUNCTIONS = {
    **{f"{ours} (judged)": partial(values, METRICS[ours], judged_only=True) for ours in JUDGED},
    **{ours: partial(geometric_mean, measure) for ours, measure in GEOMETRIC.items()},
}
