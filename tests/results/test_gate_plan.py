"""The chances of a plan: against simulated gates, and SciPy's noncentral t distribution."""

import numpy as np
import pytest
from gate_cases import EVS, A, B, N, not_worse, result, rules
from scipy import stats

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.results.gate_plan import plan_gate

NAMED = dict(zip("abc", EVS, strict=True))


@pytest.mark.parametrize("alpha", [0.05, 0.025])
def test_chances_are_those_of_the_noncentral_t_distribution(alpha):
    given = rules(not_worse("10%"), alpha=alpha)
    (row,) = plan_gate(given, NAMED).to_dict("records")
    mean, values = B.mean(), A - 0.9 * B
    error = values.std(ddof=1) / np.sqrt(N)
    least = stats.t.isf(alpha, N - 1)
    for loss, name in ((0, "equal"), (0.01, "worse_by_1%"), (0.1, "worse_by_10%")):
        expected = stats.nct.sf(least, N - 1, (0.1 - loss) * mean / error)
        assert row[name] == pytest.approx(expected, rel=1e-6)
    assert row["worse_by_10%"] == pytest.approx(alpha, rel=1e-6)  # at the margin
    assert (row["n_users"], row["mean"]) == (N, pytest.approx(mean))
    means = [ev["mrr@10"] for ev in EVS]
    assert row["spread"] == pytest.approx(np.std(means, ddof=1) / np.mean(means))


def test_equal_models_pass_as_often_as_planned():
    rng = np.random.default_rng(0)
    given = rules(not_worse("15%"))
    (row,) = plan_gate(given, NAMED).to_dict("records")
    nights = 300
    passed = sum(
        se.gate(given, *(result(rng.integers(1, 11, N)) for _ in range(2))).verdict == "passed"
        for _ in range(nights)
    )
    noise = np.sqrt(row["equal"] * (1 - row["equal"]) / nights)
    assert abs(passed / nights - row["equal"]) < 4 * noise


def test_rules_without_a_mean_to_lose():
    losers = {"losers": "mrr@10", "more_than": 0.1, "at_most": 0.9}
    table = plan_gate(rules(losers, {"metric": "mrr@10", "at_least": 0.27}), NAMED)
    assert table["equal"].isna().tolist() == [True, False]
    assert table["equal"][1] > 0.3
    assert table["worse_by_10%"][1] < table["equal"][1]
    with pytest.raises(InvalidDataError, match="a plan has no reference"):
        plan_gate(rules(not_worse() | {"against": "reference"}), NAMED)
