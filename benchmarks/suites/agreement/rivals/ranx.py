"""ranx: a Qrels and a Run from dictionaries; a user without stored items is only in the Run."""

from functools import lru_cache

from ranx import Qrels, Run, evaluate

SAME = ("ndcg", "precision", "recall", "hit_rate", "f1", "mrr", "map")
METRICS = {
    **{name: name for name in ("ndcg", "mrr", "map")},
    **{f"{name}@k": f"{name}@{{k}}" for name in SAME},
    "ndcg(gain=exp)@k": "ndcg_burges@{k}",
    "r_precision": "r-precision",
    "rbp(p=0.8)": "rbp.80",
    "cg@k": "hits@{k}",
}


@lru_cache(maxsize=1)
def scores(case):
    qrels = case.named(case.stored)
    # There are fewer than ten users, so they are returned in the order of their names.
    found = evaluate(
        Qrels(qrels),
        Run(case.named(case.listed())),
        [name.format(k=case.k) for name in METRICS.values()],
        return_mean=False,
        save_results_in_run=False,
        make_comparable=True,
    )
    return [int(user) for user in qrels], found


def values(name, case):
    users, found = scores(case)
    return case.by_user(dict(zip(users, found[name.format(k=case.k)].tolist(), strict=True)))
