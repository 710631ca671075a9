"""The history of a training, early stops and the factors that they leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from callback_cases import FAMILIES, ITERATIONS, METRICS, bits, evaluating, make, stop_of, trained
from raising import raises

from sparse_eval.errors import (
    InvalidMetricError,
    UnsupportedModelError,
)


def test_the_history_has_the_values_of_separate_trainings(
    family: str, holdout: Any, curves: dict[str, Any]
) -> None:
    callback = evaluating(holdout)
    assert callback.history.empty
    assert callback.best_iteration is None
    model = make(family)
    assert callback.fit(model) is model
    history = callback.history
    assert history.index.name == "iteration"
    assert history.index.tolist() == list(range(1, ITERATIONS + 1))
    assert history.columns.tolist() == ["train_seconds", "evaluate_seconds", *METRICS]
    assert history[METRICS].to_dict("records") == curves[family]
    assert (history[["train_seconds", "evaluate_seconds"]] > 0).all(axis=None)
    ndcg = [row["ndcg@10"] for row in curves[family]]
    assert callback.best_iteration == ndcg.index(max(ndcg)) + 1
    assert bits(model) == bits(trained(family, holdout))  # the last factors, not the best


def test_records_the_loss_if_als_computes_it(holdout: Any) -> None:
    logged = []
    callback = evaluating(holdout, log=lambda values, step: logged.append(values))
    losses = []
    model = make("als", calculate_training_loss=True)

    def record(*received: Any) -> None:
        losses.append(float(received[2]))

    model.fit(holdout.train.csr, show_progress=False, callback=record)
    callback.fit(make("als", calculate_training_loss=True))
    assert callback.history["loss"].tolist() == losses
    assert callback.history.columns.tolist()[2] == "loss"
    assert [row["loss"] for row in logged] == losses


def test_evaluates_every_few_iterations_and_the_last(
    family: str, holdout: Any, curves: dict[str, Any]
) -> None:
    callback = evaluating(holdout, every=5)
    callback.fit(make(family))
    assert callback.history.index.tolist() == [5, 10, 12]
    assert callback.history["recall@5"].tolist() == [
        curves[family][done - 1]["recall@5"] for done in (5, 10, 12)
    ]
    rarely = evaluating(holdout, every=50)
    rarely.fit(make(family))
    assert rarely.history.index.tolist() == [ITERATIONS]


@pytest.mark.parametrize("own_fit", [False, True])
@pytest.mark.parametrize("patience", [None, ITERATIONS])
def test_patience_leaves_the_best_factors(
    family: str, holdout: Any, curves: dict[str, Any], own_fit: bool, patience: int | None
) -> None:
    values = [row["ndcg@10"] for row in curves[family]]
    done, best = ITERATIONS, values.index(max(values)) + 1
    if patience is None:
        patience = FAMILIES[family][2]
        done, best = stop_of(values, patience)
        assert best < done < ITERATIONS
    callback = evaluating(holdout, patience=patience)
    model = make(family)
    if own_fit:
        model.fit(holdout.train.csr, show_progress=False, callback=callback.on(model))
    else:
        callback.fit(model)
    assert callback.history.index.tolist() == list(range(1, done + 1))
    assert callback.best_iteration == best
    assert bits(model) == bits(trained(family, holdout, best))


def test_lower_is_better(holdout: Any) -> None:
    callback = evaluating(holdout, "gini@10,ndcg@10", monitor="gini@10")
    callback.fit(make("bpr"))
    assert callback.best_iteration == callback.history["gini@10"].idxmin()
    assert callback.history["gini@10"].idxmin() != callback.history["gini@10"].idxmax()
    other = evaluating(holdout, "gini@10,ndcg@10", monitor="NDCG@10")
    other.fit(make("bpr"))
    assert other.best_iteration == other.history["ndcg@10"].idxmax()


def test_an_equal_value_is_not_an_improvement(holdout: Any) -> None:
    callback = evaluating(holdout, "user_coverage@5", monitor="user_coverage@5", patience=3)
    model = callback.fit(make("lmf"))
    assert callback.history["user_coverage@5"].tolist() == [1.0] * 4
    assert callback.best_iteration == 1
    assert bits(model) == bits(trained("lmf", holdout, 1))


def test_refuses_a_monitor_that_is_defined_for_no_user_with_patience(holdout: Any) -> None:
    callback = evaluating(holdout, "fcp@1", monitor="fcp@1")  # one item has no pairs
    callback.fit(make("bpr"))
    assert callback.history["fcp@1"].isna().all()
    assert callback.best_iteration is None
    callback = evaluating(holdout, "fcp@1", monitor="fcp@1", patience=2)
    with raises(InvalidMetricError):
        callback.fit(make("bpr"))


def test_a_warm_start_starts_a_new_history(family: str, holdout: Any) -> None:
    plain = make(family, 3)
    for _ in range(2):
        plain.fit(holdout.train.csr, show_progress=False)
    for own_fit in (False, True):
        callback = evaluating(holdout)
        model = make(family, 3)
        for _ in range(2):
            if own_fit:
                watch = callback.on(model)
                model.fit(holdout.train.csr, show_progress=False, callback=watch)
                with raises(UnsupportedModelError):
                    make(family, 3).fit(holdout.train.csr, show_progress=False, callback=watch)
            else:
                callback.fit(model)
            assert callback.history.index.tolist() == [1, 2, 3]
        assert bits(model) == bits(plain)


def test_forgets_the_best_of_the_previous_training(family: str, holdout: Any) -> None:
    callback = evaluating(holdout, patience=1)
    model = callback.fit(make(family))
    before = callback.history
    best = bits(model)
    other = callback.fit(make(family))
    assert bits(model) == best == bits(other)
    assert before["ndcg@10"].tolist() == callback.history["ndcg@10"].tolist()


def test_derived_values_follow_the_best_factors(family: str, holdout: Any) -> None:
    model = make(family)
    patience = FAMILIES[family][2]
    callback = evaluating(holdout, patience=patience, log=lambda *_: model.similar_items(3))
    callback.fit(model)
    assert callback.history.index[-1] > callback.best_iteration
    fresh = trained(family, holdout, callback.best_iteration)
    for restored, expected_part in zip(model.similar_items(3), fresh.similar_items(3), strict=True):
        np.testing.assert_array_equal(restored, expected_part)
    assert (model.similar_users(5)[1] == fresh.similar_users(5)[1]).all()


def test_shows_itself_in_a_line_and_as_a_table(holdout: Any) -> None:
    callback = evaluating(holdout, every=2)
    assert repr(callback) == "EvaluationCallback(ndcg@10, recall@5; 0 evaluations)"
    assert "0 evaluations" in callback._repr_html_()
    callback.fit(make("bpr", 6))
    best = callback.best_iteration
    assert f"after iteration {best}" in repr(callback)
    shown = callback._repr_html_()
    assert shown.count("<tr>") == 4
    assert "history" not in shown
