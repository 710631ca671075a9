"""Train and write the models that `checkpoint` ranks, and their data."""

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from harness.files import replacing
from harness.split import single
from implicit.cpu.bpr import BayesianPersonalizedRanking
from scipy.sparse import csr_matrix, load_npz, save_npz
from threadpoolctl import threadpool_limits

import sparse_eval as se

SEED = 0


class Data(NamedTuple):
    train: csr_matrix
    validation: csr_matrix


class Factors(NamedTuple):
    user_factors: np.ndarray
    item_factors: np.ndarray


@cache
def gowalla(folder: Path) -> Data:
    files = (folder / "train.txt", folder / "test.txt")
    holdout = se.Holdout.from_frames(*map(se.datasets.load_adjacency, files))
    return Data(single(holdout.train), single(holdout.validation))


@cache
def synthetic(folder: Path, **sizes: int) -> Data:
    """Return 50,000 users × 51,277 items, in the shape of MIND, or a toy."""
    holdout = se.split.random(se.datasets.synthetic(**sizes, seed=SEED), seed=SEED)
    return Data(single(holdout.train), single(holdout.validation))


def toy(folder: Path) -> Data:
    return synthetic(folder, n_users=2_000, n_items=1_000)


def als(train: csr_matrix, factors: int, alpha: float, regularization: float) -> Factors:
    model = se.train_als(
        train, factors=factors, regularization=regularization, alpha=alpha, seed=SEED
    )
    return Factors(model.user_factors, model.item_factors)


def bpr(train: csr_matrix, factors: int) -> Factors:
    """Return BPR's factors, with the biases as one more column; one thread makes it repeatable."""
    with threadpool_limits(1, user_api="blas"):
        model = BayesianPersonalizedRanking(factors=factors, num_threads=1, random_state=SEED)
        model.fit(train, show_progress=False)
    return Factors(model.user_factors, model.item_factors)


def unit(train: csr_matrix, factors: int) -> Factors:
    """Return random factors of norm 1, which are of no use for bounds."""
    rng = np.random.default_rng(SEED)
    users, items = (rng.standard_normal((size, factors)) for size in train.shape)
    unit_users, unit_items = (
        (side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32)
        for side in (users, items)
    )
    return Factors(unit_users, unit_items)


#: The training data and the training function of each model, by the name of its file.
MODELS: dict[str, tuple[Callable[[Path], Data], Callable[[csr_matrix], Factors]]] = {
    "gowalla-als64": (gowalla, partial(als, factors=64, alpha=40.0, regularization=0.1)),
    "gowalla-als256": (gowalla, partial(als, factors=256, alpha=10.0, regularization=0.1)),
    "gowalla-bpr64": (gowalla, partial(bpr, factors=64)),
    "synthetic-als64": (synthetic, partial(als, factors=64, alpha=40.0, regularization=0.1)),
    "synthetic-unit64": (synthetic, partial(unit, factors=64)),
    "toy-als16": (toy, partial(als, factors=16, alpha=40.0, regularization=0.1)),
}


def write(place: str, gowalla_folder: str, names: list[str]) -> dict[str, Any]:
    """Write the named models, unless their files exist; return their sizes.

    The second folder has `train.txt` and `test.txt`, as published by the authors of LightGCN.
    """
    folder, source = Path(place), Path(gowalla_folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        load, train = MODELS[name]
        for part in Data._fields:
            path = folder / f"{load.__name__}-{part}.npz"
            if not path.exists():
                with replacing(path) as temporary:
                    save_npz(temporary, getattr(load(source), part))
        path = folder / f"{name}.npz"
        if not path.exists():
            print(f"training {name}", file=sys.stderr)
            with replacing(path) as temporary:
                np.savez(temporary, **train(load(source).train)._asdict())
    return {name: describe(folder, name) for name in names}


def describe(folder: Path, name: str) -> dict[str, Any]:
    """Return the data of a model, and the sizes of both."""
    data = MODELS[name][0].__name__
    train, validation = (load_npz(folder / f"{data}-{part}.npz") for part in Data._fields)
    with np.load(folder / f"{name}.npz", allow_pickle=False) as saved:
        n_factors = saved["item_factors"].shape[1]
    n_users, n_items = train.shape
    return {
        "data": data,
        "n_users": n_users,
        "n_items": n_items,
        "n_factors": n_factors,
        "n_lists": int(np.count_nonzero(np.diff(validation.indptr))),
        "n_train": train.nnz,
        "n_validation": validation.nnz,
    }
