"""The popularity baseline beside a model: the same numbers by every way, and what it needs."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.models import source

N_USERS, N_ITEMS = 300, 80
BUDGET = 200_000_000
METRICS = (
    "ndcg@5", "err@10", "recall(average=micro)@10", "auc@10", "coverage@5", "gini@5", "novelty@10",
    "diversity@5",
)  # fmt: skip


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a budget mean blocks of 70 users, whatever it is, and count in blocks of 110."""
    monkeypatch.setattr(source, "users_within", lambda *given, **options: 70)
    monkeypatch.setattr(source, "USERS_PER_BLOCK", 110)


def case() -> tuple[Any, csr_matrix, csr_matrix]:
    """Return factors, what users have seen, with zeros and pairs stored twice, and held out."""
    rng = np.random.default_rng(3)
    users, items = (rng.normal(size=(n, 6)).astype(np.float32) for n in (N_USERS, N_ITEMS))
    once = rng.random((N_USERS, N_ITEMS)) < rng.random(N_ITEMS) * 0.3
    held = (rng.random((N_USERS, N_ITEMS)) < 0.05) * rng.integers(1, 4, (N_USERS, N_ITEMS))
    held[rng.random(N_USERS) < 0.2] = 0
    rows, columns = np.nonzero(once & (held == 0))
    twice = rng.random(len(rows)) < 0.2
    counts = np.where(twice, 2, 1)
    values = rng.choice([0.0, 1.0, 3.0], size=counts.sum()).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(np.repeat(rows, counts), minlength=300))])
    seen = csr_matrix((values, np.repeat(columns, counts), indptr), shape=once.shape)
    return (users, items), seen, csr_matrix(held.astype(np.float64))


def on_disk(folder: Path, factors: Any, *matrices: csr_matrix) -> list[Path]:
    np.save(folder / "user_factors.npy", factors[0])
    np.save(folder / "item_factors.npy", factors[1])
    paths = [folder]
    for name, matrix in zip(("train", "validation"), matrices, strict=True):
        paths.append(folder / name)
        paths[-1].mkdir()
        for part in ("data", "indices", "indptr"):
            np.save(paths[-1] / f"{part}.npy", getattr(matrix, part))
        np.save(paths[-1] / "shape.npy", matrix.shape)
    return paths


def popularity(*given: Any, **options: Any) -> se.Evaluation:
    ev = se.evaluate_model(*given, METRICS, baselines=True, **options)
    found = ev.baselines["popularity"]
    assert ev.summary()["popularity"].to_dict() == found.mean()
    assert found.retrieval is None
    return found


def same_numbers(found: se.Evaluation, whole: se.Evaluation) -> None:
    assert found.mean() == whole.mean()
    columns = ["mean", "std", "n_users", "n_skipped"]
    numbers, expected = found.summary(), whole.summary()
    pd.testing.assert_frame_equal(numbers[columns], expected[columns], check_exact=True)
    of_all = [name for name in METRICS if name.startswith(("coverage", "gini"))]
    pd.testing.assert_frame_equal(
        numbers["random"].drop(of_all).to_frame(),
        expected["random"].drop(of_all).to_frame(),
        check_exact=True,
    )
    for name in (*of_all, "recall(average=micro)@10"):
        assert found.replicates(name).tobytes() == whole.replicates(name).tobytes()


@pytest.mark.parametrize("way", ["memory", "threads", "memory and threads"])
@pytest.mark.parametrize("disk", [False, True])
def test_blocks_and_workers_give_the_same_numbers(way: str, disk: bool, tmp_path: Path) -> None:
    given = case()
    whole = popularity(*given)
    inputs = on_disk(tmp_path, *given) if disk else given
    with ThreadPoolExecutor(2) as pool:
        options: dict[str, Any] = {"memory": BUDGET} if "memory" in way else {}
        if "threads" in way:
            options["client"] = pool
        found = popularity(*inputs, **options)
        totals = popularity(*inputs, **options, keep="totals")
    same_numbers(found, whole)
    pd.testing.assert_frame_equal(found.per_user, whole.per_user, check_exact=True)
    same_numbers(totals, whole)
    with raises(InvalidDataError):
        _ = totals.per_user


def test_folders_of_npy_give_the_same_numbers(tmp_path: Path) -> None:
    given = case()
    whole = popularity(*given)
    found = popularity(*on_disk(tmp_path, *given))
    same_numbers(found, whole)
    pd.testing.assert_frame_equal(found.per_user, whole.per_user, check_exact=True)


def test_totals_alone_give_the_same_numbers() -> None:
    given = case()
    whole, totals = popularity(*given), popularity(*given, keep="totals")
    same_numbers(totals, whole)
    columns = ["random", "random_se", "lift"]
    pd.testing.assert_frame_equal(
        totals.summary()[columns], whole.summary()[columns], check_exact=True
    )


def test_processes_give_the_same_numbers(tmp_path: Path) -> None:
    given = case()
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        found = popularity(*on_disk(tmp_path, *given), client=pool)
        same_numbers(found, popularity(*given))


def test_names_the_block_of_a_wrong_entry() -> None:
    model, train, held = case()
    train.data[train.indptr[290]] = np.nan
    with raises(InvalidDataError):
        se.evaluate_model(model, train, held, "ndcg@5", baselines=True, memory=BUDGET)


def test_the_same_for_a_checkpoint_on_workers(tmp_path: Path) -> None:
    factors, train, held = case()
    checkpoint = tmp_path / "als.npz"
    np.savez(checkpoint, user_factors=factors[0], item_factors=factors[1])
    with ThreadPoolExecutor(2) as pool:
        same_numbers(popularity(checkpoint, train, held, client=pool), popularity(*case()))
