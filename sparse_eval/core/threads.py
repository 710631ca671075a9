"""Sharing blocks of users between threads."""

from __future__ import annotations

import os
from collections import deque
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

from .arguments import check_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Value = TypeVar("Value")
Result = TypeVar("Result")

#: The largest block of users, which bounds the memory of a thread.
BLOCK = 25_000


def thread_count(num_threads: int | None) -> int:
    """Return the number of threads to use, by default one per core available to this process."""
    if num_threads is None:
        return (
            len(os.sched_getaffinity(0))
            if hasattr(os, "sched_getaffinity")
            else os.cpu_count() or 1
        )
    return check_whole("num_threads", num_threads, 1)


def for_blocks(
    work: Callable[[int, int], None],
    total: int,
    num_threads: int | None = None,
    block: int | None = None,
) -> None:
    """Call ``work(first, last)`` for consecutive blocks that cover ``range(total)``.

    `work` must write only to the entries of its own users, so that neither the number of threads
    nor the size of a block can change a result. An exception in it is raised here, once the blocks
    at work are done.

    Parameters
    ----------
    work : callable
    total : int
    num_threads : int, optional
        By default one per core available to this process.
    block : int, optional
        The size of a block. By default as large as possible with a share for each thread: a thread
        waits for the interpreter's lock between any two short operations on arrays, and with blocks
        of 5000, 70 columns for 50,000 users took as long with two threads as with one.
    """
    n_threads = thread_count(num_threads)
    block = block or _share(total, n_threads)
    starts = deque(range(0, total, block))
    errors: list[BaseException] = []

    def drain() -> None:
        while True:
            try:
                start = starts.popleft()
            except IndexError:
                return
            try:
                work(start, min(start + block, total))
            except BaseException as error:  # noqa: BLE001 - raised below, in the calling thread
                errors.append(error)
                starts.clear()

    # The calling thread works too, and there is no pool: waking one took as long as a quarter of
    # the sweep of 50,000 users.
    helpers = [Thread(target=drain) for _ in range(min(n_threads, len(starts)) - 1)]
    try:
        for helper in helpers:
            helper.start()
        drain()
    finally:
        starts.clear()  # Ctrl-C between two blocks ends the work of the others too
        for helper in helpers:
            if helper.ident is not None:
                helper.join()
    if errors:
        raise errors[0]


def for_each(work: Callable[[Value], Result], values: Sequence[Value]) -> list[Result]:
    """Return ``work(value)`` for each of a few values, shared between threads."""
    results: dict[int, Result] = {}

    def call(first: int, last: int) -> None:
        for place in range(first, last):
            results[place] = work(values[place])

    for_blocks(call, len(values), block=1)
    return [results[place] for place in range(len(values))]


def _share(total: int, n_threads: int) -> int:
    size = min(max(-(-total // n_threads), 1000), BLOCK)
    # Columns that are a multiple of 4096 bytes apart share cache lines, which made the sweep slower
    # by a third.
    return size + 8 if size % 512 == 0 else size
