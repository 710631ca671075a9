"""ranx: a Qrels and a Run from dictionaries; a user without stored items is only in the Run."""

from functools import lru_cache, partial

from ranx import Qrels, Run, evaluate

CONVENTION = "ranx"
NEEDS = {"cg@k": {"binary": "counts hits"}}
NOT_COMPARED = {}

NAMES = {
    "ndcg": "ndcg",
    "ndcg@k": "ndcg@{k}",
    "ndcg(gain=exp)@k": "ndcg_burges@{k}",
    "precision@k": "precision@{k}",
    "recall@k": "recall@{k}",
    "hit_rate@k": "hit_rate@{k}",
    "f1@k": "f1@{k}",
    "mrr": "mrr",
    "mrr@k": "mrr@{k}",
    "map": "map",
    "map@k": "map@{k}",
    "r_precision": "r-precision",
    "rbp(p=0.8)": "rbp.80",
    "cg@k": "hits@{k}",
}


@lru_cache(maxsize=1)
def scores(case):
    qrels = {
        f"{user}": {f"{item}": gain for item, gain in case.stored[user].items()}
        for user in case.users
        if case.stored[user]
    }
    run = {
        f"{user}": {f"{item}": float(-rank) for rank, item in enumerate(items)}
        for user, items in enumerate(case.lists)
        if items
    }
    metrics = [name.format(k=case.k) for name in NAMES.values()]
    # There are fewer than ten users, so they are returned in the order of their names.
    found = evaluate(
        Qrels(qrels),
        Run(run),
        metrics,
        return_mean=False,
        save_results_in_run=False,
        make_comparable=True,
    )
    return list(qrels), found


def values(name, case):
    users, found = scores(case)
    by_user = dict(zip(users, found[name.format(k=case.k)].tolist(), strict=True))
    return [by_user.get(f"{user}") for user in case.users]


METRICS = {ours: partial(values, theirs) for ours, theirs in NAMES.items()}
