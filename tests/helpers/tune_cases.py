"""A small search."""

import pandas as pd

import sparse_eval as se

METRICS = ["ndcg@10", "recall@5"]
PARAMETERS = ["factors", "alpha", "regularization", "iterations"]

GRID = {
    "factors": [2, 6],
    "alpha": [1.0, 40.0],
    "regularization": 0.01,
    "iterations": 3,
}


def three_parts(seed=0):
    """Return the split that holds the test part out, and the split of the rest."""
    clicks = se.datasets.synthetic(n_users=60, n_items=30, n_interactions=700, seed=3)
    whole = se.split.random(clicks, fraction=0.2, seed=seed)
    return whole, se.split.random(whole.train, fraction=0.3, seed=seed)


def search(parts, metrics=METRICS, tested=True, **options):
    whole, part = parts
    test = whole.validation if tested else None
    holdout = se.Holdout(part.train, part.validation, test=test)
    space = {name: options.pop(name, GRID[name]) for name in PARAMETERS}
    return se.tune(holdout, metrics, space=space, **options)


def values_of(tuning):
    """Return the trials without their numbers and durations, by their parameters."""
    table = tuning.trials.drop(columns=["trial", "seconds"])
    return table.sort_values(PARAMETERS, ignore_index=True)


def same_search(first, second):
    """Return True if two results are equal but for order and durations; raise otherwise."""
    pd.testing.assert_frame_equal(values_of(first), values_of(second), check_exact=True)
    assert first.best == second.best
    tested = [tuning.test and tuning.test.to_dict() for tuning in (first, second)]
    assert tested[0] == tested[1]
    return True
