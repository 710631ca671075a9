"""Confidence intervals: against scipy called directly, and where there is none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from sparse_eval.results import intervals


def test_many_values_have_the_interval_of_student():
    values = np.random.default_rng(0).beta(1, 5, intervals.FEWEST_FOR_T)
    for level in (0.8, 0.95):
        found = intervals.interval_of_mean(values, level)
        expected = stats.ttest_1samp(values, 0).confidence_interval(level)
        assert found.method == "t"
        assert found[:2] == pytest.approx(tuple(expected), rel=1e-12)


def test_few_values_have_that_of_a_bootstrap_whatever_their_order():
    values = np.random.default_rng(0).beta(1, 5, intervals.FEWEST_FOR_T - 1)
    found = intervals.interval_of_mean(values, 0.9)
    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=intervals.RESAMPLES, confidence_level=0.9,
        rng=np.random.default_rng(0),
    ).confidence_interval  # fmt: skip
    assert found.method == "bca"
    # Drawn in other blocks, so not the same draws.
    assert found[:2] == pytest.approx(tuple(expected), abs=2e-3)
    assert intervals.interval_of_mean(values[::-1], 0.9) == found


def test_numbers_out_of_range_have_none():
    values = np.array([1.7e308, -1.7e308] * 100)
    assert intervals.interval_of_mean(values, 0.95).method == "t"
    found = intervals.interval_of_mean(values[:-2], 0.95)
    assert str(found) == str(intervals.Interval(math.nan, math.nan, "none"))


@given(arrays(np.float64, st.integers(0, 40), elements=st.floats(0, 1, width=32)))
def test_an_interval_is_around_the_mean(values):
    low, high, method = intervals.interval_of_mean(values, 0.95)
    if method == "none":
        assert np.isnan([low, high]).all()
        assert len(values) < 2 or np.ptp(values) < 1e-3
    else:
        assert values.min() - 1e-12 <= low <= values.mean() + 1e-12
        assert values.mean() - 1e-12 <= high <= values.max() + 1e-12
    if len(values) > 1 and np.ptp(values) == 0:
        assert low == high == values[0]


def test_a_number_that_no_group_changes_has_an_interval_of_no_width():
    replicates = intervals.jackknife(0.5, np.full(20, 0.5), np.arange(1, 21))
    assert replicates == pytest.approx(np.full(20, 0.5), rel=1e-12)
    assert intervals.interval_of_replicates(0.5, np.full(20, 0.5), 0.95) == (0.5, 0.5, "jackknife")
    assert intervals.jackknife(0.5, np.full(3, 0.5), np.array([1, 0, 2])).shape == (0,)
    for replicates in (np.empty(0), np.array([0.5]), np.array([0.5, np.nan])):
        assert intervals.interval_of_replicates(0.5, replicates, 0.95).method == "none"
