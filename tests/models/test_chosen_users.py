"""Evaluations of some users by id or by row: what the evaluation of all says of them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

N_USERS, N_ITEMS = 90, 50
ROWS = [41, 3, 77, 20, 60, 61, 62, 3]  # in any order; a user may be named twice
METRICS = ["ndcg@5", "recall@5", "novelty@5"]


def make_case(seed: int = 0) -> tuple[Any, sparse.csr_matrix, sparse.csr_matrix]:
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(N_USERS, 4)), rng.normal(size=(N_ITEMS, 4))
    seen = rng.random((N_USERS, N_ITEMS)) < 0.1
    held = ~seen & (rng.random((N_USERS, N_ITEMS)) < 0.1)
    held[20] = False  # a user without held-out items
    return factors, sparse.csr_matrix(seen * 1.0), sparse.csr_matrix(held * 1.0)


def cut_in_blocks(patch: pytest.MonkeyPatch) -> dict[str, Any]:
    patch.setattr("sparse_eval.models.source.users_within", lambda *_, **__: 3)
    return {"memory": 10**9}


def pools(kind: str) -> Any:
    rng = np.random.default_rng(7)
    mask = rng.random((N_USERS, N_ITEMS)) < 0.4
    return {"csr": sparse.csr_matrix(mask * 1.0), "for all": np.arange(0, N_ITEMS, 2)}.get(kind)


@pytest.mark.filterwarnings("ignore:.*(are no candidates|no held-out item is in its user)")
@pytest.mark.parametrize("way", ["whole", "blocks", "executor"])
@pytest.mark.parametrize("candidates", ["none", "csr", "for all"])
@pytest.mark.parametrize("filter_seen", [True, False])
def test_values_are_those_of_the_whole(candidates: str, filter_seen: bool, way: str) -> None:
    factors, train, validation = make_case()
    options: dict[str, Any] = {"candidates": pools(candidates), "baselines": True}
    metrics = se.Protocol(METRICS if filter_seen else METRICS[:2], filter_seen=filter_seen)
    whole = se.evaluate_model(factors, train, validation, metrics, **options)
    rows = sorted(set(ROWS))
    with pytest.MonkeyPatch.context() as patch, ThreadPoolExecutor(2) as pool:
        if way != "whole":
            options |= cut_in_blocks(patch) if way == "blocks" else {"client": pool}
        some = se.evaluate_model(factors, train, validation, metrics, users=ROWS, **options)
    assert some.users.tolist() == rows
    for ours, theirs in (
        (some, whole),
        (some.baselines["popularity"], whole.baselines["popularity"]),
    ):
        assert ours.columns.tobytes() == theirs.columns[:, rows].tobytes()


@pytest.mark.parametrize("metrics", [["auc", "mean_rank"], ["ndcg@5"]])
def test_users_by_id(metrics: list[str]) -> None:
    clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    holdout = se.split.random(clicks, seed=0)
    model = se.train_als(holdout.train, factors=8)
    whole = se.evaluate_model(model, holdout, metrics)
    wanted = ["U7", "U1", "U150"]
    some = se.evaluate_model(model, holdout, metrics, users=wanted)
    assert sorted(some.users) == sorted(wanted)
    where = whole.users.get_indexer(some.users)
    assert some.columns.tobytes() == whole.columns[:, where].tobytes()


def test_validation_of_other_users_than_the_model() -> None:
    """Users are chosen among those of both, whatever the order of each."""
    clicks = se.datasets.synthetic(n_users=200, n_items=100, seed=0)
    holdout = se.split.random(clicks, seed=0)
    model = se.train_als(holdout.train, factors=8)
    coo = holdout.validation.tocoo()
    frame = pd.DataFrame(
        {"user": holdout.users[coo.row][::-1], "item": holdout.items[coo.col][::-1]}
    )
    whole = se.evaluate_model(model, holdout.train, frame, "ndcg@5")
    some = se.evaluate_model(model, holdout.train, frame, "ndcg@5", users=["U9", "U2"])
    where = whole.users.get_indexer(some.users)
    assert some.columns.tobytes() == whole.columns[:, where].tobytes()


@pytest.mark.parametrize("filter_seen", [True, False])
@pytest.mark.filterwarnings("ignore:.*(unknown to the model|is in its user|no list holds)")
def test_items_that_only_other_users_hold_out(filter_seen: bool) -> None:
    """These items are candidates of the chosen users too, as in the evaluation of all users."""
    items = np.array([[4.0], [3.0], [2.0], [1.0]])
    model = se.factor_model(np.ones((2, 1)), items, users=["u0", "u1"], items=list("abcd"))
    train = pd.DataFrame({"user": ["u0", "u1"], "item": ["a", "a"]})
    held = pd.DataFrame(
        {"user": ["u0", "u1", "u1"], "item": ["c", "new", "b"], "gain": [1.0, 4.0, 2.0]}
    )
    truth = se.Relevance.from_frame(held, gain="gain")
    given = se.Interactions.from_frame(train), truth
    for metrics in (["auc", "percentile_rank(gain=binary)"], ["ndcg@2", "err@2"]):
        protocol = se.Protocol(metrics, filter_seen=filter_seen)
        whole = se.evaluate_model(model, *given, protocol)
        for memory in (None, 10**9):
            some = se.evaluate_model(model, *given, protocol, users=["u0"], memory=memory)
            assert some.per_user.equals(whole.per_user.loc[["u0"]])


def test_function_and_item_item_models_from_files(tmp_path: Path) -> None:
    factors, train, validation = make_case()
    weights = np.random.default_rng(1).normal(size=(N_ITEMS, N_ITEMS))
    np.save(tmp_path / "weights.npy", weights)
    sparse.save_npz(tmp_path / "train.npz", train)
    scores = factors[0] @ factors[1].T
    rows = sorted(set(ROWS))
    for model in (tmp_path / "weights.npy", lambda users: scores[users]):
        whole = se.evaluate_model(model, tmp_path / "train.npz", validation, "ndcg@5")
        for options in ({}, {"memory": 10**9}):
            some = se.evaluate_model(
                model, tmp_path / "train.npz", validation, "ndcg@5", users=ROWS, **options
            )
            assert some.columns.tobytes() == whole.columns[:, rows].tobytes()


@pytest.mark.parametrize("users", [["U1"], [0, N_USERS], [-1], [20], [], [0.5]])
@pytest.mark.parametrize("memory", [None, 10**9])
def test_refuses_users_that_are_not_there(users: Any, memory: int | None) -> None:
    with raises(InvalidDataError):
        se.evaluate_model(*make_case(), "ndcg@5", users=users, memory=memory)


def test_refuses_unknown_ids() -> None:
    clicks = se.datasets.synthetic(n_users=50, n_items=30, seed=0)
    holdout = se.split.random(clicks, seed=0)
    model = se.train_als(holdout.train, factors=4)
    with raises(InvalidDataError, user="nobody"):
        se.evaluate_model(model, holdout, "ndcg@5", users=["U1", "nobody"])
    with raises(InvalidDataError):
        se.evaluate_model(model, holdout, "ndcg@5", users="U1")


def test_ids_that_are_whole_numbers_are_not_rows() -> None:
    _, train, validation = make_case()
    ids = pd.Index(np.arange(N_USERS)[::-1])
    coo = validation.tocoo()
    frames = [
        pd.DataFrame({"user": ids.to_numpy()[side.row], "item": side.col})
        for side in (train.tocoo(), coo)
    ]
    model = se.train_als(se.Interactions.from_frame(frames[0]).matrix(), factors=4)
    whole = se.evaluate_model(model, *frames, "ndcg@5")
    some = se.evaluate_model(model, *frames, "ndcg@5", users=[5, 88])
    assert sorted(some.users) == [5, 88]
    where = whole.users.get_indexer(some.users)
    assert some.columns.tobytes() == whole.columns[:, where].tobytes()
