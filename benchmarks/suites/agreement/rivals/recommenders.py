"""recommenders: frames of true and predicted ratings; means only."""

from functools import lru_cache, partial

import numpy as np
import pandas as pd
from recommenders.evaluation import python_evaluation as evaluation
from recommenders.utils.python_utils import jaccard

CONVENTION = "recommenders"
NEEDS = {
    "coverage@k": {"train_has_all": "its catalogue is the items of train"},
    "diversity@k": {"has_train": "", "cut_at_two": ""},
    "entropy@k": {"has_train": ""},
    "serendipity(form=cosine)@k": {"has_train": ""},
    "diversity(similarity=jaccard)@k": {"has_train": "", "cut_at_two": ""},
}
NOT_COMPARED = {
    "r_precision@k": "its mean is over the users with a hit in the first n ranks only",
    "novelty@k": "share of the interactions instead of the users; an item unseen in train adds 0; "
    "one mean over all recommendations",
}


@lru_cache(maxsize=1)
def frames(case):
    """Return (true, predicted)."""
    true = [
        (user, item, float(gain))
        for user, row in enumerate(case.pairs)
        for item, gain in row.items()
    ]
    predicted = [
        (user, item, float(-rank))
        for user, items in enumerate(case.lists)
        for rank, item in enumerate(items)
    ]
    return (
        pd.DataFrame(true, columns=["userID", "itemID", "rating"]),
        pd.DataFrame(predicted, columns=["userID", "itemID", "prediction"]),
    )


def accuracy(metric, options, case):
    return float(metric(*frames(case), k=case.k, **options))


def over_lists(metric, case):
    train = [(user, item) for user, items in enumerate(case.train) for item in items]
    listed = [(user, item) for user in case.users for item in case.lists[user][: case.k]]
    columns = ["userID", "itemID"]
    return float(
        metric(pd.DataFrame(train, columns=columns), pd.DataFrame(listed, columns=columns))
    )


def serendipity(case):
    train = [(user, item) for user, items in enumerate(case.train) for item in items]
    listed = [
        (user, item, float(item in case.relevant[user]))
        for user in case.users
        for item in case.lists[user][: case.k]
    ]
    columns = ["userID", "itemID"]
    return float(
        evaluation.serendipity(
            pd.DataFrame(train, columns=columns),
            pd.DataFrame(listed, columns=[*columns, "relevance"]),
            col_relevance="relevance",
        )
    )


def jaccard_diversity(case):
    """Return its Jaccard similarities of items, averaged over lists here."""
    seen = np.zeros((len(case.lists), case.n_items))
    for row, items in zip(seen, case.train, strict=True):
        row[items] = 1
    alike = np.nan_to_num(jaccard(seen.T @ seen))
    lists = [items[: case.k] for items in case.lists if len(items[: case.k]) > 1]
    pairs = [alike[np.ix_(items, items)][np.triu_indices(len(items), 1)] for items in lists]
    return float(np.mean([1 - found.mean() for found in pairs])) if pairs else None


METRICS = {
    "ndcg@k": partial(accuracy, evaluation.ndcg_at_k, {}),
    "ndcg(gain=linear)@k": partial(accuracy, evaluation.ndcg_at_k, {"score_type": "raw"}),
    "ndcg(gain=exp)@k": partial(accuracy, evaluation.ndcg_at_k, {"score_type": "exp"}),
    "precision@k": partial(accuracy, evaluation.precision_at_k, {}),
    "recall@k": partial(accuracy, evaluation.recall_at_k, {}),
    "map@k": partial(accuracy, evaluation.map, {}),
    "map(normalizer=min)@k": partial(accuracy, evaluation.map_at_k, {}),
    "diversity@k": partial(over_lists, evaluation.diversity),
    "diversity(similarity=jaccard)@k": jaccard_diversity,
    "serendipity(form=cosine)@k": serendipity,
    "coverage@k": partial(over_lists, evaluation.catalog_coverage),
    "entropy@k": partial(over_lists, evaluation.distributional_coverage),
}
