"""Item-item matrices and functions as models: every way, block and client gives the same bits."""

from __future__ import annotations

import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, UnsupportedModelError
from sparse_eval.retrieval import scores as module

METRICS = ["ndcg@{5,20}", "recall@10", "mrr@20"]
N_USERS, N_ITEMS = 200, 90


@pytest.fixture(scope="module")
def holdout() -> se.Holdout:
    clicks = se.datasets.synthetic(n_users=N_USERS, n_items=N_ITEMS, n_interactions=4000, seed=5)
    return se.split.random(clicks, fraction=0.3, seed=0)


@pytest.fixture(scope="module")
def weights() -> Any:
    matrix = np.random.default_rng(0).standard_normal((N_ITEMS, N_ITEMS)).astype(np.float32)
    return np.where(abs(matrix) > 0.5, matrix, 0)


class Table:
    """A function that is an object, which can be pickled, and notices calls at the same time."""

    def __init__(self, table: Any) -> None:
        self.table = table
        self.busy = 0

    def __call__(self, users: Any) -> Any:
        assert self.busy == 0
        self.busy += 1
        threading.Event().wait(0.001)
        self.busy -= 1
        return self.table[users]


def models_of(holdout: Any, weights: Any, folder: Path) -> dict[str, Any]:
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
def test_scores_are_sorted(
    kind: str, holdout: Any, weights: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CELLS_OF_CALL", 16 * N_ITEMS)
    model = models_of(holdout, weights, tmp_path)[kind]
    train, held_out = holdout.train.csr, holdout.validation.csr
    ev = se.evaluate_model(model, holdout, METRICS)
    assert ev.retrieval is not None
    assert ev.retrieval.via == "held_out_ranks"
    # By hand: every score, sorted.
    table = train.astype(float) @ weights.astype(float)
    ranks = np.zeros((N_USERS, N_ITEMS), int)
    for user in range(N_USERS):
        unseen = np.setdiff1d(np.arange(N_ITEMS), train[user].indices)
        order = unseen[np.lexsort((unseen, -table[user, unseen]))][:20]
        ranks[user, order] = np.arange(1, len(order) + 1)
    plain = se.evaluate(sparse.csr_matrix(ranks), held_out, METRICS)
    assert ev.columns.tobytes() == plain.columns.tobytes()

    lists = se.top_k(model, seen=holdout.train, k=4)
    recs = se.recommend(model, holdout, k=4)
    assert recs["score"].to_numpy().tobytes() == lists.scores.tobytes()
    of_two = se.recommend(model, holdout, k=4, users=holdout.users[[7, 3]])
    assert of_two["score"].to_numpy().tobytes() == lists.scores[[7, 3]].tobytes()
    ranks = se.ranks(model, holdout.validation, seen=holdout.train)
    again = se.evaluate(ranks, holdout.validation, METRICS)
    assert again.columns.tobytes() == ev.columns.tobytes()


def test_other_processes(holdout: Any, weights: Any, tmp_path: Path) -> None:
    scores = holdout.train.csr @ weights
    np.save(tmp_path / "scores.npy", scores)
    with ProcessPoolExecutor(2, get_context("forkserver")) as pool:
        for model in (Table(scores), weights, scores, tmp_path / "scores.npy"):
            options: dict[str, Any] = {"baselines": True, "client": pool}
            shared = se.evaluate_model(model, holdout, METRICS, **options)
            expected = se.evaluate_model(model, holdout, METRICS, baselines=True)
            assert shared.mean() == expected.mean()
            popular, expected = (ev.baselines["popularity"] for ev in (shared, expected))
            assert popular.mean() == expected.mean()


def test_ids_are_matched(holdout: Any, weights: Any) -> None:
    """Data in another order, with an unknown user and an unknown item, and a user less."""
    table = holdout.train.csr.astype(float) @ weights.astype(float)
    users, items = holdout.users, holdout.items
    model = se.Scorer(lambda rows: table[rows], users=users, items=items)
    frames = {}
    for name, matrix in (("train", holdout.train), ("validation", holdout.validation)):
        coo = matrix.tocoo()
        frames[name] = pd.DataFrame({"user": users[coo.row], "item": items[coo.col]})
    validation = frames["validation"].query("user != 'U3'").sample(frac=1, random_state=0)
    unknown = pd.DataFrame({"user": ["new", "U1"], "item": [items[0], "new"]})
    validation = pd.concat([validation, unknown])
    train = frames["train"].sample(frac=1, random_state=0)
    ev = se.evaluate_model(model, train, validation, METRICS)
    assert ev.retrieval is not None
    assert (ev.retrieval.n_unknown_users, ev.retrieval.n_unknown_items) == (1, 1)
    expected = se.evaluate_model(model, holdout, METRICS).per_user
    common = [user for user in ev.users.tolist() if user not in ("new", "U1")]
    assert ev.per_user.loc[common].equals(expected.loc[common])
    assert (ev.per_user.loc["new"] == 0).all()
    other = se.evaluate_model(model, train, validation, METRICS, memory=10**9)
    assert other.per_user.sort_index().equals(ev.per_user.sort_index())
    assert other.retrieval == ev.retrieval


def test_item_ids_are_matched_whoever_the_users_are(holdout: Any, tmp_path: Path) -> None:
    model = se.baselines.ease(holdout)
    train, validation = (
        pd.DataFrame({"user": holdout.users[coo.row], "item": holdout.items[coo.col]})
        for coo in (holdout.train.tocoo(), holdout.validation.tocoo())
    )
    few = validation[validation["user"].isin([f"U{i}" for i in range(1, 40)])]
    few = pd.concat([few, pd.DataFrame({"user": ["new"], "item": [holdout.items[0]]})])
    path = se.save_model(model, tmp_path / "ease.npz")
    ev = se.evaluate_model(model, train, few, METRICS)
    assert (ev.per_user.loc["new"] == 0).all()
    for found in (
        se.evaluate_model(path, train, few, METRICS),
        se.evaluate_model(model, train, few, METRICS, memory=10**9),
        se.evaluate_model(path, train, few, METRICS, client=ThreadPoolExecutor(2)),
    ):
        assert found.per_user.sort_index().equals(ev.per_user.sort_index())
        assert found.retrieval == ev.retrieval
    assert ev.retrieval is not None
    assert ev.retrieval.n_unknown_users == 1


def test_numbers_are_not_taken_for_ids(holdout: Any, weights: Any) -> None:
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    for model in (np.eye(2), lambda users: np.zeros((len(users), 2))):
        with raises(InvalidDataError):
            se.evaluate_model(model, frame, frame[::-1], "ndcg@1")


def test_refusals(holdout: Any, weights: Any, tmp_path: Path) -> None:
    metrics = "ndcg@5"
    with raises(InvalidDataError):
        se.evaluate_model(weights[:, 1:], holdout, metrics)
    for scores in (weights, lambda users: weights):
        with raises(UnsupportedModelError):
            se.evaluate_model(se.Recommender(scores), holdout, metrics)
    with raises(UnsupportedModelError):
        se.evaluate_model(object(), holdout, metrics)  # type: ignore[arg-type]
    with raises(UnsupportedModelError):
        se.evaluate_model(Table, holdout, metrics)  # type: ignore[arg-type]
    bad, seen = np.zeros((N_USERS, N_ITEMS)), sparse.csr_matrix((N_USERS, N_ITEMS))
    bad[4, 7] = np.nan
    with raises(InvalidDataError):
        se.top_k(lambda users: bad[users], k=3, seen=seen)
    with raises(InvalidDataError):
        se.top_k(weights, k=3)
    with raises(InvalidDataError):
        se.top_k(lambda users: weights, k=3)
    with raises(UnsupportedModelError):
        se.save_model(se.Scorer(len), tmp_path / "model.npz")
    np.save(tmp_path / "wide.npy", weights[1:])
    with raises(se.SparseEvalError):
        se.evaluate_model(tmp_path / "wide.npy", holdout, metrics)


def test_errors_of_a_function_arrive_as_they_are(holdout: Any) -> None:
    def score(users: Any) -> Any:
        raise KeyError("no such user")

    with pytest.raises(KeyError, match="no such user"):
        se.evaluate_model(score, holdout, "ndcg@5")
