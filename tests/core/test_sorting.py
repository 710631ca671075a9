"""Sorting by packed integers, beside sorting by tuples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparse_eval.core import sorting

PAIRS = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 5)), min_size=1, max_size=40)
KEYS = st.one_of(
    st.integers(0, 3), st.integers(-(2**63), 2**63 - 1), st.integers(0, 7).map(lambda n: n * 10**9)
)


@pytest.mark.parametrize("bits", [63, 8, 4])  # few, so that rows are sorted in halves
@given(pairs=PAIRS, wide=st.booleans())
def test_pairs_are_sorted_as_tuples_are(bits, pairs, wide):
    scale = 10**6 if wide else 1
    rows, columns = np.array(pairs, np.int32).T * np.int32(scale)
    with pytest.MonkeyPatch.context() as patch:
        if not wide:
            patch.setattr(sorting, "_BITS", bits)
        order, found, starts = sorting.sort_pairs(rows, columns, 5 * scale + 1)
    expected = sorted(range(len(pairs)), key=pairs.__getitem__)
    assert order.tolist() == expected
    assert found.tolist() == columns[order].tolist()
    assert found.dtype == np.int32
    distinct = sorted(set(pairs))
    ordered = [pairs[entry] for entry in expected]
    assert starts.tolist() == [ordered.index(pair) for pair in distinct]


@pytest.mark.parametrize("block", [2**18, 2, 1])
@given(rows=st.lists(st.lists(KEYS, max_size=9), max_size=9))
def test_positions_are_those_of_a_stable_sort(block, rows):
    bounds = np.cumsum([0, *map(len, rows)])
    keys = np.array([key for row in rows for key in row], np.int64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sorting, "_BLOCK", block)
        found = sorting.order_within(bounds, keys)
        hashes = sorting.order_within(bounds, keys.view(np.uint64))
    expected = []
    of_hashes = []
    for row in rows:
        for positions, values in ((expected, row), (of_hashes, [key % 2**64 for key in row])):
            order = sorted(range(len(row)), key=values.__getitem__)
            positions += [order.index(entry) for entry in range(len(row))]
    assert found.tolist() == expected
    assert hashes.tolist() == of_hashes


@given(st.lists(st.lists(st.floats(allow_nan=False), min_size=1, max_size=5), min_size=1))
def test_values_of_a_pair_move_to_where_they_ascend(pairs):
    starts = np.cumsum([0, *map(len, pairs[:-1])])
    values = np.array([value for pair in pairs for value in pair])
    entries, places = sorting.move_by_value(starts, values)
    values[places] = values[entries]
    assert values.tolist() == [value for pair in pairs for value in sorted(pair)]
