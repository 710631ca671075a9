"""Estimates from sampled candidates: their definition, bias and variance, and what they refuse."""

import math

import numpy as np
import oracle
import pytest
from raising import raises
from scipy.sparse import csr_matrix

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError
from sparse_eval.metrics.corrected import GAMMA, _Tables
from sparse_eval.metrics.request import Request

pytestmark = pytest.mark.filterwarnings("ignore:metrics among sampled")

both = pytest.mark.parametrize("corrected", ["unbiased", "bias_variance"])


class Problem:
    """Users with one relevant item each: the rank in the catalogue, and among sampled items."""

    def __init__(self, n_users=60, n_items=50, m=12, of_seen=1):
        rng = np.random.default_rng(0)
        users = np.arange(n_users)
        self.scores = rng.random((n_users, n_items))
        seen = rng.random(self.scores.shape) < of_seen * rng.choice([0.05, 0.3], (n_users, 1))
        relevant = rng.integers(0, n_items, n_users)
        seen[users, relevant] = False
        self.m, self.populations = m, n_items - seen.sum(axis=1)
        self.held = csr_matrix((np.ones(n_users), (users, relevant)), self.scores.shape)
        self.train = csr_matrix(seen.astype(float))
        self.candidates = se.sample_negatives(self.train, self.held, m, seed=0)
        self.own = self.candidates.to_csr().toarray() > 0
        better = self.own & (self.scores > self.scores[users, relevant][:, None])
        self.places = better.sum(axis=1)  # rank among the candidates, from 0

    def evaluate(self, metrics, corrected, scores=None, k=None, **options):
        scores = np.where(self.own, self.scores if scores is None else scores, -np.inf)
        lists = se.Rankings.from_scores(scores, k=k)
        among = self.candidates.corrected(corrected)
        defaults = {"validation": self.held, "train": self.train, "candidates": among}
        return se.evaluate(lists, metrics=metrics, **defaults | options)


def test_unbiased_puts_the_estimated_rank_into_the_metric():
    problem = Problem()
    ev = problem.evaluate(["mean_rank", "auc", "percentile_rank"], "unbiased")
    others = problem.populations - 1
    ranks = 1 + others * problem.places / problem.m
    expected = [ranks, 1 - (ranks - 1) / others, (ranks - 1) / others]
    np.testing.assert_allclose(ev.columns, expected, rtol=1e-12, atol=1e-12)


def is_defined(spelling):
    try:
        request = Request.parse(se.Protocol(spelling), ("train", "candidates"))
        request.corrected_by("unbiased")
    except InvalidMetricError:
        return False
    return True


#: Metrics of the oracle, at cut-offs above and below most ranks.
SPELLED = oracle.spelled(oracle.METRICS, (None, 1, 4, 13, 200))
DEFINED = [row for row in SPELLED if is_defined(row[0])]


def estimates(rows, n, m, corrected):
    """The estimates of metrics (columns), by the rank among m sampled items out of n − 1 others."""
    context = oracle.Context(n_items=n, list_length=n, largest_gain=1.0)
    of_ranks = np.array(
        [
            [oracle.value(*row[1:], {0: rank}, {0: 1.0}, context) for row in rows]
            for rank in range(1, n + 1)
        ]
    )
    if corrected == "unbiased":
        return of_ranks[:: (n - 1) // m]
    chances = np.array(
        [
            [
                math.comb(r - 1, j) * math.comb(n - r, m - j) / math.comb(n - 1, m)
                for j in range(m + 1)
            ]
            for r in range(1, n + 1)
        ]
    )
    system = (1 - GAMMA) * chances.T @ chances + GAMMA * np.diag(chances.sum(axis=0))
    return np.linalg.solve(system, chances.T @ of_ranks)


def test_bias_variance_depends_on_the_number_of_candidates_of_the_user():
    problem = Problem()
    names = ("hit_rate@4", "ndcg(gain=linear)@13", "auc(among=candidates)")
    rows = [row for row in DEFINED if row[0] in names]
    ev = problem.evaluate([row[0] for row in rows], "bias_variance")
    for user in range(0, 60, 9):
        expected = estimates(rows, int(problem.populations[user]), problem.m, "bias_variance")
        expected = expected[problem.places[user]]
        np.testing.assert_allclose(ev.columns[:, user], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.long
@both
def test_estimates_are_those_of_the_formula_at_every_cut_off(corrected):
    problem = Problem(n_users=80, n_items=31, m=6, of_seen=0)  # estimated ranks are 1, 6, 11, …
    assert len(DEFINED) > 100
    assert len(set(problem.places.tolist())) == 7
    model = (lambda users: problem.scores[users], problem.train, problem.held)
    among = problem.candidates.corrected(corrected)
    cut = [row for row in DEFINED if row[3] is not None]
    names, cut_names = ([row[0] for row in rows] for rows in (DEFINED, cut))
    for rows, ev in (
        (DEFINED, problem.evaluate(names, corrected)),
        (DEFINED, se.evaluate_model(*model, names, candidates=among)),
        (cut, se.evaluate_model(*model, cut_names, candidates=among, keep="lists")),
    ):
        expected = estimates(rows, 31, 6, corrected)[problem.places]
        np.testing.assert_allclose(ev.columns.T, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.filterwarnings("ignore:420 listed items")
@pytest.mark.parametrize("items", ["repeat", "explore"])
def test_relevant_items_are_chosen_before_they_are_estimated(items):
    rng = np.random.default_rng(0)
    train = csr_matrix((rng.random((30, 20)) < 0.3) * 1)
    relevant = rng.integers(0, 20, 30)
    held = csr_matrix((np.ones(30), (np.arange(30), relevant)), (30, 20))
    lists = se.Rankings.from_topk(np.array([rng.permutation(20) for _ in range(30)]))
    names = ["recall@3", f"recall(items={items})@3"]
    among = se.sample_negatives(train, held, 5, seed=0).corrected("unbiased")
    protocol = se.Protocol(names, filter_seen=False)
    found = se.evaluate(lists, held, protocol, train=train, candidates=among)
    is_known = np.asarray(train[np.arange(30), relevant]).ravel() > 0
    chosen = is_known if items == "repeat" else ~is_known
    expected = np.where(chosen, found.values("recall@3"), np.nan)
    np.testing.assert_array_equal(found.values(names[1]), expected)


@both
def test_random_lists_are_estimated_exactly(corrected):
    problem, metrics = Problem(n_users=100), ["ndcg@5", "hit_rate@3", "mean_rank"]
    ev = problem.evaluate(metrics, corrected)
    draws = [np.random.default_rng(seed).random(problem.scores.shape) for seed in range(25)]
    means = [problem.evaluate(metrics, corrected, scores=scores).mean() for scores in draws]
    for name in metrics:
        drawn = np.array([mean[name] for mean in means])
        random = ev.random(name)
        assert random.error == 0
        assert abs(drawn.mean() - random.mean) < 4.5 * drawn.std() / math.sqrt(25)


@both
@pytest.mark.filterwarnings("ignore:4 of 4 relevant items are in train")
def test_random_lists_miss_relevant_items_that_were_seen_as_all_lists_do(corrected):
    problem, metrics = Problem(n_users=4), ["ndcg@5", "hit_rate@3", "mean_rank"]
    problem.own &= problem.held.toarray() == 0
    ev = problem.evaluate(metrics, corrected, train=problem.train + problem.held)
    assert [ev.random(name).mean for name in metrics] == pytest.approx(list(ev.mean().values()))


def test_saved_and_compared(tmp_path):
    problem = Problem(n_users=300)
    ev = problem.evaluate("ndcg@10", "bias_variance")
    assert "ndcg@10 (1+12, bias_variance)" in str(ev)
    again = se.Evaluation.load(ev.save(tmp_path / "ev"))
    assert str(again) == str(ev)
    assert again.request.corrected == "bias_variance"
    with raises(InvalidDataError):
        se.compare({"a": again, "b": problem.evaluate("ndcg@10", "unbiased")})


def test_refuses_what_is_not_defined():
    problem = Problem()
    for metric in ("coverage@5", "fcp@5", "recall(average=micro)@5"):
        with raises(InvalidMetricError):
            problem.evaluate(metric, "unbiased")
    with raises(InvalidMetricError):
        items = se.ItemData(propensity=np.full(50, 0.5))
        problem.evaluate("recall(weights=snips)@2", "unbiased", items=items)
    with raises(InvalidDataError, argument="estimator"):
        problem.evaluate("mrr", "both")
    with raises(InvalidMetricError):
        problem.evaluate("map@5", "unbiased", convention="trec_eval")
    with raises(InvalidDataError):
        problem.evaluate("mrr", "unbiased", k=1)
    several = csr_matrix(problem.held.toarray() + np.eye(60, 50))
    for held, by in ((problem.held, "popularity"), (several, "uniform")):
        with raises(InvalidDataError):
            se.sample_negatives(problem.train, held, 5, by=by).corrected("unbiased")
    with raises(InvalidDataError):
        problem.evaluate("ndcg@5", "unbiased", validation=problem.held * 2.0)


def test_tables_of_large_catalogues_are_interpolated():
    plans = Request.parse(se.Protocol(["ndcg@10", "hit_rate@10"])).plans
    for n in (4200, 4444):
        tables = _Tables(plans)
        near, exact = tables._between(n, 30), tables._table(n, 30)
        np.testing.assert_allclose(near, exact, rtol=2e-3, atol=2e-5)
        assert len(tables.tables) == 3
