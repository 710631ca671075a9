"""What ranking costs in three jobs, each measured from within a process of its own.

    python -P retrieval_probe.py make FOLDER N_USERS N_ITEMS    clicks, split: for train and sweep
    python -P retrieval_probe.py train FOLDER EVALUATOR         one of `EVALUATORS`
    python -P retrieval_probe.py save FOLDER N                  N checkpoints of one training
    python -P retrieval_probe.py sweep FOLDER
    python -P retrieval_probe.py draw FOLDER N_USERS N_ITEMS    factors that nobody trained
    python -P retrieval_probe.py rank FOLDER

What was found is printed as JSON. What `make`, `save` and `draw` have written stays.
"""

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from implicit.cpu.als import AlternatingLeastSquares
from implicit.evaluation import ranking_metrics_at_k
from scipy.sparse import csr_matrix, load_npz, save_npz
from threadpoolctl import threadpool_limits

import sparse_eval as se
from sparse_eval.retrieval import top_k as retrieve

sys.path.append(str(Path(__file__).parent))  # last: libraries come before our modules
from peak import peak_above_start, resident

SEED = 0
METRIC = "ndcg@10"
K = 10
FACTORS = 64
ITERATIONS = 15

Floats = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]


def make(folder: Path, n_users: int, n_items: int) -> dict[str, int]:
    def write(unfinished: Path) -> None:
        clicks = se.datasets.synthetic(n_users=n_users, n_items=n_items, seed=SEED)
        holdout = se.split.random(clicks, seed=SEED)
        for part in ("train", "validation"):
            save_npz(unfinished / f"{part}.npz", single(getattr(holdout, part)))

    once(folder, write)
    train, validation = data(folder)
    return {
        "n_users": train.shape[0],
        "n_items": train.shape[1],
        "n_factors": FACTORS,
        "n_train": train.nnz,
        "n_validation": validation.nnz,
    }


def single(matrix: Any) -> csr_matrix:
    return csr_matrix(matrix, dtype=np.float32)


def data(folder: Path) -> tuple[csr_matrix, csr_matrix]:
    return load_npz(folder / "train.npz"), load_npz(folder / "validation.npz")


def once(folder: Path, write: Callable[[Path], None]) -> None:
    """Let `write` fill the folder, unless it is there; it appears when everything is in it."""
    if folder.exists():
        return
    unfinished = folder.with_name(f"{folder.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    write(unfinished)
    unfinished.rename(folder)


def train(folder: Path, evaluator: str) -> dict[str, Any]:
    """Train once; after every iteration somebody evaluates, or nobody."""
    seen, held_out = data(folder)
    evaluate = EVALUATORS[evaluator]
    relevance = se.Relevance.from_csr(held_out)
    values: list[float] = []
    seconds: list[float] = []

    def callback(iteration: int, elapsed: float, loss: float | None) -> None:
        start = time.perf_counter()
        values.append(evaluate(model, seen, relevance, held_out))
        seconds.append(time.perf_counter() - start)

    start = time.perf_counter()
    with threadpool_limits(1, user_api="blas"):  # as implicit asks for
        model = als(ITERATIONS)
        model.fit(seen, show_progress=False, callback=callback if evaluate else None)
    total = time.perf_counter() - start
    return {"seconds": total, "evaluation_seconds": seconds, METRIC: values}


def als(iterations: int) -> AlternatingLeastSquares:
    return AlternatingLeastSquares(
        factors=FACTORS, regularization=0.1, alpha=40.0, iterations=iterations, random_state=SEED
    )


def by_sparse_eval(model: Any, seen: csr_matrix, relevance: se.Relevance, _: csr_matrix) -> float:
    return se.evaluate_model(model, seen, relevance, [METRIC], progress=False)[METRIC]


def by_implicit(model: Any, seen: csr_matrix, _: se.Relevance, held_out: csr_matrix) -> float:
    found = ranking_metrics_at_k(model, seen, held_out, K=K, show_progress=False, num_threads=0)
    return found["ndcg"]


EVALUATORS = {
    "nobody": None,
    "evaluate_model": by_sparse_eval,
    "ranking_metrics_at_k": by_implicit,
}


def save(folder: Path, count: int) -> dict[str, int]:
    """Save the model after each iteration of a training as long as that."""
    seen, _ = data(folder)

    def write(unfinished: Path) -> None:
        def callback(iteration: int, elapsed: float, loss: float | None) -> None:
            model.save(unfinished / f"als-{iteration + 1}.npz")

        with threadpool_limits(1, user_api="blas"):
            model = als(count)
            model.fit(seen, show_progress=False, callback=callback)

    checkpoints = folder / f"checkpoints-{count}"
    once(checkpoints, write)
    return {"n_checkpoints": len(list(checkpoints.glob("*.npz")))}


def sweep(folder: Path, count: int) -> dict[str, Any]:
    score = se.sweep  # imports what it needs
    seen, held_out = data(folder)
    start = time.perf_counter()
    with peak_above_start() as peak:
        table = score(folder / f"checkpoints-{count}", seen, held_out, [METRIC], progress=False)
    total = time.perf_counter() - start
    if len(table) != count or (table["status"] != "ok").any():
        raise RuntimeError(f"not every checkpoint was scored: {table['error'].tolist()}")
    return {
        "seconds": total,
        "checkpoint_seconds": table["seconds"].tolist(),
        "bytes": peak[0],
        "resident_bytes": resident("VmHWM"),
        METRIC: table[METRIC].tolist(),
    }


def draw(folder: Path, n_users: int, n_items: int) -> dict[str, Any]:
    """Draw factors in the shape of ALS's, what each user has seen, and one item held out.

    Items are ranked by popularity, with a weight of 1 / (rank + 10). The norm of an item falls
    with (rank + 20) ** -0.2, times a log-normal factor with sigma 0.2; a user's norm is
    log-normal with sigma 0.5. There is a cluster for every thousand items. An item's direction
    is that of its cluster plus as much noise; a user's is that of three clusters, weighted 6, 3
    and 1 and drawn by popularity, plus noise; and all share a direction. Seen and held-out items
    are drawn by popularity, four of five from the user's clusters. Of ALS models of Gowalla and
    of our synthetic clicks, with 64 factors, norms fall with an exponent between 0.2 and 0.35.
    """

    def write(unfinished: Path) -> None:
        rng = np.random.default_rng(SEED)
        weights = 1.0 / (np.arange(n_items) + 10)
        clusters = rng.integers(max(4, n_items // 1000), size=n_items)
        shared, *_ = directions(rng, 1)
        centres = unit(directions(rng, clusters.max() + 1) + 0.3 * shared)
        norms = (np.arange(n_items) + 20) ** -0.2 * rng.lognormal(sigma=0.2, size=n_items)
        items = unit(centres[clusters] + directions(rng, n_items)) * norms[:, None]
        np.save(unfinished / "items.npy", items.astype(np.float32))
        del items

        popular = np.cumsum(weights)
        favourites = clusters[pick(rng, popular, (n_users, 3))]
        tastes = np.einsum("c,ucf->uf", np.float32([0.6, 0.3, 0.1]), centres[favourites])
        users = unit(tastes + 0.7 * directions(rng, n_users))
        users *= rng.lognormal(sigma=0.5, size=(n_users, 1)).astype(np.float32)
        np.save(unfinished / "users.npy", users)
        del tastes, users

        # Sorted by cluster, one search draws from any of them.
        order = np.argsort(clusters, kind="stable")
        sums = np.concatenate([[0.0], np.cumsum(weights[order])])
        bounds = np.searchsorted(clusters[order], np.arange(clusters.max() + 2))
        pairs = []
        for place in range(1 + N_SEEN):
            cluster = favourites[np.arange(n_users), rng.choice(3, n_users, p=[0.6, 0.3, 0.1])]
            low, high = sums[bounds[cluster]], sums[bounds[cluster + 1]]
            places = np.searchsorted(sums, low + rng.random(n_users) * (high - low), "right") - 1
            own = order[np.clip(places, bounds[cluster], bounds[cluster + 1] - 1)]
            loyal = rng.random(n_users) < 0.8
            chosen = np.where(loyal, own, pick(rng, popular, n_users))
            if not place:
                held_out = chosen
            pairs.append(np.arange(n_users) * n_items + chosen)
        np.save(unfinished / "held_out.npy", held_out.astype(np.int32))
        seen = np.setdiff1d(np.concatenate(pairs[1:]), pairs[0])
        counts = np.bincount(seen // n_items, minlength=n_users)
        np.save(unfinished / "seen_indptr.npy", np.concatenate([[0], np.cumsum(counts)]))
        np.save(unfinished / "seen_indices.npy", (seen % n_items).astype(np.int32))

    once(folder, write)
    return {"n_users": n_users, "n_items": n_items, "n_factors": FACTORS, "seed": SEED}


#: Items that are drawn for each user, who has seen them; some are drawn twice.
N_SEEN = 20


def directions(rng: np.random.Generator, size: int) -> Floats:
    """Return random vectors of a length about 1."""
    return rng.standard_normal((size, FACTORS), dtype=np.float32) / np.float32(FACTORS**0.5)


def unit(vectors: Floats) -> Floats:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def pick(rng: np.random.Generator, sums: npt.NDArray[np.float64], shape: Any) -> Integers:
    """Draw places in proportion to weights, given their running sums."""
    return np.minimum(np.searchsorted(sums, rng.random(shape) * sums[-1], "right"), len(sums) - 1)


def rank(folder: Path) -> dict[str, Any]:
    """Rank one held-out item of every user, as far as it is among the first k."""
    parts = {path.stem: np.load(path, allow_pickle=False) for path in folder.glob("*.npy")}
    users, items = parts["users"], parts["items"]
    shape = (len(users), len(items))
    indices, indptr = parts["seen_indices"], parts["seen_indptr"]
    seen = csr_matrix((np.ones(len(indices), np.int8), indices, indptr), shape)
    indptr = np.arange(len(users) + 1)
    held_out = csr_matrix((np.ones(len(users), np.int8), parts["held_out"], indptr), shape)

    few = slice(1000)  # kernels are loaded by a first call
    retrieve.held_out_ranks(users[few], items, held_out[few], K, seen=seen[few], progress=False)
    start = time.perf_counter()
    with peak_above_start() as peak:
        found, *_, report = retrieve.find_ranks(users, items, held_out, K, seen, progress=False)
    return {
        "seconds": time.perf_counter() - start,
        "bytes": peak[0],
        "inputs_bytes": {
            "user_factors": users.nbytes,
            "item_factors": items.nbytes,
            "seen": sum(part.nbytes for part in (seen.data, seen.indices, seen.indptr)),
            "held_out": sum(
                part.nbytes for part in (held_out.data, held_out.indices, held_out.indptr)
            ),
        },
        "n_seen": seen.nnz,
        "hit_rate": len(found.items) / len(users),
        "share_of_scores": report.n_products / report.n_pairs,
    }


COMMANDS = {"make": make, "train": train, "save": save, "sweep": sweep, "draw": draw, "rank": rank}


if __name__ == "__main__":
    command, path, *others = sys.argv[1:]
    numbers = [int(text) if text.isdigit() else text for text in others]
    print(json.dumps(COMMANDS[command](Path(path), *numbers)))
