"""Intent-aware metrics, and what is expected of random lists, against their definitions."""

import math
from itertools import permutations
from statistics import fmean

import intents_oracle as plain
import numpy as np
import pytest
from evaluations import random_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from list_cases import N_ITEMS, Case, list_cases

import sparse_eval as se

groups_of_items = st.lists(
    st.sets(st.integers(0, 3), min_size=1), min_size=N_ITEMS, max_size=N_ITEMS
)


def evaluate(case, metrics, groups):
    weights = np.array([[float(g in mine) for g in range(4)] for mine in groups])
    return case.evaluate(metrics, item_data=se.ItemData(groups=weights))


@settings(max_examples=60)
@given(list_cases(), groups_of_items)
@example(  # the ideal list begins with the last of equal items
    Case([[0, 1, 2]], [{0: 1.0, 1: 1.0, 2: 1.0}], [set()]), [{0, 1}, {2, 3}, {1, 2}, *[{0}] * 6]
)
def test_every_metric_equals_its_definition(case, groups):
    rows = [
        (f"{name}(alpha={alpha})@{k}", getattr(plain, name), alpha, k)
        for name in ("alpha_ndcg", "err_ia")
        for alpha in (0.5, 0.25, 0.9)
        for k in (1, 3, 10)
    ]
    ev = evaluate(case, [*(row[0] for row in rows), "map_ia", "map_ia@3"], groups)
    for user, (items, gains) in enumerate(zip(case.lists, case.relevant, strict=True)):
        relevant = {item for item, gain in gains.items() if gain > 0}
        if not relevant:
            assert math.isnan(ev.values("map_ia")[user])
            continue
        expected = {
            **{name: define(items, relevant, groups, alpha, k) for name, define, alpha, k in rows},
            "map_ia": plain.map_ia(items, relevant, groups),
            "map_ia@3": plain.map_ia(items[:3], relevant, groups),
        }
        for name, value in expected.items():
            assert ev.values(name)[user] == pytest.approx(value, rel=1e-12, abs=1e-15), name


def test_a_cutoff_of_any_size_takes_no_memory():
    case = Case([[0, 1]], [{0: 1.0, 3: 1.0}], [set()])
    for name in ("err_ia", "alpha_ndcg"):
        ev = evaluate(case, [f"{name}@5000", f"{name}@{10**15}"], [{0}, {0}, *[{1}] * 7])
        assert ev[f"{name}@{10**15}"] == pytest.approx(ev[f"{name}@5000"], rel=1e-15)


few_items = st.sets(st.integers(1, 4))


@settings(max_examples=10)
@given(groups_of_items, few_items, few_items, st.integers(1, 6))
def test_the_expected_map_ia_is_the_mean_over_all_orders(groups, relevant, seen, k):
    relevant |= {0}
    case = Case([[0]], [dict.fromkeys(relevant, 1.0)], [seen | set(range(5, N_ITEMS))])
    orders = permutations({0, 1, 2, 3, 4} - seen)
    expected = fmean(plain.map_ia(order[:k], relevant, groups) for order in orders)
    random = random_of(evaluate(case, f"map_ia@{k}", groups), f"map_ia@{k}")
    assert random.mean == pytest.approx(expected, rel=1e-12)
