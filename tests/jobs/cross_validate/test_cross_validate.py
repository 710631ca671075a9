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


def test_each_run_is_a_training_and_an_evaluation(cv):
    splits = folds()
    assert cv.models == tuple(MODELS)
    assert (len(cv.folds), cv.n_seeds, cv.names) == (2, 2, METRICS)
    runs = [
        (model, fold, 2 * fold - 2 + seed) for fold in (1, 2) for model in MODELS for seed in (0, 1)
    ]
    assert list(cv.table[["model", "fold", "seed"]].itertuples(index=False, name=None)) == runs
    for row in cv.table.to_dict("records"):
        fold = splits[row["fold"] - 1]
        ev = evaluate(row["model"], fold, row["seed"])
        assert {name: row[name] for name in METRICS} == ev.mean()
        sizes = (row["n_train"], row["n_validation"], row["n_users"])
        assert sizes == (fold.train.nnz, fold.validation.nnz, ev.n_users)


def test_values_are_pooled_by_user(cv):
    splits = folds()
    labels = splits[0].users
    assert labels is not None
    for model in MODELS:
        values = np.full((60, 2, 2), np.nan)
        for fold, seed in np.ndindex(2, 2):
            ev = evaluate(model, splits[fold], 2 * fold + seed)
            values[:, fold, seed] = ev.values("ndcg@5")
        expected = {labels[user]: value for user, value in pool(values).items()}
        found = cv.per_user(model)["ndcg@5"]
        assert found.to_dict() == pytest.approx(expected, rel=1e-14)
        row = cv.summary().loc[("ndcg@5", model)]
        assert row["mean"] == pytest.approx(np.mean(list(expected.values())))
        assert row["std"] == pytest.approx(np.std(list(expected.values()), ddof=1))
        assert row["n_users"] == len(expected)
        assert row["ci_low"] < row["mean"] < row["ci_high"]
        assert row["interval"] == "pooled"


def test_differences_are_pooled_by_user(cv):
    one, two = (cv.per_user(model)["recall@10"] for model in MODELS)
    table = cv.compare("recall@10").table
    row, difference = table.iloc[0], (one - two).to_numpy()
    assert row["difference"] == pytest.approx(difference.mean())
    assert (row["mean_a"], row["mean_b"]) == pytest.approx((one.mean(), two.mean()))
    # Means of what is 0 in each fold may differ by rounding.
    assert row["wins"] == pytest.approx((difference > 1e-12).sum(), abs=1)
    assert row["wins"] + row["ties"] + row["losses"] == row["n_users"] == len(difference)
    assert row["effect_size"] == pytest.approx(difference.mean() / difference.std(ddof=1))
    assert (row["left_out_a"], row["left_out_b"]) == (0, 0)
    assert se.compare(cv, "recall@10").table.equals(table)
    swapped = se.compare(cv.select(list(MODELS)[::-1]), "recall@10").table.iloc[0]
    assert swapped[["difference", "p"]].tolist() == pytest.approx([-row["difference"], row["p"]])


def test_says_how_it_compares(cv):
    compared = cv.compare()
    (note,) = compared.notes
    assert note.startswith("2 folds and 2 seeds, averaged for each user")
    one = cross(folds()[:1]).compare("ndcg@5")
    assert "one fold: the variation over splits is unknown" in one.notes
    assert "one fold and one seed" in cross(folds()[:1], seeds=1).compare().notes[0]
    for test in ("wilcoxon", "permutation"):
        with raises(InvalidDataError):
            se.compare(cv, test=test)
    with raises(InvalidDataError):
        se.compare({"a": cv, "b": cv})
    with raises(InvalidDataError):
        cv.compare("map@3")
    with raises(InvalidDataError):
        cv.select(["als3"])


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


def test_kinds_of_splits():
    expected = cross(folds(3), seeds=1)
    for splits in (partial(se.split.k_fold, k=3), lambda given: se.split.k_fold(given, k=3)):
        assert same(cross(splits, seeds=1), expected)
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
    assert cross(seeds=1, models=models).table["seed"].tolist() == [0, 1]
    fold = folds()[0]
    model = se.train_als(fold.train, **models["als"], seed=7)
    expected = se.evaluate_model(model, fold, "ndcg@5", convention="recbole")["ndcg@5"]
    assert table["ndcg@5"][0] == expected


def test_refuses_what_is_no_cross_validation():
    two = folds()
    matrix = two[0].train.csr
    other = se.Holdout(matrix[:50], matrix[:50])
    renamed = se.Holdout(two[0].train, two[0].validation, users=two[0].users[::-1])
    empty = se.Holdout(matrix, matrix * 0)
    refused = [
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
        {"splits": [two[0], empty]},
    ]
    for options in refused:
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
