"""Sorting in place, for rows that are too long for sorting by insertion or by counting.

numba's own sorts take a second to compile for each type. These are Shell sorts, insertion sorts
with decreasing gaps. They are as fast as a quicksort for up to a few thousand entries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import part

if TYPE_CHECKING:
    from .jit import Array


@part
def is_better(score: float, item: int, other_score: float, other_item: int) -> bool:
    """Return whether an item comes before another; of equal scores, the lower id comes first."""
    return score > other_score or (score == other_score and item < other_item)


@part
def sort_falling(values: Array, n: int) -> None:
    """Sort the first `n` values, the largest first."""
    gap = 1
    while gap < n // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            value = values[i]
            j = i
            while j >= gap and values[j - gap] < value:
                values[j] = values[j - gap]
                j -= gap
            values[j] = value
        gap //= 3


@part
def sort_best_first(scores: Array, items: Array, n: int) -> None:
    """Sort the first `n` items, the best first, and their scores with them."""
    gap = 1
    while gap < n // 9:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            score = scores[i]
            item = items[i]
            j = i
            while j >= gap and is_better(score, item, scores[j - gap], items[j - gap]):
                scores[j] = scores[j - gap]
                items[j] = items[j - gap]
                j -= gap
            scores[j] = score
            items[j] = item
        gap //= 3
