"""Warnings of models that were trained on other data, or have no ids on data with ids."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.nearest_neighbours import CosineRecommender

import sparse_eval as se
from sparse_eval.inputs.labelled import LabelledMatrix
from sparse_eval.models.identifiers import TrainedOn

CLICKS = se.datasets.synthetic(n_users=60, n_items=50, n_interactions=1200, seed=0)
HOLDOUT = se.split.random(CLICKS, seed=0)
OTHER = se.split.random(CLICKS, fraction=0.5, seed=3)
EARLY, LATE = (se.split.temporal(CLICKS, at=day).known() for day in ("2019-11-25", "2019-12-01"))


def warns(model, *data):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        se.evaluate_model(model, *data, "ndcg@10")
    return any("was trained on pairs that are not in train" in str(one.message) for one in caught)


def fitted_by_callback(train):
    callback = se.EvaluationCallback(train, HOLDOUT.validation, "ndcg@10")
    return callback.fit(AlternatingLeastSquares(4, iterations=2, random_state=0), progress=False)


TRAINERS = {
    "als": lambda train: se.train_als(train, factors=4, iterations=2),
    "bpr": lambda train: se.train_model(
        BayesianPersonalizedRanking(4, iterations=2, random_state=0, num_threads=1), train
    ),
    "neighbours": lambda train: se.train_model(CosineRecommender(), train),
    "callback": fitted_by_callback,
    "item_knn": se.baselines.item_knn,
    "ease": se.baselines.ease,
}


@pytest.mark.parametrize("kind", TRAINERS)
def test_another_training_part_is_noticed(kind, tmp_path):
    model = TRAINERS[kind](HOLDOUT.train)
    saved = se.save_model(model, tmp_path / "model.npz")
    for given in (model, saved):
        assert not warns(given, HOLDOUT)
        assert not warns(given, HOLDOUT.train.csr, HOLDOUT.validation)
        assert warns(given, OTHER)
    if kind == "als":
        assert warns(AlternatingLeastSquares.load(str(saved)), OTHER)


def test_a_sweep_names_the_checkpoints(tmp_path):
    for name, train in {"own": HOLDOUT, "other": OTHER, "whole": CLICKS}.items():
        se.save_model(se.train_als(train, factors=4), tmp_path / f"{name}.npz")
    with pytest.warns(
        UserWarning, match=r"other\.npz \(and 1 more\) was trained on pairs that are not in train"
    ):
        table = se.sweep(tmp_path, HOLDOUT, "ndcg@10")
    assert table["status"].tolist() == ["ok"] * 3


def test_earlier_events_and_models_without_the_record_are_trusted():
    early, late, whole = (se.train_als(one, factors=4) for one in (EARLY, LATE, CLICKS))
    assert not warns(early, LATE)
    assert warns(late, EARLY)
    assert warns(whole, LATE)
    model = AlternatingLeastSquares(4, iterations=2, random_state=0)
    model.fit(OTHER.train.csr, show_progress=False)
    assert not warns(model, HOLDOUT.train.csr, HOLDOUT.validation.csr)


def test_of_folded_users_what_was_trained_on_counts():
    split = se.split.users(CLICKS, seed=0)
    assert not warns(se.train_als(split, factors=4), split)
    assert warns(se.train_als(CLICKS, factors=4), split)


def test_neither_the_numbering_nor_the_values_count():
    whole = CLICKS.matrix()
    rows, columns = np.random.default_rng(0).permutation(60), np.arange(50)[::-1]
    csr = (whole.csr[rows][:, columns] * 2).sorted_indices()
    one, other, wrong = (
        TrainedOn.of(matrix)
        for matrix in (
            whole,
            LabelledMatrix(csr, whole.users[rows], whole.items[columns]),
            LabelledMatrix(csr, whole.users, whole.items),
        )
    )
    assert other[:2] == one[:2]
    assert wrong.digest != one.digest
    assert TrainedOn.parse(str(one)) == one
    for text in (None, 0.5, "", f"{one}x", "7 ids:00ff", "7 ids:0123456789abcdef 2020-13-40"):
        assert TrainedOn.parse(text) is None


#: The filters of the test run ignore this warning.
WITHOUT_IDS = "has no ids, but the data have"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Return models with and without ids, by name."""
    folder = tmp_path_factory.mktemp("models")
    with_ids = se.train_als(HOLDOUT.train, factors=8)
    with_ids.save(folder / "plain.npz")
    plain = HOLDOUT.train.csr
    fitted = AlternatingLeastSquares(8, random_state=0)
    fitted.fit(HOLDOUT.train.csr.astype(np.float32), show_progress=False)
    users, items = with_ids.user_factors, with_ids.item_factors
    scores = users @ items.T
    weights = np.asarray(se.baselines.ease(HOLDOUT).weights)
    return {
        "no checkpoint": folder / "plain.npz",
        "no fitted": fitted,
        "no recommender": se.Recommender(fitted),
        "no neighbours": se.train_model(CosineRecommender(5), plain),
        "no factors": se.factor_model(users, items),
        "no weights": weights,
        "no items": se.Scorer(scores, users=HOLDOUT.users),
        "function": lambda rows: scores[rows],
        "with checkpoint": se.save_model(with_ids, folder / "ids.npz"),
        "with trained": with_ids,
        "with factors": se.factor_model(users, items, users=HOLDOUT.users, items=HOLDOUT.items),
        "with ease": se.baselines.ease(HOLDOUT),
    }


def count(call):
    """Return the number of times that the warning is given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [one for one in caught if WITHOUT_IDS in str(one.message)]
    assert all(one.filename == __file__ for one in found)
    return len(found)


def test_warns_once_for_models_without_ids(models):
    plain = HOLDOUT.train.csr, HOLDOUT.validation.csr
    for name, model in models.items():
        expected = int(name.startswith("no "))
        ways = [{"baselines": True}, {"users": HOLDOUT.users[[3, 4]]}]
        calls = [lambda m=model: se.recommend(m, HOLDOUT, k=3)]
        if not {"neighbours", "recommender"} & {*name.split()}:
            ways += [{"memory": 10**9}, {"client": ThreadPoolExecutor(2), "baselines": True}]
            calls += [
                lambda m=model: se.top_k(m, seen=HOLDOUT.train, k=3),
                lambda m=model: se.ranks(m, HOLDOUT.validation, seen=plain[0]),
            ]
        for way in ways:
            calls.append(lambda m=model, w=way: se.evaluate_model(m, HOLDOUT, "ndcg@5", **w))
        assert [count(call) for call in calls] == [expected] * len(calls), name
        assert count(lambda m=model: se.evaluate_model(m, *plain, "ndcg@5")) == 0


def test_warns_once_for_a_sweep(models, tmp_path):
    for name in "ab":
        factors = se.train_als(HOLDOUT.train.csr, factors=4 + (name == "b"))
        factors.save(tmp_path / f"{name}.npz")
    paths = [tmp_path / "a.npz", tmp_path / "b.npz", models["with checkpoint"]]
    for options in ({"save": True, "out": tmp_path / "saved"}, {"client": ThreadPoolExecutor(2)}):
        assert count(lambda o=options: se.sweep(paths, HOLDOUT, "ndcg@5", **o)) == 1
    assert count(lambda: se.sweep(paths[2:], HOLDOUT, "ndcg@5")) == 0


def test_no_warning_for_models_that_are_trained_here(tmp_path):
    def train(matrix, seed):
        model = AlternatingLeastSquares(4, random_state=seed)
        model.fit(matrix.csr.astype(np.float32), show_progress=False)
        return model

    def with_callback():
        callback = se.EvaluationCallback(HOLDOUT, "ndcg@5", out=tmp_path)
        model = callback.fit(AlternatingLeastSquares(4, iterations=2, random_state=0))
        se.evaluate_model(model, HOLDOUT, "ndcg@5")
        se.sweep(tmp_path, HOLDOUT, "ndcg@5")

    options = {"splits": [HOLDOUT], "seeds": 1}
    assert count(lambda: se.cross_validate(None, {"als": train}, "ndcg@5", **options)) == 0
    assert count(with_callback) == 0


def test_warns_of_new_users_without_ids():
    split = se.split.users(CLICKS, seed=0)
    model, named = (se.train_als(data, factors=4) for data in (split.train.csr, split.train))
    for some, expected in ((model, 1), (named, 0), (se.baselines.ease(split), 0)):
        assert count(lambda some=some: se.evaluate_model(some, split, "ndcg@5")) == expected
    assert count(lambda: se.fold_in(model, split)) == 1
    assert count(lambda: se.fold_in(named, split)) == 0
    of_items = se.factor_model(model.user_factors, model.item_factors, items=split.items)
    assert count(lambda: se.fold_in(of_items, split, regularization=0.1)) == 0
