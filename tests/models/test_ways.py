"""The three ways from a model to its metrics: ranks of held-out items, lists, the model's own."""

from copy import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from implicit.cpu.als import AlternatingLeastSquares
from raising import raises, warns
from scipy import sparse
from scipy.sparse import csr_matrix
from threadpoolctl import threadpool_limits

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, InvalidMetricError, UnsupportedModelError

ACCURACY = ["ndcg@{5,20}", "map@20", "recall@10", "precision@10", "mrr@20", "err@10", "rbp@20"]


def model_of(users, items):
    with threadpool_limits(1, "blas"):
        model = AlternatingLeastSquares(factors=users.shape[1])
    model.user_factors, model.item_factors = users, items
    return model


@pytest.mark.filterwarnings("ignore:.* held-out items were seen")
@given(st.integers(0, 2**32 - 1), st.sampled_from([1, 3, 10, 100]))
def test_ties_are_counted_alike(seed, k):
    rng = np.random.default_rng(seed)
    n_users, n_items = 6, int(rng.integers(2, 40))
    users = rng.integers(-1, 2, (n_users, 2)).astype(np.float32)
    items = rng.integers(-1, 2, (n_items, 2)).astype(np.float32)
    train = sparse.random(n_users, n_items, 0.3, format="csr", random_state=rng)
    held = sparse.random(n_users, n_items, 0.3, format="lil", random_state=rng)
    held[0, 0] = 1.0
    held = held.tocsr()
    model = model_of(users, items)
    by_ranks = se.evaluate_model(model, train, held, f"ndcg@{k}")
    by_lists = se.evaluate_model(model, train, held, f"ndcg@{k}", keep="lists")
    assert by_ranks._values.columns.tobytes() == by_lists._values.columns.tobytes()
    assert by_ranks.retrieval is not None
    assert by_lists.retrieval is not None
    assert by_ranks.retrieval[1:] == by_lists.retrieval[1:]
    # By hand: a relevant item among the first k whose score is another unseen item's too.
    n_tied = 0
    for user in range(n_users):
        unseen = np.setdiff1d(np.arange(n_items), train[user].indices)
        scores = items[unseen].astype(float) @ users[user].astype(float)
        first = unseen[np.lexsort((unseen, -scores))][:k]
        relevant = held[user].indices[held[user].data > 0]
        for item in np.intersect1d(first, relevant):
            n_tied += (scores == scores[unseen == item]).sum() > 1
    assert by_ranks.retrieval.n_tied == n_tied


def test_what_is_cold_or_seen_is_reported():
    rng = np.random.default_rng(0)
    users, items = rng.standard_normal((4, 3)), rng.standard_normal((6, 3))
    users[1] = users[3] = 0  # nothing is held out for the last one
    items[[2, 4]] = 0
    train = sparse.csr_matrix(([1.0, 1.0], ([0, 2], [0, 5])), shape=(4, 6))
    held = sparse.csr_matrix(([1.0] * 4, ([0, 0, 1, 2], [0, 1, 2, 5])), shape=(4, 6))
    model = model_of(users, items)
    for via, keep in (("held_out_ranks", "values"), ("top_k", "lists")):
        with warns():
            ev = se.evaluate_model(model, train, held, "recall@6", keep=keep)
        assert ev.retrieval is not None
        assert ev.retrieval[:2] == (via, 2)
        assert ev.retrieval.n_cold_users == 1
        assert ev.retrieval.n_cold_items == 2
        assert ev.per_user["recall@6"].tolist()[:3] == [0.5, 1.0, 0.0]
    with warns():
        by_model = se.evaluate_model(se.Recommender(model), train, held, "recall@6")
    assert by_model.retrieval == ("recommend", 2, None, None, None, 0, 0, 0)


class OnGpu:
    """A model that has to be moved before it recommends."""

    def __init__(self, model):
        self.model, self.user_ids, self.item_ids = model, model.user_ids, model.item_ids

    def to_cpu(self):
        return copy(self.model)


@pytest.mark.parametrize("split", [se.split.random, se.split.users])
def test_a_recommender_is_evaluated_as_its_model(split, tmp_path):
    clicks = se.datasets.synthetic(n_users=150, n_items=80, n_interactions=2500, seed=3)
    parts = split(clicks, fraction=0.3, seed=0)
    model = se.train_als(parts.train, factors=8, iterations=3)
    path = se.save_model(model, tmp_path / "als.npz")
    expected = se.evaluate_model(model, parts, ACCURACY, baselines=True)
    for kind in (path, OnGpu(model), se.Recommender(model)):
        own = se.Recommender(kind)
        ev = se.evaluate_model(own, parts, ACCURACY, baselines=True)
        assert ev.per_user.equals(expected.per_user)
        assert ev.baselines["popularity"].mean() == expected.baselines["popularity"].mean()
    wanted = parts.users[np.flatnonzero(parts.validation.csr.getnnz(axis=1))[[9, 3, 5]]]
    some = se.evaluate_model(own, parts, ACCURACY, users=wanted)
    assert some.per_user.equals(ev.per_user.loc[some.per_user.index])
    if parts.fold_in is None:
        order = np.random.default_rng(0).permutation(len(parts.users))
        sides = (
            se.Relevance.from_csr(side.csr[order], users=parts.users[order], items=parts.items)
            for side in (parts.train, parts.validation)
        )
        other = se.evaluate_model(own, *sides, ACCURACY)
        assert other.per_user.loc[ev.per_user.index].equals(ev.per_user)
    recs, lists = (se.recommend(one, parts, 4, users=wanted) for one in (own, model))
    assert recs.drop(columns="score").equals(lists.drop(columns="score"))
    np.testing.assert_allclose(recs["score"], lists["score"], rtol=1e-12)


def test_a_recommender_says_what_it_is_not_for(holdout, tmp_path):
    own = se.Recommender(se.train_als(holdout.train, factors=4, iterations=2))
    for call in (
        lambda: se.evaluate_model(own, holdout, "auc"),
        lambda: se.evaluate_model(own, holdout, se.Protocol("ndcg@5", judged_only=True)),
        lambda: se.evaluate_model(own, holdout, "ndcg@5", memory=10**9),
        lambda: se.top_k(own, 5),
        lambda: se.ranks(own, holdout.validation),
        lambda: se.fold_in(own, holdout.train),
        lambda: se.save_model(own, tmp_path / "a.npz"),
    ):
        with raises(UnsupportedModelError):
            call()
    with raises(InvalidDataError):
        se.sweep([own], holdout, "ndcg@5")


RANKED = ["auc", "mrr", "percentile_rank", "mean_rank", "ndcg", "ndcg@10", "recall@5"]


def test_a_model_ranks_everything_where_a_metric_has_no_cutoff(holdout):
    model = se.train_als(holdout.train, factors=8, iterations=3)
    ranks = se.ranks(model, holdout.validation, train=holdout.train)
    expected = se.evaluate(ranks, holdout.validation, RANKED, train=holdout.train)
    ev = se.evaluate_model(model, holdout, RANKED)
    assert ev._values.columns.tobytes() == expected._values.columns.tobytes()
    assert ev.summary()["random"].equals(expected.summary()["random"])
    assert ev.retrieval is not None
    assert ev.retrieval.via == "full_ranks"
    cut = se.evaluate_model(model, holdout, RANKED[-2:])
    assert cut._values.columns.tobytes() == ev._values.columns[-2:].tobytes()
    assert ev.explain(holdout.users[7]).equals(expected.explain(holdout.users[7]))


@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        ("auc,coverage@10", {}),
        ("coverage", {"memory": 10**9}),
        ("auc", {"keep": "lists"}),
        ("mrr", {"convention": "trec_eval"}),
    ],
)
def test_refuses_what_ranks_do_not_say(metrics, options, holdout):
    with raises(InvalidMetricError):
        se.evaluate_model(se.baselines.popularity(holdout), holdout, metrics, **options)


def test_a_convention_with_metrics_of_any_list(holdout):
    model = se.baselines.popularity(holdout)
    options = {"convention": "trec_eval"}
    cut = se.evaluate_model(model, holdout, ["mrr", "recall@5"], **options)
    assert cut["mrr"] == se.evaluate_model(model, holdout, "mrr@5")["mrr@5"]
    beside = se.evaluate_model(model, holdout, ["mrr", "recall@5", "map"], **options)
    assert beside["mrr"] == se.evaluate_model(model, holdout, "mrr")["mrr"] > cut["mrr"]


def test_the_remedy_for_metrics_without_a_length_gives_the_mean_of_trec_eval():
    """User 1 has one judged item, which is not relevant, and counts 0 there."""
    model = np.ones((2, 1)), np.array([[3.0], [2.0], [1.0]])
    train, truth = csr_matrix((2, 3)), csr_matrix(([1.0, 0.0], ([0, 1], [1, 0])), shape=(2, 3))
    options = {"convention": "trec_eval"}
    with raises(InvalidMetricError):
        se.evaluate_model(model, train, truth, "mrr", **options)
    run = se.Rankings.from_topk(se.top_k(model, 3).ids, shape=(2, 3))
    found = se.evaluate_model(model, train, truth, ["mrr", "ndcg@1000"], **options)
    assert found["mrr"] == se.evaluate(run, truth, "mrr", **options)["mrr"] == 0.25
