"""The corrected resampled t-test, its intervals and its verdicts on margins."""

import math

import numpy as np
import pandas as pd
import pytest
from cross_cases import MODELS, corrected_t, cross, made_of
from hypothesis import given
from hypothesis import strategies as st
from raising import raises
from scipy import stats

from sparse_eval.errors import InvalidDataError
from sparse_eval.results.decisions import VERDICTS

A = [0.42, 0.55, 0.31, 0.68, 0.25, 0.74, 0.5, 0.39, 0.61, 0.47, 0.58, 0.33]
B = [0.4, 0.57, 0.3, 0.61, 0.27, 0.7, 0.52, 0.41, 0.55, 0.49, 0.56, 0.3]


@given(st.integers(2, 9), st.integers(1, 4), st.integers(0, 99), st.floats(0, 2))
def test_numbers_are_those_of_the_textbook(n_folds, n_seeds, seed, ratio):
    rng = np.random.default_rng(seed)
    drawn = {model: rng.random((n_folds, n_seeds)) for model in ("b", "a")}
    cv = made_of(drawn, ratio)
    means = {model: values.mean(axis=1) for model, values in drawn.items()}
    for model, of_folds in means.items():
        row = cv.summary(0.9).loc[("ndcg@10", model)]
        mean, low, high, _ = corrected_t(of_folds, ratio, 0.9)
        assert row["mean"] == pytest.approx(mean)
        assert row["std"] == pytest.approx(np.std(of_folds, ddof=1))
        assert row["ci_low"] == pytest.approx(max(low, 0))
        assert row["ci_high"] == pytest.approx(min(high, 1))
        assert row["n_folds"] == n_folds
    row = cv.compare(level=0.9).iloc[0]
    difference, low, high, p = corrected_t(means["b"] - means["a"], ratio, 0.9)
    assert (row["metric"], row["a"], row["b"], row["n_folds"]) == ("ndcg@10", "b", "a", n_folds)
    assert row["mean_a"] == pytest.approx(means["b"].mean())
    assert row["mean_b"] == pytest.approx(means["a"].mean())
    found = row[["difference", "ci_low", "ci_high", "p"]].tolist()
    assert found == pytest.approx([difference, low, high, p])
    assert row["p_corrected"] == row["p"]
    better = ("b" if difference > 0 else "a") if p < 0.1 else ""
    assert row["better"] == better


def test_probabilities_equal_those_of_baycomp():
    # CorrelatedTTest(B, A, rope=0.01).probs(), baycomp 1.0.3: its posterior with a flat prior is
    # the distribution of the corrected resampled t-test.
    worse, equivalent, better = [0.06565915426383667, 0.3641165157480678, 0.5702243299880955]
    row = made_of({"a": A, "b": B}, 1 / 11).compare(margin=0.01).iloc[0]
    assert 1 - row["p_better"] == pytest.approx(better, rel=1e-10)
    assert 1 - row["p_worse"] == pytest.approx(worse, rel=1e-10)
    assert row["p_better"] + row["p_worse"] - 1 == pytest.approx(equivalent, rel=1e-10)


def test_ratio_is_the_mean_over_folds():
    cv = made_of({"a": A[:4], "b": B[:4]})
    sizes = pd.DataFrame({"n_train": [900, 800, 700, 600], "n_validation": [100, 200, 300, 400]})
    table = cv.table.drop(columns=list(sizes)).merge(sizes.assign(fold=[1, 2, 3, 4]), on="fold")
    ratio = (1 / 9 + 1 / 4 + 3 / 7 + 2 / 3) / 4
    row = type(cv)(table, cv.request).compare().iloc[0]
    expected = corrected_t(np.subtract(A[:4], B[:4]), ratio)
    assert row[["difference", "ci_low", "ci_high", "p"]].tolist() == pytest.approx(expected)


def test_sizes_are_those_of_the_folds():
    cv = cross()
    folds = cv.table.groupby("fold")[["n_train", "n_validation"]].first()
    ratio = (folds["n_validation"] / folds["n_train"]).mean()
    assert ratio == pytest.approx(1, rel=0.1)  # two folds
    means = cv.table.groupby(["model", "fold"])["coverage@5"].mean()
    difference = means["als2"].to_numpy() - means["als 6/α=1"].to_numpy()
    row = cv.compare("coverage@5").iloc[0]
    expected = corrected_t(difference, ratio)
    assert row[["difference", "ci_low", "ci_high", "p"]].tolist() == pytest.approx(expected)
    assert (row["a"], row["b"]) == tuple(MODELS)


@pytest.mark.parametrize("metric", ["ndcg@10", "mean_rank"])
@pytest.mark.parametrize("margin", [0.02, "5%"])
def test_verdicts_on_a_margin(metric, margin):
    folds = np.array([0.38, 0.41, 0.42, 0.4, 0.39])
    noise = np.array([0.001, -0.001, 0.002, 0.0, -0.002])
    shifts = {"better": 0.05, "worse": -0.05, "equivalent": 0.0, "not shown": 0.019}
    for verdict, shift in shifts.items():
        sign = -1 if metric == "mean_rank" else 1
        one, two = folds + sign * shift + noise, folds
        row = made_of({"a": one, "b": two}, metric=metric).compare(margin=margin).iloc[0]
        assert row["verdict"] == verdict
        size = row["margin"]
        assert size == pytest.approx(0.02)
        share = 0.0 if margin == 0.02 else 0.05
        absolute = size if margin == 0.02 else 0.0

        def p_above(values):
            error = math.sqrt(np.var(values, ddof=1) * (1 / 5 + 1 / 4))
            return stats.t.sf(np.mean(values) / error, 4)

        above = one - (1 + share) * two - absolute
        below = one - (1 - share) * two + absolute
        p = {"better": p_above(above), "worse": p_above(-below)}
        if metric == "mean_rank":
            p = {"better": p["worse"], "worse": p["better"]}
        p["equivalent"] = max(p_above(below), p_above(-above))
        found = {name: row[f"p_{name}"] for name in VERDICTS}
        assert found == pytest.approx(p)
        assert row["p_verdict"] == pytest.approx(min(2 * min(p.values()), 1))
        if verdict in ("better", "worse"):
            assert row["better"] == {"better": "a", "worse": "b"}[verdict]


def test_corrections_are_over_all_rows():
    values = {"a": A[:6], "b": B[:6], "c": [0.5, 0.6, 0.4, 0.7, 0.3, 0.8]}
    cv = made_of(values)
    plain = cv.compare(correction="none")
    assert list(zip(plain["a"], plain["b"], strict=True)) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert plain["p_corrected"].tolist() == plain["p"].tolist()
    bonferroni = cv.compare(correction="bonferroni")["p_corrected"]
    assert bonferroni.tolist() == np.minimum(3 * plain["p"], 1).tolist()
    order = np.argsort(plain["p"])
    holm = np.minimum(np.maximum.accumulate(plain["p"][order] * [3, 2, 1]), 1)
    assert cv.compare()["p_corrected"][order].tolist() == pytest.approx(holm.tolist())


def test_folds_without_a_value_are_left_out():
    nothing = math.nan
    cv = made_of({"a": [0.1, 0.2, nothing, 0.4], "b": [0.1, 0.3, 0.2, nothing], "c": [nothing] * 4})
    summary = cv.summary()
    assert summary["n_folds"].tolist() == [3, 3, 0]
    assert summary["mean"].tolist() == pytest.approx([0.7 / 3, 0.2, nothing], nan_ok=True)
    table = cv.compare(margin="1%")
    assert table["n_folds"].tolist() == [2, 0, 0]
    expected = corrected_t(np.array([0.0, -0.1]), 0.25)
    row = table.loc[0, ["difference", "ci_low", "ci_high", "p"]].tolist()
    assert row == pytest.approx(expected)
    assert table["p"].isna().tolist() == [False, True, True]
    assert table["verdict"].tolist() == ["not shown"] * 3
    assert table["better"].tolist() == [""] * 3
    assert "none" in repr(cv)


def test_equal_models_are_not_different():
    row = made_of({"a": A, "b": A}).compare(margin=0.01).iloc[0]
    assert row[["difference", "p", "better"]].tolist() == [0.0, 1.0, ""]
    assert row["verdict"] == "equivalent"


def test_refuses_comparisons_without_variation():
    cv = made_of({"a": A, "b": B})
    for wrong in (
        made_of({"a": A}).compare,
        made_of({"a": A[:1], "b": B[:1]}).compare,
        lambda: cv.compare("map@3"),
        lambda: cv.compare(correction="holms"),
        lambda: cv.compare(margin={"map@3": 0.1}),
        lambda: cv.summary(95),
    ):
        with raises(InvalidDataError):
            wrong()
    one_fold = made_of({"a": A[:1], "b": B[:1]}).summary()
    assert one_fold[["ci_low", "ci_high"]].isna().all(axis=None)
    assert one_fold["mean"].tolist() == [A[0], B[0]]
