"""recommenders: frames of training interactions and of recommendations, in pandas."""

import numpy as np
import pandas as pd
from recommenders.evaluation import python_evaluation


def prepare(lists):
    entries = lists.train.tocoo()
    train = pd.DataFrame({"userID": entries.row, "itemID": entries.col})
    users = np.repeat(lists.users, lists.ids.shape[1])
    recommendations = pd.DataFrame({"userID": users, "itemID": lists.ids.ravel()})

    def diversity():
        # It caches its last results by the contents of the frames; a second call would use them.
        for function in vars(python_evaluation).values():
            clear(function)
        return python_evaluation.user_diversity(train, recommendations)

    def values(result):
        found = result.set_index("userID")["user_diversity"]
        return {"diversity@10": found.loc[lists.users].to_numpy()}

    return {"diversity@10": (diversity, values)}


def clear(function):
    while function is not None:
        if hasattr(function, "cache_clear"):
            function.cache_clear()
        function = getattr(function, "__wrapped__", None)
