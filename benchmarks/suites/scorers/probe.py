"""Rank the candidates of each user with several methods, each in its own process."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from harness.split import make_split, read_split, single
from implicit.cpu.als import AlternatingLeastSquares
from scipy.sparse import csr_matrix, load_npz, save_npz

import sparse_eval as se

SEED = 0
FACTORS = 64
METRIC = "ndcg@10"
LENGTH = 10

#: The timed call, and a function that returns the metrics of its result.
Prepared = tuple[Callable[[], Any], Callable[[Any], dict[str, float]]]


def make(folder: str, n_users: int, n_items: int, n_candidates: int) -> dict[str, int]:
    """Write clicks, a model, and the candidates of each user."""

    def more(unfinished: Path, holdout: se.Holdout) -> None:
        model = se.train_als(holdout.train, factors=FACTORS, alpha=40.0, seed=SEED)
        np.savez(unfinished / "model.npz", users=model.user_factors, items=model.item_factors)
        # An item that the user has not seen, which counts as held out, and others.
        seen = holdout.train.csr
        drawn = np.random.default_rng(SEED).integers(n_items, size=n_users)
        pairs = set(zip(*(side.tolist() for side in seen.nonzero()), strict=True))
        for user in range(n_users):
            while (user, int(drawn[user])) in pairs:
                drawn[user] = (drawn[user] + 1) % n_items
        one = csr_matrix((np.ones(n_users), drawn, np.arange(n_users + 1)), seen.shape)
        save_npz(unfinished / "one.npz", single(one))
        sampled = se.sample_negatives(seen, one, n=n_candidates - 1, seed=SEED)
        save_npz(unfinished / "candidates.npz", single(sampled.to_csr()))

    sizes = make_split(Path(folder), n_users, n_items, more)
    return sizes | {"n_factors": FACTORS, "n_candidates": n_candidates}


class Problem:
    """A model, its data, and the candidates of each user."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / "model.npz", allow_pickle=False) as parts:
            self.users, self.items = parts["users"], parts["items"]
        self.train, _ = read_split(folder)
        self.one, self.candidates = (
            load_npz(folder / f"{name}.npz") for name in ("one", "candidates")
        )

    def mean(self, lists: np.ndarray) -> dict[str, float]:
        """Return the mean metrics of lists, for the comparison."""
        rankings = se.Rankings.from_topk(lists, shape=self.one.shape)
        return se.evaluate(rankings, self.one, METRIC, candidates=self.candidates).mean()

    def user_by_user(self, rank: Callable[[int, np.ndarray], np.ndarray]) -> Prepared:
        """Return calls that rank the candidates of one user after the other."""
        pools = np.split(self.candidates.indices, self.candidates.indptr[1:-1])

        def rank_all() -> np.ndarray:
            lists = np.full((len(pools), LENGTH), -1)
            for user, pool in enumerate(pools):
                if len(pool):
                    lists[user] = rank(user, pool)
            return lists

        return rank_all, self.mean


def candidates_by_sparse_eval(problem: Problem) -> Prepared:
    factors, data = (problem.users, problem.items), (problem.train, problem.one, METRIC)
    options: dict[str, Any] = {"candidates": problem.candidates, "progress": False}
    return lambda: se.evaluate_model(factors, *data, **options), lambda found: found.mean()


def candidates_by_implicit(problem: Problem) -> Prepared:
    """Rank with one call for each user, because a call has the same items for all its users."""
    model = AlternatingLeastSquares(factors=FACTORS)
    model.user_factors, model.item_factors = problem.users, problem.items

    def rank(user: int, pool: np.ndarray) -> np.ndarray:
        return model.recommend(user, problem.train[user], N=LENGTH, items=pool)[0]

    return problem.user_by_user(rank)


def candidates_by_numpy(problem: Problem) -> Prepared:
    """Rank without filtering seen items, because these candidates have none."""

    def rank(user: int, pool: np.ndarray) -> np.ndarray:
        scores = problem.items[pool] @ problem.users[user]
        return pool[np.argsort(-scores)[:LENGTH]]

    return problem.user_by_user(rank)


RANKINGS: dict[str, Callable[[Problem], Prepared]] = {
    "evaluate_model": candidates_by_sparse_eval,
    "implicit": candidates_by_implicit,
    "NumPy": candidates_by_numpy,
}


def rank(folder: str, name: str) -> dict[str, Any]:
    """Rank for a second, after a first call that loads kernels; report the median."""
    run, values = RANKINGS[name](Problem(Path(folder)))
    found = run()
    seconds: list[float] = []
    while sum(seconds) < 1.0:
        start = time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - start)
    return {"seconds": median(seconds), "values": values(found)}
