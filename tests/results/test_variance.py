"""The variances of pooled values against plain definitions, and against what was drawn."""

import math

import numpy as np
import pytest
from cross_cases import corrected_variance, pool
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sparse_eval.results.runs import Cells, error_of_numbers

#: Deviations of users, folds, seeds, users × folds, and the rest.
EFFECTS = (0.8, 0.3, 0.2, 0.5, 0.6)


def draw(n_users, n_folds, n_seeds, seed):
    """Draw values that are sums of random effects: users, folds, seeds, users × folds, rest."""
    rng = np.random.default_rng(seed)
    shapes = [(n_users, 1, 1), (1, n_folds, 1), (1, n_folds, n_seeds), (n_users, n_folds, 1)]
    shapes.append((n_users, n_folds, n_seeds))
    parts = (rng.normal(size=shape) * of for shape, of in zip(shapes, EFFECTS, strict=True))
    return sum(parts)


@given(st.integers(2, 9), st.integers(1, 5), st.integers(1, 4), st.integers(0, 99), st.floats(0, 2))
def test_error_is_that_of_the_plain_definition(n_users, n_folds, n_seeds, seed, ratio):
    values = draw(n_users, n_folds, n_seeds, seed)
    cells = Cells(values)
    mean, error = cells.mean, cells.error(ratio)
    expected, freedom = corrected_variance(values, ratio)
    assert mean == pytest.approx(np.mean(list(pool(values).values())))
    assert error == pytest.approx((expected, freedom))
    half = stats.t.ppf(0.95, freedom) * math.sqrt(expected)
    assert error.interval(mean, 0.9)[:2] == pytest.approx((mean - half, mean + half))
    t = mean / math.sqrt(expected)
    assert error.p_value(mean) == pytest.approx(2 * stats.t.sf(abs(t), freedom))


def test_folds_of_few_users_have_nadeau_and_bengio_s_variance():
    # Nothing but folds: (1 / K + n_test / n_train) times their variance.
    values = np.broadcast_to(np.array([0.1, 0.4, 0.2, 0.5, 0.3])[None, :, None], (30, 5, 2))
    error = Cells(values).error(0.25)
    assert error.variance == pytest.approx((1 / 5 + 1 / 4) * np.var(values[0, :, 0], ddof=1))
    assert error.freedom == pytest.approx(4)


@given(st.integers(0, 99))
def test_users_in_some_folds_only(seed):
    rng = np.random.default_rng(seed)
    values = draw(12, 4, 2, seed)
    values[rng.random((12, 4)) < 0.4] = np.nan
    values[0] = np.nan
    cells, expected = Cells(values), pool(values)
    assert np.flatnonzero(cells.rows).tolist() == list(expected)
    np.testing.assert_allclose(cells.users, list(expected.values()))
    spread = cells.spread()
    assert np.isnan(spread[0])
    np.testing.assert_allclose(spread[cells.rows], cells.users)
    assert cells.error(0.25).variance >= np.var(cells.users, ddof=1) / len(expected) - 1e-15


def test_error_is_the_variance_of_the_mean_where_users_are_in_some_folds():
    # The mean over many draws; half of the users are in the first of four folds alone.
    has = np.arange(60)[:, None] % 3 + 1 == np.arange(4)
    has[:30] = np.arange(4) == 0
    errors = []
    for seed in range(600):
        values = draw(60, 4, 2, seed)
        values[~has] = np.nan
        errors.append(Cells(values).error(0.0).variance)
    shares = has / has.sum(axis=1, keepdims=True) / 60  # of each value in the mean
    users, folds, seeds, user_folds, residual = np.square(EFFECTS)
    expected = users / 60 + np.square(shares.sum(axis=0)).sum() * (folds + seeds / 2)
    expected += np.square(shares).sum() * (user_folds + residual / 2)
    assert np.mean(errors) == pytest.approx(expected, rel=0.15)


def test_equal_values_have_no_variance_and_one_user_no_interval():
    cells = Cells(np.full((20, 3, 2), 0.1))
    assert cells.error(0.5).p_value(0.0) == 1.0
    assert cells.error(0.5).interval(0.1, 0.95) == (0.1, 0.1, "pooled")
    assert math.isnan(Cells(draw(1, 4, 2, 0)).error(0.2).variance)
    assert math.isnan(Cells(np.full((3, 2, 2), np.nan)).mean)


def test_numbers_about_all_users():
    rng = np.random.default_rng(0)
    numbers, replicates = rng.random((5, 3)), rng.random(20)
    error = error_of_numbers(numbers, replicates, 0.25)
    users = np.var(replicates, ddof=1)
    folds = (1 / 5 + 0.25) * np.var(numbers.mean(axis=1), ddof=1)
    assert error.variance == pytest.approx(users + folds)
    assert error.freedom == pytest.approx((users + folds) ** 2 / (users**2 / 19 + folds**2 / 4))
    assert math.isnan(error_of_numbers(numbers, np.empty(0), 0.25).variance)
    one_fold = error_of_numbers(numbers[:1], replicates, 0.25)
    assert one_fold.variance == pytest.approx(users + np.var(numbers[0], ddof=1) / 3)
