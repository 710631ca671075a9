"""Intent-aware metrics: against their definitions and ndeval's numbers, in every way."""

import math

import intents_oracle as plain
import numpy as np
import pytest
from cases import to_csr
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

import sparse_eval as se

N_ITEMS = 8
ALPHAS = ["0.5", "0.25", "0.9"]
CUTOFFS = [1, 3, 10]


@st.composite
def cases(draw):
    items = st.integers(0, N_ITEMS - 1)
    n_users = draw(st.integers(1, 4))
    lists = [draw(st.lists(items, unique=True)) for _ in range(n_users)]
    relevant = [draw(st.dictionaries(items, st.sampled_from([0.0, 1.0, 2.0]))) for _ in lists]
    relevant[-1] = {draw(items): 1.0}
    groups = [draw(st.sets(st.integers(0, 3), min_size=1)) for _ in range(N_ITEMS)]
    return lists, relevant, groups


def evaluate(case, metrics, **options):
    lists, gains, groups = case
    n_items = len(groups)
    ids = np.full((len(lists), n_items), -1)
    for user, items in enumerate(lists):
        ids[user, : len(items)] = items
    weights = np.array([[float(g in mine) for g in range(4)] for mine in groups])
    return se.evaluate(
        se.Rankings.from_topk(ids, shape=ids.shape),
        to_csr(gains, np.float64, n_items),
        metrics,
        items=se.ItemData(groups=weights),
        **options,
    )


@settings(max_examples=60)
@given(cases())
def test_every_metric_equals_its_definition(case):
    rows = [(name, a, k) for name in ("alpha_ndcg", "err_ia") for a in ALPHAS for k in CUTOFFS]
    names = [f"{name}(alpha={alpha})@{k}" for name, alpha, k in rows]
    ev = evaluate(case, [*names, "map_ia", "map_ia@3"])
    for user, (items, gains) in enumerate(zip(*case[:2], strict=True)):
        relevant = {item for item, gain in gains.items() if gain > 0}
        if not relevant:
            assert math.isnan(ev.values("map_ia")[user])
            continue
        for spelling, (name, alpha, k) in zip(names, rows, strict=True):
            expected = getattr(plain, name)(items, relevant, case[2], float(alpha), k)
            found = ev.values(spelling)[user]
            assert found == pytest.approx(expected, rel=1e-12, abs=1e-15), spelling
        for spelling, shown in (("map_ia", items), ("map_ia@3", items[:3])):
            expected = plain.map_ia(shown, relevant, case[2])
            assert ev.values(spelling)[user] == pytest.approx(expected, rel=1e-12, abs=1e-15)


def test_a_cutoff_of_any_size_takes_no_memory():
    case = ([[0, 1]], [{0: 1.0, 3: 1.0}], [{0}, {0}, {1}, {1}])
    names = [f"{name}@{k}" for name in ("err_ia", "alpha_ndcg") for k in (5000, 10**15)]
    ev = evaluate(case, names)
    for some, many in (names[:2], names[2:]):
        assert ev[many] == pytest.approx(ev[some], rel=1e-15)


@settings(max_examples=10)
@given(cases(), st.integers(1, 6), st.sets(st.integers(0, 4), max_size=3))
def test_the_expected_map_ia_is_the_mean_over_all_orders(case, k, seen):
    n_items = 5
    relevant = {item for item, gain in case[1][-1].items() if gain > 0 and item < n_items}
    relevant |= {0}
    seen -= {0}
    groups = case[2][:n_items]
    small = ([[0]], [dict.fromkeys(relevant, 1.0)], groups)
    train = csr_matrix([[int(item in seen) for item in range(n_items)]])
    ev = evaluate(small, [f"map_ia@{k}"], train=train)
    candidates = [item for item in range(n_items) if item not in seen]
    expected = plain.expected_map_ia(candidates, relevant, groups, k)
    assert ev.random(f"map_ia@{k}").mean == pytest.approx(expected, rel=1e-12)
