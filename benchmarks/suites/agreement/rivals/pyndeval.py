"""pyndeval: TREC's ndeval, with the groups of relevant items as subtopics."""

from functools import lru_cache, partial

import pyndeval
from pyndeval import ScoredDoc, SubtopicQrel

CONVENTION = None
NEEDS = {"*": {"all_lists": "leaves out users without a list"}}
NOT_COMPARED = {}


@lru_cache(maxsize=1)
def scores(case):
    qrels = [
        SubtopicQrel(f"{user + 1}", f"{case.groups[item]}", document(item), 1)
        for user, row in enumerate(case.relevant)
        for item in row
    ]
    run = [
        ScoredDoc(f"{user + 1}", document(item), float(-rank))
        for user, items in enumerate(case.lists)
        for rank, item in enumerate(items)
    ]
    return pyndeval.ndeval(qrels, run)


def document(item):
    return f"{item:03d}"  # of documents that add the same, the last id as text comes first


def values(measure, case):
    found = scores(case)
    relevant = enumerate(case.relevant, start=1)
    return [found[f"{user}"][measure] if row else None for user, row in relevant]


METRICS = {
    "alpha_ndcg@5": partial(values, "alpha-nDCG@5"),
    "alpha_ndcg@10": partial(values, "alpha-nDCG@10"),
    "err_ia@5": partial(values, "ERR-IA@5"),
    "err_ia@20": partial(values, "ERR-IA@20"),
    "map_ia": partial(values, "MAP-IA"),
}
