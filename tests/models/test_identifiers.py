"""Warnings of models that were trained on other data, or have no ids on data with ids."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.nearest_neighbours import CosineRecommender
from raising import raises

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.inputs.labelled import LabelledMatrix
from sparse_eval.models.trained_on import TrainedOn

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


def test_events_after_the_cut_of_no_split_are_noticed():
    held = HOLDOUT.validation.csr  # of pairs at any time
    assert warns(se.train_als(CLICKS, factors=4), CLICKS.without(held), HOLDOUT.validation)
    by_day = se.split.temporal(CLICKS, at="2019-12-01", gap="1D").known()
    assert not warns(se.train_als(LATE, factors=4), by_day)  # trained within the gap


#: Splits in three, and the training events that may be in the test part of a fourth.
IN_THREE = {
    "temporal": se.split.temporal(CLICKS, fraction=0.2, test=0.2),
    "temporal with a gap": se.split.temporal(CLICKS, fraction=0.2, test=0.2, gap="12h"),
    "repeats": se.split.temporal(CLICKS, fraction=0.2, test=0.2, repeats="keep").known(),
    "last_n": se.split.last_n(CLICKS, n=1, test=1),
    "users": se.split.users(CLICKS, fraction=0.2, test=0.2),
}


@pytest.mark.parametrize("name", IN_THREE)
def test_a_model_of_the_train_part_is_trusted_for_the_test(name, tmp_path):
    split = IN_THREE[name]
    split.save(tmp_path)
    whole = CLICKS.matrix() if name == "last_n" else LabelledMatrix(
        (split.train.csr + split.validation.csr + split.test.csr), split.users, split.items
    )  # fmt: skip
    for final in (split.for_test(), split.known().for_test(), se.Holdout.load(tmp_path).for_test()):
        for part in (split.train, split.train.csr, final.train, final):
            assert not warns(se.train_als(part, factors=4), final)
        for other in (whole, split.test, OTHER.train):
            assert warns(se.train_als(other, factors=4), final)


ROWS, COLUMNS = np.random.default_rng(0).permutation(60), np.random.default_rng(1).permutation(50)
WHOLE = CLICKS.matrix()


class Trained(NamedTuple):
    """A model, what is known of it, and what it was trained on if that is known."""

    model: object
    users: list | None
    items: list | None
    pairs: frozenset | None


def pairs_of(matrix):
    coo = matrix.tocoo()
    return frozenset(zip(matrix.users[coo.row], matrix.items[coo.col], strict=True))


def known(model, part):
    return Trained(model, list(part.users), list(part.items), pairs_of(part))


def als():
    return AlternatingLeastSquares(4, iterations=2, random_state=0)


def by_callback(train, fitted=None):
    callback = se.EvaluationCallback(HOLDOUT.train, HOLDOUT.validation, "ndcg@10", patience=2)
    callback.fit(model := als(), train)
    return known(model, fitted or train)


def by_registered_callback(train):
    callback = se.EvaluationCallback(HOLDOUT.train, HOLDOUT.validation, "ndcg@10", patience=2)
    model = als()
    model.fit(train.csr.astype(np.float32), show_progress=False, callback=callback.on(model))
    return Trained(model, None, None, None)


def by_its_own_fit(train):
    model = als()
    model.fit(train.csr.astype(np.float32), show_progress=False)
    return Trained(model, None, None, None)


WAYS = {
    "als": lambda part: known(TRAINERS["als"](part), part),
    "bpr": lambda part: known(TRAINERS["bpr"](part), part),
    "neighbours": lambda part: known(TRAINERS["neighbours"](part), part),
    "callback": by_callback,
    "callback, weights": lambda part: by_callback(part.csr * 2, part),
    "registered": by_registered_callback,
    "own fit": by_its_own_fit,
}


def fit(trained, matrix):
    matrix = matrix.astype(np.float64 if hasattr(trained.model, "similarity") else np.float32)
    with warnings.catch_warnings():  # neighbours warn about internal conversions
        warnings.simplefilter("ignore")
        trained.model.fit(matrix, show_progress=False)
    return Trained(trained.model, None, None, None)


def partly(trained, name, rows, matrix):
    if not hasattr(trained.model, name):
        return None
    getattr(trained.model, name)(rows, matrix[: len(rows)].astype(np.float32))
    return Trained(trained.model, None, None, None) if trained.users else trained


def edited(trained):
    if hasattr(trained.model, "similarity"):
        trained.model.similarity.data[5] += 0.5
    else:
        trained.model.item_factors[7, 2] *= -1
    return Trained(trained.model, None, None, None)


def renamed(trained):
    fit(trained, WHOLE.csr)
    users, items = list(WHOLE.users[ROWS]), list(WHOLE.items[COLUMNS])
    trained.model.user_ids, trained.model.item_ids = users, items
    return Trained(trained.model, users, items, None)


def without_ids(trained):
    trained.model.user_ids = trained.model.item_ids = None
    return trained._replace(users=None, items=None)


#: What happens to a model afterwards; None if it cannot happen to a model of its kind.
CHANGES = {
    "nothing": lambda one: one,
    "fit": lambda one: fit(one, WHOLE.csr),
    "fit of other rows": lambda one: fit(one, WHOLE.csr[ROWS]),
    "fit of other columns": lambda one: fit(one, WHOLE.csr[:, COLUMNS]),
    "partial_fit_users": lambda one: partly(one, "partial_fit_users", [59], WHOLE.csr),
    "partial_fit_items": lambda one: partly(one, "partial_fit_items", [3], WHOLE.csr.T.tocsr()),
    "edited": edited,
    "trained again": lambda one: known(se.train_model(one.model, OTHER.train), OTHER.train),
    "copied": lambda one: one._replace(model=deepcopy(one.model)),
    "other ids": renamed,
    "ids removed": without_ids,
}


def own_load(model, path):
    file = str(se.save_model(model, path))
    return type(model).load(file)


FORMS = {
    "model": lambda model, _: model,
    "file": se.save_model,
    "loaded by implicit": own_load,
    "recommender": lambda model, _: se.Recommender(model),
}

FINAL = IN_THREE["last_n"]
LAST = FINAL.for_test()
MOVED = [
    LabelledMatrix(part.csr[ROWS][:, COLUMNS], WHOLE.users[ROWS], WHOLE.items[COLUMNS])
    for part in (HOLDOUT.train, HOLDOUT.validation)
]
#: Training and held-out data, and the training data of models that learnt no other pairs.
DATA = {
    "own": (HOLDOUT.train, HOLDOUT.validation, [HOLDOUT.train]),
    "other": (OTHER.train, OTHER.validation, [OTHER.train]),
    "in another order": (*MOVED, [HOLDOUT.train]),
    "test": (LAST.train, LAST.validation, [FINAL.train, LAST.train]),
}


def recall_by_hand(trained, train, validation):
    """Return recall@5 by a loop; users and items of a model without ids are rows and columns."""
    users = {user: row for row, user in enumerate(trained.users or train.users)}
    items = {item: column for column, item in enumerate(trained.items or train.items)}
    values = []
    for row, user in enumerate(train.users):
        relevant = [items[train.items[i]] for i in validation.csr[row].indices]
        seen = [items[train.items[i]] for i in train.csr[row].indices]
        if relevant:
            scores = trained.model.user_factors[users[user]].astype(float) @ (
                trained.model.item_factors.T.astype(float)
            )
            scores[seen] = -np.inf
            values.append(len({*np.argsort(-scores)[:5]} & {*relevant}) / len(relevant))
    return np.mean(values)


def check(way, change, folder):
    """Evaluate a changed model in all forms on all data; return the number of evaluations."""
    n_checked = 0
    for part in (HOLDOUT.train, FINAL.train):
        if part is FINAL.train and way.startswith("callback"):
            continue
        trained = CHANGES[change](WAYS[way](part))
        if trained is None:
            continue
        for form, make in FORMS.items():
            if form == "loaded by implicit" and way == "neighbours":
                continue  # which reads no more than similarities
            given = make(trained.model, folder / "model.npz")
            for name, (train, validation, parts) in DATA.items():
                with warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    ev = se.evaluate_model(given, train, validation, "recall@5")
                texts = " ".join(str(one.message) for one in caught)
                is_other = trained.pairs and trained.pairs not in map(pairs_of, parts)
                where = (way, change, form, name)
                assert ("pairs that are not in train" in texts) == bool(is_other), where
                assert ("has no ids" in texts) == (trained.items is None), where
                if not hasattr(trained.model, "similarity"):
                    expected = recall_by_hand(trained, train, validation)
                    assert ev["recall@5"] == pytest.approx(expected, abs=1e-12), where
                n_checked += 1
    return n_checked


@pytest.mark.parametrize("change", CHANGES)
def test_ids_and_record_belong_to_the_factors(change, tmp_path):
    assert check("als", change, tmp_path) == 32


@pytest.mark.long
@pytest.mark.parametrize("way", [way for way in WAYS if way != "als"])
def test_ids_and_record_belong_to_the_factors_of_every_model(way, tmp_path):
    counts = [check(way, change, tmp_path) for change in CHANGES]
    assert sum(counts) == {"bpr": 288, "neighbours": 216}.get(way, 352) / (1 + ("callback" in way))


def test_users_that_are_added_are_not_matched():
    model = se.train_als(HOLDOUT.train, factors=4, iterations=2)
    model.partial_fit_users([60], WHOLE.csr[:1].astype(np.float32))
    with raises(InvalidDataError):
        se.evaluate_model(model, HOLDOUT, "ndcg@5")


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
                lambda m=model: se.top_k(m, train=HOLDOUT.train, k=3),
                lambda m=model: se.ranks(m, HOLDOUT.validation, train=plain[0]),
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
