"""recommenders: frames of training interactions and of recommendations, in pandas."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd
from recommenders.evaluation import python_evaluation

if TYPE_CHECKING:
    from harness.worker import Values
    from suites.lists.case import Lists


class Raw(NamedTuple):
    train: pd.DataFrame
    recommendations: pd.DataFrame


def prepare(lists: Lists) -> Raw:
    entries = lists.train.tocoo()
    train = pd.DataFrame({"userID": entries.row, "itemID": entries.col})
    length = lists.ids.shape[1]
    users = np.repeat(lists.users, length)
    return Raw(train, pd.DataFrame({"userID": users, "itemID": lists.ids.ravel()}))


def diversity(lists: Lists, raw: Raw) -> pd.DataFrame:
    # It caches its last results by the contents of the frames; a second call would use the cache.
    for function in vars(python_evaluation).values():
        clear(function)
    return python_evaluation.user_diversity(raw.train, raw.recommendations)


def clear(function: object) -> None:
    while function is not None:
        if hasattr(function, "cache_clear"):
            function.cache_clear()
        function = getattr(function, "__wrapped__", None)


def diversity_values(lists: Lists, raw: Raw, result: pd.DataFrame) -> Values:
    return {
        "diversity@10": result.set_index("userID")["user_diversity"].loc[lists.users].to_numpy()
    }


TASKS = {"diversity@10": (diversity, diversity_values)}
