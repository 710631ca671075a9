"""Quantiles, the worst users and those who lose: against SciPy, plain loops and simulations."""

import math

import numpy as np
import pandas as pd
import pytest
import reporting
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.results.distribution import describe_distribution

SHARES = (0.1, 0.25, 0.5, 0.75, 0.9)


@pytest.fixture(scope="module")
def models():
    return reporting.three()


def worst_mean(values, share):
    """Return the mean of the lowest share of the values, of the last of which a part may count."""
    left, total = share * len(values), 0.0
    for value in sorted(values):
        total += min(left, 1.0) * value
        left = max(left - 1, 0.0)
    return total / (share * len(values))


def test_quantiles_are_those_of_pandas_within_exact_intervals():
    values = np.random.default_rng(0).beta(1, 3, 400)
    table = describe_distribution(values, True, SHARES, (), 0.9).loc["quantile"]
    assert table["value"].to_numpy() == pytest.approx(pd.Series(values).quantile(SHARES))
    ordered = np.sort(values)
    for share, row in table.iterrows():
        exact = stats.quantile_test(values, p=float(str(share))).confidence_interval(0.9)
        places = np.searchsorted(ordered, [exact.low, exact.high])
        assert ordered[places[0]] <= row["ci_low"] <= ordered[places[0] + 1]
        assert ordered[places[1] - 1] <= row["ci_high"] <= ordered[places[1]]
        # Hutson 1999: the fractional rank r of an end solves I_q(r, n + 1 - r) = tail.
        for end, tail in ((row["ci_low"], 0.95), (row["ci_high"], 0.05)):
            below = int(np.searchsorted(ordered, end, side="right"))
            rank = below + (end - ordered[below - 1]) / (ordered[below] - ordered[below - 1])
            assert stats.beta.cdf(share, rank, 401 - rank) == pytest.approx(tail, abs=1e-9)


@pytest.mark.parametrize("share", [0.1, 0.25, 0.333])
def test_worst_is_the_mean_of_the_tail(share):
    values = np.random.default_rng(1).beta(2, 3, 130)
    low = describe_distribution(values, True, (), [share], 0.95).loc[("worst", share)]
    high = describe_distribution(values, False, (), [share], 0.95).loc[("worst", share)]
    assert low["value"] == pytest.approx(worst_mean(list(values), share), rel=1e-12)
    assert high["value"] == pytest.approx(-worst_mean(list(-values), share), rel=1e-12)
    for row in (low, high):
        assert row["ci_low"] < row["value"] < row["ci_high"]
    n_worst = share * len(values)
    variances = []
    for steps in range(-2, 3):
        rank = math.ceil(n_worst + steps * math.sqrt(n_worst * (1 - share)))
        below = np.maximum(np.sort(values)[rank - 1] - values, 0) / share
        variances.append(below.var(ddof=1) / len(values) * n_worst / (n_worst - 1))
    error = math.sqrt(np.dot(stats.binom.pmf(range(5), 4, 0.5), variances))
    ends = stats.t.interval(0.95, n_worst - 1, low["value"], error)
    assert low[["ci_low", "ci_high"]].to_numpy() == pytest.approx(ends)


def test_few_and_equal_values():
    table = describe_distribution(np.array([0.3, np.nan, 0.1]), True, [0.1, 0.5], [0.1], 0.95)
    assert table["ci_low"].isna().all()
    assert table["ci_high"].notna().tolist() == [True, False, False]
    assert table["value"].to_numpy() == pytest.approx([0.12, 0.2, 0.1])
    equal = describe_distribution(np.full(100, 0.5), True, [0.5], [0.1], 0.95)
    assert (equal == 0.5).all(axis=None)
    with raises(InvalidDataError):
        describe_distribution(np.array([np.nan]), True, [0.5], [], 0.95)


def test_distribution_of_an_evaluation(models):
    good, poor = models["good"], models["poor"]
    values = good.values("ndcg@10")
    for found, described in (
        (good.distribution("ndcg@10"), values),
        (good.distribution("ndcg@10"), values[::-1]),
        (good.distribution("ndcg@10", minus=poor), values - poor.values("ndcg@10")),
    ):
        expected = describe_distribution(described, True, SHARES, (0.1, 0.25), 0.95)
        pd.testing.assert_frame_equal(found, expected)
    with raises(InvalidMetricError, metric="coverage@10"):
        good.distribution("coverage@10")
    for wrong in ({"quantiles": [1.0]}, {"worst": [10]}, {"level": 95}):
        with raises(InvalidDataError):
            good.distribution("ndcg@10", **wrong)
    for wrong in ((1.0, "ndcg@10"), (good, "ndcg@10", -0.1)):
        with raises(InvalidDataError):
            good.losers(*wrong)


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_losers(models, margin):
    good, poor = models["good"], models["poor"]
    losses = (good.values("ndcg@10") - poor.values("ndcg@10"))[poor._values.counted]
    (row,) = poor.losers(good, "ndcg@10", margin).to_dict("records")
    n, count = len(losses), int((losses > margin).sum())
    ends = stats.binomtest(count, n).proportion_ci(0.95, "wilson")
    expected = {"n_users": n, "losers": count, "share": count / n}
    assert row == expected | {"ci_low": ends.low, "ci_high": ends.high}


def test_losers_by_segment_and_activity(models):
    good, poor = models["good"], models["poor"]
    plans = pd.Series(["free", "paid", None] * 80, name="plan")
    table = poor.losers(good, "ndcg@10", by=plans).rename(columns={"losers": "losses"})
    compared = se.compare({"a": poor, "b": good}, "ndcg@10", by=plans).table
    columns = ["by", "segment", "losses", "n_users"]
    pd.testing.assert_frame_equal(table[columns], compared[columns], check_dtype=False)
    bands = poor.losers(good, "ndcg@10", by="activity").set_index("segment")
    expected = good.by("activity").xs("ndcg@10", level="metric")["n_users"]
    assert bands["n_users"].to_dict() == expected.to_dict()
    without = se.evaluate(poor.rankings, poor._block.aligned.relevance, "ndcg@10")
    with raises(InvalidMetricError):
        without.losers(without, "ndcg@10", by="activity")


def test_lower_is_better_and_a_loss_of_the_margin_is_no_loss():
    truth = csr_matrix(np.tile(np.arange(20) < 10, (3, 1)).astype(float))

    def of_hits(*counts):
        """Evaluate lists of ten items with so many hits at first."""
        lists = [[*range(count), *range(10, 20 - count)] for count in counts]
        return se.evaluate(se.Rankings.from_topk(lists, shape=(3, 20)), truth, names)

    names = ["recall@10", "mean_rank"]
    old, new = of_hits(8, 3, 9), of_hits(7, 2, 7)
    assert new.losers(old, "recall@10", 0.1)["losers"].tolist() == [1]
    old, new = of_hits(10, 10, 10), of_hits(10, 5, 10)
    assert new.losers(old, "mean_rank")["losers"].tolist() == [1]
    worst = new.distribution("mean_rank", worst=[0.34]).loc[("worst", 0.34), "value"]
    assert worst == pytest.approx(new.values("mean_rank").max(), rel=0.02)
