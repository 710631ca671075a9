"""The history of a training, early stops, the factors that they leave, and what is refused."""

import numpy as np
import pytest
from callback_cases import (
    FAMILIES,
    ITERATIONS,
    METRICS,
    N_ITEMS,
    N_USERS,
    bits,
    evaluating,
    make,
    stop_of,
    trained,
)
from implicit.nearest_neighbours import CosineRecommender
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError, UnsupportedModelError


def test_the_history_has_the_values_of_separate_trainings(family, holdout, curves):
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


def test_records_the_loss_if_als_computes_it(holdout):
    logged = []
    losses = []
    callback = evaluating(holdout, log=lambda values, step: logged.append(values["loss"]))
    make("als", calculate_training_loss=True).fit(
        holdout.train.csr,
        show_progress=False,
        callback=lambda *received: losses.append(float(received[2])),
    )
    callback.fit(make("als", calculate_training_loss=True))
    assert callback.history["loss"].tolist() == logged == losses
    assert callback.history.columns.tolist()[2] == "loss"


def test_evaluates_every_few_iterations_and_the_last(family, holdout, curves):
    for every, expected in ((5, [5, 10, 12]), (50, [ITERATIONS])):
        received = []
        callback = evaluating(holdout, every=every, log=lambda *args: received.append(args))  # noqa: B023
        callback.fit(make(family))
        assert received == [(curves[family][done - 1], done) for done in expected]
        received[0][0].clear()  # changing the values does not change the history
        assert callback.history.index.tolist() == expected
        assert callback.history["recall@5"].tolist() == [
            curves[family][done - 1]["recall@5"] for done in expected
        ]


@pytest.mark.parametrize("own_fit", [False, True])
@pytest.mark.parametrize("patience", [None, ITERATIONS])
def test_patience_leaves_the_best_factors(family, holdout, curves, own_fit, patience):
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


def test_lower_is_better(holdout):
    for monitor, best in (("gini@10", "idxmin"), ("NDCG@10", "idxmax")):
        callback = evaluating(holdout, "gini@10,ndcg@10", monitor=monitor)
        callback.fit(make("bpr"))
        values = callback.history[monitor.lower()]
        assert callback.best_iteration == getattr(values, best)()
        assert values.idxmin() != values.idxmax()


def test_an_equal_value_is_not_an_improvement(holdout):
    callback = evaluating(holdout, "user_coverage@5", monitor="user_coverage@5", patience=3)
    model = callback.fit(make("lmf"))
    assert callback.history["user_coverage@5"].tolist() == [1.0] * 4
    assert callback.best_iteration == 1
    assert bits(model) == bits(trained("lmf", holdout, 1))


def test_refuses_a_monitor_that_is_defined_for_no_user_with_patience(holdout):
    callback = evaluating(holdout, "fcp@1", monitor="fcp@1")  # one item has no pairs
    callback.fit(make("bpr"))
    assert callback.history["fcp@1"].isna().all()
    assert callback.best_iteration is None
    callback = evaluating(holdout, "fcp@1", monitor="fcp@1", patience=2)
    with raises(InvalidMetricError):
        callback.fit(make("bpr"))


@pytest.mark.parametrize("own_fit", [False, True])
def test_a_warm_start_starts_a_new_history(family, holdout, own_fit):
    plain, model = make(family, 3), make(family, 3)
    callback = evaluating(holdout)
    for _ in range(2):
        plain.fit(holdout.train.csr, show_progress=False)
        if own_fit:
            watch = callback.on(model)
            model.fit(holdout.train.csr, show_progress=False, callback=watch)
            with raises(UnsupportedModelError):
                make(family, 3).fit(holdout.train.csr, show_progress=False, callback=watch)
        else:
            callback.fit(model)
        assert callback.history.index.tolist() == [1, 2, 3]
    assert bits(model) == bits(plain)
    callback = evaluating(holdout, patience=1)  # and forgets the best of the training before
    first, second = callback.fit(make(family)), callback.fit(make(family))
    assert bits(first) == bits(second)


def test_derived_values_follow_the_best_factors(family, holdout):
    model = make(family)
    patience = FAMILIES[family][2]
    callback = evaluating(holdout, patience=patience, log=lambda *_: model.similar_items(3))
    callback.fit(model)
    assert callback.history.index[-1] > callback.best_iteration
    fresh = trained(family, holdout, callback.best_iteration)
    for restored, expected_part in zip(model.similar_items(3), fresh.similar_items(3), strict=True):
        np.testing.assert_array_equal(restored, expected_part)
    assert (model.similar_users(5)[1] == fresh.similar_users(5)[1]).all()


def test_shows_itself_in_a_line_and_as_a_table(holdout):
    callback = evaluating(holdout, every=2)
    assert repr(callback) == "EvaluationCallback(ndcg@10, recall@5; 0 evaluations)"
    assert "0 evaluations" in callback._repr_html_()
    callback.fit(make("bpr", 6))
    best = callback.best_iteration
    assert f"after iteration {best}" in repr(callback)
    shown = callback._repr_html_()
    assert shown.count("<tr>") == 4
    assert "history" not in shown


@pytest.mark.parametrize("patience", [None, 50])
def test_an_interrupt_leaves_a_usable_model(holdout, curves, patience):
    family = "als"

    def interrupt(values, step):
        if step == 7:
            raise KeyboardInterrupt

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


def test_refuses_factors_that_are_no_longer_finite(family, holdout):
    def spoil(*received):
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
        ({"validation": "LARGER"}, InvalidDataError),
        ({"validation": "EMPTY"}, InvalidDataError),
    ],
)
def test_refuses_options_and_data(holdout, options, error):
    larger = holdout.validation.csr.copy()
    larger.resize((N_USERS, N_ITEMS + 1))
    odd = {"LARGER": larger, "EMPTY": holdout.validation.csr * 0}
    given = {"metrics": "ndcg@10", "validation": holdout.validation} | options
    given["validation"] = odd.get(options.get("validation", ""), given["validation"])
    with raises(error):
        se.EvaluationCallback(holdout.train, **given)


def test_refuses_models_and_matrices(family, holdout):
    callback = evaluating(holdout)
    with raises(UnsupportedModelError):
        make(family).fit(holdout.train.csr, show_progress=False, callback=callback)
    for thing in (CosineRecommender(), object(), None):
        for tell in (callback.on, callback.fit):
            with raises(UnsupportedModelError):
                tell(thing)
    model, part = make(family, 2), holdout.train.csr[:, :-1]
    with raises(InvalidDataError):
        model.fit(part, show_progress=False, callback=callback.on(model))
    for tell in (callback.on, callback.fit):
        with raises(InvalidDataError):
            tell(model)
    with raises(InvalidDataError):
        callback.fit(make(family, 2), part)
