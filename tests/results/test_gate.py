"""`gate`: verdicts against SciPy's tests, faults of rules and data, and what a decision writes."""

import math
import tomllib
from xml.etree import ElementTree as ET

import numpy as np
import pandas as pd
import pytest
from gate_cases import EVS, RANKS, USERS, A, B, N, not_worse, result, rules
from scipy import stats
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidFileError
from sparse_eval.results.gate_rules import EXAMPLE, Rules


def two_models(metrics):
    """Return evaluations of two models, with training data and a baseline."""
    clicks = se.datasets.synthetic(n_users=250, n_items=60, seed=0)
    holdout = se.split.random(clicks, seed=0)
    rng = np.random.default_rng(0)
    n_users, n_items = holdout.train.shape
    models = [
        tuple(rng.standard_normal((n, 4)).astype(np.float32) for n in (n_users, n_items))
        for _ in range(2)
    ]
    sides = holdout.train.csr, holdout.validation.csr
    return [se.evaluate_model(model, *sides, metrics, baselines=True) for model in models]


@pytest.fixture(scope="module")
def model_results():
    return two_models(["ndcg@10", "coverage@10"])


@pytest.mark.parametrize(
    ("rule", "values"),
    [
        (not_worse("5%"), A - 0.95 * B),
        (not_worse(0.05), A - B + 0.05),
        ({"metric": "mrr@10", "better_by": "5%"}, A - 1.05 * B),
        ({"metric": "mrr@10", "better_by": 0.01}, A - B - 0.01),
        ({"metric": "mrr@10", "at_least": 0.25}, A - 0.25),
        ({"metric": "mrr@10", "at_most": 0.25}, 0.25 - A),
        ({"losers": "mrr@10", "more_than": 0.3, "at_most": 0.3}, 0.3 - (B - A > 0.3)),
    ],
)
def test_p_values_are_those_of_scipy(rule, values):
    (row,) = se.gate(rules(rule), EVS[0], EVS[1]).table.to_dict("records")
    better, worse = (stats.ttest_1samp(values, 0, alternative=side) for side in ("greater", "less"))
    assert row["p_passed"] == pytest.approx(better.pvalue, rel=1e-10)
    assert row["p_failed"] == pytest.approx(worse.pvalue, rel=1e-10)
    interval = stats.ttest_1samp(values, 0).confidence_interval(0.9)
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(tuple(interval), rel=1e-9)
    assert row["excess"] == pytest.approx(values.mean())


def test_the_verdict_follows_from_the_tests():
    better = result(np.maximum(RANKS[0] - 2, 1))
    worse = result(np.minimum(RANKS[0] + 3, 10))
    rule = rules(not_worse())
    assert se.gate(rule, better, EVS[0]).verdict == "passed"
    assert se.gate(rule, worse, EVS[0]).verdict == "failed"
    other = se.gate(rules(not_worse("1%")), EVS[1], EVS[0])
    assert other.verdict == "undecided"
    assert se.gate(rules(not_worse("1%"), undecided="fail"), EVS[1], EVS[0]).verdict == "failed"
    # One failed rule is enough, unless it only warns.
    both = rules(not_worse(), {"metric": "mrr@10", "at_least": 0.99})
    assert se.gate(both, better, EVS[0]).verdict == "failed"
    both["rule"][1]["level"] = "warn"
    warned = se.gate(both, better, EVS[0])
    assert warned.verdict == "passed"
    assert warned.table["verdict"].tolist() == ["passed", "failed"]


def test_a_failure_is_corrected_for_the_number_of_tests():
    p = se.gate(rules(not_worse(0.0)), EVS[2], EVS[0]).table["p_failed"][0]
    q = se.gate(rules(not_worse(0.0)), EVS[0], EVS[2]).table["p_failed"][0]
    worse, better, p = (EVS[2], EVS[0], p) if p < q else (EVS[0], EVS[2], q)
    assert 0 < p < 0.5
    for number, verdict in ((1, "failed"), (3, "undecided")):
        copies = [not_worse(0.0)] * number
        decision = se.gate(rules(*copies, alpha=float(1.5 * p)), worse, better)
        assert decision.table["verdict"].tolist() == [verdict] * number
    # A year's share of failures is spent equally.
    yearly = rules(not_worse(0.0), alpha_per_year=float(1.5 * p), nights_per_year=2)
    assert se.gate(yearly, worse, better).verdict == "undecided"


def test_the_users_who_would_decide():
    decision = se.gate(rules(not_worse("1%")), EVS[1], EVS[0])
    (row,) = decision.table.to_dict("records")
    values = B - 0.99 * A
    effect = abs(values.mean()) / values.std(ddof=1)
    # The correction has one test, so both sides have the same level.
    n = row["users_needed"]
    shift, quantile = effect * math.sqrt(n), stats.t.ppf(0.95, n - 1)
    assert stats.nct.sf(quantile, n - 1, shift) == pytest.approx(0.8, abs=0.01)
    assert f"undecided: {n:,} users would decide" in str(decision)


def test_the_reference_stops_many_small_losses():
    step = np.arange(N) % 25 == 0
    worse = result(np.where(step, np.minimum(RANKS[0] + 1, 10), RANKS[0]))
    much_worse = result(np.minimum(RANKS[0] + 1, 10))
    decision = se.gate(rules(not_worse("5%")), much_worse, worse, EVS[0])
    assert decision.table["against"].tolist() == ["champion", "reference"]
    assert se.gate(rules(not_worse("5%", against="champion")), worse, EVS[0], EVS[0]).verdict == (
        "passed"
    )
    assert decision.verdict == "failed"


def test_where_less_is_better_sides_change():
    metric = "mean_rank"
    better, worse = two_models(metric)
    a, b = (ev.values(metric) for ev in (better, worse))
    values = (1.05 * b - a)[~np.isnan(a)]
    rule = {"metric": metric, "not_worse_by": "5%"}
    (row,) = se.gate(rules(rule), better, worse).table.to_dict("records")
    expected = stats.ttest_1samp(values, 0, alternative="greater").pvalue
    assert row["p_passed"] == pytest.approx(expected, rel=1e-9)
    loses = 0.5 - (a - b > 1)[~np.isnan(a)]
    rule = {"losers": metric, "more_than": 1, "at_most": 0.5}
    (row,) = se.gate(rules(rule), better, worse).table.to_dict("records")
    assert row["excess"] == pytest.approx(loses.mean())


def test_segments_of_a_file(tmp_path):
    table = pd.DataFrame({"user": USERS, "plan": ["free"] * 200 + ["paid"] * 100, "age": "all"})
    table.to_csv(tmp_path / "users.csv", index=False)
    text = '[[rule]]\nmetric = "mrr@10"\nnot_worse_by = "5%"\nsegments = "users.csv:plan"\n'
    (tmp_path / "rules.toml").write_text(text + "min_users = 150\n")
    decision = se.gate(tmp_path / "rules.toml", EVS[0], EVS[1])
    assert decision.table["segment"].tolist() == ["plan free", "plan paid"]
    assert decision.table["n_users"].tolist() == [200, 100]
    assert decision.table["verdict"][1] == "too few users"
    values = (A - 0.95 * B)[:200]
    expected = stats.ttest_1samp(values, 0, alternative="greater").pvalue
    assert decision.table["p_passed"][0] == pytest.approx(expected, rel=1e-10)
    # The free users alone decide, and nobody if all segments are too small.
    (tmp_path / "rules.toml").write_text(text + "min_users = 150\n")
    assert se.gate(tmp_path / "rules.toml", EVS[0], EVS[0]).verdict == "passed"
    (tmp_path / "rules.toml").write_text(text + "min_users = 250\n")
    few = se.gate(tmp_path / "rules.toml", EVS[0], EVS[0])
    assert few.verdict == "undecided"
    assert few.notes == (
        "undecided: the rule mrr@10 not worse by 5% has no segment with min_users = 250",
    )
    more = '[[rule]]\nmetric = "mrr@10"\nnot_worse_by = "5%"\n'
    (tmp_path / "rules.toml").write_text(f'{text}min_users = 250\nlevel = "warn"\n{more}')
    assert se.gate(tmp_path / "rules.toml", EVS[0], EVS[0]).verdict == "passed"
    (tmp_path / "rules.toml").write_text(text.replace(":plan", ":job"))
    with pytest.raises(InvalidDataError, match="has no column 'job'; it has plan, age"):
        se.gate(tmp_path / "rules.toml", EVS[0], EVS[1])
    (tmp_path / "rules.toml").write_text(text.replace(":plan", ""))
    decision = se.gate(tmp_path / "rules.toml", EVS[0], EVS[1])
    assert decision.table["segment"].tolist() == ["plan free", "plan paid", "age all"]


def test_segments_by_activity_and_newcomers(model_results, tmp_path):
    a, b = model_results
    rule = {"metric": "ndcg@10", "not_worse_by": "50%", "segments": "activity"}
    table = se.gate(rules(rule), a, b).table
    assert table["n_users"].sum() == a.n_users
    seen = a._part.per_user.n_seen[a._part.per_user.counted]
    assert len(table) == 5
    first = int(table["segment"][1].partition("–")[0])
    assert first == seen.min()
    # The same from saved results.
    saved = [ev.save(tmp_path / name) for ev, name in zip(model_results, "ab", strict=True)]
    pd.testing.assert_frame_equal(se.gate(rules(rule), *saved).table, table)
    old = result(RANKS[0][:200], USERS[:200])
    new = {"metric": "mrr@10", "at_least": 0.01, "segments": "newcomers"}
    decision = se.gate(rules(new), EVS[1], old)
    assert decision.table[["segment", "n_users"]].values.tolist() == [["newcomers", 100]]
    assert decision.table["candidate"][0] == pytest.approx(B[200:].mean())
    assert decision.notes == ("users only of the candidate, who are not compared: 100",)
    with pytest.raises(InvalidDataError, match="only the candidate has newcomers"):
        se.gate(rules(not_worse(segments="newcomers")), EVS[1], old)


def test_users_whom_the_champion_does_not_know(tmp_path):
    holdout = se.split.random(se.datasets.synthetic(n_users=250, n_items=60, seed=0), seed=0)
    factors = np.random.default_rng(0).random((250, 4)), np.random.default_rng(1).random((60, 4))

    def model(first, last):
        users = holdout.train.users[first:last]
        known = se.factor_model(
            factors[0][first:last], factors[1], users=users, items=holdout.items
        )
        return se.evaluate_model(known, holdout, "ndcg@10,hit_rate@10")

    with pytest.warns(UserWarning, match="unknown to the model"):
        old, other, new = model(0, 200), model(50, 250), model(0, 250)
    rule = rules({"metric": "ndcg@10", "not_worse_by": "5%"})
    decision = se.gate(rule, new, old)
    counted = new._part.per_user.counted
    n_known = int(counted[:200].sum())
    assert decision.table["n_users"].tolist() == [n_known]
    assert decision.table["difference"].tolist() == [0]
    n_new = int(counted.sum()) - n_known
    assert decision.notes[0].endswith(f"(newcomers), who are not compared: {n_new}")
    # Whom only the champion knows counts as a loss, and in the share that both know.
    assert se.gate(rule, other, old).table["difference"][0] < 0
    share = counted[50:200].sum() / n_known
    with pytest.raises(InvalidDataError, match=f"a share of {share:.3g}, and the rules ask for"):
        se.gate(rule | {"min_shared": 0.9}, other, old)
    of_new = rules({"metric": "hit_rate@10", "at_least": 0.01, "segments": "newcomers"})
    saved = [ev.save(tmp_path / name) for name, ev in (("new", new), ("old", old))]
    for pair in ((new, old), saved):
        assert se.gate(of_new, *pair).table["n_users"].tolist() == [n_new]


def test_metrics_of_all_users_together(model_results):
    a, b = model_results
    bound = {"metric": "coverage@10", "at_least": 0.1}
    (row,) = se.gate(rules(bound), a, b).table.to_dict("records")
    summary = a.summary().loc["coverage@10"]
    assert row["candidate"] == summary["mean"]
    same = rules({"metric": "coverage@10", "not_worse_by": 0.05})
    assert se.gate(same, a, a).verdict == "passed"
    assert se.gate(same, a, a).table["users_needed"].isna().all()
    for wrong in ({"segments": "activity"}, {}):
        rule = {"metric": "coverage@10", "not_worse_by": 0.05, **wrong}
        if not wrong:
            rule = {"losers": "coverage@10", "more_than": 0.1, "at_most": 0.1}
        with pytest.raises(InvalidDataError, match="one number for all users together"):
            se.gate(rules(rule), a, b)
    few = result(RANKS[0][:200], USERS[:200])
    with pytest.raises(InvalidDataError, match="evaluated for different users"):
        se.gate(rules({"metric": "coverage@10", "not_worse_by": 0.1}), EVS[0], few)


def test_baselines(model_results, tmp_path):
    a, b = model_results
    rule = {"metric": "ndcg@10", "better_by": "5%", "against": "popularity"}
    (row,) = se.gate(rules(rule), a, b).table.to_dict("records")
    assert row["other"] == a.baselines["popularity"]["ndcg@10"]
    assert row["verdict"] == "failed"
    saved = [ev.save(tmp_path / name) for ev, name in zip(model_results, "ab", strict=True)]
    assert se.gate(rules(rule), *saved).table.to_dict("records") == [row]
    with pytest.raises(InvalidDataError, match="no 'random' to compare with; there are champion"):
        se.gate(rules(rule | {"against": "random"}), a, b)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "there is no rule"),
        (rules(), "there is no rule"),
        (rules(not_worse(), min_user=1), "'min_user'; did you mean min_users"),
        (rules(not_worse(), night=1), "has the key 'night'. The keys are"),
        (rules({"metrik": "mrr@10"}), "rule 1 has the key 'metrik'; did you mean metric"),
        (rules({"metric": "mrr@10"}), "has none of not_worse_by"),
        (rules({"not_worse_by": "1%"}), "needs either metric or losers"),
        (rules(not_worse(at_least=1)), "has not_worse_by, at_least of"),
        (rules({"losers": "mrr@10", "at_most": 0.1}), "needs more_than and at_most"),
        (rules(not_worse(more_than=0.1)), "more_than is for losers"),
        (rules(not_worse("2 percent")), "rule 1: not_worse_by"),
        (rules(not_worse(-0.1)), "at least 0"),
        (rules({"metric": "mrr@10", "at_least": "0.1"}), "expected a number"),
        (rules({"metric": "mrr@10", "at_least": 0.1, "against": "champion"}), "bounds the candid"),
        (rules(not_worse(level="note")), "rule 1: level"),
        (rules(not_worse(min_users=0)), "rule 1: min_users"),
        (rules(not_worse(segments=3)), "segments is 3; expected text"),
        (rules("mrr@10"), "rule 1 is 'mrr@10'"),
        (rules(not_worse("200%")), "with which every model would pass"),
        (rules(not_worse(level="warn")), "so that the gate could not fail"),
        (rules(not_worse(), alpha=0.5), "the chance of a wrong pass"),
        (rules(not_worse(), alpha=1.5), "alpha: expected a number between 0 and 1"),
        (rules(not_worse(), min_shared=2), "min_shared is a share"),
        (rules(not_worse(), alpha_per_year=0.05), "belong together"),
        (rules(not_worse(), undecided="pass"), "undecided"),
        (rules({"metric": "ndcg@10", "at_least": 0}), "not all evaluations have ndcg@10"),
        (rules(not_worse(against="yesterday")), "no 'yesterday' to compare with"),
        (rules(not_worse(segments="activity")), "training items are not known"),
        (rules(not_worse(), min_users=301), "share 300 evaluated users with a list"),
    ],
)
def test_faults_of_rules(given, message):
    with pytest.raises(InvalidDataError, match=message):
        se.gate(given, EVS[0], EVS[1])


def test_margins_with_which_every_model_would_pass():
    with pytest.raises(InvalidDataError, match="so every model would pass; a percentage ends in %"):
        se.gate(rules(not_worse(5)), EVS[0], EVS[1])


def test_faults_of_data(tmp_path):
    rule = rules(not_worse(), min_shared=0.95)
    few = result(RANKS[0][:4], USERS[:4])
    with pytest.raises(InvalidDataError, match="for 4 of the champion's 300 users"):
        se.gate(rule, few, EVS[0])
    others = result(RANKS[0], np.char.add("x", USERS))
    with pytest.raises(InvalidDataError, match="users to compare: 0"):
        se.gate(rule, others, EVS[0])
    for name in ("v9", "v10"):
        EVS[0].save(tmp_path / name)
    with pytest.raises(InvalidDataError, match="several results; name one of them: v10, v9"):
        se.gate(rule, tmp_path, EVS[0])
    with pytest.raises(InvalidFileError, match="."):
        se.gate(rule, tmp_path / "v11", EVS[0])
    with pytest.raises(InvalidFileError, match="is no TOML"):
        se.gate(_written(tmp_path / "rules.toml", "[[rule]\n"), EVS[0], EVS[1])
    with pytest.raises(InvalidFileError, match="."):
        se.gate(tmp_path / "none.toml", EVS[0], EVS[1])
    zero = result(np.full(N, 1), metrics=["mrr@10"])
    nothing = rules({"metric": "mrr@10", "not_worse_by": "5%"})
    held_out = csr_matrix((np.ones(N), (np.arange(N), np.zeros(N, int))), (N, 12))
    relevance = se.Relevance.from_csr(held_out, users=USERS, items=[f"i{i}" for i in range(12)])
    lists = se.Rankings.from_topk(np.ones((N, 1), int), users=USERS, items=relevance.items_index)
    with pytest.warns(UserWarning, match="no list contains a relevant item"):
        missed = se.evaluate(lists, relevance, "mrr@10")
    with pytest.raises(InvalidDataError, match="mean is 0, of which there is no percentage"):
        se.gate(nothing, zero, missed)


def _written(path, text):
    path.write_text(text)
    return path


def test_unknown_items_of_a_model():
    clicks = se.datasets.synthetic(n_users=250, n_items=60, seed=0)
    holdout = se.split.random(clicks, seed=0)
    some = se.baselines.popularity(holdout.train.csr[:, :40])
    items = holdout.items[:40]
    model = se.factor_model(some.user_factors, some.item_factors, users=holdout.users, items=items)
    with pytest.warns(UserWarning, match="are unknown to the model"):
        ev = se.evaluate_model(model, holdout, "ndcg@10")
    rule = rules(
        {"metric": "ndcg@10", "not_worse_by": "5%"},
    )
    held_out = holdout.validation.csr
    share = held_out[:, 40:].nnz / held_out.nnz
    for most, fails in ((share - 1e-9, True), (share + 1e-9, False)):
        given = rule | {"max_unknown_items": most}
        if fails:
            with pytest.raises(InvalidDataError, match=f"items of {share:.3g} of the held-out"):
                se.gate(given, ev, ev)
        else:
            assert se.gate(given, ev, ev).verdict == "passed"


def test_the_example_is_valid():
    parsed = Rules.parse(tomllib.loads(EXAMPLE))
    assert [str(rule) for rule in parsed.rules] == [
        "ndcg@10 not worse by 2%",
        "recall@20 not worse by 10%",
        "losers of more than 0.05 by ndcg@10: at most 0.1",
        "coverage@20 at least 0.15",
        "ndcg@10 better by 5%",
    ]
    assert parsed.digest != Rules.parse(tomllib.loads(EXAMPLE.replace("0.95", "0.9"))).digest


def test_what_a_decision_writes():
    given = rules(not_worse("1%"), {"metric": "mrr@10", "at_least": 0.99}, not_worse(0.29))
    decision = se.gate(given, EVS[1], EVS[0])
    suite = ET.fromstring(decision.to_junit())  # noqa: S314 - our own
    assert suite.attrib == {
        "name": "sparse_eval gate", "tests": "4", "failures": "2", "errors": "1", "skipped": "0",
    }  # fmt: skip
    assert [len(case) for case in suite] == [1, 1, 0, 1]
    assert not decision
    assert se.gate(rules(not_worse()), EVS[0], EVS[0])
    content = decision.to_dict()
    assert content["verdict"] == "failed"
    assert [test["verdict"] for test in content["tests"]] == ["undecided", "failed", "passed"]
    assert "| mrr@10 not worse by 1%" in decision.to_markdown()
    assert "verdict: failed" in str(decision)
    assert repr(decision) == "<Decision: failed, 3 tests>"
    assert "&lt;Decision: failed, 3 tests&gt;" in decision._repr_html_()
