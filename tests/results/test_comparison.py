"""Comparisons: against scipy called directly, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError
from sparse_eval.results.comparison import PERMUTATIONS, _corrected, _p_value

Array = NDArray[Any]

N_USERS, N_ITEMS = 120, 60
NAMES = ["ndcg@10", "recall@5", "mean_rank", "coverage@5", "recall(average=micro)@5"]


def make(
    seed: int, quality: float = 0.3, held_out: Array | None = None, **options: Any
) -> se.Evaluation:
    """Evaluate lists of some quality against what is held out, the same for all by default."""
    if held_out is None:
        held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    scores = np.random.default_rng(seed).random(held_out.shape) + quality * held_out
    lists = se.Rankings.from_topk(np.argsort(-scores, axis=1)[:, :20])
    names = options.pop("names", NAMES)
    relevance = se.Relevance.from_csr(csr_matrix(held_out.astype(float)), **options.pop("of", {}))
    return se.evaluate(lists, relevance, names, **options)


@pytest.fixture(scope="module")
def three() -> dict[str, se.Evaluation]:
    """Return three models, each better than the one before."""
    return {"poor": make(1, 0.1), "fair": make(2, 0.3), "good": make(3, 0.6)}


def row(comparison: se.Comparison, metric: str, a: str, b: str) -> Any:
    table = comparison.table
    return table[(table["metric"] == metric) & (table["a"] == a) & (table["b"] == b)].iloc[0]


def test_every_pair_of_every_metric(three: dict[str, se.Evaluation]) -> None:
    found = se.compare(three)
    pairs = [("poor", "fair"), ("poor", "good"), ("fair", "good")]
    assert list(zip(found.table["metric"], found.table["a"], found.table["b"], strict=True)) == [
        (name, *pair) for name in three["poor"].names for pair in pairs
    ]
    assert found.names == ("poor", "fair", "good")
    assert found.n_users == three["poor"].n_users
    for name in three["poor"].names:
        for a, b in pairs:
            one = row(found, name, a, b)
            assert one["mean_a"] == pytest.approx(three[a][name], rel=1e-14)
            assert one["mean_b"] == pytest.approx(three[b][name], rel=1e-14)
            assert one["difference"] == pytest.approx(three[a][name] - three[b][name])
    assert row(found, "ndcg@10", "poor", "good")["better"] == "good"
    assert row(found, "mean_rank", "poor", "good")["better"] == "good"  # the lower one


@pytest.mark.parametrize("test", ["t", "wilcoxon"])
def test_p_values_are_scipy_s(three: dict[str, se.Evaluation], test: Any) -> None:
    found = se.compare(three, test=test, correction="none")
    for name in ("ndcg@10", "recall@5"):
        a, b = (three[model].values(name) for model in ("poor", "fair"))
        a, b = a[~np.isnan(a)], b[~np.isnan(b)]
        ask = stats.ttest_rel if test == "t" else stats.wilcoxon
        one = row(found, name, "poor", "fair")
        assert one["p"] == ask(a, b).pvalue == one["p_corrected"]


@pytest.mark.parametrize("n", [2, 5, 13])
def test_few_users_have_every_permutation(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.random(n), rng.random(n)
    expected = stats.permutation_test((a - b,), np.mean, permutation_type="samples").pvalue
    assert _p_value(a, b, "permutation", 0.95)[0] == expected


@pytest.mark.parametrize(("n", "shift"), [(14, 0.1), (100, 0.05), (101, 0.0), (3000, 0.01)])
def test_many_users_have_random_ones(n: int, shift: float) -> None:
    rng = np.random.default_rng(n)
    a = rng.random(n) + shift
    b = np.where(rng.random(n) < 0.3, a, rng.random(n))  # with ties
    expected = stats.permutation_test(
        (a - b,), np.mean, permutation_type="samples", n_resamples=PERMUTATIONS,
        vectorized=True, batch=100, rng=np.random.default_rng(1),
    ).pvalue  # fmt: skip
    found = _p_value(a, b, "permutation", 0.95)[0]
    assert found == _p_value(a, b, "permutation", 0.95)[0]
    error = math.sqrt(max(expected * (1 - expected), 1e-4) / PERMUTATIONS)
    assert found == pytest.approx(expected, abs=8 * error)  # both are drawn, and two-sided


def test_ranks_and_means_that_speak_for_different_models_name_none() -> None:
    # For 800 users b is a little better, for 200 users a is much better.
    held_out = csr_matrix(np.tile(np.arange(12) == 0, (1000, 1)).astype(float))
    places = np.where(np.arange(1000) < 800, 10, 1), np.where(np.arange(1000) < 800, 9, 10)
    models = {}
    for name, ranks in zip("ab", places, strict=True):
        ids = np.tile(np.arange(1, 12), (1000, 1))
        ids[np.arange(1000), ranks - 1] = 0
        models[name] = se.evaluate(se.Rankings.from_topk(ids), held_out, "mrr@11")
    for test, better in (("t", "a"), ("permutation", "a"), ("wilcoxon", "")):
        found = se.compare(models, test=test).table.iloc[0]
        assert found["p"] < 0.001
        assert found["difference"] > 0
        assert (found["wins"], found["losses"]) == (200, 800)
        assert found["better"] == better


def test_the_facts_about_a_difference(three: dict[str, se.Evaluation]) -> None:
    one = row(se.compare(three), "ndcg@10", "fair", "good")
    difference = three["fair"].values("ndcg@10") - three["good"].values("ndcg@10")
    difference = difference[~np.isnan(difference)]
    n = len(difference)
    assert (one["wins"], one["ties"], one["losses"]) == (
        (difference > 0).sum(), (difference == 0).sum(), (difference < 0).sum(),
    )  # fmt: skip
    assert one["effect_size"] == pytest.approx(difference.mean() / difference.std(ddof=1))
    assert one["n_users"] == n
    # A t-test of a true difference as large as `detectable` shows it in 80 of 100 cases.
    shift = one["detectable"] / (difference.std(ddof=1) / math.sqrt(n))
    power = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, shift)
    assert power == pytest.approx(0.8, abs=0.01)
    ranks = row(se.compare(three), "mean_rank", "fair", "good")
    assert ranks["wins"] < ranks["losses"]  # a has the higher ranks


def test_numbers_about_all_users_are_compared_by_replicates(
    three: dict[str, se.Evaluation],
) -> None:
    one = row(se.compare(three, correction="none"), "recall(average=micro)@5", "poor", "good")
    replicates = [three[name].replicates("recall(average=micro)@5") for name in ("poor", "good")]
    error = (replicates[0] - replicates[1]).std(ddof=1)
    assert one["interval"] == "bootstrap"
    assert one["ci_high"] - one["ci_low"] == pytest.approx(2 * stats.t.ppf(0.975, 99) * error)
    assert one["p"] == pytest.approx(2 * stats.t.sf(abs(one["difference"]) / error, 99))
    assert one["better"] == "good"


@given(arrays(np.float64, st.integers(1, 30), elements=st.floats(0, 1)))
def test_corrections(p: Array) -> None:
    holm, bh, none = (_corrected(p, name) for name in ("holm", "bh", "none"))
    assert none.tolist() == p.tolist()
    # By their definitions, one hypothesis at a time.
    n = len(p)
    order = sorted(range(n), key=lambda i: p[i])
    for place, i in enumerate(order):
        worst = max(min((n - k) * p[order[k]], 1.0) for k in range(place + 1))
        assert holm[i] == pytest.approx(worst)
        least = min(p[order[k]] * n / (k + 1) for k in range(place, n))
        assert bh[i] == pytest.approx(min(least, 1.0))
    assert _corrected(np.array([math.nan, 0.04]), "holm").tolist()[1] == 0.04


def test_only_what_was_chosen_is_corrected_for(three: dict[str, se.Evaluation]) -> None:
    chosen = se.compare(three, ["ndcg@10", "recall@5", "ndcg@10"]).table
    assert chosen["metric"].tolist() == ["ndcg@10"] * 3 + ["recall@5"] * 3
    whole = se.compare(three).table
    expected = whole[whole["metric"].isin(["ndcg@10", "recall@5"])]
    assert chosen["p"].tolist() == expected["p"].tolist()
    assert (chosen["p_corrected"].to_numpy() <= expected["p_corrected"].to_numpy()).all()
    fewer = three | {"poor": make(1, names=["ndcg@10"])}
    assert len(se.compare(fewer, "ndcg@10").table) == 3
    for metrics, message in (([], "no metrics"), ("map@3", "poor has no map@3, but ndcg@10")):
        with pytest.raises(InvalidDataError, match=message):
            se.compare(three, metrics)


@pytest.mark.parametrize("test", ["t", "wilcoxon", "permutation"])
def test_identical_models(test: Any) -> None:
    found = se.compare({"a": make(1), "b": make(1)}, test=test)
    assert found.table["p"].tolist() == [1.0] * len(NAMES)
    assert found.table["difference"].tolist() == [0.0] * len(NAMES)
    assert found.table["better"].tolist() == [""] * len(NAMES)
    assert row(found, "ndcg@10", "a", "b")["ci_low"] == 0.0
    assert row(found, "ndcg@10", "a", "b")["effect_size"] == 0.0


def test_users_are_matched_by_label() -> None:
    held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    turned = np.arange(N_USERS)[::-1]
    labels = [f"u{number}" for number in range(N_USERS)]
    lists = np.argsort(-np.random.default_rng(1).random(held_out.shape), axis=1)[:, :20]

    def evaluation(order: Array) -> se.Evaluation:
        users = [labels[place] for place in order]
        relevance = se.Relevance.from_csr(csr_matrix(held_out[order].astype(float)), users=users)
        rankings = se.Rankings.from_topk(lists[order])
        return se.evaluate(rankings, relevance, ["ndcg@10", "mrr@10", "recall(average=micro)@10"])

    found = evaluation(np.arange(N_USERS)).compare(evaluation(turned))
    assert found.table["ties"].tolist()[:2] == [found.n_users] * 2
    # Samples are drawn by row, so they are not of the same users: there is no interval.
    micro = found.table.iloc[2]
    assert (micro["difference"], micro["interval"]) == (0.0, "none")
    assert math.isnan(micro["p"])


def test_what_differs_is_named(three: dict[str, se.Evaluation]) -> None:
    fair = three["fair"]
    refused: list[tuple[Any, str]] = [
        ({"fair": fair}, "two or more"),
        ([fair, fair], "by name"),
        ({"fair": fair, "b": make(2, names=["ndcg@10"])}, "b has no recall@5, .*, but ndcg@10;"),
        ({"fair": fair, "b": make(2, convention="ranx")}, "convention 'standard', b with 'ranx'"),
        ({"fair": fair, "b": make(2, no_relevant="zero")}, "no_relevant 'exclude', b with 'zero'"),
    ]
    held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    fewer = held_out.copy()
    fewer[[3, 5]] = False
    refused.append(({"fair": fair, "b": make(2, held_out=fewer)}, r"2 only in fair \(such as 3, 5"))
    other = held_out.copy()
    other[7] = np.roll(other[7], 1)
    message = r"different validation data: 1 of \d+ users have other .*such as 7\)"
    refused.append(({"fair": fair, "b": make(2, held_out=other)}, message))
    named = {"users": [f"u{number}" for number in range(N_USERS)]}
    refused.append(({"fair": fair, "b": make(2, of=named)}, "no labels for its users"))
    one = np.zeros_like(held_out)
    one[4] = held_out[4]
    both = {"a": make(1, held_out=one), "b": make(2, held_out=one)}
    refused.append((both, "there are 1 users to compare"))
    for evaluations, message in refused:
        with pytest.raises(InvalidDataError, match=message):
            se.compare(evaluations)
    for option in ("test", "correction", "how"):
        with pytest.raises(InvalidDataError, match=f"{option} is 'x'; expected one of"):
            se.compare(three, **{option: "x"})  # type: ignore[arg-type]
    with pytest.raises(InvalidDataError, match="level is 95"):
        se.compare(three, level=95)


def test_the_users_that_all_have(three: dict[str, se.Evaluation]) -> None:
    held_out = np.random.default_rng(0).random((N_USERS, N_ITEMS)) < 0.08
    fewer = held_out.copy()
    fewer[::3] = False
    part = make(2, held_out=fewer)
    found = se.compare({"poor": three["poor"], "part": part}, how="intersection")
    assert found.n_users == part.n_users
    one = row(found, "ndcg@10", "poor", "part")
    assert one["mean_b"] == pytest.approx(part["ndcg@10"])
    users = np.flatnonzero(fewer.any(axis=1))
    assert one["mean_a"] == pytest.approx(three["poor"].values("ndcg@10")[users].mean())
    # What has no value for each user cannot be taken apart.
    overall = row(found, "coverage@5", "poor", "part")
    assert math.isnan(overall["p"])
    assert math.isnan(overall["mean_a"])
    assert overall["n_users"] == part.n_users
    assert "nan" not in repr(found)


def test_relevant_items_are_told_apart_by_label_gain_and_user() -> None:
    gains = csr_matrix([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]])
    lists = se.Rankings.from_topk([[0, 1], [2, 1]])

    def prints(matrix: Any, **labels: Any) -> list[int]:
        relevance = se.Relevance.from_csr(matrix, **labels)
        return se.evaluate(lists, relevance, "mrr@2").fingerprints.tolist()

    plain = prints(gains)
    assert len(set(plain)) == 2
    assert prints(gains.tocsc().tocsr()) == plain
    assert prints(csr_matrix([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]]))[1] != plain[1]
    assert prints(csr_matrix([[2.0, 1.0, 0.0], [0.0, 1.0, 3.0]]))[0] != plain[0]
    named = prints(gains, items=["x", "y", "z"])
    turned = prints(gains[:, [2, 1, 0]], items=["z", "y", "x"])
    assert named == turned
