"""Chances under a random ranking that have no formula shorter than a loop."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array


@kernel
def first_hit_chances(
    n_hits: Array, n_candidates: Array, depths: Array, any_hit: Array, reciprocal: Array
) -> None:
    """Write the chance of a hit among the first places, and the mean of 1 / rank of the first.

    Of `n_candidates` items in random order `n_hits` are hits; the list has `depths` places.
    """
    for row in range(len(n_hits)):
        none_yet = 1.0
        total = 0.0
        left = n_candidates[row]
        for rank in range(1, depths[row] + 1):
            here = none_yet * n_hits[row] / left
            total += here / rank
            none_yet *= (left - n_hits[row]) / left
            left -= 1
            if none_yet == 0.0:
                break
        any_hit[row] = 1.0 - none_yet
        reciprocal[row] = total
