"""Users with training data, for tests of the random baseline."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_matrix

import sparse_eval as se

N_USERS, N_ITEMS = 60, 25


def many_users() -> tuple[se.Rankings, csr_matrix, csr_matrix, np.ndarray]:
    rng = np.random.default_rng(5)
    train = rng.random((N_USERS, N_ITEMS)) < rng.random(N_ITEMS) * 0.6
    relevant = (rng.random((N_USERS, N_ITEMS)) < 0.2) & ~train
    relevant[:, 0] |= ~relevant.any(axis=1)
    train &= ~relevant
    gains = relevant * rng.integers(1, 4, relevant.shape)
    lists = se.Rankings.from_scores(rng.random(train.shape), k=5, seen=csr_matrix(train))
    return lists, csr_matrix(gains), csr_matrix(train), relevant
