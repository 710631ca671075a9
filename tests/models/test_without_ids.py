"""A model without ids on data with ids gives one warning; others and functions give none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender

import sparse_eval as se

#: The filters of the test run ignore this warning.
MESSAGE = "has no ids, but the data have"


@pytest.fixture(scope="module")
def holdout() -> se.Holdout:
    return se.split.random(se.datasets.synthetic(n_users=90, n_items=60, seed=0), seed=0)


@pytest.fixture(scope="module")
def models(holdout: se.Holdout, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return models with and without ids, by name."""
    folder = tmp_path_factory.mktemp("models")
    with_ids = se.train_als(holdout.train, factors=8)
    with_ids.save(folder / "plain.npz")
    plain = holdout.train.csr
    fitted = AlternatingLeastSquares(8, random_state=0)
    fitted.fit(holdout.train.csr.astype(np.float32), show_progress=False)
    users, items = with_ids.user_factors, with_ids.item_factors
    ids: dict[str, Any] = {"users": holdout.users, "items": holdout.items}
    scores = users @ items.T
    weights = np.asarray(se.baselines.ease(holdout).weights)
    return {
        "no checkpoint": folder / "plain.npz",
        "no fitted": fitted,
        "no recommender": se.Recommender(fitted),
        "no neighbours": se.train_model(CosineRecommender(5), plain),
        "no factors": se.factor_model(users, items),
        "no weights": weights,
        "no scores": scores,
        "no items": se.Scorer(scores, users=holdout.users),
        "function": lambda rows: scores[rows],
        "with checkpoint": se.save_model(with_ids, folder / "ids.npz"),
        "with trained": with_ids,
        "with recommender": se.Recommender(with_ids),
        "with factors": se.factor_model(users, items, **ids),
        "with ease": se.baselines.ease(holdout),
    }


def count(call: Callable[[], object]) -> int:
    """Return the number of times that the warning is given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [str(one.message) for one in caught if MESSAGE in str(one.message)]
    assert all("se.save_model" in text for text in found)
    assert all(one.filename == __file__ for one in caught if MESSAGE in str(one.message))
    return len(found)


def test_warns_once_for_models_without_ids(holdout: se.Holdout, models: Any) -> None:
    plain = holdout.train.csr, holdout.validation.csr
    for name, model in models.items():
        expected = int(name.startswith("no "))
        ways: list[dict[str, Any]] = [{"baselines": True}, {"users": holdout.users[[3, 4]]}]
        calls: list[Callable[[], object]] = [lambda m=model: se.recommend(m, holdout, k=3)]
        if not {"neighbours", "recommender"} & {*name.split()}:
            ways += [{"memory": 10**9}, {"client": ThreadPoolExecutor(2), "baselines": True}]
            calls += [
                lambda m=model: se.top_k(m, seen=holdout.train, k=3),
                lambda m=model: se.ranks(m, holdout.validation, seen=plain[0]),
            ]
        for way in ways:
            calls.append(lambda m=model, w=way: se.evaluate_model(m, holdout, "ndcg@5", **w))
        assert [count(call) for call in calls] == [expected] * len(calls), name
        assert count(lambda m=model: se.evaluate_model(m, *plain, "ndcg@5")) == 0


def test_warns_once_for_a_sweep(holdout: se.Holdout, models: Any, tmp_path: Path) -> None:
    for name in "ab":
        factors = se.train_als(holdout.train.csr, factors=4 + (name == "b"))
        factors.save(tmp_path / f"{name}.npz")
    paths = [tmp_path / "a.npz", tmp_path / "b.npz", models["with checkpoint"]]
    for options in (
        {},
        {"save": True, "out": tmp_path / "saved"},
        {"client": ThreadPoolExecutor(2)},
    ):
        call: Callable[[], object] = lambda o=options: se.sweep(paths, holdout, "ndcg@5", **o)  # noqa: E731
        assert count(call) == 1
    assert count(lambda: se.sweep(paths[2:], holdout, "ndcg@5")) == 0


def test_no_warning_for_models_that_are_trained_here(holdout: se.Holdout, tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=90, n_items=60, seed=0)

    def train(matrix: Any, seed: int) -> Any:
        model = AlternatingLeastSquares(4, random_state=seed)
        model.fit(matrix.csr.astype(np.float32), show_progress=False)
        return model

    def with_callback() -> None:
        callback = se.EvaluationCallback(holdout, "ndcg@5", out=tmp_path)
        model = callback.fit(AlternatingLeastSquares(4, iterations=2, random_state=0))
        se.evaluate_model(model, holdout, "ndcg@5")

    assert count(lambda: se.cross_validate(clicks, {"als": train}, "ndcg@5", seeds=1)) == 0
    assert count(with_callback) == 0
    assert count(lambda: se.sweep(tmp_path, holdout, "ndcg@5")) == 0


def test_new_users(tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=90, n_items=60, seed=0)
    holdout = se.split.users(clicks, fraction=0.3, seed=0)
    model = se.train_als(holdout.train.csr, factors=4)
    named = se.train_als(holdout.train, factors=4)
    for some, expected in ((model, 1), (named, 0), (se.baselines.ease(holdout), 0)):
        assert count(lambda some=some: se.evaluate_model(some, holdout, "ndcg@5")) == expected
    assert count(lambda: se.fold_in(model, holdout)) == 1
    assert count(lambda: se.fold_in(named, holdout)) == 0
    of_items = se.factor_model(model.user_factors, model.item_factors, items=holdout.items)
    assert count(lambda: se.fold_in(of_items, holdout, regularization=0.1)) == 0
