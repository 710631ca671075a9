"""What is trained and evaluated, what is pooled, and what is refused."""

from functools import partial

import numpy as np
import pytest
from cross_cases import METRICS, MODELS, clicks, cross, folds, pool, same
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError, SparseEvalError


@pytest.fixture(scope="module")
def cv():
    return cross()


def evaluate(name, fold, seed):
    model = se.train_als(fold.train, **MODELS[name], seed=seed, progress=False)
    return se.evaluate_model(model, fold, METRICS)


def test_runs_are_trainings_and_evaluations_whose_values_are_pooled_by_user(cv):
    splits = folds()
    assert cv.models == tuple(MODELS)
    assert (len(cv.folds), cv.n_seeds, cv.names) == (2, 2, METRICS)
    values = {model: np.full((60, 2, 2), np.nan) for model in MODELS}
    rows = iter(cv.table.to_dict("records"))
    for fold, model, number in ((f, m, n) for f in (1, 2) for m in MODELS for n in (0, 1)):
        row, split, seed = next(rows), splits[fold - 1], 2 * fold - 2 + number
        assert (row["model"], row["fold"], row["seed"]) == (model, fold, seed)
        ev = evaluate(model, split, seed)
        assert {name: row[name] for name in METRICS} == ev.mean()
        sizes = (row["n_train"], row["n_validation"], row["n_users"])
        assert sizes == (split.train.nnz, split.validation.nnz, ev.n_users)
        values[model][:, fold - 1, number] = ev.values("ndcg@5")
    assert next(rows, None) is None
    for model in MODELS:
        expected = {splits[0].users[user]: value for user, value in pool(values[model]).items()}
        found = cv.per_user(model)["ndcg@5"]
        assert found.to_dict() == pytest.approx(expected, rel=1e-14)
        row = cv.summary().loc[("ndcg@5", model)]
        assert row["mean"] == pytest.approx(np.mean(list(expected.values())))
        assert row["std"] == pytest.approx(np.std(list(expected.values()), ddof=1))
        assert row["n_users"] == len(expected)
        assert row["ci_low"] < row["mean"] < row["ci_high"]
        assert row["interval"] == "pooled"
    wide = cv.summary(1 - 1e-15)[["ci_low", "ci_high"]].dropna()  # would exceed the ranges
    assert len(wide)
    assert ((wide >= 0) & (wide <= 1)).all(axis=None)


def test_differences_are_pooled_by_user(cv):
    one, two = (cv.per_user(model)["recall@10"] for model in MODELS)
    compared = cv.compare("recall@10")
    row, difference = compared.table.iloc[0], (one - two).to_numpy()
    assert row["difference"] == pytest.approx(difference.mean())
    assert (row["mean_a"], row["mean_b"]) == pytest.approx((one.mean(), two.mean()))
    # Means of what is 0 in each fold may differ by rounding.
    assert row["wins"] == pytest.approx((difference > 1e-12).sum(), abs=1)
    assert row["wins"] + row["ties"] + row["losses"] == row["n_users"] == len(difference)
    assert row["effect_size"] == pytest.approx(difference.mean() / difference.std(ddof=1))
    assert (row["left_out_a"], row["left_out_b"]) == (0, 0)
    swapped = se.compare(cv.select(list(MODELS)[::-1]), "recall@10").table.iloc[0]
    assert swapped[["difference", "p"]].tolist() == pytest.approx([-row["difference"], row["p"]])
    assert compared.notes[0].startswith("2 folds and 2 seeds, averaged for each user")
    one = cross(folds()[:1]).compare("ndcg@5")
    assert "one fold: the variation over splits is unknown" in one.notes
    assert "one fold and one seed" in cross(folds()[:1], seeds=1).compare().notes[0]
    for refused in (
        lambda: se.compare(cv, test="wilcoxon"),
        lambda: se.compare({"a": cv, "b": cv}),
        lambda: cv.compare("map@3"),
        lambda: cv.select(["als3"]),
    ):
        with raises(InvalidDataError):
            refused()


def test_kinds_of_models():
    def factors(train, seed, width=3):
        rng = np.random.default_rng(seed)
        return tuple(rng.normal(size=(n, width)) for n in train.shape)

    models = {
        "parameters": {"factors": 2, "iterations": 2},
        "als": lambda train, seed: se.train_als(train, factors=2, iterations=2, seed=seed),
        "factors": factors,
    }
    table = cross(models=models, metrics="ndcg@5").table.set_index(["model", "fold", "seed"])
    assert table.loc["als"].equals(table.loc["parameters"])
    fold = folds()[1]
    expected = se.evaluate_model(factors(fold.train, 2), fold, "ndcg@5")["ndcg@5"]
    assert table.loc[("factors", 2, 2), "ndcg@5"] == expected


@pytest.mark.long
def test_kinds_of_splits():
    expected = cross(folds(3), seeds=1)
    assert same(cross(partial(se.split.k_fold, k=3), seeds=1), expected)
    made = se.split.k_fold(clicks(), k=3)
    assert same(se.cross_validate(None, MODELS, METRICS, splits=made, seeds=1), expected)
    one = cross(se.split.random, seeds=1)
    assert same(one, cross([se.split.random(clicks())], seeds=1))
    assert len(se.cross_validate(clicks(), MODELS, "ndcg@5", seeds=1).folds) == 5
    matrix = clicks().matrix().csr
    unlabelled = se.cross_validate(matrix, MODELS, METRICS, splits=partial(se.split.k_fold, k=2))
    users = np.flatnonzero(np.diff(matrix.indptr) > 1)  # a single pair stays in training
    assert unlabelled.per_user("als2").index.tolist() == users.tolist()


def test_seeds_are_others_on_each_fold_and_options_reach_the_evaluation():
    models = {"als": {"factors": 2, "iterations": 1}}
    table = cross(seeds=[7, 2], models=models, metrics="ndcg@5", convention="recbole").table
    assert table["seed"].tolist() == [7, 2, 13, 8]
    fold = folds()[0]
    model = se.train_als(fold.train, **models["als"], seed=7)
    expected = se.evaluate_model(model, fold, "ndcg@5", convention="recbole")["ndcg@5"]
    assert table["ndcg@5"][0] == expected


def test_refuses_what_is_no_cross_validation():
    two = folds()
    matrix = two[0].train.csr
    other = se.Holdout(matrix[:50], matrix[:50])
    renamed = se.Holdout(two[0].train, two[0].validation, users=two[0].users[::-1])
    for options in (
        {"models": {}},
        {"models": {"a": {"factor": 3}}},
        {"models": {"a": {"factors": [2, 3]}}},
        {"models": {1: {}, "1": {}}},
        {"seeds": 0},
        {"seeds": [1, 1]},
        {"splits": []},
        {"splits": [two[0].train]},
        {"splits": [other]},
        {"splits": [two[0], renamed]},
        {"splits": [two[0], se.Holdout(matrix, matrix * 0)]},
    ):
        with raises(InvalidDataError):
            cross(**({"models": {"a": {"factors": 2, "iterations": 1}}} | options))
    with raises(InvalidMetricError):
        cross(metrics="coverage")


def test_a_failure_says_where_it_was():
    def diverges(train, seed):
        raise SparseEvalError("the training diverged")

    with pytest.raises(SparseEvalError, match="diverged") as error:
        cross(models={"als": {"factors": 2}, "x": diverges})
    assert error.value.__notes__ == ["This is about x, fold 1, seed 0."]
