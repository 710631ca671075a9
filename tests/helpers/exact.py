"""Models with exact scores, so that no processor rounds them differently."""

import numpy as np

import sparse_eval as se


def exact_model(train, factors=8, seed=0):
    """Return a model of the users and items of a matrix, not trained."""
    rng = np.random.default_rng(seed)
    users, items = (rng.integers(-8, 9, (n, factors)).astype(np.float32) / 8 for n in train.shape)
    ids = {name: getattr(train, name, None) for name in ("users", "items")}
    return se.factor_model(users, items, **ids)
