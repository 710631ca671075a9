"""Centres of groups of users: the nearest centre of each user, and projections of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .jit import allocating_kernel
from .products import ROWS_AT_ONCE, UNIT, multiply, pack
from .vectors import LANES

if TYPE_CHECKING:
    from .jit import Array
    from .structures import Catalogue

#: The number of users whose products with the centres fit into the L1 cache.
_BLOCK = 10 * ROWS_AT_ONCE


@allocating_kernel
def assign(
    first: int, last: int, directions: Array, centres: Array, nearest: Array, cosine: Array
) -> None:
    """Write the centre with the largest cosine for each user, and this cosine, up to its error."""
    n = len(centres)
    n_strips = -(-n // LANES)
    identity = np.arange(max(n, _BLOCK))
    strips = np.empty((n_strips, directions.shape[1], LANES), np.int32)
    pack(centres, identity, n, strips)
    weights = np.full(n_strips * LANES, 1.0 / UNIT / UNIT, np.float32)
    products = np.empty((_BLOCK + ROWS_AT_ONCE, n_strips * LANES), np.float32)
    for begin in range(first, last, _BLOCK):
        size = min(_BLOCK, last - begin)
        block = directions[begin : begin + size]
        rows = identity[:size]
        for i in range(0, size, ROWS_AT_ONCE):
            for s in range(n_strips):
                multiply(block, rows, i, strips, s, weights, products)
        for i in range(size):
            line = products[i, :n]
            best = line[0]
            for c in range(n):
                best = line[c] if line[c] > best else best
            centre = 0
            while line[centre] < best:
                centre += 1
            nearest[begin + i] = centre
            cosine[begin + i] = best


@allocating_kernel
def project(
    first: int, last: int, catalogue: Catalogue, centres: Array, projections: Array
) -> None:
    """Write the projections of items on every centre, see `Groups`."""
    n = last - first
    n_strips = -(-n // LANES)
    identity = np.arange(max(n, len(centres)))
    strips = np.empty((n_strips, centres.shape[1], LANES), np.int32)
    pack(catalogue.directions[first:last], identity, n, strips)
    weights = np.zeros(n_strips * LANES, np.float32)
    weights[:n] = catalogue.weights[first:last]
    products = np.empty((len(centres) + ROWS_AT_ONCE, n_strips * LANES), np.float32)
    rows = identity[: len(centres)]
    for c in range(0, len(centres), ROWS_AT_ONCE):
        for s in range(n_strips):
            multiply(centres, rows, c, strips, s, weights, products)
    norms = catalogue.norms[first:last]
    margins = catalogue.margins[first:last]
    for c in range(len(centres)):
        line = products[c]
        out = projections[c, first:last]
        for j in range(n):
            most = line[j] + margins[j]
            out[j] = most if most < norms[j] else norms[j]
