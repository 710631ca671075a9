"""Test training of any model of implicit: ids, zeros, repeatability, refusals."""

import warnings

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.cpu.lmf import LogisticMatrixFactorization
from implicit.nearest_neighbours import (
    BM25Recommender,
    CosineRecommender,
    ItemItemRecommender,
    TFIDFRecommender,
)
from raising import raises
from scipy import sparse
from threadpoolctl import threadpool_info, threadpool_limits

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, SparseEvalError, UnsupportedModelError

ONE = {"iterations": 3, "random_state": 0, "num_threads": 1}


def als():
    with threadpool_limits(limits=1, user_api="blas"):  # or implicit warns
        return AlternatingLeastSquares(4, **ONE)


MODELS = {
    "als": als,
    "bpr": lambda: BayesianPersonalizedRanking(4, **ONE),
    "lmf": lambda: LogisticMatrixFactorization(4, **ONE),
    "cosine": lambda: CosineRecommender(5),
    "tfidf": lambda: TFIDFRecommender(5),
    "bm25": lambda: BM25Recommender(5),
    "item-item": lambda: ItemItemRecommender(5),
}
CLICKS = se.datasets.synthetic(n_users=80, n_items=40, seed=1)
CLICKS_TRAIN = se.split.random(CLICKS, seed=0).train


def arrays(model):
    if hasattr(model, "similarity"):
        matrix = model.similarity.sorted_indices()
        return [matrix.data.tobytes(), matrix.indices.tobytes(), matrix.indptr.tobytes()]
    return [model.user_factors.tobytes(), model.item_factors.tobytes()]


@pytest.mark.parametrize("name", MODELS)
def test_is_what_fit_makes_of_a_matrix_and_knows_its_ids(name, tmp_path):
    holdout = se.split.random(CLICKS, seed=0)
    model = se.train_model(MODELS[name](), holdout.train, progress=False)
    expected = MODELS[name]()
    with threadpool_limits(limits=1, user_api="blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dtype = np.float64 if hasattr(expected, "similarity") else np.float32
        expected.fit(holdout.train.csr.astype(dtype), show_progress=False)
    assert arrays(model) == arrays(expected)
    assert (holdout.train.csr != CLICKS_TRAIN.csr).nnz == 0
    assert model.item_ids.equals(holdout.items)
    path = se.save_model(model, tmp_path / "model.npz")
    ev = se.evaluate_model(model, holdout, "ndcg@5")
    assert se.evaluate_model(path, holdout, "ndcg@5")["ndcg@5"] == ev["ndcg@5"] > 0


def test_openmp_has_as_many_threads_as_the_process_may_use(monkeypatch):
    model = CosineRecommender(5)
    fit, counts = model.fit, set()

    def counting(*given, **options):
        counts.update(
            pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "openmp"
        )
        fit(*given, **options)

    monkeypatch.setattr(model, "fit", counting)
    monkeypatch.setattr("sparse_eval.core.threads.available_cores", lambda *_: 1)
    se.train_model(model, CLICKS)
    assert counts <= {1}  # there is no OpenMP on macOS


@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("als", "lmf")])
def test_explicit_zeros_make_no_difference(name):
    with_zeros = CLICKS_TRAIN.csr.astype(np.float64)
    with_zeros.data[::7] = 0
    without = with_zeros.copy()
    without.eliminate_zeros()
    expected = arrays(se.train_model(MODELS[name](), without))
    assert arrays(se.train_model(MODELS[name](), with_zeros)) == expected


def test_refuses_what_cannot_be_trained():
    callback = se.EvaluationCallback(se.split.random(CLICKS, seed=0), "ndcg@5")
    with raises(UnsupportedModelError):
        se.train_model(MODELS["cosine"](), CLICKS_TRAIN, callback=callback)
    for thing in (CosineRecommender, {"factors": 3}):
        with raises(UnsupportedModelError):
            se.train_model(thing, CLICKS_TRAIN)
    negative = sparse.csr_matrix([[1.0, -1.0], [1.0, 1.0]])
    with raises(InvalidDataError):
        se.train_model(MODELS["tfidf"](), negative)
    for kind in (BayesianPersonalizedRanking, LogisticMatrixFactorization):
        with raises(SparseEvalError):  # the training diverges
            se.train_model(kind(4, learning_rate=float("nan"), **ONE), CLICKS_TRAIN)
