"""Matrices as models: scores of users × items, item-item weights, and ambiguous square ones."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises, warns
from scipy import sparse
from tensors import Tensor

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, UnsupportedModelError

pytestmark = [
    pytest.mark.filterwarnings("ignore:filter_seen=False"),
    pytest.mark.filterwarnings("ignore:.* relevant items are no candidates"),
]

METRICS = ["ndcg@{5,20}", "recall@10", "coverage@10"]


def split_of(n_users: int, n_items: int) -> se.Holdout:
    clicks = se.datasets.synthetic(n_users=n_users, n_items=n_items, n_interactions=4000, seed=5)
    return se.split.random(clicks, fraction=0.3, seed=0)


@pytest.fixture(scope="module")
def holdout() -> se.Holdout:
    return split_of(200, 90)


@pytest.fixture(scope="module")
def square() -> se.Holdout:
    return split_of(120, 120)


def scores_of(holdout: se.Holdout, dtype: Any = np.float64) -> Any:
    scores = np.random.default_rng(1).standard_normal(holdout.train.shape)
    return (scores * 100).round().astype(dtype) if np.dtype(dtype).kind == "i" else scores


def plain(holdout: se.Holdout) -> tuple[Any, Any]:
    return sparse.csr_matrix(holdout.train), sparse.csr_matrix(holdout.validation)


FORMS: dict[str, Callable[[Any, Path], Any]] = {
    "array": lambda scores, folder: scores,
    "columns first": lambda scores, folder: np.asfortranarray(scores),
    "single": lambda scores, folder: scores.astype(np.float32),
    "half": lambda scores, folder: scores.astype(np.float16),
    "whole numbers": lambda scores, folder: (scores * 100).astype(np.int64),
    "tensor": lambda scores, folder: Tensor(scores),
    "npy": lambda scores, folder: saved(scores, folder / "scores.npy"),
    "mapped": lambda scores, folder: np.load(saved(scores, folder / "scores.npy"), mmap_mode="r"),
    "scorer": lambda scores, folder: se.Scorer(scores),
    "frame": lambda scores, folder: se.Scorer(pd.DataFrame(scores)),
    "npz": lambda scores, folder: se.save_model(se.Scorer(scores), folder / "scores.npz"),
}


def saved(array: Any, path: Path) -> Path:
    np.save(path, array)
    return path


def values_of(form: str, scores: Any) -> Any:
    return {
        "single": scores.astype(np.float32),
        "half": scores.astype(np.float16),
        "whole numbers": (scores * 100).astype(np.int64),
    }.get(form, scores)


@pytest.mark.parametrize("form", FORMS)
def test_scores_are_ranked_as_a_function_that_returns_them(
    form: str, holdout: Any, tmp_path: Path
) -> None:
    scores = scores_of(holdout)
    model, values = FORMS[form](scores, tmp_path), values_of(form, scores)

    def function(users: Any) -> Any:
        return values[users]

    train, validation = plain(holdout)
    half = np.random.default_rng(0).random(train.shape) < 0.5
    with ThreadPoolExecutor(2) as pool:
        options: list[dict[str, Any]] = [
            {},
            {"memory": 10**9},
            {"client": pool},
            {"keep": "lists", "baselines": True},
            {"candidates": sparse.csr_matrix(half.astype(float))},
            {"metrics": se.Protocol(METRICS, filter_seen=False)},
            {"users": [7, 3, 150]},
            {"metrics": ["auc", "mrr"]},
            {"metrics": ["auc", "mrr"], "memory": 10**9},
        ]
        for some in options:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr("sparse_eval.models.source.users_within", lambda *a, **b: 64)
                one, other = (
                    se.evaluate_model(some_model, train, validation, **{"metrics": METRICS} | some)
                    for some_model in (model, function)
                )
            assert one.columns.tobytes() == other.columns.tobytes(), some
            assert str(one.mean()) == str(other.mean()), some
    table = (
        se.sweep([model], train, validation, metrics=METRICS) if form in ("npy", "npz") else None
    )
    if table is not None:
        expected = se.evaluate_model(function, train, validation, METRICS)
        assert table[expected.names].iloc[0].tolist() == list(expected.mean().values())
    assert se.recommend(model, train, k=4).equals(se.recommend(function, train, k=4))
    lists = [se.top_k(one, seen=train, k=4) for one in (model, function)]
    assert lists[0].ids.tobytes() == lists[1].ids.tobytes()
    assert lists[0].scores.tobytes() == lists[1].scores.tobytes()
    for k in (10, None):
        one, other = (se.ranks(some, validation, k, seen=train) for some in (model, function))
        assert (one.to_positions() != other.to_positions()).nnz == 0


@pytest.mark.slow
def test_scores_in_other_processes(holdout: Any, tmp_path: Path) -> None:
    train, validation = plain(holdout)
    scores = scores_of(holdout)
    expected = se.evaluate_model(scores, train, validation, METRICS)
    with ProcessPoolExecutor(2, get_context("forkserver")) as pool:
        for form in ("array", "npy", "mapped", "npz"):
            model = FORMS[form](scores, tmp_path)
            shared = se.evaluate_model(model, train, validation, METRICS, client=pool)
            assert shared.columns.tobytes() == expected.columns.tobytes()


def test_scores_are_matched_by_id(holdout: Any, tmp_path: Path) -> None:
    scores, rng = scores_of(holdout), np.random.default_rng(3)
    rows, columns = (rng.permutation(n) for n in scores.shape)
    ids: dict[str, Any] = {"users": holdout.users[rows], "items": holdout.items[columns]}
    moved = scores[rows][:, columns]
    expected = se.evaluate_model(se.Scorer(lambda users: moved[users], **ids), holdout, METRICS)
    frame = pd.DataFrame(moved, index=ids["users"], columns=ids["items"])
    path = se.save_model(se.Scorer(frame), tmp_path / "scores.npz")
    named = se.save_model(se.Scorer(moved), tmp_path / "named.npz", **ids)
    for model in (se.Scorer(moved, **ids), se.Scorer(frame), path, named):
        for options in ({}, {"memory": 10**9}, {"client": ThreadPoolExecutor(2)}):
            ev = se.evaluate_model(model, holdout, METRICS, **options)  # type: ignore[arg-type]
            assert ev.per_user.sort_index().equals(expected.per_user.sort_index())


def matrices(n: int, folder: Path) -> dict[str, Any]:
    """Return square matrices that could be scores or weights."""
    matrix = np.random.default_rng(0).standard_normal((n, n))
    sparse.save_npz(folder / "square.npz", sparse.csr_matrix(matrix))
    return {
        "array": matrix,
        "tensor": Tensor(matrix),
        "sparse": sparse.csr_matrix(matrix),
        "coo_array": sparse.coo_array(matrix),
        "npy": saved(matrix, folder / "square.npy"),
        "mapped": np.load(folder / "square.npy", mmap_mode="r"),
        "npz": folder / "square.npz",
    }


SQUARES = ["array", "tensor", "sparse", "coo_array", "npy", "mapped", "npz"]


@pytest.mark.parametrize("form", SQUARES)
def test_a_square_that_could_be_either_is_an_error(
    form: str, square: se.Holdout, tmp_path: Path
) -> None:
    n = square.train.shape[0]
    model = matrices(n, tmp_path)[form]
    train, validation = plain(square)

    pool = ThreadPoolExecutor(2)
    calls: list[Callable[[], Any]] = [
        lambda: se.evaluate_model(model, square, METRICS),
        lambda: se.evaluate_model(model, train, validation, METRICS),
        lambda: se.evaluate_model(model, train, validation, METRICS, memory=10**9),
        lambda: se.evaluate_model(model, train, validation, METRICS, client=pool),
        lambda: se.evaluate_model(model, square, METRICS, users=["U1"]),
        lambda: se.recommend(model, square, k=3),
        lambda: se.top_k(model, seen=train, k=3),
        lambda: se.ranks(model, validation, 3, seen=train),
        lambda: se.ranks(model, validation, seen=train),
    ]
    for call in calls:
        with raises(InvalidDataError):
            call()
    if isinstance(model, Path):
        table = se.sweep([model], square, "ndcg@5")
        assert "could be scores" in table["error"][0]
    weights = next(iter(matrices(n, tmp_path).values()))
    by_hand = train.astype(float) @ weights
    explicit = {
        "weights": (se.Scorer(item_item=weights), by_hand),
        "sparse": (se.Scorer(item_item=sparse.csr_matrix(weights)), by_hand),
        "scores": (se.Scorer(weights), weights),
    }
    for name, (scorer, expected) in explicit.items():
        path = se.save_model(scorer, tmp_path / f"{name}.npz")
        ev = se.evaluate_model(lambda users, t=expected: t[users], train, validation, METRICS)
        for some in (scorer, path):
            assert se.evaluate_model(some, train, validation, METRICS).mean() == ev.mean()


def test_models_that_we_make_are_never_taken_for_scores(square: se.Holdout, tmp_path: Path) -> None:
    for name in ("ease", "item_knn"):
        for data in (square, plain(square)[0]):  # with ids and without
            model = getattr(se.baselines, name)(data)
            path = se.save_model(model, tmp_path / f"{name}.npz")
            one, other = (
                se.evaluate_model(some, *plain(square), METRICS) for some in (model, path)
            )
            assert one.columns.tobytes() == other.columns.tobytes()


def test_weights_know_their_items(square: se.Holdout, tmp_path: Path) -> None:
    model = se.baselines.ease(square)
    order = np.random.default_rng(0).permutation(len(square.items))
    moved, items = np.array(model.weights)[order][:, order], square.items[order]
    expected = se.evaluate_model(model, square, METRICS)
    scorer = se.Scorer(item_item=moved, items=items)
    frame = pd.DataFrame(moved, index=items, columns=items)
    path = se.save_model(scorer, tmp_path / "ease.npz")
    for some in (scorer, path, se.Scorer(item_item=frame)):
        assert se.evaluate_model(some, square, METRICS).mean() == pytest.approx(expected.mean())


def test_invalid_matrices_raise_errors(holdout: Any, tmp_path: Path) -> None:
    scores = scores_of(holdout)
    for wrong in (sparse.csr_matrix(scores), sparse.coo_array(scores)):
        for call in (
            lambda wrong=wrong: se.Scorer(wrong),
            lambda wrong=wrong: se.evaluate_model(wrong, holdout, METRICS),
        ):
            with raises(InvalidDataError):
                call()
    for wrong in (scores[:, :5], scores.T, scores[1:]):
        for train in (holdout.train, plain(holdout)[0]):
            with raises(InvalidDataError):
                se.evaluate_model(wrong, train, holdout.validation, METRICS)
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    with raises(InvalidDataError):
        se.evaluate_model(scores, frame, frame, METRICS)
    with raises(UnsupportedModelError):
        se.evaluate_model(pd.DataFrame(scores), holdout, METRICS)  # type: ignore[arg-type]
    bad = scores.copy()
    bad[4, 7] = np.nan
    for model in (bad, saved(bad, tmp_path / "bad.npy")):
        seen = sparse.csr_matrix(bad.shape)
        with raises(InvalidDataError):
            se.top_k(model, k=3, seen=seen)
    for given in ({}, {"scores": scores, "item_item": np.eye(3)}):
        with raises(InvalidDataError):
            se.Scorer(**given)
    with raises(InvalidDataError):
        se.Scorer(scores, users=["a", "b"])
    with raises(InvalidDataError):
        se.save_model(se.Scorer(scores), tmp_path / "m.npz", users=["a", "b"])
    with raises(InvalidDataError):
        se.Scorer(item_item=np.eye(3), users=["a"])
    for wrong in ([[1.0]], np.zeros(3), scores.astype(complex), scores > 0, "scores.npy"):
        with raises(InvalidDataError):
            se.Scorer(wrong)  # type: ignore[arg-type]
    with raises(InvalidDataError):
        se.Scorer(item_item=pd.DataFrame(np.eye(2), index=["a", "b"], columns=["b", "a"]))


def test_scorers_save_what_they_hold(square: se.Holdout, tmp_path: Path) -> None:
    weights = se.baselines.ease(square).weights
    se.Scorer(item_item=weights).save(tmp_path / "weights.npz")
    with warns():
        found = se.evaluate_model(tmp_path / "weights.npz", square, METRICS)
    with warns():
        expected = se.evaluate_model(se.Scorer(item_item=weights), square, METRICS)
    assert found.mean() == expected.mean()
    with raises(UnsupportedModelError):
        se.Scorer(lambda users: users).save(tmp_path / "function.npz")
    assert not (tmp_path / "function.npz").exists()


def test_labels_of_several_levels_are_an_error() -> None:
    levels = pd.MultiIndex.from_product([[1, 2], [0, 1]])
    for frame in (
        pd.DataFrame(np.ones((4, 3)), index=levels),
        pd.DataFrame(np.ones((3, 4)), columns=levels),
    ):
        with raises(InvalidDataError):
            se.Scorer(frame)
