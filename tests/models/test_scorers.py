"""Matrices and functions as models: scores, item-item weights, and ambiguous square ones."""

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy import sparse
from tensors import Tensor

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, UnsupportedModelError
from sparse_eval.retrieval import score_search as module

pytestmark = [
    pytest.mark.filterwarnings("ignore:filter_seen=False"),
    pytest.mark.filterwarnings("ignore:.* relevant items are not candidates"),
]

METRICS = ["ndcg@{5,20}", "recall@10", "coverage@10"]
RANKED = ["ndcg@{5,20}", "recall@10", "mrr@20"]
N_USERS, N_ITEMS = 200, 90


def split_of(n_users, n_items):
    clicks = se.datasets.synthetic(n_users=n_users, n_items=n_items, n_interactions=4000, seed=5)
    return se.split.random(clicks, fraction=0.3, seed=0)


@pytest.fixture(scope="module")
def holdout():
    return split_of(N_USERS, N_ITEMS)


@pytest.fixture(scope="module")
def square():
    return split_of(120, 120)


@pytest.fixture(scope="module")
def scores():
    return np.random.default_rng(1).standard_normal((N_USERS, N_ITEMS))


@pytest.fixture(scope="module")
def weights():
    matrix = np.random.default_rng(0).standard_normal((N_ITEMS, N_ITEMS)).astype(np.float32)
    return np.where(abs(matrix) > 0.5, matrix, 0)


def saved(array, path):
    np.save(path, array)
    return path


def test_scores_are_matched_by_id(holdout, scores, tmp_path):
    rng = np.random.default_rng(3)
    rows, columns = (rng.permutation(n) for n in scores.shape)
    ids = {"users": holdout.users[rows], "items": holdout.items[columns]}
    moved = scores[rows][:, columns]
    expected = se.evaluate_model(se.Scorer(lambda users: moved[users], **ids), holdout, METRICS)
    frame = pd.DataFrame(moved, index=ids["users"], columns=ids["items"])
    path = se.save_model(se.Scorer(frame), tmp_path / "scores.npz")
    named = se.save_model(se.Scorer(moved), tmp_path / "named.npz", **ids)
    for model in (se.Scorer(moved, **ids), se.Scorer(frame), path, named):
        for memory in (None, 10**9):
            ev = se.evaluate_model(model, holdout, METRICS, memory=memory)
            assert ev.per_user.sort_index().equals(expected.per_user.sort_index())


def test_a_square_that_could_be_either_is_an_error(square, tmp_path):
    matrix = np.random.default_rng(0).standard_normal(square.train.shape)
    sparse.save_npz(tmp_path / "square.npz", sparse.csr_matrix(matrix))
    train, validation = square.train.csr, square.validation.csr
    for model in (
        matrix,
        Tensor(matrix),
        sparse.csr_matrix(matrix),
        saved(matrix, tmp_path / "square.npy"),
        tmp_path / "square.npz",
    ):
        with raises(InvalidDataError):
            se.evaluate_model(model, square, METRICS)
    for call in (
        lambda: se.evaluate_model(matrix, train, validation, METRICS, memory=10**9),
        lambda: se.recommend(matrix, square, k=3),
        lambda: se.top_k(matrix, train=train, k=3),
        lambda: se.ranks(matrix, validation, train=train),
    ):
        with raises(InvalidDataError):
            call()


def test_a_square_is_what_a_scorer_says(square, tmp_path):
    train, validation = square.train.csr, square.validation.csr
    weights = np.random.default_rng(0).standard_normal(train.shape)
    for scorer, scores in (
        (se.Scorer(item_item=weights), train.astype(float) @ weights),
        (se.Scorer(item_item=sparse.csr_matrix(weights)), train.astype(float) @ weights),
        (se.Scorer(weights), weights),
    ):
        path = se.save_model(scorer, tmp_path / "square.npz")
        ev = se.evaluate_model(lambda users, t=scores: t[users], train, validation, METRICS)
        for some in (scorer, path):
            assert se.evaluate_model(some, train, validation, METRICS).mean() == ev.mean()


def test_models_that_we_make_are_never_taken_for_scores(square, tmp_path):
    plain = square.train.csr, square.validation.csr
    for data in (square, plain[0]):  # with ids and without
        model = se.baselines.ease(data)
        path = se.save_model(model, tmp_path / "ease.npz")
        one, other = (se.evaluate_model(some, *plain, METRICS) for some in (model, path))
        assert one._values.columns.tobytes() == other._values.columns.tobytes()


LEVELS = pd.MultiIndex.from_product([[1, 2], [0, 1]])
SCORES = np.ones((4, 3))


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (None, {}),
        (SCORES, {"item_item": np.eye(3)}),
        (SCORES, {"users": ["a", "b"]}),
        (None, {"item_item": np.eye(3), "users": ["a"]}),
        (None, {"item_item": pd.DataFrame(np.eye(2), index=["a", "b"], columns=["b", "a"])}),
        ([[1.0]], {}),
        (SCORES > 0, {}),
        ("scores.npy", {}),
        (len, {"users": "ab"}),
        (pd.DataFrame(SCORES, index=LEVELS), {}),
    ],
)
def test_refuses_what_is_no_model(given, options):
    with raises(InvalidDataError):
        se.Scorer(given, **options)


class Table:
    """A function that is an object, which can be pickled, and notices calls at the same time."""

    def __init__(self, table):
        self.table = table
        self.busy = 0

    def __call__(self, users):
        assert self.busy == 0
        self.busy += 1
        threading.Event().wait(0.001)
        self.busy -= 1
        return self.table[users]


@pytest.mark.parametrize("kind", ["double", "sparse", "npz", "function"])
def test_scores_are_sorted(kind, holdout, weights, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CELLS_OF_CALL", 16 * N_ITEMS)
    train, held_out = holdout.train.csr, holdout.validation.csr
    table = train.astype(float) @ weights.astype(float)
    sparse.save_npz(tmp_path / "sparse.npz", sparse.csr_matrix(weights))
    se.Scorer(item_item=weights.astype(np.float64)).save(tmp_path / "double.npz")
    model = {
        "double": tmp_path / "double.npz",
        "sparse": sparse.coo_array(weights),
        "npz": tmp_path / "sparse.npz",
        "function": Table(table),
    }[kind]
    ev = se.evaluate_model(model, holdout, RANKED)
    assert ev.retrieval is not None
    assert ev.retrieval.via == "held_out_ranks"
    # By hand: every score, sorted.
    ranks = np.zeros((N_USERS, N_ITEMS), int)
    for user in range(N_USERS):
        unseen = np.setdiff1d(np.arange(N_ITEMS), train[user].indices)
        order = unseen[np.lexsort((unseen, -table[user, unseen]))][:20]
        ranks[user, order] = np.arange(1, len(order) + 1)
    plain = se.evaluate(sparse.csr_matrix(ranks), held_out, RANKED)
    assert ev._values.columns.tobytes() == plain._values.columns.tobytes()
    lists = se.top_k(model, train=holdout.train, k=4)
    of_two = se.recommend(model, holdout, k=4, users=holdout.users[[7, 3]])
    assert of_two["score"].to_numpy().tobytes() == lists.scores[[7, 3]].tobytes()


@pytest.mark.long
def test_other_processes(holdout, weights, tmp_path):
    scores = holdout.train.csr @ weights
    np.save(tmp_path / "scores.npy", scores)
    with ProcessPoolExecutor(2, get_context("forkserver")) as pool:
        for model in (Table(scores), weights, scores, tmp_path / "scores.npy"):
            shared = se.evaluate_model(model, holdout, RANKED, baselines=True, client=pool)
            expected = se.evaluate_model(model, holdout, RANKED, baselines=True)
            assert shared.mean() == expected.mean()
            popular, expected = (ev.baselines["popularity"] for ev in (shared, expected))
            assert popular.mean() == expected.mean()


def test_item_ids_are_matched_whoever_the_users_are(holdout, tmp_path):
    model = se.baselines.ease(holdout)
    train, validation = (
        pd.DataFrame({"user": holdout.users[coo.row], "item": holdout.items[coo.col]})
        for coo in (holdout.train.tocoo(), holdout.validation.tocoo())
    )
    few = validation[validation["user"].isin([f"U{i}" for i in range(1, 40)])]
    few = pd.concat([few, pd.DataFrame({"user": ["new"], "item": [holdout.items[0]]})])
    path = se.save_model(model, tmp_path / "ease.npz")
    ev = se.evaluate_model(model, train, few, RANKED)
    assert (ev.per_user.loc["new"] == 0).all()
    for found in (
        se.evaluate_model(path, train, few, RANKED),
        se.evaluate_model(model, train, few, RANKED, memory=10**9),
        se.evaluate_model(path, train, few, RANKED, client=ThreadPoolExecutor(2)),
    ):
        assert found.per_user.sort_index().equals(ev.per_user.sort_index())
        assert found.retrieval == ev.retrieval
    assert ev.retrieval is not None
    assert ev.retrieval.n_unknown_users == 1


def test_refuses_what_does_not_fit(holdout, scores, weights, tmp_path):
    bad = scores.copy()
    bad[4, 7] = np.nan
    ids = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    for call in (
        lambda: se.Scorer(sparse.csr_matrix(scores)),
        lambda: se.evaluate_model(sparse.csr_matrix(scores), holdout, RANKED),
        lambda: se.evaluate_model(scores.T, holdout, RANKED),
        lambda: se.evaluate_model(scores, ids, ids, RANKED),
        lambda: se.evaluate_model(lambda users: scores[users], ids, ids[::-1], "ndcg@1"),
        lambda: se.top_k(saved(bad, tmp_path / "bad.npy"), k=3),
        lambda: se.save_model(se.Scorer(scores), tmp_path / "m.npz", users=["a", "b"]),
        lambda: se.evaluate_model(weights[:, 1:], holdout, RANKED),
        lambda: se.evaluate_model(saved(weights[1:], tmp_path / "wide.npy"), holdout, RANKED),
        lambda: se.top_k(weights, k=3),
        lambda: se.top_k(lambda users: weights, k=3),
    ):
        with raises(InvalidDataError):
            call()
    functions = se.Recommender(weights), se.Recommender(lambda users: weights)
    for model in (object(), Table, pd.DataFrame(scores), *functions):
        with raises(UnsupportedModelError):
            se.evaluate_model(model, holdout, RANKED)
    for save in (se.save_model, se.Scorer.save):
        with raises(UnsupportedModelError):
            save(se.Scorer(len), tmp_path / "model.npz")
    assert not (tmp_path / "model.npz").exists()


def test_errors_of_a_function_arrive_as_they_are(holdout):
    def score(users):
        raise KeyError("no such user")

    with pytest.raises(KeyError, match="no such user"):
        se.evaluate_model(score, holdout, "ndcg@5")
