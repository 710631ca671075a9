"""Sorting arrays, beside sorting tuples."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sparse_eval.core import csr
from sparse_eval.core.csr import sorted_entries

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5)), min_size=1, max_size=40)
KEYS = st.one_of(
    st.integers(0, 3), st.integers(-(2**63), 2**63 - 1), st.integers(0, 7).map(lambda n: n * 10**9)
)


@given(pairs=PAIRS, scale=st.sampled_from([1, 10**6]))  # large codes are not counted
def test_pairs_are_sorted_as_tuples_are(pairs, scale):
    rows, columns = np.array(pairs, np.int32).T * np.int32(scale)
    order, found, starts = csr.sort_pairs(rows, columns)
    expected = sorted(range(len(pairs)), key=pairs.__getitem__)
    assert order.tolist() == expected
    assert found.tolist() == columns[order].tolist()
    assert found.dtype == np.int32
    distinct = sorted(set(pairs))
    ordered = [pairs[entry] for entry in expected]
    assert starts.tolist() == [ordered.index(pair) for pair in distinct]


@given(rows=st.lists(st.lists(KEYS, max_size=9), max_size=9))
def test_positions_are_those_of_a_stable_sort(rows):
    bounds = np.cumsum([0, *map(len, rows)])
    keys = np.array([key for row in rows for key in row], np.int64)
    found = csr.order_within(bounds, keys)
    hashes = csr.order_within(bounds, keys.view(np.uint64))
    expected = []
    of_hashes = []
    for row in rows:
        for positions, values in ((expected, row), (of_hashes, [key % 2**64 for key in row])):
            order = sorted(range(len(row)), key=values.__getitem__)
            positions += [order.index(entry) for entry in range(len(row))]
    assert found.tolist() == expected
    assert hashes.tolist() == of_hashes


@given(st.lists(st.lists(st.floats(0, 9), min_size=1, max_size=5), min_size=1))
def test_values_of_a_pair_ascend(pairs):
    rows = np.repeat(np.arange(len(pairs)), [*map(len, pairs)])
    values = np.array([value for pair in pairs for value in pair])
    shape = (len(pairs), 1)
    _, _, found, _, order = sorted_entries(rows, np.zeros_like(rows), values, shape)
    assert found.tolist() == [value for pair in pairs for value in sorted(pair)]
    assert found.tolist() == values[order].tolist()
