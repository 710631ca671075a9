"""Small cross-validations, and plain definitions of what is pooled, which share no code with it."""

import math
from statistics import fmean, variance

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
    pooled = {}
    for user, of_user in enumerate(values.tolist()):
        of_folds = []
        for of_seeds in of_user:
            there = [value for value in of_seeds if not math.isnan(value)]
            if there:
                of_folds.append(fmean(there))
        if of_folds:
            pooled[user] = fmean(of_folds)
    return pooled


def corrected_variance(values, ratio):
    """Return the variance of a pooled mean and its degrees of freedom: every user in every fold."""
    n_users, n_folds, n_seeds = values.shape
    rows = values.tolist()
    users = list(pool(values).values())
    parts = [(variance(users) / n_users, n_users - 1)]
    if n_folds > 1:
        cell = [[fmean(rows[u][f]) for f in range(n_folds)] for u in range(n_users)]
        means = [fmean(cell[u][f] for u in range(n_users)) for f in range(n_folds)]
        grand = fmean(means)
        squares = [
            (cell[u][f] - users[u] - means[f] + grand) ** 2
            for u in range(n_users)
            for f in range(n_folds)
        ]
        noise = sum(squares) / ((n_users - 1) * (n_folds - 1)) / n_users
        runs = max(variance(means) - noise, 0)
        parts.append(((1 / n_folds + ratio) * runs, n_folds - 1))
    elif n_seeds > 1:
        means = [fmean(rows[u][0][s] for u in range(n_users)) for s in range(n_seeds)]
        squares = [
            (rows[u][0][s] - users[u] - means[s] + fmean(means)) ** 2
            for u in range(n_users)
            for s in range(n_seeds)
        ]
        noise = sum(squares) / ((n_users - 1) * (n_seeds - 1)) / n_users
        parts.append((max(variance(means) - noise, 0) / n_seeds, n_seeds - 1))
    total = sum(part for part, _ in parts)
    return total, total**2 / sum(part**2 / freedom for part, freedom in parts)
