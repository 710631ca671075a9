"""The popularity ranking as a model: one factor, the number of users of each item."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..inputs.npy import release, slice_rows
from .checkpoints import Factors
from .inputs import training_matrix

if TYPE_CHECKING:
    from ..core.types import CSRMatrix
    from ..inputs.axes import Axis


def by_popularity(
    train: CSRMatrix, users: Axis | None = None, items: Axis | None = None, n_rows: int = 1 << 18
) -> Factors:
    """Return the model, whose scores are the numbers of users who have an item.

    Explicit zeros do not count, and `train` is read `n_rows` users at a time.
    """
    n_users, n_items = train.shape
    counts = np.zeros(n_items)
    for first in range(0, n_users, n_rows):
        rows = training_matrix(slice_rows(train, first, min(first + n_rows, n_users)))
        counts += np.bincount(rows.indices[rows.data != 0], minlength=n_items)
        release(train)
    return Factors(np.ones((n_users, 1)), counts[:, None], users, items)
