"""Measure the cost of other rankings, each in its own process."""

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any
from warnings import catch_warnings

import numpy as np
from harness.files import once
from harness.peak import peak_above_start
from harness.split import make_split, read_split, single
from implicit.cpu.als import AlternatingLeastSquares
from numpy.lib.format import open_memmap
from scipy.sparse import csr_matrix, load_npz, save_npz

import sparse_eval as se

SEED = 0
FACTORS = 64
METRIC = "ndcg@10"
LENGTH = 10

#: The number of rows of a dense matrix that are drawn at once.
DRAWN_ROWS = 1_000

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
        self.train, self.validation = read_split(folder)
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


def ranks_to(problem: Problem, k: int | None) -> Prepared:
    model, data = (problem.users, problem.items), (problem.validation, k)
    metrics = [METRIC] if k is not None else [METRIC, "auc"]
    return (
        lambda: se.ranks(model, *data, seen=problem.train, progress=False),
        lambda found: se.evaluate(found, data[0], metrics, train=problem.train).mean(),
    )


RANKINGS: dict[str, Callable[[Problem], Prepared]] = {
    "evaluate_model": candidates_by_sparse_eval,
    "implicit": candidates_by_implicit,
    "NumPy": candidates_by_numpy,
    "held_out_ranks": lambda problem: ranks_to(problem, 20),
    "full_ranks": lambda problem: ranks_to(problem, None),
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


def draw(folder: str, n_users: int, n_items: int, n_neighbours: int) -> dict[str, int]:
    """Draw item-item matrices and user data; their values do not affect the cost."""

    def write(unfinished: Path) -> None:
        rng = np.random.default_rng(SEED)
        path = unfinished / "dense.npy"
        dense = open_memmap(path, "w+", np.float32, (n_items, n_items))
        for first in range(0, n_items, DRAWN_ROWS):
            rows = dense[first : first + DRAWN_ROWS]
            rng.standard_normal(out=rows, dtype=np.float32)
        dense.flush()
        neighbours = rng.integers(n_items, size=(n_items, n_neighbours), dtype=np.int32)
        indptr = np.arange(n_items + 1) * n_neighbours
        data = rng.random(neighbours.size, dtype=np.float32)
        sparse = csr_matrix((data, neighbours.ravel(), indptr), (n_items, n_items))
        sparse.sum_duplicates()
        save_npz(unfinished / "sparse.npz", sparse)

    once(Path(folder), write)
    make_split(Path(folder, "split"), n_users, n_items)
    return {"n_users": n_users, "n_items": n_items, "n_neighbours": n_neighbours}


def items(folder: str, name: str) -> dict[str, Any]:
    """Evaluate the lists of all users by an item-item matrix on disk."""
    train, validation = read_split(Path(folder, "split"))
    few = np.eye(50, dtype=np.float32), csr_matrix((49, 50)), csr_matrix(np.ones((49, 50)))
    with catch_warnings(action="ignore"):  # no user has seen anything
        se.evaluate_model(*few, METRIC, progress=False)  # loads kernels
    start = time.perf_counter()
    with peak_above_start() as peak:
        ev = se.evaluate_model(Path(folder, name), train, validation, METRIC, progress=False)
    return {
        "seconds": time.perf_counter() - start,
        "bytes": peak[0],
        "matrix_bytes": Path(folder, name).stat().st_size,
        "values": ev.mean(),
    }
