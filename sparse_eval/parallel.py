"""Blocks of users on a pool of threads."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from .errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["for_blocks", "thread_count"]

#: Users in a block. Small enough to share evenly between threads, large enough that handing a
#: block over (some 100 µs) does not count, and no power of two: columns 4096 float64 apart fall on
#: the same cache lines, which made the sweep a third slower.
BLOCK = 5000


def thread_count(num_threads: int | None) -> int:
    """Return the number of threads to use: as asked, or one per core that this process may use."""
    if num_threads is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    if isinstance(num_threads, bool) or not isinstance(num_threads, int) or num_threads < 1:
        raise InvalidDataError(
            f"num_threads is {num_threads!r}; expected an int of at least 1, or None"
        )
    return num_threads


def for_blocks(
    work: Callable[[int, int], None],
    total: int,
    num_threads: int | None = None,
    block: int = BLOCK,
) -> None:
    """Call ``work(first, last)`` for consecutive blocks that cover ``range(total)``.

    `work` writes to places that belong to its own users, so neither the number of threads nor the
    size of a block can change a result.
    """
    starts = range(0, total, block)
    threads = min(thread_count(num_threads), len(starts))
    if threads <= 1:
        for start in starts:
            work(start, min(start + block, total))
        return
    with ThreadPoolExecutor(threads) as pool:
        for _ in pool.map(lambda start: work(start, min(start + block, total)), starts):
            pass
