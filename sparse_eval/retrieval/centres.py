"""Centres of the directions of users: k-means on a sample, and which centre is nearest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import sparse

from ..core.threads import for_blocks
from ..kernels.centres import assign
from ..kernels.products import UNIT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: The 16-bit integers of two adjacent factors in one, as `kernels.products` takes them.
    Directions = NDArray[np.int32]

#: Users assigned at once.
_BLOCK = 2048


def find_centres(directions: Directions, n_centres: int, threads: int) -> Directions:
    """Return centres of the users' directions: a few rounds of k-means on a sample."""
    n = min(len(directions), 32 * n_centres)
    sample = directions[np.linspace(0, len(directions) - 1, n).astype(np.int64)]
    centres = sample[np.linspace(0, n - 1, n_centres).astype(np.int64)]
    for _ in range(3):
        nearest, _ = nearest_centres(sample, centres, threads)
        members = sparse.csr_matrix(
            (np.ones(n, np.float32), nearest, np.arange(n + 1)), shape=(n, n_centres)
        )
        sums = members.T @ sample.view(np.int16)
        lengths = np.linalg.norm(sums, axis=1)
        moved = lengths > 1e-3 * UNIT
        centres.view(np.int16)[moved] = np.rint(sums[moved] * (UNIT / lengths[moved, None]))
    return centres


def nearest_centres(
    directions: Directions, centres: Directions, threads: int
) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """Return the centre nearest to each user, and the cosine between them."""
    # Without BLAS, whose threads would go on waiting for work on the same cores.
    n = len(directions)
    nearest = np.empty(n, np.int16)
    cosine = np.empty(n, np.float32)
    for_blocks(
        lambda first, last: assign(first, last, directions, centres, nearest, cosine),
        n,
        threads,
        _BLOCK,
    )
    return nearest, cosine
