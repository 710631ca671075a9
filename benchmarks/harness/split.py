"""Synthetic clicks, split at random and stored in single precision."""

from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, load_npz, save_npz

import sparse_eval as se

PARTS = ("train", "validation")


def write_split(folder: Path, n_users: int, n_items: int, seed: int) -> se.Holdout:
    """Draw clicks, split them, and write both parts into the folder."""
    clicks = se.datasets.synthetic(n_users=n_users, n_items=n_items, seed=seed)
    holdout = se.split.random(clicks, seed=seed)
    for part in PARTS:
        save_npz(folder / f"{part}.npz", single(getattr(holdout, part)))
    return holdout


def read_split(folder: Path) -> tuple[csr_matrix, csr_matrix]:
    train, validation = (load_npz(folder / f"{part}.npz") for part in PARTS)
    return train, validation


def single(matrix: Any) -> csr_matrix:
    return csr_matrix(matrix.tocsr(), dtype=np.float32)
