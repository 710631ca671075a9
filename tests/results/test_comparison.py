"""Test comparisons against scipy called directly, and what they refuse."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from raising import raises
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.results.differences import PERMUTATIONS, compare_values, correct, p_value

N_USERS, N_ITEMS = 120, 60
NAMES = ["ndcg@10", "recall@5", "mean_rank", "coverage@5", "recall(average=micro)@5"]


def make(seed, quality=0.3, held_out=None, **options):
    """Evaluate random lists against held-out items, the same by default; quality adds hits."""
    if held_out is None:
        held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    scores = np.random.default_rng(seed).random(held_out.shape) + quality * held_out
    lists = se.Rankings.from_topk(np.argsort(-scores, axis=1)[:, :20])
    names = options.pop("names", NAMES)
    relevance = se.Relevance.from_csr(csr_matrix(held_out.astype(float)), **options.pop("of", {}))
    return se.evaluate(lists, relevance, names, **options)


@pytest.fixture(scope="module")
def three():
    """Return evaluations of three models, each better than the one before."""
    return {"poor": make(1, 0.1), "fair": make(2, 0.3), "good": make(3, 0.6)}


def row(comparison, metric, a, b):
    table = comparison.table
    return table[(table["metric"] == metric) & (table["a"] == a) & (table["b"] == b)].iloc[0]


@pytest.mark.long
@given(
    arrays(
        np.float64,
        st.integers(2, 8),
        elements=st.sampled_from([0, 0.25, -0.25, 0.5, -0.5, 1]) | st.floats(-1, 1, width=32),
    )
)
@settings(max_examples=60)
def test_wilcoxon_equals_scipy(differences):
    p, _ = p_value(differences, np.zeros_like(differences), "wilcoxon", 0.95)
    assert p == (stats.wilcoxon(differences).pvalue if differences.any() else 1)


@pytest.mark.parametrize("n", [2, 5, 13, 14, 101])
def test_permutation_test_equals_scipy(n):
    rng = np.random.default_rng(n)
    a = rng.random(n) + (0.1 if n == 14 else 0)
    b = np.where(rng.random(n) < 0.3, a, rng.random(n))  # with ties
    options = {"n_resamples": PERMUTATIONS, "vectorized": True, "batch": 100, "rng": rng}
    with np.errstate(over="ignore"):  # SciPy 1.15 counts all 2^n permutations
        p = stats.permutation_test((a - b,), np.mean, permutation_type="samples", **options).pvalue
    # Of few users exact, and of more within eight errors of what is drawn.
    error = 0 if n < 14 else math.sqrt(max(p * (1 - p), 1e-4) / PERMUTATIONS)
    assert p_value(a, b, "permutation", 0.95)[0] == pytest.approx(p, abs=8 * error, rel=1e-12)


def test_no_model_is_better_if_ranks_and_means_disagree():
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


def test_ranks_decide_whom_they_favour():
    # 24 small losses and 20 large wins; among the ranks of 200 ties as well, losses would win.
    wins, losses = np.linspace(0.03, 0.04, 20), -np.linspace(0.01, 0.02, 24)
    values = np.concatenate([losses, wins, np.zeros(200)])
    p, favours = p_value(values, np.zeros(244), "wilcoxon", 0.95)
    assert p == stats.wilcoxon(values).pvalue < 0.05
    assert favours == 1
    # By ranks a is better, and by the mean b, because of one user.
    values = np.concatenate([np.linspace(0.03, 0.04, 19), losses[:23], [-9]])
    found = [p_value(values, np.zeros(43), "wilcoxon", level) for level in (0.95, 0.9)]
    assert all(0.05 < p < 0.1 for p, _ in found)
    assert [favours for _, favours in found] == [-1, 1]


def test_p_value_wins_effect_size_and_detectable_difference(three):
    one = row(se.compare(three), "ndcg@10", "fair", "good")
    fair, good = (
        three[name].values("ndcg@10")[three[name]._values.counted] for name in ("fair", "good")
    )
    assert one["p"] == stats.ttest_rel(fair, good).pvalue
    difference, n = fair - good, len(fair)
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
def test_corrections_follow_their_definitions(p):
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


def test_compares_and_corrects_for_the_chosen_metrics_only(three):
    chosen = se.compare(three, ["ndcg@10", "recall@5", "ndcg@10"]).table
    assert chosen["metric"].tolist() == ["ndcg@10"] * 3 + ["recall@5"] * 3
    assert chosen["p_corrected"].tolist() == correct(chosen["p"].to_numpy(), "holm").tolist()
    other = three | {"other": make(4, names=["recall@5", "map@3", "ndcg@10"])}
    compared = se.compare(other)
    assert compared.table["metric"].unique().tolist() == ["ndcg@10", "recall@5"]
    (note,) = compared.notes
    assert note.startswith("metrics left out: mean_rank (not in other), coverage@5 (not in other)")
    assert note.endswith("map@3 (not in poor, fair, good)")
    assert se.compare(other, "ndcg@10").notes == ()  # as asked for
    noted = replace(compared, notes=("<b>bold</b>",))
    assert "<p>note: &lt;b&gt;bold&lt;/b&gt;</p>" in noted._repr_html_()


@pytest.mark.parametrize("test", ["t", "wilcoxon", "permutation"])
def test_identical_models_have_no_difference(test):
    table = se.compare({"a": make(1), "b": make(1)}, test=test).table
    assert (table["p"] == 1).all()
    assert (table["better"] == "").all()
    assert (table[["difference", "ci_low", "ci_high"]] == 0).all(axis=None)
    assert table["effect_size"][0] == 0


def test_refusals_name_the_difference(three):
    fair, zero = three["fair"], se.Protocol(NAMES, no_relevant="zero")
    held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    other, one = held_out.copy(), np.zeros_like(held_out)
    other[7] = np.roll(other[7], 1)
    one[4] = held_out[4]
    named = {"users": [f"u{number}" for number in range(N_USERS)]}
    pair = {"fair": fair, "good": three["good"]}
    for evaluations, options in (
        ({"fair": fair}, {}),
        ({"fair": fair, "b": make(2, convention="ranx")}, {}),
        ({"fair": fair, "b": make(2, names=zero)}, {}),
        ({"fair": fair, "b": make(2, held_out=other)}, {}),
        ({"fair": fair, "b": make(2, of=named)}, {}),
        ({"a": make(1, held_out=one), "b": make(2, held_out=one)}, {}),
        *((pair, {name: "x"}) for name in ("test", "correction")),
        (pair, {"level": 95}),
        (pair, {"metrics": []}),
        (pair, {"metrics": "map@3"}),
    ):
        with raises(InvalidDataError):
            se.compare(evaluations, **options)


def test_compares_the_users_that_all_have(three):
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


def test_a_model_is_better_by_the_corrected_p_value(three):
    table = se.compare(three).table
    raised = table[table["p_corrected"] > table["p"]].iloc[0]
    level = 1 - (raised["p"] + raised["p_corrected"]) / 2
    again = se.compare(three, level=level)
    assert row(again, raised["metric"], raised["a"], raised["b"])["better"] == ""


def test_values_that_one_side_lacks_are_left_out():
    a, b = np.array([1.0, math.nan, 3.0, 2.0]), np.array([0.0, 1.0, math.nan, 0.5])
    compared = compare_values(a, b, "t", 0.95)
    assert (compared["difference"], compared["n_users"]) == (1.25, 2)
