"""No user has a list: every way raises the same error or gives the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from raising import raises
from ways import WAYS, small_blocks
from ways_cases import Case

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, SparseEvalError
from sparse_eval.metrics import REGISTRY
from sparse_eval.metrics.conventions import CONVENTIONS

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.slow]

OF_ALL = [
    f"{metric.name}@3"
    for metric in REGISTRY.values()
    if not (metric.per_user or metric.needs or any(option.needs for option in metric.options))
]


def make_case(n_lists: int) -> Case:
    """Return users, the last ones without a list."""
    ranked: list[dict[int, int]] = [{0: 1, 1: 2} if user < n_lists else {} for user in range(6)]
    return Case(ranked, [{0: 1.0, 2: 1.0} for _ in ranked], None, 3)


def outcome(way: Any, case: Case, metric: str, **rules: Any) -> Any:
    try:
        ev = way(case, se.Protocol(metric, **rules), {})
    except SparseEvalError as error:
        return type(error), str(error)[:40]
    return ev[metric], ev.n_users, ev.summary()["n_users"].tolist(), str(ev.replicates(metric))


@pytest.mark.parametrize(
    "without_list",
    [None, *(pytest.param(kind, marks=pytest.mark.long) for kind in ("zero", "exclude"))],
)
@pytest.mark.parametrize(
    "convention",
    [
        pytest.param(name, marks=() if name in ("standard", "rectools") else pytest.mark.long)
        for name in CONVENTIONS
    ],
)
def test_numbers_about_all_users(convention: str, without_list: Any) -> None:
    @se.register_metric("listed_share", "", over="lists", per_user=False)
    def listed_share(lists: Any) -> float:
        return float(lists.n_listed / int(lists.n_users))

    rules = {"convention": convention, "without_list": without_list}
    metrics = [*OF_ALL, "listed_share@3"]
    assert len(metrics) > 5
    for n_lists in (0, 1):
        case = make_case(n_lists)
        for metric in metrics:
            if metric.partition("@")[0] in CONVENTIONS[convention].unlike:
                continue
            found = {
                way.__name__: outcome(way, case, metric, **rules)
                for way in WAYS
                # A table has no rows for users without a list, and an empty frame has no columns.
                if n_lists or not ("parquet" in way.__name__ or "frame" in way.__name__)
            }
            expected = found["by_objects"]
            for way, one in found.items():
                assert str(one) == str(expected), (metric, n_lists, way)
            if isinstance(expected[0], type):
                assert expected[0] is InvalidDataError
                assert not n_lists


def test_nobody_has_a_list() -> None:
    case = make_case(0)
    for metric in [*OF_ALL, "ndcg@3"]:
        protocol = se.Protocol(metric, without_list="exclude")
        for options in ({}, {"keep": "totals"}):
            with raises(InvalidDataError):
                se.evaluate(case.positions, case.validation, protocol, **options)
    with small_blocks():
        whole = se.evaluate(case.positions, case.validation, "user_coverage@3")
        assert whole["user_coverage@3"] == 0.0
    assert np.isfinite(whole.summary().loc["user_coverage@3", "mean"])
