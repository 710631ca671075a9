"""Small cross-validations, and plain definitions of what is pooled, which share no code with it."""

import numpy as np
import pandas as pd

import sparse_eval as se

METRICS = ["ndcg@5", "recall@10", "coverage@5"]
MODELS = {
    "als2": {"factors": 2, "iterations": 2},
    "als 6/α=1": {"factors": 6, "iterations": 2, "alpha": 1},
}


def clicks(seed=3):
    return se.datasets.synthetic(n_users=60, n_items=30, n_interactions=700, seed=seed)


def folds(k=2, seed=0):
    return list(se.split.k_fold(clicks(), k=k, seed=seed))


def cross(splits=None, models=None, metrics=None, **options):
    return se.cross_validate(
        clicks(),
        MODELS if models is None else models,
        METRICS if metrics is None else metrics,
        **{"splits": folds() if splits is None else splits, "seeds": 2} | options,
    )


def same(one, other):
    """Return True if every number is the same, to the last bit; raise otherwise."""
    assert one.table.equals(other.table)
    assert one.summary().equals(other.summary())
    if len(one.models) > 1:
        assert one.compare().table.equals(other.compare().table)
    assert one.folds == other.folds
    for model in one.models:
        assert one.per_user(model).equals(other.per_user(model))
    return True


def content(folder):
    """Return the files of a folder and those in it, without those of a killed run."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def pool(values):
    """Return the value of each user: seeds averaged, then folds."""
    index = pd.MultiIndex.from_product(map(range, values.shape))
    of_folds = pd.Series(values.ravel(), index).groupby(level=[0, 1]).mean()
    return of_folds.groupby(level=0).mean().dropna().to_dict()


def corrected_variance(values, ratio):
    """Return the variance of a pooled mean and its degrees of freedom: every user in every fold."""
    n_users, n_folds, _ = values.shape
    parts = [(values.mean(axis=(1, 2)).var(ddof=1) / n_users, n_users - 1)]
    # What varies over folds, or over the seeds of one fold, without the noise of users.
    runs = values.mean(axis=2) if n_folds > 1 else values[:, 0]
    n_runs = runs.shape[1]
    if n_runs > 1:
        means = runs.mean(axis=0)
        rest = runs - runs.mean(axis=1, keepdims=True) - means + means.mean()
        noise = np.square(rest).sum() / ((n_users - 1) * (n_runs - 1)) / n_users
        share = 1 / n_runs + (ratio if n_folds > 1 else 0)
        parts.append((share * max(means.var(ddof=1) - noise, 0), n_runs - 1))
    total = sum(part for part, _ in parts)
    return total, total**2 / sum(part**2 / freedom for part, freedom in parts)
