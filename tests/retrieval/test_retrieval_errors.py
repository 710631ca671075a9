"""Inputs that retrieval refuses, and what it does to the process."""

from __future__ import annotations

import io
import math
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from own_process import own_process
from raising import raises
from retrieval_cases import (
    ALL,
    DTYPES,
    Array,
    Case,
    call,
    check_top_k,
    make_factors,
)
from scipy import sparse
from systems import need_posix
from threadpoolctl import threadpool_info, threadpool_limits

from sparse_eval import evaluate_model, factor_model
from sparse_eval.core import progress
from sparse_eval.errors import InvalidDataError


def spoiled(array: Array, row: int, value: float) -> Array:
    array = array.copy()
    array[row, -1] = value
    return array


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("side", ["user_factors", "item_factors"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_refuses_factors_that_are_not_finite(
    plain: Case, of: str, side: str, dtype: type, value: float
) -> None:
    whole = (plain.users if side == "user_factors" else plain.items).astype(dtype)
    spoilt = spoiled(whole, 6, value)
    with raises(InvalidDataError, argument=side):
        call(of, plain, **{side: spoilt})


NOT_FACTORS: dict[str, Callable[[Array], object]] = {
    "one dimension": lambda array: array[0],
    "int": lambda array: array.astype(np.int64),
    "complex": lambda array: array.astype(np.complex64),
    "longdouble": lambda array: array.astype(np.longdouble),
    "masked": lambda array: np.ma.masked_equal(array, 0),
    "list": lambda array: array.tolist(),
    "sparse": sparse.csr_matrix,
}


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize("side", ["user_factors", "item_factors"])
@pytest.mark.parametrize("form", NOT_FACTORS)
def test_refuses_what_is_not_an_array_of_factors(
    plain: Case, of: str, side: str, form: str
) -> None:
    whole = plain.users if side == "user_factors" else plain.items
    with raises(InvalidDataError, argument=side):
        call(of, plain, **{side: NOT_FACTORS[form](whole)})


@pytest.mark.parametrize("of", ALL)
def test_refuses_factors_of_two_models(plain: Case, of: str) -> None:
    with raises(InvalidDataError, argument="user_factors"):
        call(of, plain, item_factors=plain.items[:, :5])


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize(
    ("user", "item"),
    [
        ([1e200, 0.0], [1e200, 0.0]),
        ([1e200, -1e200], [1e200, 1e200]),  # ∞ − ∞
        ([-1e160], [1e160]),
        ([1e154] * 2, [1.7e154] * 2),  # each product fits
    ],
)
def test_refuses_factors_whose_scores_could_overflow(
    of: str, user: list[float], item: list[float]
) -> None:
    users, items = np.zeros((3, len(user))), np.ones((4, len(item)))
    users[1], items[2] = user, item
    arguments: dict[str, Any] = {"held_out": sparse.csr_matrix(np.eye(3, 4)), "seen": None}
    case = Case(users, items, 2, None, arguments["held_out"])
    with raises(InvalidDataError):
        call(of, case)


@pytest.mark.parametrize("of", ALL)
@pytest.mark.parametrize(
    "change",
    [
        {"seen": sparse.csr_matrix((8, 40))},
        {"seen": sparse.csr_matrix((9, 39))},
        {"seen": np.zeros((9, 40))},
        {"candidates": [3, 40]},
        {"candidates": [0.5]},
        {"candidates": np.ones(40, bool)},
        {"candidates": [[0, 1]]},
        {"candidates": np.array([2**64 - 1], np.uint64)},
        {"exclude": [40]},
        {"exclude": [0, -2]},
        {"candidates": []},
        {"exclude": range(40)},
        {"candidates": [1, 2], "exclude": [2, 1]},
        {"item_factors": np.empty((0, 6)), "seen": None, "held_out": sparse.csr_matrix((9, 0))},
        {"num_threads": 0},
        {"num_threads": 1.5},
        {"num_threads": True},
    ],
)  # fmt: skip
def test_refuses_inputs(plain: Case, of: str, change: dict[str, Any]) -> None:
    with raises(InvalidDataError):
        call(of, plain, **change)


def test_refuses_a_damaged_matrix(plain: Case) -> None:
    for name in ("seen", "held_out"):
        damaged = getattr(plain, name).copy()
        damaged.indices[3] = 40
        for of in ALL[name == "held_out" :]:
            with raises(InvalidDataError, column=40):
                call(of, plain, **{name: damaged})


@pytest.mark.parametrize("of", ["top_k", "ranks up to k"])
@pytest.mark.parametrize("k", [0, -1, 2.5, 2.0, "3", True, math.nan])
def test_refuses_cutoffs(plain: Case, of: str, k: object) -> None:
    with raises(InvalidDataError, argument="k"):
        call(of, plain, k=k)


@pytest.mark.parametrize("rows", [[0, 9], [-1], [0.5], np.ones(9, bool), [[0, 1]], 3, ["a"]])
def test_refuses_users(plain: Case, rows: object) -> None:
    with raises(InvalidDataError):
        plain.top_k(users=rows)


@pytest.mark.parametrize("of", ALL[1:])
@pytest.mark.parametrize(
    "change",
    [
        {"held_out": sparse.csr_matrix((9, 41))},
        {"held_out": np.zeros((9, 40))},
        {"held_out": None},
        {"held_out": sparse.csr_matrix(-np.eye(9, 40))},
        {"held_out": sparse.csr_matrix(np.nan * np.eye(9, 40))},
        {"overlap": "drop"},
    ],
)
def test_refuses_held_out_items(plain: Case, of: str, change: dict[str, Any]) -> None:
    with raises(InvalidDataError):
        call(of, plain, **change)


def settings_of_the_process() -> object:
    pools = {pool["filepath"]: pool["num_threads"] for pool in threadpool_info()}
    return pools, np.geterr(), signal.getsignal(signal.SIGINT)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("of", ALL)
def test_shows_progress_on_request(plain: Case, of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def shown(stream: io.StringIO, **options: Any) -> str:
        monkeypatch.setattr(sys, "stderr", stream)
        call(of, plain, **options)
        return stream.getvalue()

    assert "100%" in shown(io.StringIO(), progress=True)
    assert shown(Terminal()) == ""  # it is done within a second
    monkeypatch.setattr(progress, "DELAY", 0.0)
    assert "100%" in shown(Terminal())
    assert shown(io.StringIO()) == shown(Terminal(), progress=False) == ""


@pytest.fixture(scope="module")
def long_work() -> Case:
    """Return a case that takes at least half a second."""
    rng = np.random.default_rng(13)
    users, items = make_factors(rng, "unit", (40_000, 40_000, 64))
    held_out = (np.ones(120_000), rng.integers(40_000, size=120_000), np.arange(0, 120_001, 3))
    return Case(users, items, 5000, None, sparse.csr_matrix(held_out, (40_000, 40_000)))


@pytest.mark.slow  # interpreted, a block of users would take too long
@pytest.mark.parametrize("of", ALL)
@own_process
def test_an_interrupt_ends_the_work(plain: Case, long_work: Case, of: str) -> None:
    need_posix()
    call(of, plain, num_threads=2)  # compiles
    handler = signal.signal(signal.SIGALRM, signal.default_int_handler)
    with threadpool_limits(3, "blas"):
        before = settings_of_the_process()
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(KeyboardInterrupt):
                call(of, long_work, k=10 if of == "top_k" else 5000, num_threads=2)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, handler)
        assert settings_of_the_process() == before
    check_top_k(plain, plain.top_k(), k=plain.k)


def test_takes_any_k_beyond_the_catalogue(plain: Case) -> None:
    whole = replace(plain, seen=None).ranks(plain.items.shape[0], overlap="report")
    for k in (2**31, 2**63, 10**30):
        ranks = replace(plain, seen=None).ranks(k, overlap="report")
        assert ranks.to_positions().toarray().tolist() == whole.to_positions().toarray().tolist()
        assert ranks.lengths.tolist() == whole.lengths.tolist()


def test_an_evaluation_names_its_own_options() -> None:
    factors = sparse.csr_matrix(np.eye(3))
    model = factor_model(np.eye(3), np.eye(3))
    with pytest.raises(InvalidDataError) as told:
        evaluate_model(model, factors * 0, factors, "recall@1", candidates=np.empty(0, np.int64))
    assert "exclude" not in str(told.value)
