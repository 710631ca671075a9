"""Every metric has the same bits in memory, in blocks and from workers, by each convention."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from merge_cases import every_metric, same_numbers
from rules import accepted
from scipy.sparse import csr_matrix
from ways import LEAST, small_blocks

import sparse_eval as se
from sparse_eval.errors import SparseEvalError
from sparse_eval.metrics.conventions import CONVENTIONS

N_USERS, N_ITEMS = 12, 9


def metrics_of(convention: str, inputs: dict[str, Any]) -> list[str]:
    """Return all metrics of a convention, with every form of novelty."""
    rules = CONVENTIONS[convention]
    forms = [
        f"novelty(denominator={denominator},form={form},unknown={unknown})@3"
        for denominator in ("length", "k")
        for form in ("bits", "relative", "unseen")
        for unknown in ("one", "skip")
    ]
    more = ["coverage", "coverage@1", "user_coverage@1", *forms]
    if "novelty" not in rules.unlike:
        more.append("surprisal@4")
    names = [name for name in [*every_metric(**inputs), *more] if base(name) not in rules.unlike]
    return [base(name) if base(name) in rules.uncut else name for name in names]


def base(name: str) -> str:
    return name.partition("@")[0].partition("(")[0]


def problem(listed: str) -> tuple[csr_matrix, csr_matrix, dict[str, Any]]:
    """Return positions, gains and the side data.

    Every third user has no relevant item and every fourth no list; some of both have stored zeros.
    """
    rng = np.random.default_rng(4)
    positions = np.zeros((N_USERS, N_ITEMS), int)
    for user in range(N_USERS):
        length = {"some": 0 if user % 4 == 3 else 1 + user % 5, "nobody": 0}[listed]
        positions[user, rng.permutation(N_ITEMS)[:length]] = np.arange(1, length + 1)
    stored = rng.random((N_USERS, N_ITEMS)) < 0.4
    stored[[5, 7]] = False
    gains = rng.integers(0, 4, (N_USERS, N_ITEMS)).astype(float)
    gains[::3] = 0
    rows, columns = np.nonzero(stored)
    held = csr_matrix((gains[stored], (rows, columns)), shape=stored.shape)
    train = (rng.random((N_USERS, N_ITEMS)) < 0.3) & ~stored & (positions == 0)
    train[[1, 8]] = False
    inputs = {
        "train": csr_matrix(train.astype(float)),
        "items": se.ItemData(
            groups=rng.integers(0, 3, N_ITEMS),
            vectors=rng.normal(size=(N_ITEMS, 3)),
            propensity=np.linspace(0.1, 1, N_ITEMS),
        ),
    }
    return csr_matrix(positions), held, inputs


def evaluated(*arguments: Any, **options: Any) -> se.Evaluation | str:
    """Return an evaluation, or the kind of its error."""
    try:
        ev = se.evaluate(*arguments, **options)
        ev.summary()
    except SparseEvalError as error:
        return type(error).__name__
    return ev


@pytest.mark.slow
@pytest.mark.parametrize("listed", ["some", pytest.param("nobody", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "convention",
    [
        pytest.param(name, marks=() if name in ("standard", "rectools") else pytest.mark.long)
        for name in CONVENTIONS
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_every_metric_by_each_convention_in_every_way(convention: str, listed: str) -> None:
    lists, held, inputs = problem(listed)
    held = accepted(held, convention)
    metrics = metrics_of(convention, inputs)
    options = {"convention": convention, **inputs}
    whole = evaluated(lists, held, metrics, **options)
    assert listed == "nobody" or isinstance(whole, se.Evaluation)
    with ThreadPoolExecutor(2) as pool, small_blocks():
        ways = [
            evaluated(lists, held, metrics, keep="totals", **options),
            evaluated(lists, held, metrics, memory=LEAST, **options),
            evaluated(lists, held, metrics, client=pool, **options),
        ]
    for way in ways:
        if isinstance(whole, str) or isinstance(way, str):
            assert way == whole
            continue
        same_numbers(way, whole)
        for name in whole.names:
            if whole.is_per_user(name) and way._merged.values is not None:
                np.testing.assert_array_equal(way.values(name), whole.values(name))
