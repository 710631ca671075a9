"""A split with two checkpoints, of which one is worthless."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import sparse_eval as se


def save_split_and_models(folder: Path) -> Path:
    """Save a split, and checkpoints of which als8 is the better one; return the folder."""
    holdout = se.split.random(se.datasets.synthetic(n_users=200, n_items=80, seed=0), seed=0)
    holdout.save(folder / "split")
    (folder / "models").mkdir()
    se.save_model(se.train_als(holdout.train, factors=8), folder / "models" / "als8.npz")
    worthless = (np.ones((200, 2)), np.zeros((80, 2)))
    se.save_model(se.factor_model(*worthless), folder / "models" / "none.npz")
    return folder
