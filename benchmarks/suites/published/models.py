"""The models of the tables, in the form for `evaluate_model`.

Each function gets the training data, with all values 1. The models
from the appendix of Ferrari Dacrema et al. follow its repository,
MaurizioFD/RecSys2019_DeepLearning_Evaluation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse

import sparse_eval as se


def als(
    train: sparse.csr_matrix,
    *,
    factors: int,
    iterations: int,
    alpha: float,
    epsilon: float,
    regularization: float,
) -> Any:
    """Return ALS with their confidence for observed items, 1 + α log(1 + 1 / ε)."""
    return se.train_als(
        train,
        factors=factors,
        iterations=iterations,
        alpha=1 + alpha * np.log1p(1 / epsilon),
        regularization=regularization,
        seed=0,
        progress=False,
    )


def item_knn(
    train: sparse.csr_matrix,
    *,
    neighbors: int,
    shrinkage: float = 0.0,
    weighting: str,
) -> Any:
    """Return the similarities of each item's neighbours; the item's score is their sum."""
    weighted = WEIGHTINGS[weighting](train)
    model = se.baselines.item_knn(weighted, neighbors=neighbors, shrinkage=shrinkage)
    return model.weights.T.tocsr()


def bm25(train: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return Okapi BM25 with k1 = 1.2 and b = 0.75; items are documents, and users terms."""
    lengths = np.bincount(train.indices, minlength=train.shape[1])
    relative = 0.25 + 0.75 * lengths / lengths.mean()
    weighted = tf_idf(train)
    weighted.data *= 2.2 / (1.2 * relative[train.indices] + 1)
    return weighted


def tf_idf(train: sparse.csr_matrix) -> sparse.csr_matrix:
    n_items = np.diff(train.indptr)
    idf = np.log(train.shape[1] / (1 + n_items))
    return sparse.csr_matrix((np.repeat(idf, n_items), train.indices, train.indptr), train.shape)


WEIGHTINGS = {"bm25": bm25, "tf_idf": tf_idf}


def normalized_item_knn(train: sparse.csr_matrix, *, neighbors: int) -> Any:
    """Return BARS' scores: an item's mean plus weighted deviations of neighbours from theirs."""
    similar = by_row_sums(se.baselines.item_knn(train, neighbors=neighbors).weights)
    means = np.asarray(train.mean(axis=0)).ravel()
    biases = means - similar @ means
    weights = similar.T.tocsr()
    return lambda users: (train[users] @ weights).toarray() + biases


def by_row_sums(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the matrix with rows that add up to 1 or are empty."""
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(1 / np.where(sums > 0, sums, 1)) @ matrix)


MODELS: dict[str, Callable[..., Any]] = {
    "popularity": se.baselines.popularity,
    "ease": se.baselines.ease,
    "als": als,
    "item_knn": item_knn,
    "normalized_item_knn": normalized_item_knn,
}
