"""Checkpoints to sweep over, and the table of a sweep."""

import numpy as np
import pandas as pd

N_USERS, N_ITEMS = 250, 60
METRICS = ["ndcg@10", "recall@{5,20}", "novelty@5"]
NAMES = ["ndcg@10", "recall@5", "recall@20", "novelty@5"]


def save(path, factors=4, seed=0, **arrays):
    """Save what a model of implicit would."""
    rng = np.random.default_rng([seed, factors])
    parts = {
        "user_factors": rng.standard_normal((N_USERS, factors)).astype(np.float32),
        "item_factors": rng.standard_normal((N_ITEMS, factors)).astype(np.float32),
        "factors": factors,
        "alpha": 40.0,
        "use_cg": True,
        "dtype": "float32",
    }
    np.savez(path, **(parts | arrays))
    return path


def rows_of(table):
    return pd.read_csv(table, dtype=str, keep_default_na=False).to_dict("records")


def same_table(first, second):
    """Return True if two tables are equal, apart from the durations; raise otherwise."""
    pd.testing.assert_frame_equal(
        first.drop(columns="seconds"), second.drop(columns="seconds"), check_exact=True
    )
    return True
