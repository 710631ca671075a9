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

SAMPLED = pytest.mark.filterwarnings("ignore:metrics among sampled")


class Problem:
    """Users with one relevant item each: the rank in the catalogue, and among sampled items."""

    def __init__(self, n_users=60, n_items=50, m=12, of_seen=1):
        rng = np.random.default_rng(0)
        scores = rng.random((n_users, n_items))
        seen = rng.random(scores.shape) < of_seen * rng.choice([0.05, 0.3], (n_users, 1))
        self.relevant = rng.integers(0, n_items, n_users)
        seen[np.arange(n_users), self.relevant] = False
        self.m, self.scores, self.seen = m, scores, seen
        self.held = csr_matrix(
            (np.ones(n_users), (np.arange(n_users), self.relevant)), scores.shape
        )
        self.train = csr_matrix(seen.astype(float))
        self.candidates = se.sample_negatives(self.train, self.held, m, seed=0)
        own = self.candidates.to_csr().toarray() > 0
        self.lists = self.ranked(own)
        best = scores[np.arange(n_users), self.relevant][:, None]
        self.places = (own & (scores > best)).sum(axis=1)  # rank among the candidates, from 0
        self.populations = n_items - seen.sum(axis=1)

    def ranked(self, pool):
        order = np.argsort(np.where(pool, -self.scores, np.inf), axis=1)
        ids = np.where(np.take_along_axis(pool, order, axis=1), order, -1)
        return se.Rankings.from_topk(ids, shape=pool.shape)

    def evaluate(self, metrics, corrected, **options):
        among = self.candidates.corrected(corrected)
        return se.evaluate(
            self.lists, self.held, metrics, train=self.train, candidates=among, **options
        )


def of_rank(spelling, rank, n):
    """A metric of one relevant item at a rank among n, by the oracle."""
    name, _, k = spelling.partition("@")
    name, _, inside = name.partition("(")
    options = dict(option.split("=") for option in inside.rstrip(")").split(",") if option)
    context = oracle.Context(n_items=n, list_length=n, largest_gain=1.0)
    return oracle.value(name, options, int(k) if k else None, {0: rank}, {0: 1.0}, context)


@SAMPLED
def test_unbiased_puts_the_estimated_rank_into_the_metric():
    problem = Problem()
    ev = problem.evaluate(["mean_rank", "auc", "percentile_rank"], "unbiased")
    others = problem.populations - 1
    ranks = 1 + others * problem.places / problem.m
    expected = [ranks, 1 - (ranks - 1) / others, (ranks - 1) / others]
    np.testing.assert_allclose(ev.columns, expected, rtol=1e-12, atol=1e-12)


#: Metrics of the oracle, at cut-offs above and below most ranks.
SPELLINGS = [
    oracle.spelling(name, options, k)
    for name, options in oracle.METRICS
    for k in (None, 1, 4, 13, 200)
    if (k is not None or name not in oracle.NEEDS_CUTOFF)
    and (k is None or name not in oracle.NO_CUTOFF)
]


def is_defined(spelling):
    try:
        request = Request.parse(se.Protocol(spelling), ("train", "candidates"))
        request.corrected_by("unbiased")
    except InvalidMetricError:
        return False
    return True


DEFINED = [spelling for spelling in SPELLINGS if is_defined(spelling)]


class Formula:
    """The estimates of metrics, by the rank among m sampled items out of n − 1 others."""

    def __init__(self, spellings, n, m):
        self.n, self.m = n, m
        self.of_ranks = np.array([[of_rank(s, rank, n) for s in spellings]
                                  for rank in range(1, n + 1)])  # fmt: skip
        chances = np.array(
            [[math.comb(r - 1, j) * math.comb(n - r, m - j) / math.comb(n - 1, m)
              for j in range(m + 1)] for r in range(1, n + 1)]
        )  # fmt: skip
        system = (1 - GAMMA) * chances.T @ chances + GAMMA * np.diag(chances.sum(axis=0))
        self.bias_variance = np.linalg.solve(system, chances.T @ self.of_ranks)

    def estimates(self, corrected, place):
        """Return the estimate of each metric; None where no whole rank is estimated."""
        if corrected == "bias_variance":
            return self.bias_variance[place]
        rank = 1 + (self.n - 1) * place / self.m
        return self.of_ranks[int(rank) - 1] if rank == int(rank) else None


@SAMPLED
def test_bias_variance_depends_on_the_number_of_candidates_of_the_user():
    problem, names = Problem(), ["hit_rate@3", "ndcg@5", "auc"]
    ev = problem.evaluate(names, "bias_variance")
    for user in range(0, 60, 9):
        formula = Formula(names, int(problem.populations[user]), problem.m)
        expected = formula.estimates("bias_variance", problem.places[user])
        np.testing.assert_allclose(ev.columns[:, user], expected, rtol=1e-9, atol=1e-9)


@SAMPLED
@pytest.mark.parametrize("corrected", ["unbiased", "bias_variance"])
def test_estimates_are_those_of_the_formula_at_every_cut_off(corrected):
    problem = Problem(n_users=80, n_items=31, m=6, of_seen=0)  # estimated ranks are 1, 6, 11, …
    formula = Formula(DEFINED, 31, 6)
    expected = np.array([formula.estimates(corrected, place) for place in problem.places])
    assert len(DEFINED) > 100
    assert len(set(problem.places.tolist())) == 7
    parts = (lambda users: problem.scores[users], problem.train, problem.held)
    among = problem.candidates.corrected(corrected)
    cut = [spelling for spelling in DEFINED if "@" in spelling]
    for ev in (
        problem.evaluate(DEFINED, corrected),
        se.evaluate_model(*parts, DEFINED, candidates=among),
        se.evaluate_model(*parts, cut, candidates=among, keep="lists"),
    ):
        rows = [
            DEFINED.index(spelling) for spelling in (cut if len(ev.names) == len(cut) else DEFINED)
        ]
        np.testing.assert_allclose(ev.columns.T, expected[:, rows], rtol=1e-9, atol=1e-9)


@SAMPLED
@pytest.mark.filterwarnings("ignore:420 listed items")
@pytest.mark.parametrize("items", ["repeat", "explore"])
def test_relevant_items_are_chosen_before_they_are_estimated(items):
    rng = np.random.default_rng(0)
    train = csr_matrix((rng.random((30, 20)) < 0.3) * 1)
    relevant = rng.integers(0, 20, 30)
    held = csr_matrix((np.ones(30), (np.arange(30), relevant)), (30, 20))
    lists = se.Rankings.from_topk(np.array([rng.permutation(20) for _ in range(30)]))
    names = ["recall@3", f"recall(items={items})@3"]
    found = se.evaluate(
        lists,
        held,
        se.Protocol(names, filter_seen=False),
        train=train,
        candidates=se.sample_negatives(train, held, 5, seed=0).corrected("unbiased"),
    )
    is_known = np.asarray(train[np.arange(30), relevant]).ravel() > 0
    chosen = is_known if items == "repeat" else ~is_known
    expected = np.where(chosen, found.values("recall@3"), np.nan)
    np.testing.assert_array_equal(found.values(names[1]), expected)


@SAMPLED
@pytest.mark.parametrize("corrected", ["unbiased", "bias_variance"])
def test_random_lists_are_estimated_exactly(corrected):
    problem = Problem(n_users=100)
    metrics = ["ndcg@5", "hit_rate@3", "mean_rank"]
    ev = problem.evaluate(metrics, corrected)
    means = []
    for seed in range(25):
        own = problem.candidates.to_csr().toarray() > 0
        problem.scores = np.random.default_rng(seed).random(problem.scores.shape)
        problem.lists = problem.ranked(own)
        means.append(problem.evaluate(metrics, corrected).mean())
    for name in metrics:
        drawn = np.array([mean[name] for mean in means])
        random = ev.random(name)
        assert random.error == 0
        assert abs(drawn.mean() - random.mean) < 4.5 * drawn.std() / math.sqrt(25)


@SAMPLED
@pytest.mark.parametrize("corrected", ["unbiased", "bias_variance"])
def test_saved_and_compared(corrected, tmp_path):
    clicks = se.datasets.synthetic(n_users=150, n_items=400, seed=0)
    holdout = se.split.leave_k_out(clicks, seed=0)
    model = se.baselines.popularity(holdout)
    candidates = se.sample_negatives(holdout, n=20, seed=0)
    metrics = ["ndcg@10", "hit_rate@10"]
    among = candidates.corrected(corrected)
    ev = se.evaluate_model(model, holdout, metrics, candidates=among)
    assert f"ndcg@10 (1+20, {corrected})" in str(ev)
    again = se.Evaluation.load(ev.save(tmp_path / "ev"))
    assert str(again) == str(ev)
    assert again.request.corrected == corrected
    plain = se.evaluate_model(model, holdout, metrics, candidates=candidates)
    with raises(InvalidDataError):
        se.compare({"a": again, "b": plain})


@SAMPLED
def test_refuses_what_is_not_defined():
    problem = Problem()
    for metric in ("coverage@5", "fcp@5", "recall(average=micro)@5"):
        with raises(InvalidMetricError):
            problem.evaluate(metric, "unbiased")
    with raises(InvalidDataError, argument="estimator"):
        problem.evaluate("mrr", "both")
    with raises(InvalidMetricError):
        problem.evaluate("map@5", "unbiased", convention="trec_eval")
    popular = se.sample_negatives(problem.train, problem.held, 5, by="popularity")
    with raises(InvalidDataError):
        se.evaluate(problem.lists, problem.held, "mrr", candidates=popular.corrected("unbiased"))
    cut = se.Rankings.from_topk(problem.lists.to_positions().indices[:60, None] * 0 + 49,
                                shape=problem.scores.shape)  # fmt: skip
    options = {"train": problem.train, "candidates": problem.candidates.corrected("unbiased")}
    with raises(InvalidDataError):
        se.evaluate(cut, problem.held, "mrr", **options)
    several = csr_matrix(problem.held.toarray() + np.eye(60, 50))
    candidates = se.sample_negatives(problem.train, several, 5)
    with raises(InvalidDataError):
        se.evaluate(problem.lists, several, "mrr", candidates=candidates.corrected("unbiased"))
    graded = problem.held * 2.0
    with raises(InvalidDataError):
        se.evaluate(problem.lists, graded, "ndcg@5", **options)


def test_tables_of_large_catalogues_are_interpolated():
    plans = Request.parse(se.Protocol(["ndcg@10", "hit_rate@10"])).plans
    for n in (4200, 4444):
        tables = _Tables(plans)
        near, exact = tables._between(n, 30), tables._table(n, 30)
        np.testing.assert_allclose(near, exact, rtol=2e-3, atol=2e-5)
        assert len(tables.tables) == 3
