"""recommenders: frames of true and predicted ratings; means only."""

from functools import lru_cache, partial

import numpy as np
from recommenders.evaluation import python_evaluation as evaluation
from recommenders.utils.python_utils import jaccard

PAIR = ("userID", "itemID")
METRICS = {
    "ndcg@k": (evaluation.ndcg_at_k, {}),
    "ndcg(gain=linear)@k": (evaluation.ndcg_at_k, {"score_type": "raw"}),
    "ndcg(gain=exp)@k": (evaluation.ndcg_at_k, {"score_type": "exp"}),
    "precision@k": (evaluation.precision_at_k, {}),
    "recall@k": (evaluation.recall_at_k, {}),
    "map@k": (evaluation.map, {}),
    "map(normalizer=min)@k": (evaluation.map_at_k, {}),
}


@lru_cache(maxsize=1)
def frames(case):
    """Return (true, predicted)."""
    gains = [{item: float(gain) for item, gain in row.items()} for row in case.pairs]
    true = case.frame(gains, *PAIR, "rating")
    return true, case.frame(case.listed(), *PAIR, "prediction")


def values(theirs, case):
    metric, options = theirs
    return metric(*frames(case), k=case.k, **options)


def over_lists(metric, case):
    return metric(case.frame(case.train, *PAIR), case.frame(case.first_k, *PAIR))


def serendipity(case):
    pairs = zip(case.first_k, case.relevant, strict=True)
    listed = [{item: float(item in gains) for item in items} for items, gains in pairs]
    train, frame = case.frame(case.train, *PAIR), case.frame(listed, *PAIR, "relevance")
    return evaluation.serendipity(train, frame, col_relevance="relevance")


def jaccard_diversity(case):
    """Return its Jaccard similarities of items, averaged over lists here."""
    seen = case.matrix(case.train).toarray()
    alike = np.nan_to_num(jaccard(seen.T @ seen))
    lists = [items for items in case.first_k if len(items) > 1]
    pairs = [alike[np.ix_(items, items)][np.triu_indices(len(items), 1)] for items in lists]
    return np.mean([1 - found.mean() for found in pairs]) if pairs else None


FUNCTIONS = {
    "diversity@k": partial(over_lists, evaluation.diversity),
    "diversity(similarity=jaccard)@k": jaccard_diversity,
    "serendipity(form=cosine)@k": serendipity,
    "coverage@k": partial(over_lists, evaluation.catalog_coverage),
    "entropy@k": partial(over_lists, evaluation.distributional_coverage),
}
