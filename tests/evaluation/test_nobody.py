"""No user has a list: every way raises the same error or gives the same numbers."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from ways import (
    by_executor,
    by_memory,
    by_objects,
    small_blocks,
    without_users,
    without_users_in_blocks,
)
from ways_cases import Case

import sparse_eval as se
from sparse_eval.errors import SparseEvalError
from sparse_eval.metrics import REGISTRY

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

OF_ALL = [
    f"{metric.name}@3"
    for metric in REGISTRY.values()
    if not (metric.per_user or metric.needs or any(option.needs for option in metric.options))
]


def make_case(n_lists: int) -> Case:
    """Return users, the last ones without a list."""
    ranked: list[dict[int, int]] = [{0: 1, 1: 2} if user < n_lists else {} for user in range(6)]
    return Case(ranked, [{0: 1.0, 2: 1.0} for _ in ranked], None, 3)


def outcome(way: Any, case: Case, protocol: se.Protocol) -> str:
    try:
        ev = way(case, protocol, {})
    except SparseEvalError as error:
        return type(error).__name__
    return f"{ev.mean()}, {ev.n_users}, {ev.summary()['n_users'].tolist()}"


@pytest.mark.parametrize("without_list", ["zero", "exclude"])
def test_numbers_about_all_users(without_list: Any) -> None:
    @se.register_metric("listed_share", "", over="lists", per_user=False)
    def listed_share(lists: Any) -> float:
        return float(lists.n_listed / int(lists.n_users))

    for n_lists, metric in product((0, 1), [*OF_ALL, "listed_share@3", "ndcg@3"]):
        protocol = se.Protocol(metric, without_list=without_list)
        expected = outcome(by_objects, make_case(n_lists), protocol)
        assert expected == "InvalidDataError" or "Error" not in expected
        assert n_lists or without_list == "zero" or expected == "InvalidDataError"
        with small_blocks():
            for way in (by_memory, without_users, without_users_in_blocks, by_executor):
                assert outcome(way, make_case(n_lists), protocol) == expected, (metric, n_lists)
