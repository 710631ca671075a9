"""Sharing blocks of users between threads, reading ahead, and locks between threads."""

from __future__ import annotations

import math
import os
import re
from collections import deque
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from threading import RLock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from .arguments import check_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

Value = TypeVar("Value")
Result = TypeVar("Result")

#: The largest block of users, which bounds the memory of a thread, and the smallest by default.
BLOCK, LEAST = 25_000, 1000

#: Environment variables that limit threads: OpenMP's, which may be a list by level, and numba's.
_VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")

_ROOT = Path("/")

#: The process that imported this module; a process forked from it has another number.
_PROCESS = os.getpid()


#: The most threads by default, if the command line limits them.
_limit: int | None = None


@contextmanager
def limited_threads(limit: int | None) -> Iterator[None]:
    """Limit the default number of threads of this process for a block; None sets no limit."""
    global _limit  # not of a context, which other threads would not see
    before, _limit = _limit, limit
    try:
        yield
    finally:
        _limit = before


def thread_count(num_threads: int | None) -> int:
    """Return the number of threads to use: by default, and for -1, one per available core."""
    if num_threads is None or (isinstance(num_threads, int) and num_threads == -1):
        n_cores = available_cores(os.environ, _ROOT)
        return n_cores if _limit is None else min(n_cores, _limit)
    return check_whole("num_threads", num_threads, 1)


def openmp_threads(num_threads: int | None) -> int:
    """Return the number of threads to use in compiled code of implicit: one in a forked process.

    implicit uses OpenMP. A forked process lacks the threads that OpenMP started before the fork,
    for example in training, and GNU's OpenMP waits for them forever. One thread needs no others.
    """
    count = thread_count(num_threads)
    return count if os.getpid() == _PROCESS else 1


def available_cores(environment: Mapping[str, str], root: Path) -> int:
    """Return the number of cores that this process may use.

    This is the smallest of its CPU affinity, the CPU quota of its container rounded up, and the
    numbers in ``OMP_NUM_THREADS`` and ``NUMBA_NUM_THREADS``. Values that are not positive whole
    numbers are ignored, as OpenMP ignores them. numba raises an error for numbers below 1.

    Parameters
    ----------
    root : Path
        The root of the file system with ``sys``.
    """
    n_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        n_cores = len(os.sched_getaffinity(0))
    least = int(min(n_cores, cgroup_cores(root)))
    for name in _VARIABLES:
        text = environment.get(name, "").partition(",")[0].strip()
        if re.fullmatch("0*[1-9][0-9]{0,8}", text):
            least = min(least, int(text))
    return least


@lru_cache(maxsize=1)  # it rarely changes, and files are slow to read
def cgroup_cores(root: Path) -> float:
    """Return the CPU quota of this container in cores, rounded up; infinity without one.

    A container finds its own cgroup at the root of the mounted ones. Versions 1 and 2 are
    supported.
    """
    mount = root / "sys/fs/cgroup"
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):  # there is no quota, or it is "max"
            words = " ".join((mount / name).read_text("utf-8") for name in names).split()
            quota, period = map(int, words)
            if quota > 0 and period > 0:
                return -(-quota // period)
    return math.inf


def for_blocks(
    work: Callable[..., None],
    total: int,
    num_threads: int | None = None,
    block: int | None = None,
    arguments: Sequence[Any] = (),
) -> None:
    """Call ``work(first, last, *arguments)`` for consecutive blocks that cover ``range(total)``.

    `work` must write only to the entries of its own users. Then neither the number of threads nor
    the size of a block can change a result. An exception in it is raised here after the running
    blocks have ended. If there are several, the exception of the first block is raised.

    Parameters
    ----------
    num_threads : int, optional
        By default one per core that `available_cores` counts.
    block : int, optional
        The size of a block. By default, blocks are as large as possible while each thread gets one.
        A thread waits for the interpreter's lock between short array operations. With blocks of
        5000, 70 columns for 50,000 users took as long with two threads as with one.
    arguments : sequence
        More arguments of `work`, such as the arrays of a kernel.
    """
    is_small = num_threads is None and total <= (block or LEAST)
    n_threads = 1 if is_small else thread_count(num_threads)
    block = block or _share(total, n_threads)
    starts = deque(range(0, total, block))
    errors: dict[int, BaseException] = {}

    def drain() -> None:
        while True:
            try:
                start = starts.popleft()
            except IndexError:
                return
            try:
                work(start, min(start + block, total), *arguments)
            except BaseException as error:  # noqa: BLE001 - raised below, in the calling thread
                errors[start] = error
                starts.clear()

    # The calling thread works too. There is no pool of threads: waking one took a quarter of the
    # time of the sweep of 50,000 users.
    helpers = [Thread(target=drain) for _ in range(min(n_threads, len(starts)) - 1)]
    try:
        for helper in helpers:
            helper.start()
        drain()
    finally:
        starts.clear()  # Ctrl-C between two blocks stops the other threads too
        for helper in helpers:
            if helper.ident is not None:
                helper.join()
    if errors:
        # All blocks before a failed one have run, so it does not depend on the threads which error
        # is raised. Ctrl-C comes before errors.
        raise min(errors.items(), key=lambda one: (isinstance(one[1], Exception), one[0]))[1]


def for_each(work: Callable[[Value], Result], values: Sequence[Value]) -> list[Result]:
    """Return ``work(value)`` for each of a few values, shared between threads."""
    results: dict[int, Result] = {}

    def call(first: int, last: int) -> None:
        for place in range(first, last):
            results[place] = work(values[place])

    for_blocks(call, len(values), block=1)
    return [results[place] for place in range(len(values))]


def read_ahead(values: Generator[Value, None, None]) -> Generator[Value, None, None]:
    """Yield the same values, which are not None, while a thread reads the next one."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as thread:
        try:
            following = thread.submit(next, values, None)
            while (value := following.result()) is not None:
                following = thread.submit(next, values, None)
                yield value
        finally:
            thread.submit(values.close)  # after what it may still read when Ctrl-C ends the wait


def _share(total: int, n_threads: int) -> int:
    size = min(max(-(-total // n_threads), LEAST), BLOCK)
    # Columns that are a multiple of 4096 bytes apart compete for the same cache lines, which made
    # the sweep slower by a third.
    return size + 8 if size % 512 == 0 else size


_locks: dict[tuple[int, str], Any] = {}


def thread_lock(name: str) -> AbstractContextManager[object]:
    """Return the reentrant lock with this name, shared by the threads of this process.

    A forked process starts with a free lock. Otherwise, a lock held by another thread at the time
    of the fork would never be released, because the forked process does not have this thread.
    """
    lock: AbstractContextManager[object] = _locks.setdefault((os.getpid(), name), RLock())
    return lock


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, because the last bits of its sums depend on the number of threads.

    The limit holds for the process. If blocks of code in several threads overlapped, the first one
    to end would lift the limit of the others. So only one thread at a time is in such a block.
    """
    from threadpoolctl import threadpool_limits

    with thread_lock("BLAS"), threadpool_limits(limits=1, user_api="blas"):
        yield
