"""Models of every family: their lists, their traps, and checkpoints that are none."""

import warnings

import numpy as np
import pandas as pd
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
from threadpoolctl import threadpool_limits

import sparse_eval as se
from sparse_eval.errors import (
    InvalidCheckpointError,
    InvalidDataError,
    SparseEvalError,
    UnsupportedModelError,
)
from sparse_eval.models.checkpoints import read_checkpoint
from sparse_eval.models.opening import as_model
from sparse_eval.models.own_lists import recommend_lists

FAMILIES = {
    "als": lambda: AlternatingLeastSquares(factors=8, random_state=0),
    "als64": lambda: AlternatingLeastSquares(factors=8, dtype=np.float64, random_state=0),
    "bpr": lambda: BayesianPersonalizedRanking(factors=8, random_state=0, num_threads=1),
    "lmf": lambda: LogisticMatrixFactorization(factors=8, random_state=0, num_threads=1),
    "item-item": lambda: ItemItemRecommender(K=5),
    "cosine": lambda: CosineRecommender(K=5),
    "tfidf": lambda: TFIDFRecommender(K=5),
    "bm25": lambda: BM25Recommender(K=5),
}
N_USERS, N_ITEMS = 150, 80


@pytest.fixture(scope="module", params=FAMILIES)
def model(request, holdout):
    with threadpool_limits(1, "blas"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # implicit's neighbours convert their own matrices
        fitted = FAMILIES[request.param]()
        fitted.fit(holdout.train.csr, show_progress=False)
    return fitted


def scores_of(model, user, train):
    """What the model thinks of every item, without its recommend; NaN: it does not say."""
    if hasattr(model, "item_factors"):
        return model.item_factors.astype(float) @ model.user_factors[user].astype(float)
    scores = (train[user] @ model.similarity).toarray()[0]
    reached = (abs(train[user]).sign() @ abs(model.similarity).sign()).toarray()[0]
    return np.where(reached > 0, scores, np.nan)


@pytest.mark.parametrize("k", [1, 10, N_ITEMS])
def test_lists_hold_the_best_unseen_items(model, holdout, k, tmp_path):
    train = holdout.train.csr.tolil()
    train[0] = 1  # all but one
    train[0, 7] = 0
    train = train.tocsr()
    users = np.arange(0, N_USERS, 5)
    lists = recommend_lists(model, train, users, k, progress=False)
    assert lists.shape == (len(users), k)
    for user, row in zip(users, lists, strict=True):
        seen = set(train[user].indices.tolist())
        listed = [item for item in row.tolist() if item != -1]
        assert (row[len(listed) :] == -1).all()
        assert len(set(listed)) == len(listed)
        assert not seen & set(listed)
        scores = scores_of(model, user, train)
        open_items = [i for i in range(N_ITEMS) if i not in seen and not np.isnan(scores[i])]
        assert len(listed) == min(k, len(open_items))
        best = sorted((scores[i] for i in open_items), reverse=True)[:k]
        np.testing.assert_allclose(scores[listed], best, rtol=1e-4, atol=1e-5)
    model.save(str(tmp_path / "model.npz"))
    again = se.load_model(tmp_path / "model.npz")
    assert (recommend_lists(again, train, users, k, progress=False) == lists).all()


def test_explicit_zeros_in_train_are_seen(holdout):
    model = se.train_als(holdout.train, factors=4, iterations=2)
    best = recommend_lists(model, holdout.train, np.array([0]), 1, progress=False)[0, 0]
    shown = holdout.train.csr + sparse.csr_matrix(([1.0], ([0], [best])), holdout.train.shape)
    shown[0, best] = 0.0
    assert shown.nnz == holdout.train.nnz + 1
    assert best not in recommend_lists(model, shown, np.array([0]), 5, progress=False)[0]


def test_training_that_diverges(holdout):
    with raises(SparseEvalError):
        se.train_als(holdout.train.csr * 1e30, factors=4, alpha=1e30, iterations=2)
    bad = holdout.train.csr.copy()
    bad.data[3] = np.nan
    with raises(InvalidDataError, argument="train", row=1, column=4):
        se.train_als(bad)


def test_models_that_are_none(holdout):
    class Recommends:
        def recommend(self): ...

    for thing in (Recommends(), FAMILIES["als"](), FAMILIES["cosine"]()):
        with raises(UnsupportedModelError):
            se.evaluate_model(thing, holdout.train, holdout.validation, "mrr@5")
    model = se.train_als(holdout.train, factors=4, iterations=1)
    model.user_factors[17, 2] = 3e38
    model.item_factors *= np.float32(1e6)
    with raises(InvalidDataError, user=17), np.errstate(all="ignore"):
        recommend_lists(as_model(model).trained, holdout.train, np.arange(20), 5, progress=False)


GOOD = {
    "user_factors": np.ones((3, 2), np.float32),
    "item_factors": np.ones((4, 2), np.float32),
    "alpha": 40.0,
}


def saved(path, **arrays):
    np.savez(path, **{name: a for name, a in (GOOD | arrays).items() if a is not None})
    return path


def test_a_checkpoint_is_read(tmp_path):
    found = read_checkpoint(saved(tmp_path / "m.npz"))
    assert found.parameters == {"alpha": 40.0}
    half = {name: GOOD[name].astype(np.float16) for name in ("user_factors", "item_factors")}
    assert read_checkpoint(saved(tmp_path / "h.npz", **half)).model.user_factors.dtype == np.float32


@pytest.mark.parametrize(
    "arrays",
    [
        {"item_factors": None},
        {"item_factors": np.ones((4, 3), np.float32)},
        {"item_factors": np.ones((4, 2), int)},
        {"alpha": np.array({"a": 1}, dtype=object)},
    ],
)
def test_checkpoints_that_are_none(tmp_path, arrays):
    path = saved(tmp_path / "m.npz", **arrays)
    with raises(InvalidCheckpointError) as error:
        read_checkpoint(path)
    assert str(path) in str(error.value)


def test_neighbour_checkpoints_that_are_none(tmp_path):
    good = {"data": np.ones(2), "indices": [0, 1], "indptr": [0, 1, 2], "shape": (2, 2)}
    for wrong in (
        {"indices": [0, 9]},
        {"indptr": [0, 2]},
        {"data": np.array([1, np.nan])},
        {"shape": (2, 3)},
        {"indices": [0.0, 1.5]},
    ):
        np.savez(tmp_path / "m.npz", **(good | wrong))
        with raises(InvalidCheckpointError):
            read_checkpoint(tmp_path / "m.npz")


class Stub:
    """A model whose answer is given."""

    user_factors = np.ones((N_USERS, 2), np.float32)
    item_factors = np.ones((N_ITEMS, 2), np.float32)

    def __init__(self, answer):
        self.answer = answer

    def recommend(self, users, train, **options):
        return self.answer(len(users))


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: (np.zeros((n, 5), np.int32), np.zeros((n, 1))),
        lambda n: (np.zeros((n + 9, 5), np.int32), np.zeros((n + 9, 5))),
        lambda n: (np.full((n, 5), 0.5), np.zeros((n, 5))),
    ],
)
def test_answers_that_are_none(holdout, answer):
    model = as_model(Stub(answer)).trained
    with raises(UnsupportedModelError):
        recommend_lists(model, holdout.train, np.arange(9), 5, progress=False)


def test_scores_below_what_single_precision_holds(holdout):
    stub = Stub(lambda n: (np.tile(np.arange(5, dtype=np.int32), (n, 1)), np.full((n, 5), -1e300)))
    nothing_seen = sparse.csr_matrix(holdout.train.shape)
    lists = recommend_lists(as_model(stub).trained, nothing_seen, np.arange(3), 5, progress=False)
    assert lists.tolist() == [[0, 1, 2, 3, 4]] * 3


def test_damaged_similarities_do_not_reach_compiled_code(holdout):
    model = se.train_model(ItemItemRecommender(K=5), holdout.train)
    model.similarity.indices[:] = 10**8
    with raises(InvalidDataError, argument="similarity", row=0, column=100000000):
        se.evaluate_model(model, holdout, "mrr@5")


def test_recommends_the_best_unseen_items(holdout, tmp_path):
    model = se.train_als(holdout.train, factors=6, iterations=3)
    recs = se.recommend(model, holdout, 5)
    assert recs.columns.tolist() == ["user", "item", "rank", "score"]
    scores = model.user_factors.astype(float) @ model.item_factors.astype(float).T
    scores[holdout.train.csr.toarray() != 0] = -np.inf
    best = np.argsort(-scores, axis=1, kind="stable")[:, :5]
    assert recs["item"].tolist() == holdout.items[best.ravel()].tolist()
    assert recs["user"].tolist() == np.repeat(holdout.users, 5).tolist()
    assert recs["rank"].tolist() == [1, 2, 3, 4, 5] * len(holdout.users)
    np.testing.assert_allclose(recs["score"], np.take_along_axis(scores, best, 1).ravel())
    path = se.save_model(model, tmp_path / "als.npz")
    pd.testing.assert_frame_equal(se.recommend(path, holdout.train, 5), recs)


def test_numbers_and_short_lists():
    seen = sparse.csr_matrix([[1, 1, 0], [1, 0, 0], [0, 0, 0]])
    recs = se.recommend(se.train_als(seen, factors=2, iterations=1), seen, 10)
    assert recs["user"].tolist() == [0, 1, 1, 2, 2, 2]
    assert recs["rank"].tolist() == [1, 1, 2, 1, 2, 3]
    assert recs["item"].dtype == np.int64


@pytest.mark.parametrize("options", [{"users": ["U3", "nobody"]}, {"users": "U3"}, {"k": 0}])
def test_refuses_users_and_cutoffs(holdout, options):
    model = se.baselines.popularity(holdout)
    with raises(InvalidDataError):
        se.recommend(model, holdout, **options)
