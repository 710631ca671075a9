"""Small cross-validations, and a plain definition of the test, which shares no code with it."""

import math

import numpy as np
import pandas as pd
from scipy import stats

import sparse_eval as se
from sparse_eval.metrics.request import Request

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
    pd.testing.assert_frame_equal(one.table, other.table, check_exact=True)
    pd.testing.assert_frame_equal(one.summary(), other.summary(), check_exact=True)
    return True


def content(folder):
    """Return the visible files of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith(".")
    }


def made_of(values, ratio=0.25, metric="ndcg@10"):
    """Return a cross-validation with these values, of each model a row of folds or of seeds."""
    rows = [
        {"model": model, "fold": fold, "seed": seed, "n_train": 1000, "n_validation": 1000 * ratio}
        | {"n_users": 10, metric: value}
        for model, of_model in values.items()
        for fold, of_fold in enumerate(of_model, start=1)
        for seed, value in enumerate(np.atleast_1d(of_fold))
    ]
    return se.CrossValidation(pd.DataFrame(rows), Request.parse_ranked(metric, {"train"}, None))


def corrected_t(values, ratio, level=0.95):
    """Return the mean, the ends of its interval and the two-sided p-value, by the textbook."""
    k, mean = len(values), np.mean(values)
    variance = sum((value - mean) ** 2 for value in values) / (k - 1)
    error = math.sqrt(variance * (1 / k + ratio))
    low, high = stats.t.interval(level, k - 1, loc=mean, scale=error)
    return mean, low, high, 2 * stats.t.sf(abs(mean / error), k - 1)
