"""Arrays of NumPy from tensors, lists and arrays of other libraries."""

import array

import numpy as np
import pandas as pd
import pytest
from raising import raises
from scipy import sparse
from tensors import CUDA, Tensor

from sparse_eval.core.arrays import as_array, column_names
from sparse_eval.errors import InvalidDataError

VALUES = np.array([[1.5, 2.0], [0.0, -3.0]], np.float32)


def read(values):
    return as_array(values, "scores", "an array of numbers")


@pytest.mark.parametrize(
    "make",
    [
        lambda values: values,
        np.asfortranarray,
        Tensor,
        lambda values: Tensor(values, dlpack=False),
        lambda values: Tensor(values[:, ::-1])[:, ::-1],
    ],
)
def test_shares_the_memory_of_arrays_and_tensors(make):
    given = make(VALUES)
    found = read(given)
    np.testing.assert_array_equal(found, VALUES, strict=True)
    assert np.shares_memory(found, given.values if isinstance(given, Tensor) else given)


def test_reads_lists_and_other_arrays():
    for values in (VALUES.tolist(), [Tensor(row) for row in VALUES]):
        assert (read(values) == VALUES).all()
    for values in (range(3), array.array("i", range(3)), pd.Series(range(3)), pd.RangeIndex(3)):
        assert read(values).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    "values",
    [
        Tensor(VALUES, requires_grad=True),
        [Tensor(row, requires_grad=True) for row in VALUES],
        Tensor(VALUES, device=CUDA),
        np.ma.masked_equal(VALUES, 2),
        sparse.csr_matrix(VALUES),
        pd.DataFrame(VALUES, columns=["a", "b"]),
        [[1, 2], [3, 4], [5]],
    ],
)
def test_refuses_what_is_no_array(values):
    with raises(InvalidDataError, argument="scores"):
        read(values)


class AnyColumn:
    """A frame that takes every unknown attribute for a column, as Spark Connect does."""

    columns = ("user", "item")

    def __getattr__(self, name):
        return name


def test_names_the_columns_of_a_frame_that_has_any_attribute():
    assert column_names(AnyColumn()) == ["user", "item"]
