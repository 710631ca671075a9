"""Trackers, interruptions and errors during training, and input that is refused."""

from __future__ import annotations

import signal
from typing import Any

import numpy as np
import pytest
from callback_cases import ITERATIONS, N_ITEMS, N_USERS, bits, evaluating, make, trained
from implicit.nearest_neighbours import CosineRecommender
from own_process import own_process
from raising import raises

import sparse_eval as se
from sparse_eval import EvaluationCallback
from sparse_eval.errors import (
    InvalidDataError,
    InvalidMetricError,
    UnsupportedModelError,
)


def test_log_gets_each_evaluation(family: str, holdout: Any, curves: dict[str, Any]) -> None:
    received: list[tuple[dict[str, float], int]] = []
    callback = evaluating(holdout, every=6, log=lambda *args: received.append(args))
    callback.fit(make(family))
    assert received == [(curves[family][5], 6), (curves[family][11], 12)]
    received[0][0].clear()  # changing the values does not change the history
    assert callback.history["ndcg@10"].tolist() == [curves[family][n]["ndcg@10"] for n in (5, 11)]


@pytest.mark.parametrize("patience", [None, 50])
@own_process
def test_an_interrupt_leaves_a_usable_model(
    holdout: Any, curves: dict[str, Any], patience: int | None
) -> None:
    family = "als"

    def interrupt(values: dict[str, float], step: int) -> None:
        if step == 7:
            signal.raise_signal(signal.SIGINT)  # what Ctrl-C does

    callback = evaluating(holdout, patience=patience, log=interrupt)
    model = make(family)
    with pytest.raises(KeyboardInterrupt):
        callback.fit(model)
    values = [row["ndcg@10"] for row in curves[family]][:7]
    left = 7 if patience is None else values.index(max(values)) + 1
    assert bits(model) == bits(trained(family, holdout, left))
    assert callback.history["ndcg@10"].tolist() == values
    callback = evaluating(holdout)
    callback.fit(model)  # the training can continue
    assert len(callback.history) == ITERATIONS


def test_refuses_factors_that_are_no_longer_finite(family: str, holdout: Any) -> None:
    def spoil(*received: Any) -> None:
        if received[0] == 4:
            model.user_factors[17, 2] = np.nan
        watch(*received)

    model = make(family)
    callback = evaluating(holdout)
    watch = callback.on(model)
    with raises(InvalidDataError, argument="user_factors"):
        model.fit(holdout.train.csr, show_progress=False, callback=spoil)
    assert callback.history.index.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"every": 0}, InvalidDataError),
        ({"patience": 0}, InvalidDataError),
        ({"metrics": ["ndcg@5", "map@5"], "monitor": "ndcg@10"}, InvalidMetricError),
        ({"monitor": "recall@{5,10}"}, InvalidMetricError),
    ],
)  # fmt: skip
def test_refuses_options(holdout: Any, options: dict[str, Any], error: type[Exception]) -> None:
    with raises(error):
        evaluating(holdout, **options)


def test_refuses_data(holdout: Any) -> None:
    larger = holdout.validation.csr.copy()
    larger.resize((N_USERS, N_ITEMS + 1))
    for truth in (larger, se.Relevance.from_csr(larger)):
        with raises(InvalidDataError):
            EvaluationCallback(holdout.train, truth, "ndcg@10")
    with raises(InvalidDataError):
        EvaluationCallback(holdout.train, holdout.validation.csr * 0, "ndcg@10")


def test_refuses_models(family: str, holdout: Any) -> None:
    callback = evaluating(holdout)
    model = make(family)
    with raises(UnsupportedModelError):
        model.fit(holdout.train.csr, show_progress=False, callback=callback)
    for thing in (CosineRecommender(), object(), None):
        for tell in (callback.on, callback.fit):
            with raises(UnsupportedModelError):
                tell(thing)


def test_refuses_matrices_of_other_users_or_items(family: str, holdout: Any) -> None:
    callback = evaluating(holdout)
    part = holdout.train.csr[:, :-1]
    model = make(family, 2)
    with raises(InvalidDataError):
        model.fit(part, show_progress=False, callback=callback.on(model))
    for tell in (callback.on, callback.fit):
        with raises(InvalidDataError):
            tell(model)
    with raises(InvalidDataError):
        callback.fit(make(family, 2), part)
