"""pyndeval: TREC's ndeval, with the groups of relevant items as subtopics."""

from functools import lru_cache

import pyndeval

from ..case import document, triples

METRICS = {
    "alpha_ndcg@5": "alpha-nDCG@5",
    "alpha_ndcg@10": "alpha-nDCG@10",
    "err_ia@5": "ERR-IA@5",
    "err_ia@20": "ERR-IA@20",
    "map_ia": "MAP-IA",
}


@lru_cache(maxsize=1)
def scores(case):
    # Of documents that add the same, the last id as text comes first.
    qrels = [
        pyndeval.SubtopicQrel(f"{user}", f"{case.groups[item]}", document(item), 1)
        for user, item, _ in triples(case.relevant)
    ]
    run = [
        pyndeval.ScoredDoc(f"{user}", document(item), score)
        for user, item, score in triples(case.listed())
    ]
    return pyndeval.ndeval(qrels, run)


def values(measure, case):
    found = scores(case)
    relevant = enumerate(case.relevant)
    return [found[f"{user}"][measure] if row else None for user, row in relevant]
