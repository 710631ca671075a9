"""The models of the tables, in the form for `evaluate_model`.

Each function gets the training data, with all values 1, and a seed, which only some use. The models
from the appendix of Ferrari Dacrema et al. follow its repository,
MaurizioFD/RecSys2019_DeepLearning_Evaluation.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

import sparse_eval as se


def popularity(train: sparse.csr_matrix, seed: int) -> Any:
    return se.baselines.popularity(train)


def ease(train: sparse.csr_matrix, seed: int, *, regularization: float) -> Any:
    return se.baselines.ease(train, regularization=regularization)


def als(
    train: sparse.csr_matrix,
    seed: int,
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
        seed=seed,
        progress=False,
    )


def item_knn(
    train: sparse.csr_matrix,
    seed: int,
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


def normalized_item_knn(train: sparse.csr_matrix, seed: int, *, neighbors: int) -> Any:
    """Return BARS' scores: an item's mean plus weighted deviations of neighbours from theirs."""
    similar = by_row_sums(se.baselines.item_knn(train, neighbors=neighbors).weights)
    means = np.asarray(train.mean(axis=0)).ravel()
    biases = means - similar @ means
    weights = similar.T.tocsr()
    return lambda users: (train[users] @ weights).toarray() + biases


def random_walk(
    train: sparse.csr_matrix,
    seed: int,
    *,
    neighbors: int,
    alpha: float,
    beta: float = 0.0,
    normalize: bool = False,
) -> Any:
    """Return P3α or RP3β: the probability that two steps lead from an item to another one.

    The nearest items of each row are kept, and then the nearest of each column.
    """
    to_items = by_row_sums(train).power(alpha)
    to_users = by_row_sums(train.T.tocsr()).power(alpha)
    popular = np.maximum(np.bincount(train.indices, minlength=train.shape[1]), 1)
    weights = (to_users @ to_items).toarray() * popular**-beta
    np.fill_diagonal(weights, 0.0)
    weights = nearest(weights, neighbors)
    if normalize:
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), np.finfo(float).tiny)
    return sparse.csr_matrix(nearest(weights.T, neighbors).T)


def nearest(weights: np.ndarray, most: int) -> np.ndarray:
    """Keep the largest values of each row, of equal ones the lower columns, and set others to 0."""
    if most >= weights.shape[1]:
        return weights
    least = np.partition(weights, -most, axis=1)[:, -most, None]
    above, equal = weights > least, weights == least
    n_equal = most - above.sum(axis=1, keepdims=True)
    return np.where(above | (equal & (equal.cumsum(axis=1) <= n_equal)), weights, 0.0)


def by_row_sums(matrix: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return the matrix with rows that add up to 1 or are empty."""
    sums = np.asarray(matrix.sum(axis=1)).ravel()
    return sparse.csr_matrix(sparse.diags(1 / np.where(sums > 0, sums, 1)) @ matrix)


def pure_svd(train: sparse.csr_matrix, seed: int, *, factors: int) -> Any:
    _, _, vectors = svds(train, factors, v0=np.ones(min(train.shape)))
    return train @ vectors.T, vectors.T.copy()


def randomized_svd(train: sparse.csr_matrix, seed: int, *, factors: int) -> Any:
    """Return PureSVD as from scikit-learn's `randomized_svd`: 7 iterations, 10 more columns."""
    rng = np.random.default_rng(seed)
    basis = rng.standard_normal((train.shape[1], min(factors + 10, *train.shape)))
    for _ in range(7):
        basis, _ = np.linalg.qr(train.T @ np.linalg.qr(train @ basis)[0])
    basis, _ = np.linalg.qr(train @ basis)
    vectors, _, _ = np.linalg.svd(train.T @ basis, full_matrices=False)
    items = np.ascontiguousarray(vectors[:, :factors])
    return train @ items, items


def gf_cf(train: sparse.csr_matrix, seed: int, *, factors: int, share: float) -> Any:
    """Return GF-CF: a linear filter of the normalized data, and a share of an ideal low-pass.

    Scores are in single precision, because there are a billion of them.
    """
    of_users, of_items = (np.asarray(train.sum(axis=axis)).ravel() for axis in (1, 0))
    roots = [np.sqrt(np.maximum(degrees, 1)) for degrees in (of_users, of_items)]
    normal = sparse.csr_matrix(sparse.diags(1 / roots[0]) @ train @ sparse.diags(1 / roots[1]))
    _, _, vectors = svds(
        normal, factors, v0=np.ones(min(train.shape)), return_singular_vectors="vh"
    )
    into = np.ascontiguousarray((share * vectors / roots[1]).T, np.float32)
    out_of = np.ascontiguousarray(vectors * roots[1], np.float32)
    single, normal = train.astype(np.float32), normal.astype(np.float32)
    transposed = normal.T.tocsr()

    def scores(users: np.ndarray) -> np.ndarray:
        low_pass = single[users] @ into @ out_of
        low_pass += (single[users] @ transposed @ normal).toarray()
        return low_pass

    return scores


MODELS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        popularity,
        ease,
        als,
        item_knn,
        normalized_item_knn,
        random_walk,
        pure_svd,
        randomized_svd,
        gf_cf,
    )
}
