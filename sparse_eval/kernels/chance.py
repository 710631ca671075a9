"""Probabilities under a random ranking that have no closed formula."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array


@kernel
def first_hit_chances(
    n_hits: Array, n_candidates: Array, depths: Array, any_hit: Array, reciprocal: Array
) -> None:
    """Write the probability of a hit in the list, and the expected 1 / rank of the first hit.

    The list is the first `depths` of `n_candidates` items in random order, `n_hits` of which are
    hits. The reciprocal rank is 0 if there is no hit.
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
