"""Synthetic clicks, split at random and stored in single precision, as inputs of several suites."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, load_npz, save_npz

import sparse_eval as se

from .files import once

PARTS = ("train", "validation")


def make_split(folder: Path, n_users: int, n_items: int, more: Any = None) -> dict[str, int]:
    """Draw clicks, and write both parts into the folder, unless it exists; return the sizes.

    `more(folder, holdout)` writes other files.
    """

    def write(unfinished: Path) -> None:
        clicks = se.datasets.synthetic(n_users=n_users, n_items=n_items, seed=0)
        holdout = se.split.random(clicks, seed=0)
        for part in PARTS:
            save_npz(unfinished / f"{part}.npz", single(getattr(holdout, part)))
        if more:
            more(unfinished, holdout)

    once(folder, write)
    train, validation = read_split(folder)
    sizes = dict(zip(("n_users", "n_items"), train.shape, strict=True))
    return sizes | {"n_train": train.nnz, "n_validation": validation.nnz}


def read_split(folder: Path) -> tuple[csr_matrix, csr_matrix]:
    train, validation = (load_npz(folder / f"{part}.npz") for part in PARTS)
    return train, validation


def single(matrix: Any) -> csr_matrix:
    return csr_matrix(matrix.tocsr(), dtype=np.float32)
