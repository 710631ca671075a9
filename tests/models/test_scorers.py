"""Matrices and functions as models: scores, item-item weights, and ambiguous square ones."""

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pandas as pd
import pytest
from raising import raises, warns
from scipy import sparse
from tensors import Tensor

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, UnsupportedModelError
from sparse_eval.retrieval import scores as module

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


def scores_of(holdout, dtype=np.float64):
    scores = np.random.default_rng(1).standard_normal(holdout.train.shape)
    return (scores * 100).round().astype(dtype) if np.dtype(dtype).kind == "i" else scores


def plain(holdout):
    return holdout.train.csr, holdout.validation.csr


def saved(array, path):
    np.save(path, array)
    return path


def test_scores_are_matched_by_id(holdout, tmp_path):
    scores, rng = scores_of(holdout), np.random.default_rng(3)
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


def matrices(n, folder):
    """Return square matrices that could be scores or weights."""
    matrix = np.random.default_rng(0).standard_normal((n, n))
    sparse.save_npz(folder / "square.npz", sparse.csr_matrix(matrix))
    return {
        "array": matrix,
        "tensor": Tensor(matrix),
        "sparse": sparse.csr_matrix(matrix),
        "npy": saved(matrix, folder / "square.npy"),
        "npz": folder / "square.npz",
    }


SQUARES = ["array", "tensor", "sparse", "npy", "npz"]


@pytest.mark.parametrize("form", SQUARES)
def test_a_square_that_could_be_either_is_an_error(form, square, tmp_path):
    n = square.train.shape[0]
    model = matrices(n, tmp_path)[form]
    train, validation = plain(square)

    for call in (
        lambda: se.evaluate_model(model, square, METRICS),
        lambda: se.evaluate_model(model, train, validation, METRICS, memory=10**9),
        lambda: se.recommend(model, square, k=3),
        lambda: se.top_k(model, seen=train, k=3),
        lambda: se.ranks(model, validation, seen=train),
    ):
        with raises(InvalidDataError):
            call()


def test_a_square_is_what_a_scorer_says(square, tmp_path):
    train, validation = plain(square)
    weights = next(iter(matrices(train.shape[0], tmp_path).values()))
    by_hand = train.astype(float) @ weights
    explicit = {
        "weights": (se.Scorer(item_item=weights), by_hand),
        "sparse": (se.Scorer(item_item=sparse.csr_matrix(weights)), by_hand),
        "scores": (se.Scorer(weights), weights),
    }
    for name, (scorer, expected) in explicit.items():
        path = se.save_model(scorer, tmp_path / f"{name}.npz")
        ev = se.evaluate_model(lambda users, t=expected: t[users], train, validation, METRICS)
        for some in (scorer, path):
            assert se.evaluate_model(some, train, validation, METRICS).mean() == ev.mean()


def test_models_that_we_make_are_never_taken_for_scores(square, tmp_path):
    for name in ("ease", "item_knn"):
        for data in (square, plain(square)[0]):  # with ids and without
            model = getattr(se.baselines, name)(data)
            path = se.save_model(model, tmp_path / f"{name}.npz")
            one, other = (
                se.evaluate_model(some, *plain(square), METRICS) for some in (model, path)
            )
            assert one.columns.tobytes() == other.columns.tobytes()


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
        (np.zeros(3), {}),
        (SCORES.astype(complex), {}),
        (SCORES > 0, {}),
        ("scores.npy", {}),
        (len, {"users": "ab"}),
        (pd.DataFrame(SCORES, index=LEVELS), {}),
        (pd.DataFrame(SCORES.T, columns=LEVELS), {}),
    ],
)
def test_refuses_what_is_no_model(given, options):
    with raises(InvalidDataError):
        se.Scorer(given, **options)


def test_scorers_save_what_they_hold(square, tmp_path):
    weights = se.baselines.ease(square).weights
    se.Scorer(item_item=weights).save(tmp_path / "weights.npz")
    with warns():
        found = se.evaluate_model(tmp_path / "weights.npz", square, METRICS)
    with warns():
        expected = se.evaluate_model(se.Scorer(item_item=weights), square, METRICS)
    assert found.mean() == expected.mean()
    with raises(UnsupportedModelError):
        se.Scorer(lambda users: users).save(tmp_path / "function.npz")
    assert not (tmp_path / "function.npz").exists()


@pytest.fixture(scope="module")
def weights():
    matrix = np.random.default_rng(0).standard_normal((N_ITEMS, N_ITEMS)).astype(np.float32)
    return np.where(abs(matrix) > 0.5, matrix, 0)


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


def models_of(holdout, weights, folder):
    np.save(folder / "dense.npy", weights)
    sparse.save_npz(folder / "sparse.npz", sparse.csr_matrix(weights))
    table = holdout.train.csr.astype(float) @ weights.astype(float)
    return {
        "dense": weights,
        "double": weights.astype(np.float64),
        "sparse": sparse.coo_array(weights),
        "npy": str(folder / "dense.npy"),
        "npz": folder / "sparse.npz",
        "function": Table(table),
        "lambda": lambda users: table[users],
    }


KINDS = ["dense", "double", "sparse", "npy", "npz", "function", "lambda"]


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_sorted(kind, holdout, weights, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CELLS_OF_CALL", 16 * N_ITEMS)
    model = models_of(holdout, weights, tmp_path)[kind]
    train, held_out = holdout.train.csr, holdout.validation.csr
    ev = se.evaluate_model(model, holdout, RANKED)
    assert ev.retrieval is not None
    assert ev.retrieval.via == "held_out_ranks"
    # By hand: every score, sorted.
    table = train.astype(float) @ weights.astype(float)
    ranks = np.zeros((N_USERS, N_ITEMS), int)
    for user in range(N_USERS):
        unseen = np.setdiff1d(np.arange(N_ITEMS), train[user].indices)
        order = unseen[np.lexsort((unseen, -table[user, unseen]))][:20]
        ranks[user, order] = np.arange(1, len(order) + 1)
    plain = se.evaluate(sparse.csr_matrix(ranks), held_out, RANKED)
    assert ev.columns.tobytes() == plain.columns.tobytes()

    lists = se.top_k(model, seen=holdout.train, k=4)
    recs = se.recommend(model, holdout, k=4)
    assert recs["score"].to_numpy().tobytes() == lists.scores.tobytes()
    of_two = se.recommend(model, holdout, k=4, users=holdout.users[[7, 3]])
    assert of_two["score"].to_numpy().tobytes() == lists.scores[[7, 3]].tobytes()
    ranks = se.ranks(model, holdout.validation, seen=holdout.train)
    again = se.evaluate(ranks, holdout.validation, RANKED)
    assert again.columns.tobytes() == ev.columns.tobytes()


@pytest.mark.long
def test_other_processes(holdout, weights, tmp_path):
    scores = holdout.train.csr @ weights
    np.save(tmp_path / "scores.npy", scores)
    with ProcessPoolExecutor(2, get_context("forkserver")) as pool:
        for model in (Table(scores), weights, scores, tmp_path / "scores.npy"):
            options = {"baselines": True, "client": pool}
            shared = se.evaluate_model(model, holdout, RANKED, **options)
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


def test_invalid_matrices_raise_errors(holdout, weights, tmp_path):
    scores, train = scores_of(holdout), plain(holdout)[0]
    bad, seen = scores.copy(), sparse.csr_matrix(scores.shape)
    bad[4, 7] = np.nan
    ids = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    calls = [
        *(lambda s=s: se.Scorer(s) for s in (sparse.csr_matrix(scores), sparse.coo_array(scores))),
        lambda: se.evaluate_model(sparse.csr_matrix(scores), holdout, RANKED),
        *(
            lambda t=t: se.evaluate_model(scores.T, t, holdout.validation, RANKED)
            for t in (holdout.train, train)
        ),
        *(
            lambda m=m: se.top_k(m, k=3, seen=seen)
            for m in (bad, saved(bad, tmp_path / "bad.npy"), lambda users: bad[users])
        ),
        lambda: se.evaluate_model(scores, ids, ids, RANKED),
        *(
            lambda m=m: se.evaluate_model(m, ids, ids[::-1], "ndcg@1")
            for m in (np.eye(2), lambda users: np.zeros((len(users), 2)))
        ),
        lambda: se.save_model(se.Scorer(scores), tmp_path / "m.npz", users=["a", "b"]),
        lambda: se.evaluate_model(weights[:, 1:], holdout, RANKED),
        lambda: se.evaluate_model(saved(weights[1:], tmp_path / "wide.npy"), holdout, RANKED),
        lambda: se.top_k(weights, k=3),
        lambda: se.top_k(lambda users: weights, k=3),
    ]
    for call in calls:
        with raises(InvalidDataError):
            call()
    models = [object(), Table, se.Recommender(weights), pd.DataFrame(scores)]
    for model in (*models, se.Recommender(lambda users: weights)):
        with raises(UnsupportedModelError):
            se.evaluate_model(model, holdout, RANKED)
    with raises(UnsupportedModelError):
        se.save_model(se.Scorer(len), tmp_path / "model.npz")


def test_errors_of_a_function_arrive_as_they_are(holdout):
    def score(users):
        raise KeyError("no such user")

    with pytest.raises(KeyError, match="no such user"):
        se.evaluate_model(score, holdout, "ndcg@5")
