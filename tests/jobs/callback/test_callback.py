"""The history of a training, early stops, the factors that they leave, and what is refused."""

from contextlib import nullcontext

import numpy as np
import pytest
from callback_cases import (
    FAMILIES,
    ITERATIONS,
    METRICS,
    bits,
    evaluating,
    make,
    stop_of,
    trained,
)
from implicit.nearest_neighbours import CosineRecommender
from raising import raises

from sparse_eval import TrainingStopped
from sparse_eval.errors import InvalidDataError, InvalidMetricError, UnsupportedModelError


@pytest.mark.long
def test_the_history_has_the_values_of_separate_trainings(family, holdout, curves):
    callback = evaluating(holdout)
    assert callback.history.empty
    assert callback.best_iteration is None
    model = make(family)
    assert callback.fit(model) is model
    history = callback.history
    assert history.index.tolist() == list(range(1, ITERATIONS + 1))
    assert history.columns.tolist() == ["train_seconds", "evaluate_seconds", *METRICS]
    assert history[METRICS].to_dict("records") == curves[family]
    assert (history[["train_seconds", "evaluate_seconds"]] > 0).all(axis=None)
    assert bits(model) == bits(trained(family, holdout))  # the last factors, not the best


def test_records_the_loss_if_als_computes_it(holdout):
    logged, losses = [], []
    make("als", calculate_training_loss=True).fit(
        holdout.train.csr,
        show_progress=False,
        callback=lambda *received: losses.append(float(received[2])),
    )
    callback = evaluating(holdout, log=lambda values, step: logged.append(values["loss"]))
    callback.fit(make("als", calculate_training_loss=True))
    assert callback.history["loss"].tolist() == logged == losses


def test_evaluates_every_few_iterations_and_the_last(family, holdout, curves):
    for every, expected in ((5, [5, 10, 12]), (50, [ITERATIONS])):
        received = []
        callback = evaluating(holdout, every=every, log=lambda *args: received.append(args))  # noqa: B023
        callback.fit(make(family))
        assert received == [(curves[family][done - 1], done) for done in expected]
        received[0][0].clear()  # changing the values does not change the history
        assert callback.history["recall@5"].to_dict() == {
            done: curves[family][done - 1]["recall@5"] for done in expected
        }


@pytest.mark.parametrize("own_fit", [False, True])
@pytest.mark.parametrize("patience", [None, ITERATIONS])
def test_patience_leaves_the_best_factors(family, holdout, curves, own_fit, patience):
    values = [row["ndcg@10"] for row in curves[family]]
    done, best = ITERATIONS, values.index(max(values)) + 1
    if patience is None:
        patience = FAMILIES[family][2]
        done, best = stop_of(values, patience)
        assert best < done < ITERATIONS
    model = make(family)
    # The model keeps values that it derives from its factors.
    callback = evaluating(holdout, patience=patience, log=lambda *_: model.similar_items(3))
    if own_fit:
        stops = pytest.raises(TrainingStopped) if done < ITERATIONS else nullcontext()
        with stops:
            model.fit(holdout.train.csr, show_progress=False, callback=callback.on(model))
    else:
        callback.fit(model)
    assert callback.history.index.tolist() == list(range(1, done + 1))
    assert callback.best_iteration == best
    fresh = trained(family, holdout, best)
    assert bits(model) == bits(fresh)
    np.testing.assert_array_equal(model.similar_items(3), fresh.similar_items(3))
    np.testing.assert_array_equal(model.similar_users(5), fresh.similar_users(5))


@pytest.mark.long
def test_lower_is_better(holdout):
    for monitor, best in (("gini@10", "idxmin"), ("NDCG@10", "idxmax")):
        callback = evaluating(holdout, "gini@10,ndcg@10", monitor=monitor)
        callback.fit(make("bpr"))
        values = callback.history[monitor.lower()]
        assert callback.best_iteration == getattr(values, best)()
        assert values.idxmin() != values.idxmax()


def test_an_equal_value_is_not_an_improvement(holdout):
    callback = evaluating(holdout, "user_coverage@5", patience=3)
    model = callback.fit(make("lmf"))
    assert callback.history["user_coverage@5"].tolist() == [1.0] * 4
    assert callback.best_iteration == 1
    assert bits(model) == bits(trained("lmf", holdout, 1))


@pytest.mark.long
def test_refuses_a_monitor_that_is_defined_for_no_user_with_patience(holdout):
    callback = evaluating(holdout, "fcp@1")  # one item has no pairs
    callback.fit(make("bpr"))
    assert callback.history["fcp@1"].isna().all()
    assert callback.best_iteration is None
    with raises(InvalidMetricError):
        evaluating(holdout, "fcp@1", patience=2).fit(make("bpr"))


@pytest.mark.parametrize("own_fit", [False, True])
def test_a_warm_start_starts_a_new_history(family, holdout, own_fit):
    plain, model = make(family, 3), make(family, 3)
    callback = evaluating(holdout)
    for _ in range(2):
        plain.fit(holdout.train.csr, show_progress=False)
        if own_fit:
            watch = callback.on(model)
            model.fit(holdout.train.csr, show_progress=False, callback=watch)
            with raises(UnsupportedModelError):  # it has released the model
                make(family, 3).fit(holdout.train.csr, show_progress=False, callback=watch)
        else:
            callback.fit(model)
        assert callback.history.index.tolist() == [1, 2, 3]
    assert bits(model) == bits(plain)
    callback = evaluating(holdout, patience=1)  # and forgets the best of the training before
    first, second = callback.fit(make(family)), callback.fit(make(family))
    assert bits(first) == bits(second)


def test_shows_itself_in_a_line_and_as_a_table(holdout):
    callback = evaluating(holdout, every=2)
    assert repr(callback) == "EvaluationCallback(ndcg@10, recall@5; 0 evaluations)"
    callback.fit(make("bpr", 6))
    assert f"after iteration {callback.best_iteration}" in repr(callback)
    assert callback._repr_html_().count("<tr>") == 4


@pytest.mark.parametrize("patience", [None, 50])
def test_an_interrupt_leaves_a_usable_model(holdout, curves, patience):
    def interrupt(values, step):
        if step == 7:
            raise KeyboardInterrupt

    callback = evaluating(holdout, patience=patience, log=interrupt)
    model = make("als")
    with pytest.raises(KeyboardInterrupt):
        callback.fit(model)
    values = [row["ndcg@10"] for row in curves["als"]][:7]
    left = 7 if patience is None else values.index(max(values)) + 1
    assert bits(model) == bits(trained("als", holdout, left))
    assert callback.history["ndcg@10"].tolist() == values
    callback = evaluating(holdout)
    callback.fit(model)  # the training can continue
    assert len(callback.history) == ITERATIONS


def test_refuses_factors_that_are_no_longer_finite(holdout):
    def spoil(*received):
        if received[0] == 4:
            model.user_factors[17, 2] = np.nan
        watch(*received)

    model = make("als")
    callback = evaluating(holdout)
    watch = callback.on(model)
    with raises(InvalidDataError, argument="user_factors"):
        model.fit(holdout.train.csr, show_progress=False, callback=spoil)
    assert callback.history.index.tolist() == [1, 2, 3, 4]


def test_refuses_options(holdout):
    for options in (
        {"every": 0},
        {"patience": 0},
        {"checkpoints": "last"},
        {"checkpoints": "best"},
    ):
        with raises(InvalidDataError):
            evaluating(holdout, **options)
    for monitor in ("mrr@3", "recall@{5,10}"):
        with raises(InvalidMetricError):
            evaluating(holdout, "ndcg@10,recall@{5,10}", monitor=monitor)


def test_refuses_models_and_matrices(holdout):
    callback = evaluating(holdout)
    with raises(UnsupportedModelError):
        make("als").fit(holdout.train.csr, show_progress=False, callback=callback)
    for thing in (CosineRecommender(), None):
        with raises(UnsupportedModelError):
            callback.on(thing)
    model, part = make("als", 2), holdout.train.csr[:, :-1]
    with raises(InvalidDataError):
        model.fit(part, show_progress=False, callback=callback.on(model))
    with raises(InvalidDataError):
        callback.on(model)
    with raises(InvalidDataError):
        callback.fit(make("als", 2), part)


def test_smaller_improvements_than_min_delta_do_not_count(holdout, curves):
    values = [row["ndcg@10"] for row in curves["als"]]
    gains = np.diff(np.maximum.accumulate(values))
    waiting = evaluating(holdout, patience=1, min_delta=1.0)
    waiting.fit(make("als"))
    assert len(waiting.history) == 2  # nothing is better by 1
    assert waiting.best_value == max(values[:2])
    patient = evaluating(holdout, patience=ITERATIONS, min_delta=gains.max() / 2)
    assert patient.best_value is None
    patient.fit(make("als"))
    assert patient.best_value == patient.history["ndcg@10"].max() == max(values)
    for options in ({"min_delta": 0.1}, {"patience": 1, "min_delta": -0.1}):
        with raises(InvalidDataError):
            evaluating(holdout, **options)
