"""Checks and sorting of sparse matrices, and conversions that neither modify nor trust them."""

import itertools
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import sparse

from sparse_eval.core import csr
from sparse_eval.core.csr import (
    canonical_csr,
    coordinates,
    integer_array,
    sort_distinct,
    sorted_csr,
    summed_csr,
)
from sparse_eval.errors import InvalidDataError
from sparse_eval.inputs.axes import Axis


def first_fault(indptr, columns, n_columns):
    """The first fault of the highest kind, row by row."""
    faults = []
    for row, (start, stop) in enumerate(itertools.pairwise(indptr.tolist())):
        if stop < start or stop > len(columns):
            faults.append((csr.BAD_BOUNDS, row, 0))
        for entry in range(start, min(stop, len(columns))):
            if not 0 <= columns[entry] < n_columns:
                faults.append((csr.OUT_OF_RANGE, row, entry))
            elif entry > start and columns[entry] <= columns[entry - 1]:
                faults.append((csr.UNSORTED, row, entry))
    return min(faults, key=lambda fault: (-fault[0], fault[1:]), default=None)


@given(st.integers(0, 2**32), st.sampled_from([np.int32, np.int64]), st.integers(1, 7))
def test_finds_the_first_fault_of_the_highest_kind(seed, dtype, block):
    rng = np.random.default_rng(seed)
    indptr = np.concatenate([[0], np.cumsum(rng.integers(0, 4, 6))])
    rows = [np.sort(rng.choice(5, n, replace=False)) for n in np.diff(indptr)]
    columns = np.concatenate(rows).astype(dtype)
    for _ in range(rng.integers(0, 3) if len(columns) else 0):
        columns[rng.integers(len(columns))] = rng.integers(-1, 6)
    if rng.random() < 0.2:
        indptr[rng.integers(1, len(indptr))] = rng.integers(-1, 20)
    with patch.object(csr, "_CHECKED_ROWS", block):
        found = csr.find_fault(csr._check_rows, 6, indptr.astype(dtype), columns, 5)
    assert found == first_fault(indptr, columns, 5)


def unsorted():
    return sparse.csr_matrix(([1, 2, 4, 8], [2, 0, 2, 1], [0, 3, 3, 4]), shape=(3, 3))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", ">i8", "f2", np.longdouble])
def test_dtypes_that_scipy_does_not_compute_with(dtype, form):
    matrix = unsorted().asformat(form)
    matrix.data = matrix.data.astype(dtype)
    result = canonical_csr(matrix, "m", sum_duplicates=True)
    assert result.toarray().tolist() == [[2, 0, 5], [0, 0, 0], [0, 8, 0]]
    assert result.dtype.isnative
    assert matrix.data.dtype == np.dtype(dtype)
    assert sorted(coordinates(matrix)[2]) == [1, 2, 4, 8]


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_duplicates_are_summed_without_modifying_the_input(form):
    matrix = unsorted() if form == "csr" else unsorted().asformat(form)
    before = matrix.copy().tocoo()
    result = canonical_csr(matrix, "m", sum_duplicates=True)
    assert result.indptr.tolist() == [0, 2, 2, 3]
    assert result.indices.tolist() == [0, 2, 1]
    assert result.data.tolist() == [2, 5, 8]
    after = matrix.tocoo()
    for part in ("row", "col", "data"):
        np.testing.assert_array_equal(getattr(after, part), getattr(before, part))


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_refuses_duplicates_that_have_no_sum(form):
    with raises(InvalidDataError, user=0):
        canonical_csr(unsorted().asformat(form), "m", sum_duplicates=False)


def test_a_sum_of_narrow_values_does_not_overflow():
    for dtype in (np.int8, bool):
        matrix = sparse.coo_matrix((np.ones(300, dtype), ([0] * 300, [0] * 300)))
        assert canonical_csr(matrix, "m", sum_duplicates=True).data.tolist() == [300.0]


def test_entries_beyond_indptr_are_dropped():
    matrix = sparse.csr_matrix([[1.0, 2.0]])
    matrix.data, matrix.indices = np.array([1.0, 2.0, 3.0]), np.array([0, 1, 9], np.int32)
    result = canonical_csr(matrix, "m", sum_duplicates=True)
    assert (result.data.tolist(), result.indices.tolist()) == ([1, 2], [0, 1])
    assert len(matrix.data) == 3


def test_names_a_damaged_matrix_of_any_format():
    dok, lil = sparse.dok_matrix(np.eye(2)), sparse.lil_matrix(np.eye(2))
    dok._dict[9, 9], lil.rows[0] = 1.0, [9]
    masked = sparse.coo_matrix(np.eye(2))
    masked.data = np.ma.array([1.0, 1.0], mask=[True, False])
    for damaged in (dok, lil, masked):
        with raises(InvalidDataError):
            coordinates(damaged)


def test_the_first_repeated_pair_is_named():
    coo = sparse.coo_matrix(([1] * 6, ([2, 1, 1, 2, 0, 1], [0, 2, 0, 0, 1, 2])), shape=(3, 3))
    with raises(InvalidDataError, user="b"):
        sort_distinct(coo.row, coo.col, Axis.of(list("abc")), Axis.of(list("xyz")))
    assert sort_distinct(np.array([1, 0]), np.array([0, 2]))[1].tolist() == [2, 0]


def test_coordinates_keep_zeros_and_duplicates():
    matrix = sparse.coo_matrix(([0, 1, 1], ([1, 0, 0], [0, 1, 1])), shape=(2, 3))
    rows, columns, values, shape = coordinates(matrix)
    assert [*zip(rows, columns, values, strict=True)] == [(1, 0, 0), (0, 1, 1), (0, 1, 1)]
    assert shape == (2, 3)
    with raises(InvalidDataError, row=0, column=1):
        coordinates(sparse.csr_matrix([[0, -1.0]]))


def assert_same_arrays(found, expected):
    for part in ("data", "indices", "indptr"):
        one, other = getattr(found, part), getattr(expected, part)
        np.testing.assert_array_equal(one, other, strict=True)


def test_sums_do_not_depend_on_the_order_of_the_rows():
    rng = np.random.default_rng(0)
    rows, columns = rng.integers(3, size=(2, 200))
    values = rng.random(200) * 10.0 ** rng.integers(-9, 9, 200)
    first = summed_csr(rows, columns, values, (4, 3))
    order = rng.permutation(200)
    assert_same_arrays(summed_csr(rows[order], columns[order], values[order], (4, 3)), first)
    assert first.indptr.tolist() == [0, 3, 6, 9, 9]
    with raises(InvalidDataError, row=1, column=0):
        summed_csr(np.array([1, 1]), np.array([0, 0]), np.full(2, 1e308), (2, 1))


@given(
    entries=st.lists(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([0.0, 0.1, 0.7, 3.0]))
    ),
    data=st.data(),
)
def test_chosen_entries_are_summed_as_if_there_were_no_others(entries, data):
    chosen = data.draw(st.lists(st.booleans(), min_size=len(entries), max_size=len(entries)))
    entries.sort()
    rows, columns = (np.array([entry[n] for entry in entries], np.int32) for n in (0, 1))
    values, mask = np.array([entry[2] for entry in entries]), np.array(chosen, bool)
    bounds = np.searchsorted(rows, np.arange(5))
    pairs = rows.astype(np.int64) * 3 + columns
    starts = np.flatnonzero(np.diff(pairs, prepend=-1))
    found = sorted_csr(bounds, columns, values, (4, 3), starts, mask)
    expected = summed_csr(rows[mask], columns[mask], values[mask], (4, 3))
    assert_same_arrays(found, expected)


def test_integers_get_one_of_two_dtypes():
    assert integer_array(np.array([[1]], np.int32), "ids", 2).dtype == np.int32
    for values in ([[1, 2]], np.array([[1]], np.int8), np.array([[1]], np.uint64)):
        assert integer_array(values, "ids", 2).dtype == np.int64
    for bad in ([1], [[1.0]], [[1], [1, 2]]):
        with raises(InvalidDataError, argument="ids"):
            integer_array(bad, "ids", 2)


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
    np.testing.assert_array_equal(found, columns[order], strict=True)
    ordered = sorted(pairs)
    assert starts.tolist() == [ordered.index(pair) for pair in sorted(set(pairs))]


@given(rows=st.lists(st.lists(KEYS, max_size=9), max_size=9))
def test_positions_are_those_of_a_stable_sort(rows):
    bounds = np.cumsum([0, *map(len, rows)])
    keys = np.array([key for row in rows for key in row], np.int64)
    for values in (keys, keys.view(np.uint64)):
        parts = np.split(values, bounds[1:-1])
        ranks = [np.argsort(np.argsort(part, kind="stable")) for part in parts]
        assert csr.order_within(bounds, values).tolist() == np.concatenate(ranks).tolist()
