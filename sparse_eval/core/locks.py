"""Locks between threads and, on files, between processes."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any

from ..errors import OutputError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path


_locks: dict[tuple[int, str], Any] = {}


def thread_lock(name: str) -> AbstractContextManager[object]:
    """Return the reentrant lock with this name, shared by the threads of this process.

    A forked process starts with a free lock. Otherwise, a lock held by another thread at the time
    of the fork would never be released, because the forked process does not have this thread.
    """
    lock: AbstractContextManager[object] = _locks.setdefault((os.getpid(), name), RLock())
    return lock


def lock_file(file: int, *, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file until it is closed, at the latest when the process ends.

    Parameters
    ----------
    file : int
        A file descriptor.
    shared : bool
        Whether other processes may hold a shared lock at the same time.
    wait : bool
        Whether to wait for other processes.

    Raises
    ------
    BlockingIOError
        If another process holds the lock and `wait` is false.
    OSError
        If the operating system or the file system does not support locks.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "this system has no locks on files") from None
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock an existing folder against other processes, if the system supports such locks.

    Raises
    ------
    OutputError
        If another process holds the lock.
    """
    with ExitStack() as stack:
        try:
            file = os.open(folder, os.O_RDONLY)
            stack.callback(os.close, file)
            lock_file(file, wait=False)
        except BlockingIOError as error:
            raise OutputError(
                f"{shown(folder)}: another process writes to this folder; wait until it has "
                "ended, or choose another folder",
                path=folder,
            ) from error
        except OSError:  # some systems cannot open folders, or have no locks
            pass
        yield
