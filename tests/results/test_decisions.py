"""Test verdicts on a margin, intervals of effect sizes, and the numbers of users of a test."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.results.decisions import Margin, add_verdicts, decide, users_needed
from sparse_eval.results.differences import (
    compare_values,
    correct,
    effect_interval,
    significance,
    values_distance,
)

A = np.array([0.42, 0.55, 0.31, 0.68, 0.25, 0.74, 0.5, 0.39, 0.61, 0.47, 0.58, 0.33])
B = np.array([0.4, 0.57, 0.3, 0.61, 0.27, 0.7, 0.52, 0.41, 0.55, 0.49, 0.56, 0.3])

N_USERS, N_ITEMS = 150, 60
NAMES = ["ndcg@10", "mean_rank", "coverage@1"]


def make(seed, quality, n_users=N_USERS):
    """Evaluate lists with more hits if the quality is higher."""
    held_out = np.random.default_rng(0).random((n_users, N_ITEMS)) < 0.1
    held_out[:, 0] = True
    scores = np.random.default_rng(seed).random(held_out.shape) + quality * held_out
    lists = se.Rankings.from_topk(np.argsort(-scores, axis=1))
    return se.evaluate(lists, csr_matrix(held_out.astype(float)), NAMES)


@pytest.fixture(scope="module")
def pair():
    return {"good": make(1, 0.6), "poor": make(2, 0.1)}


def judge(a, b, margin, level=0.95, higher=True):
    """Return the columns of a verdict about the values of users."""
    size = margin.number(float(b.mean()) if len(b) else math.nan)
    found = decide(margin, size, partial(values_distance, a, b), higher)
    table = pd.DataFrame([{"metric": "metric"} | found])
    add_verdicts(table, {"metric": margin}, "none", level)
    return table.iloc[0]


def test_equivalence_has_the_p_value_of_statsmodels():
    # [ttost_paired(A, B, -m, m)[0] for m in (0.01, 0.03, 0.1)], statsmodels 0.15
    expected = [0.600892101277344, 0.04695116508808608, 8.747120783850466e-07]
    found = [judge(A, B, Margin(m))["p_equivalent"] for m in (0.01, 0.03, 0.1)]
    assert found == pytest.approx(expected, rel=1e-10)


def test_a_percentage_is_tested_on_the_values_of_users():
    found = judge(A, B, Margin.parse("10%"))
    assert found["margin"] == pytest.approx(0.1 * B.mean())
    above, below = (
        {side: stats.ttest_1samp(A - factor * B, 0, alternative=side).pvalue for side in SIDES}
        for factor in (1.1, 0.9)
    )
    expected = [above["greater"], max(above["less"], below["greater"]), below["less"]]
    p = found[["p_better", "p_equivalent", "p_worse"]].tolist()
    assert p == pytest.approx(expected, rel=1e-10)
    assert found["verdict"] == "equivalent"


SIDES = ("greater", "less")

PAIRS = st.integers(0, 40).flatmap(
    lambda n: arrays(
        np.float64,
        (2, n),
        elements=st.sampled_from([0, 0, 0.25, 0.5, 1]) | st.floats(0, 1, width=32),
    )
)


@given(PAIRS, st.sampled_from([0.0, 0.01, 0.1, 0.5]), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_tests_and_verdicts_agree_with_the_interval(pair, size, level):
    a, b = pair
    row, again = (compare_values(*sides, "t", level) for sides in (pair, pair[::-1]))
    low, high = float(row["ci_low"]), float(row["ci_high"])
    assert (again["ci_low"], again["ci_high"]) == pytest.approx((-high, -low), nan_ok=True)
    assert row["interval"] == ("t" if len(a) > 1 else "none")
    if not math.isclose(row["p"], significance(level), rel_tol=1e-9):
        assert (low > 0 or high < 0) == (row["p"] < significance(level))
    assume(not any(math.isclose(abs(end), size, abs_tol=1e-9) for end in (low, high)))
    expected = "not shown"
    if low > size or high < -size:
        expected = "better" if low > size else "worse"
    elif -size < low and high < size:
        expected = "equivalent"
    assert judge(a, b, Margin(size), level)["verdict"] == expected
    swapped = {"better": "worse", "worse": "better"}.get(expected, expected)
    assert judge(b, a, Margin(size), level)["verdict"] == swapped
    assert judge(a, b, Margin(size), level, higher=False)["verdict"] == swapped


def test_columns_of_a_margin_are_added_to_the_others(pair):
    plain = se.compare(pair)
    compared = se.compare(pair, margin={"ndcg@10": "5%", "mean_rank": 1})
    table = compared.table
    added = ["margin", "p_better", "p_equivalent", "p_worse", "p_verdict", "verdict"]
    assert [name for name in table if name not in plain.table] == added
    pd.testing.assert_frame_equal(table[list(plain.table)], plain.table)
    assert table["verdict"].tolist() == ["better", "better", ""]  # lower ranks are better
    assert table["margin"][0] == pytest.approx(0.05 * pair["poor"]["ndcg@10"])
    p = table[["p_better", "p_equivalent", "p_worse"]].min(axis=1).to_numpy()
    assert table["p_verdict"][:2].tolist() == correct(2 * p, "holm")[:2].tolist()
    assert "margin" in repr(compared)


def test_metrics_of_all_users_have_verdicts_by_replicates(pair):
    row = se.compare(pair, "coverage@1", margin=0.2).table.iloc[0]
    replicates = [ev._part.replicates(ev._part.row_of("coverage@1")) for ev in pair.values()]
    error = (replicates[0] - replicates[1]).std(ddof=1)
    p = stats.t(len(replicates[0]) - 1, scale=error).sf(0.2 - abs(row["difference"]))
    assert row["p_equivalent"] == pytest.approx(p, rel=1e-9)
    fewer = {"good": pair["good"], "fewer": make(2, 0.1, N_USERS - 20)}
    assert se.compare(fewer, margin=0.5).table["verdict"].tolist()[-1] == "not shown"


def test_notes_of_other_tests(pair):
    notes = se.compare(pair, test="permutation", margin=0.1).notes
    assert notes[-1].startswith("verdicts are by t")
    assert se.compare(pair, test="wilcoxon").notes == ()
    many = {name: make(seed, 0.1, 2001) for seed, name in enumerate("ab")}
    assert "2305.02461" in se.compare(many, "ndcg@10", test="wilcoxon").notes[-1]


@pytest.mark.parametrize("margin", ["much", "-1%", -0.1, {"recall@5": 0.1}])
def test_a_margin_that_is_none_raises(pair, margin):
    with raises(InvalidDataError, argument="margin"):
        se.compare(pair, margin=margin)


@pytest.mark.long
def test_a_percentage_of_no_mean_has_no_verdict(tmp_path):
    first = [[i, (i + 1) % 6] for i in range(6)]
    evs = {
        name: se.evaluate(se.Rankings.from_topk(lists), csr_matrix(np.eye(6)), ["ndcg@2", "ndcg@1"])
        for name, lists in (("a", first), ("b", [row[::-1] for row in first]))
    }
    compared = se.compare(evs, margin="1%")
    assert compared.table["verdict"].tolist() == ["better", "not shown"]
    assert compared.table["margin"].isna().tolist() == [False, True]
    note = "no verdict, because the margin is a percentage of a mean of 0 or less: ndcg@1 of b"
    assert compared.notes == (note,)
    assert compared.users_needed("1%")["users_needed"].isna().tolist() == [True, True]
    with raises(InvalidDataError):
        evs["b"].users_needed("ndcg@1", "1%")
    by_segment = se.compare(evs, margin="1%", by={i: "xy"[i // 3] for i in range(6)})
    assert by_segment.notes[-1].endswith("ndcg@1 of b in segment x, ndcg@1 of b in segment y")
    path = se.write_report(evs, tmp_path / "page.html", "ndcg@1", margin="1%")
    page = path.read_text(encoding="utf-8")
    assert note in page
    assert "With a margin of ," not in page


@pytest.mark.parametrize("n", [2, 5, 20, 200, 50_000])
@pytest.mark.parametrize("effect", [-3, -0.5, -0.01, 0, 0.1, 1])
def test_effect_sizes_have_the_interval_of_the_noncentral_t(n, effect):
    ends = effect_interval(effect, n, 0.95)
    t = effect * math.sqrt(n)
    shares = [stats.nct.cdf(t, n - 1, end * math.sqrt(n)) for end in ends]
    assert shares == pytest.approx([0.975, 0.025], abs=1e-11)


def test_users_needed_equal_those_of_statsmodels():
    # ceil(TTestPower().solve_power(size, alpha=1 - level, power=share)), statsmodels 0.15
    assert users_needed(0.01, 1.0, 0.95, 0.8) == 78491
    assert users_needed(0.05, 1.0, 0.9, 0.95) == 4331
    assert users_needed(0.5, 1.0, 0.99, 0.9) == 63
    assert users_needed(3.0, 1.0, 0.9, 0.5) == 3


def test_users_needed_by_comparisons_and_evaluations(pair):
    compared = se.compare(pair, level=0.9)
    needed = compared.users_needed({"ndcg@10": "2%", "coverage@1": 0.1}, power=0.9)
    good, poor = (ev.values("ndcg@10") for ev in pair.values())
    std, size = float((good - poor).std(ddof=1)), 0.02 * float(poor.mean())
    row = needed.iloc[0]
    assert row[["std", "margin"]].tolist() == pytest.approx([std, size])
    assert row["users_needed"] == users_needed(size, std, 0.9, 0.9)
    assert row["n_users"] == N_USERS
    assert needed["users_needed"].isna().tolist() == [False, True]
    std = float(poor.std(ddof=1)) * math.sqrt(2 * (1 - 0.7))
    found = pair["poor"].users_needed("ndcg@10", "2%", correlation=0.7)
    assert found == users_needed(size, std, 0.95, 0.8)
    with raises(InvalidDataError, argument="power"):
        compared.users_needed(0.1, power=80)
