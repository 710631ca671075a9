"""Test comparisons against scipy called directly, and what they refuse."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.results.differences import (
    PERMUTATIONS,
    compare_values,
    correct,
    p_value,
    significance,
)
from sparse_eval.results.runs import Error

Array = NDArray[Any]

N_USERS, N_ITEMS = 120, 60
NAMES = ["ndcg@10", "recall@5", "mean_rank", "coverage@5", "recall(average=micro)@5"]


def make(
    seed: int, quality: float = 0.3, held_out: Array | None = None, **options: Any
) -> se.Evaluation:
    """Evaluate random lists against held-out items, the same by default; quality adds hits."""
    if held_out is None:
        held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    scores = np.random.default_rng(seed).random(held_out.shape) + quality * held_out
    lists = se.Rankings.from_topk(np.argsort(-scores, axis=1)[:, :20])
    names = options.pop("names", NAMES)
    relevance = se.Relevance.from_csr(csr_matrix(held_out.astype(float)), **options.pop("of", {}))
    return se.evaluate(lists, relevance, names, **options)


@pytest.fixture(scope="module")
def three() -> dict[str, se.Evaluation]:
    """Return evaluations of three models, each better than the one before."""
    return {"poor": make(1, 0.1), "fair": make(2, 0.3), "good": make(3, 0.6)}


def row(comparison: se.Comparison, metric: str, a: str, b: str) -> Any:
    table = comparison.table
    return table[(table["metric"] == metric) & (table["a"] == a) & (table["b"] == b)].iloc[0]


@pytest.mark.parametrize("test", ["t", "wilcoxon"])
def test_p_values_equal_those_of_scipy(three: dict[str, se.Evaluation], test: Any) -> None:
    compared = se.compare(three, test=test, correction="none")
    for name in ("ndcg@10", "recall@5"):
        a, b = (three[model].values(name) for model in ("poor", "fair"))
        a, b = a[~np.isnan(a)], b[~np.isnan(b)]
        scipy_test = stats.ttest_rel if test == "t" else stats.wilcoxon
        difference = row(compared, name, "poor", "fair")
        assert difference["p"] == scipy_test(a, b).pvalue == difference["p_corrected"]


#: Differences of few users, as in sparse metrics: ties, zeros, and a few of any size.
FEW = st.integers(2, 8).flatmap(
    lambda n: arrays(
        np.float64, n, elements=st.sampled_from([0, 0, 0.25, -0.25, 0.5, 1]) | st.floats(-1, 1)
    )
)


@given(FEW)
@settings(max_examples=60)
def test_wilcoxon_of_few_users_equals_scipy(differences: Array) -> None:
    p, _ = p_value(differences, np.zeros_like(differences), "wilcoxon", 0.95)
    assert p == (stats.wilcoxon(differences).pvalue if differences.any() else 1)


@pytest.mark.parametrize("n", [2, 5, 13])
def test_permutation_test_of_few_users_is_exact(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.random(n), rng.random(n)
    expected = stats.permutation_test((a - b,), np.mean, permutation_type="samples").pvalue
    assert p_value(a, b, "permutation", 0.95)[0] == expected


@pytest.mark.parametrize(("n", "shift"), [(14, 0.1), (101, 0.0)])
def test_permutation_test_of_many_users_is_within_monte_carlo_error(n: int, shift: float) -> None:
    rng = np.random.default_rng(n)
    a = rng.random(n) + shift
    b = np.where(rng.random(n) < 0.3, a, rng.random(n))  # with ties
    with np.errstate(over="ignore"):  # SciPy 1.15 counts all 2^n permutations
        expected = stats.permutation_test(
            (a - b,), np.mean, permutation_type="samples", n_resamples=PERMUTATIONS,
            vectorized=True, batch=100, rng=np.random.default_rng(1),
        ).pvalue  # fmt: skip
    p = p_value(a, b, "permutation", 0.95)[0]
    error = math.sqrt(max(expected * (1 - expected), 1e-4) / PERMUTATIONS)
    assert p == pytest.approx(expected, abs=8 * error)  # both are drawn, and two-sided


def agrees(row: Any, level: float = 0.95) -> bool:
    """Return whether an interval excludes 0 exactly if the test next to it is significant."""
    if row["interval"] == "none" or math.isnan(row["p"]):
        return bool(row["interval"] == "none" and math.isnan(row["p"]))
    if math.isclose(row["p"], significance(level), rel_tol=1e-9):
        return True
    return bool((row["ci_low"] > 0 or row["ci_high"] < 0) == (row["p"] < significance(level)))


@given(
    st.integers(0, 40).flatmap(
        lambda n: arrays(
            np.float64,
            (2, n),
            elements=st.sampled_from([0, 0, 0.25, 0.5, 1]) | st.floats(0, 1, width=32),
        )
    ),
    st.sampled_from([0.5, 0.8, 0.9, 0.95, 0.99]),
)
@settings(max_examples=100)
def test_an_interval_of_differences_agrees_with_the_t_test(pair: Array, level: float) -> None:
    a, b = pair
    found = compare_values(a, b, "t", level)
    assert agrees(found, level)
    assert found["interval"] == ("t" if len(a) > 1 else "none")
    again = compare_values(b, a, "t", level)
    assert (again["ci_low"], again["ci_high"]) == pytest.approx(
        (-float(found["ci_high"]), -float(found["ci_low"])), nan_ok=True
    )


@given(st.floats(-1, 1), st.floats(0, 1), st.floats(1, 100))
def test_a_pooled_interval_agrees_with_its_test(
    mean: float, variance: float, freedom: float
) -> None:
    error = Error(variance, freedom)
    interval = error.interval(mean, 0.95)
    row = {"p": error.p_value(mean), "interval": interval.method}
    assert agrees(row | {"ci_low": interval.low, "ci_high": interval.high})


@pytest.mark.parametrize("n", [2, 8, 150])
def test_intervals_agree_with_p_values_wherever_models_are_compared(n: int) -> None:
    rng = np.random.default_rng(n)
    held_out = rng.random((n, N_ITEMS)) < rng.beta(1, 30, (n, 1))
    held_out[np.arange(n), rng.integers(N_ITEMS, size=n)] = True
    models = {name: make(ord(name), rng.uniform(0, 0.3), held_out) for name in "ab"}
    plans = {user: ("free", "paid")[user % 2] for user in range(n)}
    for by in (None, plans):
        for level in (0.9, 0.95):
            compared = se.compare(models, correction="none", level=level, by=by)
            for row in compared.table.to_dict("records"):
                assert agrees(row, level), row


def test_no_model_is_better_if_ranks_and_means_disagree() -> None:
    # For 800 users b is a little better, for 200 users a is much better.
    held_out = csr_matrix(np.tile(np.arange(12) == 0, (1000, 1)).astype(float))
    rank_pairs = np.where(np.arange(1000) < 800, 10, 1), np.where(np.arange(1000) < 800, 9, 10)
    models = {}
    for name, ranks in zip("ab", rank_pairs, strict=True):
        ids = np.tile(np.arange(1, 12), (1000, 1))
        ids[np.arange(1000), ranks - 1] = 0
        models[name] = se.evaluate(se.Rankings.from_topk(ids), held_out, "mrr@11")
    for test, better in (("t", "a"), ("permutation", "a"), ("wilcoxon", "")):
        difference = se.compare(models, test=test).table.iloc[0]
        assert difference["p"] < 0.001
        assert difference["difference"] > 0
        assert (difference["wins"], difference["losses"]) == (200, 800)
        assert difference["better"] == better


def test_ranks_are_summed_without_users_of_equal_values() -> None:
    # 24 small losses and 20 large wins; among the ranks of 200 ties as well, losses would win.
    a, b = np.zeros(244), np.zeros(244)
    b[:24] = np.linspace(0.01, 0.02, 24)
    a[24:44] = np.linspace(0.03, 0.04, 20)
    p, favours = p_value(a, b, "wilcoxon", 0.95)
    assert p == stats.wilcoxon(a - b).pvalue < 0.05
    assert favours == 1


@pytest.mark.parametrize(("level", "favoured"), [(0.95, -1), (0.9, 1)])
def test_ranks_decide_whom_they_favour_at_every_level(level: float, favoured: int) -> None:
    # By ranks a is better, and by the mean b, because of one user.
    differences = np.concatenate([np.linspace(0.03, 0.04, 19), -np.linspace(0.01, 0.02, 23), [-9]])
    p, favours = p_value(differences, np.zeros(43), "wilcoxon", level)
    assert 0.05 < p < 0.1
    assert favours == favoured


def test_wins_effect_size_and_detectable_difference(three: dict[str, se.Evaluation]) -> None:
    one = row(se.compare(three), "ndcg@10", "fair", "good")
    difference = three["fair"].values("ndcg@10") - three["good"].values("ndcg@10")
    difference = difference[~np.isnan(difference)]
    n = len(difference)
    assert (one["wins"], one["ties"], one["losses"]) == (
        (difference > 0).sum(), (difference == 0).sum(), (difference < 0).sum(),
    )  # fmt: skip
    assert one["effect_size"] == pytest.approx(difference.mean() / difference.std(ddof=1))
    assert one["n_users"] == n
    # A t-test detects a true difference as large as `detectable` in 80 of 100 cases.
    shift = one["detectable"] / (difference.std(ddof=1) / math.sqrt(n))
    power = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, shift)
    assert power == pytest.approx(0.8, abs=0.01)
    ranks = row(se.compare(three), "mean_rank", "fair", "good")
    assert ranks["wins"] < ranks["losses"]  # a has the higher ranks
    assert ranks["better"] == "good"


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)))
def test_corrections_follow_their_definitions(p: Array) -> None:
    names = ("holm", "bonferroni", "bh", "none")
    holm, bonferroni, bh, none = (correct(p, name) for name in names)
    assert none.tolist() == p.tolist()
    assert bonferroni.tolist() == np.minimum(p * len(p), 1).tolist()
    # One hypothesis at a time.
    n = len(p)
    order = sorted(range(n), key=lambda i: p[i])
    for rank, i in enumerate(order):
        worst = max(min((n - k) * p[order[k]], 1.0) for k in range(rank + 1))
        assert holm[i] == pytest.approx(worst)
        least = min(p[order[k]] * n / (k + 1) for k in range(rank, n))
        assert bh[i] == pytest.approx(min(least, 1.0))
    for name in names:
        corrected = correct(np.array([math.nan, 0.04, math.nan]), name)
        np.testing.assert_array_equal(corrected, [math.nan, 0.04, math.nan])


def test_compares_and_corrects_for_the_chosen_metrics_only(three: dict[str, se.Evaluation]) -> None:
    chosen = se.compare(three, ["ndcg@10", "recall@5", "ndcg@10"]).table
    assert chosen["metric"].tolist() == ["ndcg@10"] * 3 + ["recall@5"] * 3
    whole = se.compare(three).table
    expected = whole[whole["metric"].isin(["ndcg@10", "recall@5"])]
    assert chosen["p"].tolist() == expected["p"].tolist()
    assert (chosen["p_corrected"].to_numpy() <= expected["p_corrected"].to_numpy()).all()
    other = three | {"other": make(4, names=["recall@5", "map@3", "ndcg@10"])}
    compared = se.compare(other)
    assert compared.table["metric"].unique().tolist() == ["ndcg@10", "recall@5"]
    (note,) = compared.notes
    assert note.startswith("metrics left out: mean_rank (not in other), coverage@5 (not in other)")
    assert note.endswith("map@3 (not in poor, fair, good)")
    assert se.compare(other, "ndcg@10").notes == ()  # as asked for
    for metrics in ([], "map@3"):
        with raises(InvalidDataError):
            se.compare(three, metrics)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "permutation"])
def test_identical_models_have_no_difference(test: Any) -> None:
    compared = se.compare({"a": make(1), "b": make(1)}, test=test)
    assert compared.table["p"].tolist() == [1.0] * len(NAMES)
    assert compared.table["better"].tolist() == [""] * len(NAMES)
    assert (compared.table[["difference", "ci_low", "ci_high"]] == 0.0).all(axis=None)
    assert row(compared, "ndcg@10", "a", "b")["effect_size"] == 0.0


def test_refusals_name_the_difference(three: dict[str, se.Evaluation]) -> None:
    fair, zero = three["fair"], se.Protocol(NAMES, no_relevant="zero")
    held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    fewer = held_out.copy()
    fewer[[3, 5]] = False
    with raises(InvalidDataError):
        se.compare({"fair": fair, "b": make(2, held_out=fewer)}, how="same")
    other = held_out.copy()
    other[7] = np.roll(other[7], 1)
    one = np.zeros_like(held_out)
    one[4] = held_out[4]
    named = {"users": [f"u{number}" for number in range(N_USERS)]}
    refused: list[Any] = [
        {"fair": fair},
        [fair, fair],
        {"fair": fair, "b": make(2, convention="ranx")},
        {"fair": fair, "b": make(2, names=zero)},
        {"fair": fair, "b": make(2, held_out=other)},
        {"fair": fair, "b": make(2, of=named)},
        {"a": make(1, held_out=one), "b": make(2, held_out=one)},
    ]
    for evaluations in refused:
        with raises(InvalidDataError):
            se.compare(evaluations)
    for option in ("test", "correction", "how"):
        with raises(InvalidDataError):
            se.compare(three, **{option: "x"})  # type: ignore[arg-type]
    with raises(InvalidDataError, argument="level"):
        se.compare(three, level=95)


def test_compares_the_users_that_all_have(three: dict[str, se.Evaluation]) -> None:
    held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    fewer = held_out.copy()
    fewer[::3] = False
    part = make(2, held_out=fewer)
    compared = se.compare({"poor": three["poor"], "part": part})
    assert compared.n_users == part.n_users
    assert compared.left_out == {"poor": three["poor"].n_users - part.n_users, "part": 0}
    said = f"compared on the {part.n_users} users that all have; left out: "
    assert compared.notes[0].startswith(said)
    assert "coverage@5, recall(average=micro)@5: not compared" in compared.notes[1]
    assert said in repr(compared)
    one = row(compared, "ndcg@10", "poor", "part")
    assert one["mean_b"] == pytest.approx(part["ndcg@10"])
    users = np.flatnonzero(fewer.any(axis=1))
    assert one["mean_a"] == pytest.approx(three["poor"].values("ndcg@10")[users].mean())
    # Metrics of all users together cannot be restricted to some.
    overall = row(compared, "coverage@5", "poor", "part")
    assert math.isnan(overall["p"])
    assert math.isnan(overall["mean_a"])
    assert "nan" not in repr(compared)


def test_users_of_other_labels_have_the_same_relevant_items() -> None:
    held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    names = np.array([f"u{number}" for number in range(N_USERS)])
    shift = slice(30, None), slice(None, -20)
    one, two = (
        make(seed, held_out=held_out[rows], of={"users": names[rows].tolist()})
        for seed, rows in enumerate(shift)
    )
    compared = one.compare(two, "ndcg@10")
    both = sorted(set(one.users[one.counted]) & set(two.users[two.counted]))
    a, b = (ev.per_user.loc[both, "ndcg@10"].to_numpy() for ev in (one, two))
    assert compared.table["p"][0] == pytest.approx(stats.ttest_rel(a, b).pvalue, rel=1e-12)
    assert compared.left_out == {"this": one.n_users - len(both), "other": two.n_users - len(both)}
    # Rows without labels are matched by number, where other items are relevant.
    with raises(InvalidDataError):
        make(1, held_out=held_out[shift[0]]).compare(make(2, held_out=held_out[shift[1]]))


def test_a_model_is_better_by_the_corrected_p_value(three: dict[str, se.Evaluation]) -> None:
    table = se.compare(three).table
    raised = table[table["p_corrected"] > table["p"]].iloc[0]
    level = 1 - (raised["p"] + raised["p_corrected"]) / 2
    again = se.compare(three, level=level)
    assert row(again, raised["metric"], raised["a"], raised["b"])["better"] == ""


def test_values_that_one_side_lacks_are_left_out() -> None:
    a, b = np.array([1.0, math.nan, 3.0, 2.0]), np.array([0.0, 1.0, math.nan, 0.5])
    compared = compare_values(a, b, "t", 0.95)
    assert (compared["difference"], compared["n_users"]) == (1.25, 2)


def test_notes_are_escaped_on_a_page(three: dict[str, se.Evaluation]) -> None:
    noted = replace(se.compare(three), notes=("<b>bold</b>",))
    assert "<p>note: &lt;b&gt;bold&lt;/b&gt;</p>" in noted._repr_html_()
