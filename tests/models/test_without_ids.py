"""A model without ids on data with ids gives one warning; others and functions give none."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from implicit.cpu.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender
from raising import warns
from scipy import sparse

import sparse_eval as se

#: The filters of the test run ignore this warning.
MESSAGE = "has no ids, and the data have"


@pytest.fixture(scope="module")
def holdout() -> se.Holdout:
    return se.split.random(se.datasets.synthetic(n_users=90, n_items=60, seed=0), seed=0)


@pytest.fixture(scope="module")
def models(holdout: se.Holdout, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return models with and without ids, by name."""
    folder = tmp_path_factory.mktemp("models")
    with_ids = se.train_als(holdout.train, factors=8)
    with_ids.save(folder / "plain.npz")
    plain = sparse.csr_matrix(holdout.train)
    fitted = AlternatingLeastSquares(8, random_state=0)
    fitted.fit(holdout.train.astype(np.float32), show_progress=False)
    half: Any = copy(fitted)
    half.item_ids = holdout.items
    users, items = with_ids.user_factors, with_ids.item_factors
    ids: dict[str, Any] = {"users": holdout.users, "items": holdout.items}
    scores = users @ items.T
    weights = np.asarray(se.baselines.ease(holdout).weights)
    (folder / "factors").mkdir()
    np.save(folder / "factors" / "user_factors.npy", users)
    np.save(folder / "factors" / "item_factors.npy", items)
    np.save(folder / "scores.npy", scores)
    return {
        "no checkpoint": folder / "plain.npz",
        "no folder": folder / "factors",
        "no npy": folder / "scores.npy",
        "no fitted": fitted,
        "no recommender": se.Recommender(fitted),
        "no users of a recommender": se.Recommender(half),
        "no neighbours": se.train_model(CosineRecommender(5), plain),
        "no pair": (users, items),
        "no factors": se.factor_model(users, items),
        "no weights": weights,
        "no scores": scores,
        "no items": se.Scorer(scores, users=holdout.users),
        "function": lambda rows: scores[rows],
        "scorer": se.Scorer(lambda rows: scores[rows]),
        "with checkpoint": se.save_model(with_ids, folder / "ids.npz"),
        "with trained": with_ids,
        "with recommender": se.Recommender(with_ids),
        "with fitted": se.train_model(CosineRecommender(5), holdout.train),
        "with factors": se.factor_model(users, items, **ids),
        "with weights": se.Scorer(item_item=weights, items=holdout.items),
        "with scores": se.Scorer(scores, **ids),
        "with ease": se.baselines.ease(holdout),
        "with popularity": se.baselines.popularity(holdout),
    }


NAMES = [
    *("no checkpoint", "no folder", "no npy", "no fitted", "no neighbours", "no pair"),
    *("no recommender", "no users of a recommender", "with recommender"),
    *("no factors", "no weights", "no scores", "no items", "function", "scorer"),
    *("with checkpoint", "with trained", "with fitted", "with factors", "with weights"),
    *("with scores", "with ease", "with popularity"),
]


def count(call: Callable[[], object]) -> int:
    """Return the number of times that the warning is given."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    found = [str(one.message) for one in caught if MESSAGE in str(one.message)]
    assert all("se.save_model" in text for text in found)
    assert all(one.filename == __file__ for one in caught if MESSAGE in str(one.message))
    return len(found)


@pytest.mark.parametrize("name", NAMES)
def test_warns_once_for_models_without_ids(name: str, holdout: se.Holdout, models: Any) -> None:
    model, expected = models[name], int(name.startswith("no "))
    plain = sparse.csr_matrix(holdout.train), sparse.csr_matrix(holdout.validation)
    frames = [
        se.Relevance.from_csr(side, users=holdout.users, items=holdout.items) for side in plain
    ]
    is_exact = not {"neighbours", "recommender"} & {*name.split()} and name != "with fitted"
    ways: list[dict[str, Any]] = [{}, {"baselines": True}, {"users": holdout.users[[3, 4]]}]
    if is_exact:
        with ThreadPoolExecutor(2) as pool:
            ways += [{"memory": 10**9}, {"client": pool}, {"memory": 10**9, "baselines": True}]
            for way in ways:
                assert (
                    count(lambda way=way: se.evaluate_model(model, holdout, "ndcg@5", **way))
                    == expected
                ), way
        lists: list[Callable[[], object]] = [
            lambda: se.top_k(model, seen=holdout.train, k=3),
            lambda: se.ranks(model, holdout.validation, 10, seen=holdout.train),
            lambda: se.ranks(model, frames[1], seen=plain[0]),
        ]
        for call in lists:
            assert count(call) == expected
    for way in ways[:3]:
        assert count(lambda way=way: se.evaluate_model(model, holdout, "ndcg@5", **way)) == expected
    assert count(lambda: se.evaluate_model(model, *frames, "ndcg@5")) == expected
    assert count(lambda: se.recommend(model, holdout, k=3)) == expected
    assert count(lambda: se.evaluate_model(model, *plain, "ndcg@5")) == 0


def test_warns_once_for_a_sweep(holdout: se.Holdout, models: Any, tmp_path: Path) -> None:
    for name in "ab":
        factors = se.train_als(sparse.csr_matrix(holdout.train), factors=4 + (name == "b"))
        factors.save(tmp_path / f"{name}.npz")
    paths = [tmp_path / "a.npz", tmp_path / "b.npz", models["with checkpoint"]]
    for options in (
        {},
        {"save": True, "out": tmp_path / "saved"},
        {"client": ThreadPoolExecutor(2)},
    ):
        call: Callable[[], object] = lambda o=options: se.sweep(paths, holdout, "ndcg@5", **o)  # noqa: E731
        assert count(call) == 1
    with warns():
        se.sweep(paths, holdout, "ndcg@5")
    assert count(lambda: se.sweep(paths[2:], holdout, "ndcg@5")) == 0
    assert (
        count(
            lambda: se.sweep(
                paths,
                *map(sparse.csr_matrix, (holdout.train, holdout.validation)),
                metrics="ndcg@5",
            )
        )
        == 0
    )


def test_no_warning_for_models_that_are_trained_here(holdout: se.Holdout, tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=90, n_items=60, seed=0)

    def train(matrix: Any, seed: int) -> Any:
        model = AlternatingLeastSquares(4, random_state=seed)
        model.fit(matrix.astype(np.float32), show_progress=False)
        return model

    def with_callback() -> None:
        callback = se.EvaluationCallback(holdout, "ndcg@5", out=tmp_path)
        model = AlternatingLeastSquares(4, iterations=2, random_state=0)
        model.fit(
            holdout.train.astype(np.float32), show_progress=False, callback=callback.on(model)
        )
        se.evaluate_model(callback.fit(model), holdout, "ndcg@5")

    assert count(lambda: se.cross_validate(clicks, {"als": train}, "ndcg@5", seeds=1)) == 0
    assert count(with_callback) == 0
    assert count(lambda: se.sweep(tmp_path, holdout, "ndcg@5")) == 0


def test_new_users(tmp_path: Path) -> None:
    clicks = se.datasets.synthetic(n_users=90, n_items=60, seed=0)
    holdout = se.split.users(clicks, fraction=0.3, seed=0)
    model = se.train_als(sparse.csr_matrix(holdout.train), factors=4)
    named = se.train_als(holdout.train, factors=4)
    for some, expected in ((model, 1), (named, 0), (se.baselines.ease(holdout), 0)):
        assert count(lambda some=some: se.evaluate_model(some, holdout, "ndcg@5")) == expected
    assert count(lambda: se.fold_in(model, holdout)) == 1
    assert count(lambda: se.fold_in(named, holdout)) == 0
    of_items = se.factor_model(model.user_factors, model.item_factors, items=holdout.items)
    assert count(lambda: se.fold_in(of_items, holdout, regularization=0.1)) == 0


def test_missing_ids_change_the_number() -> None:
    """If a split lacks a user, the later users have different row numbers."""
    frame = se.datasets.synthetic(n_users=300, n_items=100, seed=0).to_frame()
    one, other = (
        se.split.random(se.Interactions.from_frame(frame[frame["user"] != user]), seed=0)
        for user in ("U5", "U200")
    )
    model = se.train_als(one.train, factors=16)
    bare = se.factor_model(model.user_factors, model.item_factors)
    values = [se.evaluate_model(some, other, "ndcg@10")["ndcg@10"] for some in (model, bare)]
    assert values[0] > values[1]
    with warns():
        se.evaluate_model(bare, other, "ndcg@10")
