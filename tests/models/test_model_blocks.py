"""Models whose users are evaluated in blocks: on disk, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy.sparse import coo_matrix, csr_matrix

import sparse_eval as se
from sparse_eval.errors import (
    InvalidDataError,
    InvalidFileError,
    InvalidMetricError,
    UnsupportedModelError,
)
from sparse_eval.models import source

N_USERS, N_ITEMS = 300, 80
BUDGET = 200_000_000
METRICS = "ndcg@{5,10},auc@10,recall(average=micro)@10,err@10"
OF_LISTS = "ndcg@5,coverage@5,novelty@10,serendipity@5,diversity@5"


def clicks(seed: int = 0) -> tuple[csr_matrix, csr_matrix]:
    """Return what users have seen and what is held out, with users without either."""
    rng = np.random.default_rng(seed)
    seen = csr_matrix(rng.random((N_USERS, N_ITEMS)) < 0.1).astype(np.float32)
    gains = rng.integers(0, 4, (N_USERS, N_ITEMS)) * (rng.random((N_USERS, N_ITEMS)) < 0.05)
    gains[rng.random(N_USERS) < 0.2] = 0
    gains[seen.toarray() > 0] = 0
    return seen, csr_matrix(gains.astype(np.float64))


def factors(seed: int = 1) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    users, items = (rng.normal(size=(n, 6)).astype(np.float32) for n in (N_USERS, N_ITEMS))
    return users, items


def same(found: se.Evaluation, whole: se.Evaluation) -> None:
    pd.testing.assert_frame_equal(found.per_user, whole.per_user, check_exact=True)
    assert found.mean() == whole.mean()
    assert found.retrieval == whole.retrieval
    for name, popular in whole.baselines.items():
        assert found.baselines[name].mean() == popular.mean()


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a budget mean blocks of 70 users, whatever it is."""
    monkeypatch.setattr(source, "users_per_block", lambda *given, **options: 70)


def saved(folder: Path, matrix: csr_matrix) -> Path:
    folder.mkdir()
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(matrix, name))
    np.save(folder / "shape.npy", matrix.shape)
    return folder


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("options", [{}, {"memory": BUDGET}, {"client": ThreadPoolExecutor(2)}])
def test_what_is_on_disk_stays_there(tmp_path: Path, options: dict[str, Any]) -> None:
    (users, items), (train, held) = factors(), clicks()
    np.save(tmp_path / "user_factors.npy", users)
    np.save(tmp_path / "item_factors.npy", items)
    sides = saved(tmp_path / "train", train), saved(tmp_path / "held", held)
    whole = se.evaluate_model((users, items), train, held, OF_LISTS, baselines=True)
    pair = (tmp_path / "user_factors.npy", str(tmp_path / "item_factors.npy"))
    for given in ((tmp_path, *sides), (str(tmp_path), *map(str, sides)), (pair, train, held)):
        same(se.evaluate_model(*given, OF_LISTS, baselines=True, **options), whole)


@pytest.mark.usefixtures("small_blocks")
def test_a_smaller_validation_matrix_is_of_the_first_users() -> None:
    train, held = clicks()
    labels = [f"u{n:03}" for n in range(250)]
    for smaller in (held[:250, :70], se.Relevance.from_csr(held[:250, :70], users=labels)):
        given = (factors(), train, smaller, se.Protocol(METRICS, no_relevant="zero"))
        whole = se.evaluate_model(*given, baselines=True)
        assert whole.n_users == whole.baselines["popularity"].n_users == 250
        same(se.evaluate_model(*given, baselines=True, memory=BUDGET), whole)


def test_gains_that_are_stored_twice_are_summed() -> None:
    train, held = clicks()
    rows, columns = held.nonzero()
    at = (np.append(rows, rows[0]), np.append(columns, columns[0]))
    twice = coo_matrix((np.append(held.data, 5.0), at), held.shape)
    unsummed = csr_matrix(
        (twice.data[order := np.argsort(at[0], kind="stable")], at[1][order],
         np.concatenate([[0], np.cumsum(np.bincount(at[0], minlength=N_USERS))])),
        shape=held.shape,
    )  # fmt: skip
    whole = se.evaluate_model(factors(), train, unsummed, "err@10")
    same(se.evaluate_model(factors(), train, unsummed, "err@10", memory=BUDGET), whole)


Wrong = Callable[[Any, Any, Any, Any], Any]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda u, i, t, h: ((u, i), t, h, {"memory": 20_000_000}), InvalidDataError),
        (lambda u, i, t, h: ((u, i), t, h, {"memory": "2GB"}), InvalidDataError),
        (lambda u, i, t, h: ((u, i), [t[:9], t[9:]], h, {}), InvalidDataError),
        (lambda u, i, t, h: ((u, i), t, iter([h]), {"memory": BUDGET}), InvalidDataError),
        (lambda u, i, t, h: ((iter([u]), i), t, h, {"memory": BUDGET}), InvalidDataError),
        (lambda u, i, t, h: ((u, i), t, h * -1, {"memory": BUDGET}), InvalidDataError),
        (
            lambda u, i, t, h: ((np.where(u == u[200, 3], np.nan, u), i), t, h, {"memory": BUDGET}),
            InvalidDataError,
        ),
        (
            lambda u, i, t, h: (se.Recommender((u, i)), t, h, {"memory": BUDGET}),
            UnsupportedModelError,
        ),
        (
            lambda u, i, t, h: ((u, i), t, h, {"memory": BUDGET, "m": "coverage"}),
            InvalidMetricError,
        ),
        (lambda u, i, t, h: ((u, i), t, h * 0, {"memory": BUDGET}), InvalidDataError),
    ],
)
def test_what_is_refused(call: Wrong, error: type[Exception]) -> None:
    model, train, held, options = call(*factors(), *clicks())
    with raises(error):
        se.evaluate_model(model, train, held, options.pop("m", "ndcg@5"), **options)


def test_files_that_are_refused(tmp_path: Path) -> None:
    (users, items), data = factors(), clicks()
    with raises(InvalidFileError):
        se.evaluate_model(tmp_path, *data, "ndcg@5")
    np.save(tmp_path / "user_factors.npy", users.astype(object), allow_pickle=True)
    with raises(InvalidFileError):
        se.evaluate_model(tmp_path, *data, "ndcg@5")
    with raises(InvalidFileError):
        se.evaluate_model((users, items), tmp_path / "nowhere", data[1], "ndcg@5")
