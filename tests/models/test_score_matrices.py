"""Matrices as models: scores of users × items, item-item weights, and ambiguous square ones."""

from __future__ import annotations

from collections.abc import Callable
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
    pytest.mark.filterwarnings("ignore:.* relevant items are not candidates"),
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
    return holdout.train.csr, holdout.validation.csr


FORMS: dict[str, Callable[[Any, Path], Any]] = {
    "array": lambda scores, folder: scores,
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
        for memory in (None, 10**9):
            ev = se.evaluate_model(model, holdout, METRICS, memory=memory)
            assert ev.per_user.sort_index().equals(expected.per_user.sort_index())


def matrices(n: int, folder: Path) -> dict[str, Any]:
    """Return square matrices that could be scores or weights."""
    matrix = np.random.default_rng(0).standard_normal((n, n))
    sparse.save_npz(folder / "square.npz", sparse.csr_matrix(matrix))
    return {
        "array": matrix,
        "tensor": Tensor(matrix),
        "sparse": sparse.csr_matrix(matrix),
        "npy": saved(matrix, folder / "square.npy"),
        "npz": folder / "square.npz",
    }


SQUARES = ["array", "tensor", "sparse", "npy", "npz"]


@pytest.mark.parametrize("form", SQUARES)
def test_a_square_that_could_be_either_is_an_error(
    form: str, square: se.Holdout, tmp_path: Path
) -> None:
    n = square.train.shape[0]
    model = matrices(n, tmp_path)[form]
    train, validation = plain(square)

    for call in (
        lambda: se.evaluate_model(model, square, METRICS),
        lambda: se.evaluate_model(model, train, validation, METRICS, memory=10**9),
        lambda: se.recommend(model, square, k=3),
        lambda: se.top_k(model, seen=train, k=3),
        lambda: se.ranks(model, validation, seen=train),
    ):
        with raises(InvalidDataError):
            call()


def test_a_square_is_what_a_scorer_says(square: se.Holdout, tmp_path: Path) -> None:
    train, validation = plain(square)
    weights = next(iter(matrices(train.shape[0], tmp_path).values()))
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
    for train in (holdout.train, plain(holdout)[0]):
        with raises(InvalidDataError):
            se.evaluate_model(scores.T, train, holdout.validation, METRICS)
    bad = scores.copy()
    bad[4, 7] = np.nan
    for model in (bad, saved(bad, tmp_path / "bad.npy")):
        with raises(InvalidDataError):
            se.top_k(model, k=3, seen=sparse.csr_matrix(bad.shape))
    with raises(UnsupportedModelError):
        se.evaluate_model(pd.DataFrame(scores), holdout, METRICS)  # type: ignore[arg-type]
    frame = pd.DataFrame({"user": ["a", "b"], "item": ["x", "y"]})
    with raises(InvalidDataError):
        se.evaluate_model(scores, frame, frame, METRICS)
    with raises(InvalidDataError):
        se.save_model(se.Scorer(scores), tmp_path / "m.npz", users=["a", "b"])


LEVELS = pd.MultiIndex.from_product([[1, 2], [0, 1]])
SCORES = np.ones((4, 3))


@pytest.mark.parametrize(
    ("given", "options"),
    [
        (None, {}),
        (SCORES, {"item_item": np.eye(3)}),
        (SCORES, {"users": ["a", "b"]}),
        (None, {"item_item": np.eye(3), "users": ["a"]}),
        (None, {"item_item": pd.DataFrame(np.eye(2), index=["a", "b"], columns=["b", "a"])}),
        ([[1.0]], {}),
        (np.zeros(3), {}),
        (SCORES.astype(complex), {}),
        (SCORES > 0, {}),
        ("scores.npy", {}),
        (len, {"users": "ab"}),
        (pd.DataFrame(SCORES, index=LEVELS), {}),
        (pd.DataFrame(SCORES.T, columns=LEVELS), {}),
    ],
)
def test_refuses_what_is_no_model(given: Any, options: dict[str, Any]) -> None:
    with raises(InvalidDataError):
        se.Scorer(given, **options)


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
