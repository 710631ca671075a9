"""What is trained and evaluated on which folds, and what raises an error."""

from functools import partial

import numpy as np
import pytest
from cross_cases import METRICS, MODELS, clicks, cross, folds, same
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError, SparseEvalError


@pytest.fixture(scope="module")
def cv():
    return cross()


def evaluate(name, fold, seed):
    model = se.train_als(fold.train, **MODELS[name], seed=seed, progress=False)
    return se.evaluate_model(model, fold, METRICS)


def test_runs_are_trainings_and_evaluations(cv):
    splits = folds()
    assert cv.models == tuple(MODELS)
    assert list(cv.names) == METRICS
    rows = iter(cv.table.to_dict("records"))
    for fold, model, number in ((f, m, n) for f in (1, 2) for m in MODELS for n in (0, 1)):
        row, split, seed = next(rows), splits[fold - 1], 1000 * (fold - 1) + number
        assert (row["model"], row["fold"], row["seed"]) == (model, fold, seed)
        ev = evaluate(model, split, seed)
        assert {name: row[name] for name in METRICS} == ev.mean()
        sizes = (row["n_train"], row["n_validation"], row["n_users"])
        assert sizes == (split.train.nnz, split.validation.nnz, ev.n_users)
    assert next(rows, None) is None


def test_prints_means_and_intervals(cv):
    text, lines = repr(cv), cv.summary()
    assert "2 folds, 8 runs" in text
    assert all(name in text for name in (*METRICS, *MODELS))
    assert "als 6/α=1" in cv._repr_html_()
    assert lines.index.tolist() == [(name, model) for name in METRICS for model in MODELS]
    wide = cv.summary(1 - 1e-15)[["ci_low", "ci_high"]].dropna()  # would exceed the ranges
    assert len(wide)
    assert ((wide >= 0) & (wide <= 1)).all(axis=None)
    assert "none" in repr(cross(folds()[:1]))


def test_kinds_of_models():
    def factors(train, any_name):
        rng = np.random.default_rng(any_name)
        return tuple(rng.normal(size=(n, 3)) for n in train.shape)

    def neighbours(train, neighbors=7):  # which is not a seed
        return se.baselines.item_knn(train, neighbors=neighbors)

    class Trainer:
        def __call__(self, train, *, seed=5):
            return se.train_als(train, factors=2, iterations=2, seed=seed)

    models = {
        "parameters": {"factors": 2, "iterations": 2},
        "keyword": partial(se.train_als, factors=2, iterations=2),
        "object": Trainer(),
        "lambda": lambda train, seed: se.train_als(train, factors=2, iterations=2, seed=seed),
        "factors": factors,
        "neighbours": neighbours,
        "ease": se.baselines.ease,
    }
    table = cross(models=models, metrics="ndcg@5").table
    assert table["model"].value_counts().to_dict() == dict.fromkeys([*models][:5], 4) | {
        "neighbours": 2,
        "ease": 2,
    }
    assert table["seed"].isna().tolist() == table["model"].isin(["neighbours", "ease"]).tolist()
    runs = {
        name: of_model.drop(columns="model").reset_index(drop=True)
        for name, of_model in table.groupby("model")
    }
    for name in ("keyword", "object", "lambda"):
        assert runs[name].equals(runs["parameters"])
    fold = folds()[1]
    for name, model in (
        ("factors", factors(fold.train, 1001)),
        ("neighbours", neighbours(fold.train)),
        ("ease", se.baselines.ease(fold.train)),
    ):
        expected = se.evaluate_model(model, fold, "ndcg@5")["ndcg@5"]
        assert runs[name]["ndcg@5"].iloc[-1] == expected


@pytest.mark.long
def test_kinds_of_splits():
    expected = cross(folds(3), seeds=1)
    assert same(cross(3, seeds=1), expected)
    assert same(cross(partial(se.split.k_fold, k=3), seeds=1), expected)
    made = se.split.k_fold(clicks(), k=3)
    assert same(se.cross_validate(None, MODELS, METRICS, splits=made, seeds=1), expected)
    assert same(cross(se.split.random, seeds=1), cross([se.split.random(clicks())], seeds=1))
    by_default = se.cross_validate(clicks(), {"ease": se.baselines.ease}, "ndcg@5")
    assert by_default.table["fold"].tolist() == [1, 2, 3, 4, 5]
    matrix = clicks().matrix().csr
    unlabelled = se.cross_validate(matrix, MODELS, METRICS, splits=np.int64(3), seeds=1)
    assert unlabelled.table["fold"].tolist() == expected.table["fold"].tolist()


def test_splits_by_time():
    windows = partial(se.split.rolling, window="2D", at="2019-11-26")
    cv = cross(lambda data: (window.known() for window in windows(data)), seeds=1)
    kept = [window.known() for window in windows(clicks())]
    assert len(kept) > 2
    assert len(set(cv.table["cut"])) == len(kept)
    for row, window in zip(cv.table.to_dict("records")[::2], kept, strict=True):
        ev = evaluate("als2", window, row["seed"])
        assert {name: row[name] for name in METRICS} == ev.mean()
    assert len(cv.compare("ndcg@5")) == 1


def test_splits_by_users_fold_users_in():
    splits = [se.split.users(clicks(), fraction=0.3, seed=seed) for seed in (0, 1)]
    cv = cross(splits, seeds=1)
    for row, split in zip(cv.table.to_dict("records")[::2], splits, strict=True):
        ev = evaluate("als2", split, row["seed"])
        assert {name: row[name] for name in METRICS} == ev.mean()
        assert row["n_users"] == ev.n_users < 60


def test_folds_may_have_different_users():
    matrix = clicks().matrix().csr
    halves = [se.split.random(matrix[rows]) for rows in (slice(0, 30), slice(25, 60))]
    table = cross(halves, seeds=1).table
    assert table["n_users"].nunique() == 2


def test_seeds_are_others_on_each_fold_and_options_reach_the_evaluation():
    models = {"als": {"factors": 2, "iterations": 1}}
    table = cross(seeds=[7, 2], models=models, metrics="ndcg@5", convention="recbole").table
    assert table["seed"].tolist() == [7, 2, 1007, 1002]
    fold = folds()[0]
    model = se.train_als(fold.train, **models["als"], seed=7)
    expected = se.evaluate_model(model, fold, "ndcg@5", convention="recbole")["ndcg@5"]
    assert table["ndcg@5"][0] == expected
    assert same(*(cross(models=models, memory=memory) for memory in (None, 2 * 10**8)))


def test_refuses_what_is_no_cross_validation():
    two = folds()
    matrix = two[0].train.csr
    for options in (
        {"models": {}},
        {"models": {"a": {"factor": 3}}},
        {"models": {"a": {"factors": [2, 3]}}},
        {"models": {"a": "als"}},
        {"models": {"a": lambda train, seed, more: None}},
        {"models": {"a": lambda train, *, size: None}},
        {"models": {"a": lambda: None}},
        {"models": {1: {}, "1": {}}},
        {"seeds": 0},
        {"seeds": [1, 1]},
        {"splits": 1},
        {"splits": 2.5},
        {"splits": []},
        {"splits": [two[0].train]},
        {"splits": [two[0], se.Holdout(matrix, matrix * 0)]},
        {"splits": [two[0], se.Holdout(matrix * 0, matrix)]},
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


def test_former_attributes_show_what_to_use(cv):
    for former in ("per_user", "select", "folds", "n_seeds", "load", "notes"):
        for owner in (cv, se.CrossValidation):
            with raises(AttributeError):
                getattr(owner, former)
    for wrong in (lambda: se.compare(cv), lambda: se.write_report(cv, "cv.html")):
        with raises(InvalidDataError):
            wrong()
