"""Models whose users are evaluated in blocks: on disk, within a budget."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from implicit.nearest_neighbours import CosineRecommender
from raising import raises, warns
from scipy.sparse import coo_matrix, csr_array, csr_matrix

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


def clicks(seed: int = 0, binary: bool = False) -> tuple[csr_matrix, csr_matrix]:
    """Return what users have seen and what is held out, with users without either."""
    rng = np.random.default_rng(seed)
    seen = csr_matrix(rng.random((N_USERS, N_ITEMS)) < 0.1).astype(np.float32)
    gains = rng.integers(0, 2 if binary else 4, (N_USERS, N_ITEMS)) * (
        rng.random((N_USERS, N_ITEMS)) < 0.05
    )
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
    same_summary(found, whole)


def same_summary(found: se.Evaluation, whole: se.Evaluation) -> None:
    """Check that all numbers are the same, except for the random baseline of all lists together."""
    numbers, expected = found.summary(), whole.summary()
    of_random = ["random", "random_se", "lift"]
    micro = [plan.metric for plan in whole.request.plans if plan.is_micro]
    per_user = [name for name in whole.names if whole.is_per_user(name) or name in map(str, micro)]
    pd.testing.assert_frame_equal(
        numbers.loc[per_user, of_random], expected.loc[per_user, of_random], check_exact=True
    )
    of_all = numbers.drop(index=per_user)[of_random].dropna()  # known in memory only
    pd.testing.assert_frame_equal(of_all, expected.loc[of_all.index, of_random], check_exact=True)
    pd.testing.assert_frame_equal(
        numbers.drop(columns=of_random), expected.drop(columns=of_random), check_exact=True
    )


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a budget mean blocks of 70 users, whatever it is."""
    monkeypatch.setattr(source, "users_within", lambda *given, **options: 70)


def saved(folder: Path, matrix: csr_matrix) -> Path:
    folder.mkdir()
    for name in ("data", "indices", "indptr"):
        np.save(folder / f"{name}.npy", getattr(matrix, name))
    np.save(folder / "shape.npy", matrix.shape)
    return folder


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("metrics", [METRICS, OF_LISTS])
def test_a_budget_changes_no_bit(metrics: str) -> None:
    data, model = clicks(), factors()
    whole = se.evaluate_model(model, *data, metrics)
    same(se.evaluate_model(model, *data, metrics, memory=BUDGET), whole)
    without = se.evaluate_model(model, *data, metrics, keep="totals")
    assert without.mean() == whole.mean()
    intervals = ["ci_low", "ci_high", "interval"]  # of a bootstrap, or of the sums alone
    pd.testing.assert_frame_equal(
        without.summary().drop(columns=intervals),
        whole.summary().drop(columns=intervals),
        check_exact=True,
    )
    cut = se.evaluate_model(model, *data, metrics, memory=BUDGET, keep="totals")
    same_summary(cut, without)


def test_what_is_on_disk_stays_there(tmp_path: Path) -> None:
    (users, items), (train, held) = factors(), clicks()
    np.save(tmp_path / "user_factors.npy", users)
    np.save(tmp_path / "item_factors.npy", items)
    sides = saved(tmp_path / "train", train), saved(tmp_path / "held", held)
    whole = se.evaluate_model((users, items), train, held, OF_LISTS)
    same(se.evaluate_model(tmp_path, *sides, OF_LISTS), whole)
    same(se.evaluate_model(str(tmp_path), *map(str, sides), OF_LISTS, memory=BUDGET), whole)
    pair = (tmp_path / "user_factors.npy", str(tmp_path / "item_factors.npy"))
    same(se.evaluate_model(pair, train, held, OF_LISTS, memory=BUDGET), whole)


def test_other_inputs_of_matrices(tmp_path: Path) -> None:
    (users, items), (train, held) = factors(), clicks()
    whole = se.evaluate_model((users, items), train, held, METRICS)
    relevance = se.Relevance.from_csr(held, users=[f"u{n:03}" for n in range(N_USERS)])
    labelled = se.evaluate_model((users, items), train, relevance, METRICS, memory=BUDGET)
    assert labelled.mean() == whole.mean()
    assert labelled.users is not None
    assert labelled.users[7] == "u007"
    for side in (csr_array(train), train.tocsc(), train.tocoo()):
        same(se.evaluate_model((users, items), side, held, METRICS, memory=BUDGET), whole)


@pytest.mark.usefixtures("small_blocks")
def test_a_smaller_validation_matrix_is_of_the_first_users() -> None:
    (users, items), (train, held) = factors(), clicks()
    labels = [f"u{n:03}" for n in range(250)]
    for smaller in (held[:250, :70], se.Relevance.from_csr(held[:250, :70], users=labels)):
        options: dict[str, Any] = {"baselines": True}
        given = ((users, items), train, smaller, se.Protocol(METRICS, no_relevant="zero"))
        whole = se.evaluate_model(*given, **options)
        assert whole.n_users == whole.baselines["popularity"].n_users == 250
        for way in ({"memory": BUDGET}, {"client": ThreadPoolExecutor(2)}):
            found = se.evaluate_model(*given, **options, **way)
            same(found, whole)
            same(found.baselines["popularity"], whole.baselines["popularity"])


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


def test_nothing_that_is_given_is_changed() -> None:
    (users, items), (train, held) = factors(), clicks()
    copies = [users.copy(), items.copy(), train.copy(), held.copy()]
    for array in (users, items, train.data, held.data):
        array.flags.writeable = False
    se.evaluate_model((users, items), train, held, OF_LISTS, memory=BUDGET)
    assert np.array_equal(users, copies[0])
    assert np.array_equal(items, copies[1])
    assert (train != copies[2]).nnz == (held != copies[3]).nnz == 0


def test_items_that_were_seen_are_told() -> None:
    train, held = clicks()
    held = (held + train.multiply(train > 0)[:, ::-1] * 0 + train * 1.0).tocsr()
    with warns():
        whole = se.evaluate_model(factors(), train, held, "ndcg@5")
    with warns():
        found = se.evaluate_model(factors(), train, held, "ndcg@5", memory=BUDGET)
    same(found, whole)


Wrong = Callable[[Any, Any, Any, Any], Any]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda u, i, t, h: ((u, i), t, h, {"memory": 20_000_000}), InvalidDataError),
        (lambda u, i, t, h: ((u, i), t, h, {"memory": "2GB"}), InvalidDataError),
        (lambda u, i, t, h: ((u[:-1], i), t, h, {}), InvalidDataError),
        (lambda u, i, t, h: ((u, i[:-1]), t, h, {}), InvalidDataError),
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
    np.savez(tmp_path / "user_factors.npy.npz", users)
    (tmp_path / "user_factors.npy.npz").rename(tmp_path / "user_factors.npy")
    with raises(InvalidFileError):
        se.evaluate_model(tmp_path, *data, "ndcg@5")
    np.save(tmp_path / "user_factors.npy", users.astype(object), allow_pickle=True)
    with raises(InvalidFileError):
        se.evaluate_model(tmp_path, *data, "ndcg@5")
    with raises(InvalidFileError):
        se.evaluate_model((users, items), tmp_path / "nowhere", data[1], "ndcg@5")


@pytest.mark.filterwarnings("ignore:Method expects CSR input")  # of its own matrix
def test_a_model_without_factors_cannot_be_cut() -> None:
    train, held = clicks()
    model = CosineRecommender(num_threads=1)
    model.fit(train.astype(np.float64).tocsr(), show_progress=False)
    with raises(UnsupportedModelError):
        se.evaluate_model(model, train, held, "ndcg@5", memory=BUDGET)
