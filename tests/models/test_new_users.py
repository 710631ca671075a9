"""Users whom a model was not trained on are folded in, and evaluated as by the model itself."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from implicit.cpu.bpr import BayesianPersonalizedRanking
from implicit.nearest_neighbours import CosineRecommender
from raising import raises, warns
from scipy import sparse
from systems import need_posix
from threadpoolctl import threadpool_limits

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, UnsupportedModelError
from sparse_eval.models.opening import as_model

METRICS = ["ndcg@10", "recall@5", "coverage@10"]


@pytest.fixture(scope="module")
def holdout():
    clicks = se.datasets.synthetic(n_users=150, n_items=90, n_interactions=2500, seed=3)
    return se.split.users(clicks, fraction=0.3, fold_in=0.6, test=0.1, seed=1)


@pytest.fixture(scope="module")
def als(holdout):
    return se.train_als(holdout.train, factors=12, alpha=7.0, regularization=0.3, iterations=5)


def matrix(part, dtype=np.float32):
    return part.csr.astype(dtype)


def factors_of(items, values, alpha, regularization):
    """The factors of one user as the equations read, in float64."""
    confidence = np.ones(len(items))
    preference = np.zeros(len(items))
    for item, value in values.items():
        confidence[item] = alpha * value
        preference[item] = float(value > 0)
    left = items.T @ np.diag(confidence) @ items + regularization * np.eye(items.shape[1])
    return np.linalg.solve(left, items.T @ (confidence * preference))


@given(st.integers(0, 2**32 - 1), st.floats(0.5, 20), st.floats(0.05, 5), st.booleans())
def test_factors_solve_the_equations(seed, alpha, regularization, of_model):
    rng = np.random.default_rng(seed)
    n_items, width = rng.integers(2, 12), rng.integers(1, 5)
    items = rng.standard_normal((n_items, width))
    seen = sparse.random_array((4, n_items), density=0.4, rng=rng, format="csr")
    seen.data = rng.integers(0, 4, seen.nnz).astype(float)  # explicit zeros among them
    seen = sparse.csr_matrix(seen)
    model = (rng.standard_normal((3, width)), items)
    options = {"regularization": regularization, "alpha": alpha}
    if of_model:
        from implicit.cpu.als import AlternatingLeastSquares

        with threadpool_limits(1, "blas"):
            model = AlternatingLeastSquares(factors=width, **options)
        model.user_factors, model.item_factors = np.zeros((3, width)), items
        options = {}
    folded = se.fold_in(model, seen, **options)
    assert folded.user_factors.shape == (4, width)
    for user, row in enumerate(folded.user_factors):
        entries = slice(seen.indptr[user], seen.indptr[user + 1])
        values = dict(zip(seen.indices[entries], seen.data[entries], strict=True))
        if not values:
            assert not row.any()
            continue
        expected = factors_of(items, values, alpha, regularization)
        np.testing.assert_allclose(row, expected, rtol=1e-5, atol=1e-6)


def test_lists_are_those_of_implicit(holdout, als):
    users = np.flatnonzero(np.diff(holdout.fold_in.indptr))
    ids, _ = als.recommend(users, matrix(holdout.fold_in)[users], N=10, recalculate_user=True)
    ours = se.recommend(als, holdout, 10, users=holdout.users[users])
    assert holdout.items.get_indexer(ours["item"]).reshape(-1, 10).tolist() == ids.tolist()
    rankings = se.Rankings.from_topk(ids, user_rows=users, shape=holdout.train.shape)
    expected = se.evaluate(rankings, matrix(holdout.validation, float), METRICS)
    assert se.evaluate_model(als, holdout, METRICS).mean() == expected.mean()


def test_users_of_one_factor_that_is_zero_are_folded_in(holdout, als):
    model = type(als)(factors=1, regularization=0.3)
    model.user_factors = np.zeros((150, 1), np.float32)
    model.item_factors = als.item_factors[:, :1].copy()
    sides = holdout.seen, holdout.validation
    folded = se.evaluate_model(se.fold_in(model, holdout), *sides, "ndcg@10")
    assert se.evaluate_model(model, holdout, "ndcg@10").mean() == folded.mean()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("filter_seen", [True, False])
def test_candidates_of_users_who_are_folded_in(holdout, als, filter_seen):
    options = {"candidates": se.sample_negatives(holdout, n=5), "baselines": True}
    protocol = se.Protocol(["auc", "ndcg@3"], filter_seen=filter_seen)
    folded = se.fold_in(als, holdout)
    ev = se.evaluate_model(folded, holdout.seen, holdout.validation, protocol, **options)
    for more in ({"memory": 200_000_000}, {"keep": "totals"}):
        found = se.evaluate_model(als, holdout, protocol, **options, **more)
        assert found.mean() == ev.mean()
        assert found.baselines["popularity"].mean() == ev.baselines["popularity"].mean()


def test_a_sweep_of_users_is_another_than_one_of_their_pairs(holdout, als, tmp_path):
    path = se.save_model(als, tmp_path / "als.npz")
    se.sweep([path], holdout, "ndcg@10", out=tmp_path / "sweep")
    with raises(se.SparseEvalError):
        se.sweep([path], holdout.seen, holdout.validation, "ndcg@10", out=tmp_path / "sweep")


def test_users_whom_the_model_has_no_row_for_are_matched_by_id(holdout, als):
    rows = np.flatnonzero(np.diff(holdout.train.indptr))[::-1]
    items = np.random.default_rng(0).permutation(holdout.train.shape[1])
    model = as_model(als)
    other = type(als)(factors=12, regularization=0.3, alpha=7.0)
    other.user_factors, other.item_factors = model.user_factors[rows], model.item_factors[items]
    other.user_ids, other.item_ids = holdout.users[rows], holdout.items[items]
    ours, whole = (se.evaluate_model(one, holdout, "ndcg@10") for one in (other, als))
    assert ours["ndcg@10"] == pytest.approx(whole["ndcg@10"], rel=1e-4)  # float32 sums
    assert ours.retrieval.n_unknown_users == 0
    recs = se.recommend(other, holdout, 3, users=[holdout.users[rows[0]], holdout.users[-1]])
    assert len(recs) == 6


def test_items_that_the_model_does_not_know_say_nothing(als, holdout):
    items = [holdout.items[3], "never seen", holdout.items[5]]
    frame = pd.DataFrame({"user": ["new"] * 3, "item": items})
    folded = se.fold_in(als, frame)
    assert folded.user_ids.tolist() == ["new"]
    assert folded.item_ids.equals(holdout.items)
    with raises(InvalidDataError):
        se.fold_in((als.user_factors, als.item_factors), frame, regularization=0.1)
    row = sparse.csr_matrix(([1.0, 1.0], ([0, 0], [3, 5])), shape=(1, 90))
    assert np.array_equal(folded.user_factors, se.fold_in(als, row).user_factors)


def test_neighbour_models_recommend_from_what_is_folded_in(holdout):
    model = se.train_model(CosineRecommender(K=20), holdout.train)
    users = np.flatnonzero(np.diff(holdout.validation.indptr))
    ids, _ = model.recommend(users, matrix(holdout.fold_in, float)[users], N=10)
    lists = se.Rankings.from_topk(ids, user_rows=users, shape=holdout.train.shape)
    expected = se.evaluate(lists, matrix(holdout.validation, float), "recall@10")
    assert se.evaluate_model(model, holdout, "recall@10").mean() == expected.mean()
    with raises(UnsupportedModelError):
        se.fold_in(model, holdout)


def test_refuses_to_guess_how_users_are_found(holdout, als, tmp_path):
    bpr = BayesianPersonalizedRanking(8, iterations=3, random_state=0, num_threads=1)
    bpr.fit(matrix(holdout.train), show_progress=False)
    bpr.save(tmp_path / "bpr.npz")
    pair = als.user_factors, als.item_factors
    for model in (bpr, tmp_path / "bpr.npz", pair):
        with raises(UnsupportedModelError):
            se.evaluate_model(model, holdout, "ndcg@10")
        assert se.fold_in(model, holdout, regularization=0.1).user_factors.any()
    as_trained, of_one, usual = (
        se.fold_in(pair, holdout, regularization=0.3, alpha=alpha).user_factors
        for alpha in (7.0, 1.0, None)
    )
    assert np.array_equal(as_trained, se.fold_in(als, holdout).user_factors)
    assert np.array_equal(usual, of_one)


def test_refuses_what_does_not_fit(holdout, als):
    numbered = se.Holdout(holdout.train.csr, holdout.validation.csr, fold_in=holdout.fold_in)
    fewer = type(als)(factors=12)
    fewer.user_factors, fewer.item_factors = als.user_factors[1:], als.item_factors
    for call in (
        lambda: se.fold_in(als, matrix(holdout.fold_in)[:, :89]),
        lambda: se.fold_in(als, holdout, regularization=-1),
        lambda: se.fold_in(als, holdout, alpha=0),
        lambda: se.fold_in(als, se.Holdout(holdout.train, holdout.validation)),
        lambda: se.evaluate_model(fewer, numbered, "ndcg@10"),
    ):
        with raises(InvalidDataError):
            call()


@settings(max_examples=20)
@given(st.integers(1, 40), st.integers(1, 3))
def test_a_user_has_the_same_bits_beside_any_others(first, num_threads):
    clicks = se.datasets.synthetic(n_users=60, n_items=50, n_interactions=700, seed=5)
    rng = np.random.default_rng(7)
    pair = rng.standard_normal((2, 6)), rng.standard_normal((50, 6)).astype(np.float32)
    seen = clicks.matrix().csr
    whole = se.fold_in(pair, seen, regularization=0.2).user_factors
    part = se.fold_in(pair, seen[first:], regularization=0.2, num_threads=num_threads)
    assert np.array_equal(part.user_factors, whole[first:])


@pytest.mark.parametrize("name", ["ease", "popularity"])
def test_baselines_rank_for_new_users_by_what_is_folded_in(name, holdout):
    model = getattr(se.baselines, name)(holdout)
    ev = se.evaluate_model(model, holdout, ["auc", "ndcg@10"])
    same = se.evaluate_model(model, holdout.seen, holdout.validation, ["auc", "ndcg@10"])
    assert ev.per_user.equals(same.per_user)


def test_a_matrix_that_may_recommend_again_still_scores_by_what_users_have(holdout):
    model = se.baselines.ease(holdout)
    with warns():
        ev = se.evaluate_model(model, holdout, se.Protocol("auc", filter_seen=False))
    scores = matrix(holdout.seen, float) @ model.weights
    held = matrix(holdout.validation).toarray() > 0
    values = [
        (row[own][:, None] > row[~own]).mean()
        for row, own in zip(scores, held, strict=True)
        if own.any()
    ]
    assert ev["auc"] == pytest.approx(np.mean(values), abs=1e-9)


def test_functions_are_not_asked_about_users_they_do_not_know(holdout):
    model = se.baselines.random(holdout)
    for call in (se.recommend, se.fold_in, lambda *parts: se.evaluate_model(*parts, "ndcg@10")):
        with raises(UnsupportedModelError):
            call(model, holdout)


IN_FORKS = """
import os, signal, warnings
import sparse_eval as se

warnings.simplefilter("ignore")
clicks = se.datasets.synthetic(n_users=300, n_items=100, seed=0)
new, random = se.split.users(clicks, fraction=0.2, seed=0), se.split.random(clicks, seed=0)
model = se.train_als(new.train, factors=4, iterations=2)
model.num_threads = 2
calls = [
    lambda: se.evaluate_model(model, new, "ndcg@10", num_threads=2)["ndcg@10"],
    lambda: se.fold_in(model, new, num_threads=2).user_factors.tobytes(),
    lambda: se.evaluate_model(se.Recommender(model), random, "ndcg@10")["ndcg@10"],
    lambda: se.recommend(se.Recommender(model), random, k=3)["item"].tolist(),
]
for call in calls:
    expected = call()
    child = os.fork()
    if not child:
        signal.alarm(60)  # ends a child that waits for OpenMP's threads
        os._exit(call() != expected)
    assert os.waitpid(child, 0)[1] == 0
assert model.num_threads == 2
"""


@pytest.mark.long
def test_processes_that_are_forked_after_training_get_the_same_numbers():
    need_posix()
    subprocess.run([sys.executable, "-c", IN_FORKS], check=True)
