"""Evaluations of some users by id or by row: what the evaluation of all says of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError

N_USERS, N_ITEMS = 90, 50


def make_case(seed: int = 0) -> tuple[Any, sparse.csr_matrix, sparse.csr_matrix]:
    rng = np.random.default_rng(seed)
    factors = rng.normal(size=(N_USERS, 4)), rng.normal(size=(N_ITEMS, 4))
    seen = rng.random((N_USERS, N_ITEMS)) < 0.1
    held = ~seen & (rng.random((N_USERS, N_ITEMS)) < 0.1)
    held[20] = False  # a user without held-out items
    return factors, sparse.csr_matrix(seen * 1.0), sparse.csr_matrix(held * 1.0)


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
@pytest.mark.filterwarnings("ignore:.*(unknown to the model|is in its user|no list contains)")
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


@pytest.mark.parametrize("users", [["U1"], [0, N_USERS], [-1], [20], [], [0.5]])
@pytest.mark.parametrize("memory", [None, 10**9])
def test_refuses_users_that_are_not_there(users: Any, memory: int | None) -> None:
    with raises(InvalidDataError):
        se.evaluate_model(*make_case(), "ndcg@5", users=users, memory=memory)


def test_refuses_unknown_ids() -> None:
    holdout = se.split.random(se.datasets.synthetic(n_users=50, n_items=30, seed=0), seed=0)
    model = se.baselines.popularity(holdout)
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
