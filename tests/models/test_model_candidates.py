"""Models evaluated among candidates, against brute force."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from implicit.nearest_neighbours import ItemItemRecommender
from raising import raises
from scipy import sparse

import sparse_eval as se
from sparse_eval.errors import InvalidDataError, UnsupportedModelError

METRICS = ["ndcg@5", "recall@5", "mrr@10", "hit_rate@1"]
N_USERS, N_ITEMS = 120, 60


class Problem:
    def __init__(self, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.users = rng.integers(-3, 4, (N_USERS, 3)).astype(np.float32)
        self.items = rng.integers(-3, 4, (N_ITEMS, 3)).astype(np.float32)
        self.among = rng.random((N_USERS, N_ITEMS)) < 0.3
        seen = rng.random((N_USERS, N_ITEMS)) < 0.1
        held = ~seen & (rng.random((N_USERS, N_ITEMS)) < 0.05)
        self.among |= held & (rng.random((N_USERS, N_ITEMS)) < 0.8)
        self.seen, self.held = seen, held
        self.train = sparse.csr_matrix(seen.astype(float))
        self.validation = sparse.csr_matrix(held.astype(float))
        self.candidates = sparse.csr_matrix(self.among)

    @property
    def factors(self) -> tuple[Any, Any]:
        return self.users, self.items

    def lists(self, k: int) -> se.Rankings:
        """Each user's list, by brute force."""
        ids = np.full((N_USERS, k), -1)
        for user in range(N_USERS):
            pool = np.flatnonzero(self.among[user] & ~self.seen[user])
            scores = self.items[pool].astype(float) @ self.users[user].astype(float)
            best = pool[np.lexsort((pool, -scores))][:k]
            ids[user, : len(best)] = best
        return se.Rankings.from_topk(ids, shape=(N_USERS, N_ITEMS))


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem()


OUTSIDE = pytest.mark.filterwarnings("ignore:.*(are not candidates|no training data)")


@OUTSIDE
def test_models_have_the_numbers_of_brute_force(problem: Problem) -> None:
    data = (problem.train, problem.validation, METRICS)
    expected = se.evaluate(
        problem.lists(10), problem.validation, METRICS, train=problem.train,
        candidates=problem.candidates,
    )  # fmt: skip
    ev = se.evaluate_model(problem.factors, *data, candidates=problem.candidates)
    assert ev.columns.tobytes() == expected.columns.tobytes()
    assert ev.candidates is not None
    assert expected.candidates is not None
    assert ev.candidates._replace(n_listed=0) == expected.candidates._replace(n_listed=0)
    for name in METRICS:
        assert ev.random(name) == expected.random(name)
    user = int(np.flatnonzero(expected.per_user["recall@5"] > 0)[0])
    assert ev.explain(user)["contribution"].sum() == expected.explain(user)["contribution"].sum()


@OUTSIDE
@pytest.mark.parametrize("for_all", [False, True])
def test_popularity_is_of_the_candidates(problem: Problem, for_all: bool) -> None:
    candidates = np.arange(0, N_ITEMS, 3) if for_all else problem.candidates
    among = np.isin(np.arange(N_ITEMS), candidates) if for_all else problem.among
    counts = problem.seen.sum(axis=0)
    ids = np.full((N_USERS, 10), -1)
    for user in range(N_USERS):
        pool = np.flatnonzero((among if for_all else among[user]) & ~problem.seen[user])
        best = pool[np.lexsort((pool, -counts[pool]))][:10]
        ids[user, : len(best)] = best
    expected = se.evaluate(
        se.Rankings.from_topk(ids, shape=(N_USERS, N_ITEMS)), problem.validation, METRICS,
        train=problem.train, candidates=candidates,
    )  # fmt: skip
    data = (problem.train, problem.validation, METRICS)
    for memory in (None, 10**9):
        ev = se.evaluate_model(
            problem.factors, *data, candidates=candidates, baselines=True, memory=memory
        )
        assert ev.baselines["popularity"].mean() == expected.mean()


@OUTSIDE
def test_candidates_are_matched_by_id() -> None:
    clicks = se.datasets.synthetic(n_users=150, n_items=80, seed=0)
    holdout = se.split.random(clicks, seed=0)
    model = se.train_als(holdout.train, factors=4, iterations=3)
    rng = np.random.default_rng(0)
    users, items = holdout.users, holdout.items
    mask = rng.random((len(users), len(items))) < 0.3
    mask |= holdout.validation.csr.toarray() > 0
    numbered = sparse.csr_matrix(mask)
    keyed = {users[u]: items[np.flatnonzero(mask[u])].tolist() for u in rng.permutation(len(users))}
    rows, columns = np.nonzero(mask)
    frame = pd.DataFrame({"user": users[rows], "item": items[columns]})
    evs = [
        se.evaluate_model(model, holdout, METRICS, candidates=form)
        for form in (numbered, keyed, frame.sample(frac=1, random_state=0))
    ]
    for ev in evs[1:]:
        assert ev.columns.tobytes() == evs[0].columns.tobytes()
        assert ev.candidates == evs[0].candidates
    cut = se.evaluate_model(model, holdout, METRICS, candidates=keyed, memory=10**9)
    assert cut.mean() == evs[0].mean()
    recs = se.recommend(model, holdout, k=3, users=[users[5]], candidates=keyed)
    assert set(recs["item"]) <= set(keyed[users[5]])
    ids = se.top_k(model, k=3, seen=holdout.train, candidates=keyed, users=[users[5]]).ids
    assert items[ids[0]].tolist() == recs["item"].tolist()
    in_list = se.evaluate_model(model, holdout, METRICS, candidates=items[:40])
    as_mask = sparse.csr_matrix(np.broadcast_to(np.arange(len(items)) < 40, mask.shape))
    same = se.evaluate_model(model, holdout, METRICS, candidates=as_mask)
    assert in_list.columns.tobytes() == same.columns.tobytes()


def test_refuses_candidates_that_a_model_cannot_rank(problem: Problem) -> None:
    model = ItemItemRecommender(K=5)
    model.fit(problem.train, show_progress=False)
    data = (problem.train, problem.validation, METRICS)
    with raises(UnsupportedModelError):
        se.evaluate_model(model, *data, candidates=[1, 2])
    with raises(UnsupportedModelError):
        se.recommend(model, problem.train, candidates=[1, 2])
    with raises(InvalidDataError, argument="candidates"):
        se.evaluate_model(problem.factors, *data, candidates=sparse.csr_matrix((3, N_ITEMS)))
    with raises(InvalidDataError, argument="candidates"):
        se.evaluate_model(problem.factors, *data, candidates=[0, N_ITEMS])
