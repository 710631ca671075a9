"""Measure the memory for scoring every user against every item, from within one process.

    python -P probe.py make FOLDER N_USERS N_ITEMS    writes a trained model and its data
    python -P probe.py score FOLDER                   prints bytes, seconds and the score as JSON

Making the data takes more memory than scoring it, so they never run in the same process.
"""

import json
import sys
import time
from pathlib import Path

from scipy.sparse import load_npz, save_npz

import sparse_eval as se

sys.path.append(str(Path(__file__).parents[2]))  # at the end: libraries come before our modules
from harness.peak import peak_above_start

METRIC = "ndcg@10"


def make(folder: Path, n_users: str, n_items: str) -> dict[str, int]:
    folder.mkdir(parents=True, exist_ok=True)
    interactions = se.datasets.synthetic(n_users=int(n_users), n_items=int(n_items), seed=0)
    holdout = se.split.random(interactions, seed=0)
    model = se.train_als(holdout.train, factors=64, iterations=3, seed=0)
    model.save(folder / "model.npz")
    save_npz(folder / "train.npz", holdout.train.csr)
    save_npz(folder / "validation.npz", holdout.validation.csr)
    n_users, n_items = holdout.train.shape
    return {
        "n_users": n_users,
        "n_items": n_items,
        "n_train": holdout.train.nnz,
        "n_validation": holdout.validation.nnz,
    }


def score(folder: Path) -> dict[str, float]:
    evaluate_model = se.evaluate_model  # imports are not part of scoring
    train, validation = load_npz(folder / "train.npz"), load_npz(folder / "validation.npz")
    start = time.perf_counter()
    with peak_above_start() as peak:
        evaluation = evaluate_model(folder / "model.npz", train, validation, [METRIC])
    seconds = time.perf_counter() - start
    return {"bytes": peak[0], "seconds": seconds, METRIC: evaluation[METRIC]}


if __name__ == "__main__":
    print(json.dumps({"make": make, "score": score}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])))
