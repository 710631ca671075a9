"""Confidence intervals: against scipy called directly, and where there is none."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse, stats

import sparse_eval as se
from sparse_eval.report.page import _segments
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


def nearly_perfect(n_users, **options):
    """Evaluate lists of two items, all relevant but one, and nearly all items listed."""
    ids = np.arange(2 * n_users).reshape(-1, 2)
    gains = np.zeros((n_users, 2 * n_users + 1))
    gains[np.arange(n_users)[:, None], ids] = 1
    gains[0, 0] = 0
    lists = se.Rankings.from_topk(ids, shape=gains.shape)
    metrics = "precision@2, hit_rate@1, coverage@2, mrr@1, utility@2, recall(average=micro)@2"
    return se.evaluate(lists, sparse.csr_matrix(gains), metrics, **options)


@pytest.mark.parametrize("n_users", [150, 250])
@pytest.mark.parametrize("level", [0.95, 0.9999])
def test_intervals_stay_within_the_range_of_the_metric(n_users, level):
    ev = nearly_perfect(n_users)
    table = ev.summary(level)
    for row, name in enumerate(ev.keys()):
        low, high = ev.request.range_of(row)
        mean, ci_low, ci_high = table.loc[name, ["mean", "ci_low", "ci_high"]]
        assert low <= ci_low <= mean <= ci_high <= high, name
    assert table.loc["coverage@2", "ci_high"] == 1.0
    worst = ev.distribution("precision@2", quantiles=(), worst=[0.9], level=level)
    assert (worst["ci_high"] <= 1).all()
    labels = dict(enumerate([*"a" * 20, *"b" * (n_users - 20)]))
    rows, _ = _segments({"a": ev}, "precision@2", labels)
    assert max(row["ci_high"] for row in rows) <= 1
    for part in (nearly_perfect(n_users, keep="totals"), ev.merge()):
        found = part.summary(level)[["ci_low", "ci_high"]]
        assert found.equals(table[["ci_low", "ci_high"]])


def test_an_interval_has_the_possible_values_of_its_range():
    wide = intervals.Interval(-0.5, 1.5, "t")
    assert wide.within(0.5, (0.0, 1.0)) == (0.0, 1.0, "t")
    assert wide.within(0.5, (-math.inf, math.inf)) == wide
    assert wide.within(1.25, (0.0, 1.0)) == (0.0, 1.25, "t")  # a range that does not hold
    assert str(intervals.NO_INTERVAL.within(0.5, (0.0, 1.0))) == str(intervals.NO_INTERVAL)
    request = se.evaluate(
        se.Rankings.from_topk([[0, 1]]), sparse.csr_matrix([[1, 0]]), se.Protocol(
            "mean_rank, ndcg@1", no_relevant="zero"
        ),
    ).request  # fmt: skip
    assert [request.range_of(row) for row in (0, 1)] == [(0.0, math.inf), (0.0, 1.0)]
