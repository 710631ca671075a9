"""Measure the cost of other rankings, each in its own process.

    python -P probe.py make FOLDER N_USERS N_ITEMS N    clicks, a model, N candidates of each user
    python -P probe.py candidates FOLDER WHO            one of `AMONG_CANDIDATES`
    python -P probe.py ranks FOLDER WHO                 one of `RANKS`
    python -P probe.py draw FOLDER N_USERS N_ITEMS N    item-item matrices, N neighbours in a row
    python -P probe.py items FOLDER NAME                ranking by one of `MATRICES`

The results are printed as JSON. The files of `make` and `draw` are kept.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any
from warnings import catch_warnings

import numpy as np
from implicit.cpu.als import AlternatingLeastSquares
from numpy.lib.format import open_memmap
from scipy.sparse import csr_matrix, load_npz, save_npz

import sparse_eval as se

sys.path.append(str(Path(__file__).parents[2]))  # at the end: libraries come before our modules
from harness.files import once
from harness.peak import peak_above_start
from harness.split import read_split, single, write_split

SEED = 0
FACTORS = 64
METRIC = "ndcg@10"
LENGTH = 10

#: The number of rows of a dense matrix that are drawn at once.
DRAWN_ROWS = 1_000

Values = tuple[float, ...]
Prepared = tuple[Callable[[], Any], Callable[[Any], Values]]


def make(folder: Path, n_users: int, n_items: int, n_candidates: int) -> dict[str, int]:
    def write(unfinished: Path) -> None:
        holdout = write_split(unfinished, n_users, n_items, SEED)
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

    once(folder, write)
    train, validation = read_split(folder)
    return {
        "n_users": train.shape[0],
        "n_items": train.shape[1],
        "n_factors": FACTORS,
        "n_train": train.nnz,
        "n_validation": validation.nnz,
        "n_candidates": n_candidates,
    }


class Problem:
    """A model, its data, and the candidates of each user."""

    def __init__(self, folder: Path) -> None:
        with np.load(folder / "model.npz", allow_pickle=False) as parts:
            self.users, self.items = parts["users"], parts["items"]
        self.train, self.validation = read_split(folder)
        self.one, self.candidates = (
            load_npz(folder / f"{name}.npz") for name in ("one", "candidates")
        )

    def pools(self) -> list[np.ndarray]:
        return np.split(self.candidates.indices, self.candidates.indptr[1:-1])

    def mean(self, lists: np.ndarray) -> Values:
        """Return the mean metrics of lists, for the comparison."""
        rankings = se.Rankings.from_topk(lists, shape=self.one.shape)
        ev = se.evaluate(rankings, self.one, METRIC, candidates=self.candidates)
        return (ev[METRIC],)


def candidates_by_sparse_eval(problem: Problem) -> Prepared:
    factors, data = (problem.users, problem.items), (problem.train, problem.one, METRIC)
    options: dict[str, Any] = {"candidates": problem.candidates, "progress": False}
    return (
        lambda: se.evaluate_model(factors, *data, **options),
        lambda found: (found[METRIC],),
    )


def candidates_by_implicit(problem: Problem) -> Prepared:
    """Rank with one call for each user, because a call has the same items for all its users."""
    model = AlternatingLeastSquares(factors=FACTORS)
    model.user_factors, model.item_factors = problem.users, problem.items
    pools = problem.pools()

    def rank() -> np.ndarray:
        lists = np.full((len(pools), LENGTH), -1)
        for user, pool in enumerate(pools):
            if len(pool):
                lists[user], _ = model.recommend(user, problem.train[user], N=LENGTH, items=pool)
        return lists

    return rank, problem.mean


def candidates_by_numpy(problem: Problem) -> Prepared:
    """Rank without filtering seen items, because these candidates have none."""
    pools = problem.pools()

    def rank() -> np.ndarray:
        lists = np.full((len(pools), LENGTH), -1)
        for user, pool in enumerate(pools):
            if len(pool):
                scores = problem.items[pool] @ problem.users[user]
                lists[user] = pool[np.argsort(-scores)[:LENGTH]]
        return lists

    return rank, problem.mean


def ranks_to(problem: Problem, k: int | None) -> Prepared:
    def rank() -> se.Rankings:
        model = (problem.users, problem.items)
        return se.ranks(model, problem.validation, k, seen=problem.train, progress=False)

    def values(found: se.Rankings) -> Values:
        metrics = [METRIC] if k is not None else [METRIC, "auc"]
        return tuple(
            se.evaluate(found, problem.validation, metrics, train=problem.train).mean().values()
        )

    return rank, values


AMONG_CANDIDATES = {
    "evaluate_model": candidates_by_sparse_eval,
    "implicit": candidates_by_implicit,
    "NumPy": candidates_by_numpy,
}
RANKS = {
    "held_out_ranks": lambda problem: ranks_to(problem, 20),
    "full_ranks": lambda problem: ranks_to(problem, None),
}


def measure(folder: Path, who: str, contestants: dict[str, Any]) -> dict[str, Any]:
    """Rank for a second, after a first call that loads kernels; report the median."""
    run, values = contestants[who](Problem(folder))
    found = run()
    seconds: list[float] = []
    while sum(seconds) < 1.0:
        start = time.perf_counter()
        found = run()
        seconds.append(time.perf_counter() - start)
    return {"seconds": median(seconds), "values": values(found)}


def draw(folder: Path, n_users: int, n_items: int, n_neighbours: int) -> dict[str, int]:
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
        write_split(unfinished, n_users, n_items, SEED)

    once(folder, write)
    return {"n_users": n_users, "n_items": n_items, "n_neighbours": n_neighbours}


MATRICES = ("dense.npy", "sparse.npz")


def items(folder: Path, name: str) -> dict[str, Any]:
    """Evaluate the lists of all users by an item-item matrix on disk."""
    train, validation = read_split(folder)
    few = np.eye(50, dtype=np.float32), csr_matrix((49, 50)), csr_matrix(np.ones((49, 50)))
    with catch_warnings(action="ignore"):  # no user has seen anything
        se.evaluate_model(*few, METRIC, progress=False)  # loads kernels
    start = time.perf_counter()
    with peak_above_start() as peak:
        ev = se.evaluate_model(folder / name, train, validation, METRIC, progress=False)
    return {
        "seconds": time.perf_counter() - start,
        "bytes": peak[0],
        "matrix_bytes": (folder / name).stat().st_size,
        METRIC: ev[METRIC],
    }


COMMANDS = {
    "make": make,
    "candidates": lambda folder, who: measure(folder, who, AMONG_CANDIDATES),
    "ranks": lambda folder, who: measure(folder, who, RANKS),
    "draw": draw,
    "items": items,
}


if __name__ == "__main__":
    command, path, *others = sys.argv[1:]
    arguments = [int(text) if text.isdigit() else text for text in others]
    print(json.dumps(COMMANDS[command](Path(path), *arguments)))
