"""Exact sums: their values, in any order and however the values are split."""

import math
import statistics
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sparse_eval.core import exact_sums
from sparse_eval.core.exact_sums import Moments

LARGEST, SMALLEST = sys.float_info.max, 5e-324

finite = st.floats(allow_nan=False, allow_infinity=False)
extreme = st.sampled_from(
    [0.0, -0.0, SMALLEST, -SMALLEST, 2.0**-1022, 2.0**-1022 - SMALLEST, LARGEST, -LARGEST, 1.0, 0.1]
)
small = st.floats(-1, 1)
numbers = st.lists(st.one_of(finite, extreme, small), max_size=30)


def array(values):
    return np.array(values, np.float64)


def rounded(number):
    """Round a fraction to the nearest float; Python rounds a quotient of integers once."""
    try:
        return number.numerator / number.denominator
    except OverflowError:
        return math.inf if number > 0 else -math.inf


@given(numbers)
def test_sums_equal_those_of_fractions(values):
    moments = Moments.of(array(values))
    exact = sum(map(Fraction, values))
    assert moments.n == len(values)
    assert Fraction(moments.total, 2**1074) == exact
    assert Fraction(moments.squares, 2**2148) == sum(Fraction(x) ** 2 for x in values)
    assert moments.non_finite == 0
    assert moments.sum == rounded(exact)
    if not values:
        assert math.isnan(moments.mean)
    elif math.isfinite(moments.sum):
        assert moments.mean == moments.sum / len(values)
    else:
        assert moments.mean == rounded(exact / len(values))


@given(numbers)
def test_the_standard_deviation_is_rounded_once(values):
    std = Moments.of(array(values)).std
    if len(values) < 2:
        assert math.isnan(std)
    else:
        try:
            assert std == statistics.stdev(values)  # exact, and rounded once
        except OverflowError:
            assert std == math.inf


@given(numbers, st.randoms(use_true_random=False), st.integers(0, 30))
def test_sums_depend_on_neither_order_nor_splits(values, rng, at):
    whole = Moments.of(array(values))
    rng.shuffle(values)
    parts = Moments.of(array(values[:at])), Moments.of(array(values[at:]))
    assert parts[0] + parts[1] == parts[1] + parts[0] == whole
    assert Moments() + whole == whole


def test_digits_are_carried_between_chunks(monkeypatch):
    values = np.random.default_rng(0).normal(size=1000) * 10.0 ** np.arange(-300, 300, 0.6)
    expected = Moments.of(values)
    monkeypatch.setattr(exact_sums, "_AT_ONCE", 7)
    assert Moments.of(values) == expected
    assert expected.sum == math.fsum(values)


def test_digits_hold_the_largest_of_many():
    n = 1 << 20
    moments = Moments.of(np.full(n, -LARGEST))
    assert Fraction(moments.total, 2**1074) == -n * Fraction(LARGEST)
    assert Fraction(moments.squares, 2**2148) == n * Fraction(LARGEST) ** 2
    assert moments.sum == -math.inf
    assert moments.mean == -LARGEST
    assert moments.std == 0


@pytest.mark.parametrize(
    ("non_finite", "expected"),
    [
        ([math.inf], math.inf),
        ([-math.inf, -math.inf], -math.inf),
        ([math.inf, -math.inf], math.nan),
        ([math.nan], math.nan),
        ([math.inf, math.nan], math.nan),
    ],
)
def test_keeps_non_finite_values_apart(non_finite, expected):
    values = [1.0, *non_finite, -LARGEST]
    whole = Moments.of(array(values))
    added = Moments.of(array(values[:2])) + Moments.of(array(values[2:]))
    for moments in (whole, added):
        assert moments.n == len(values)
        assert math.isnan(moments.std)
        np.testing.assert_array_equal([moments.sum, moments.mean], [expected, expected])
        assert moments.equals(whole)
    assert not whole.equals(Moments.of(array([1.0, *non_finite[1:]])))
    assert whole.total == Moments.of(array([1.0, -LARGEST])).total
