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
    """Return the reentrant lock of this name between the threads of this process.

    A forked process has no other threads, so nothing there would release a lock that another thread
    held at the time of the fork. The forked process starts with a free lock.
    """
    lock: AbstractContextManager[object] = _locks.setdefault((os.getpid(), name), RLock())
    return lock


def lock_file(file: int, *, shared: bool = False, wait: bool = True) -> None:
    """Lock an open file until it is closed, if only by the end of the process.

    Parameters
    ----------
    file : int
        A file descriptor.
    shared : bool
        Whether others may hold a shared lock at the same time.
    wait : bool
        Whether to wait for others.

    Raises
    ------
    BlockingIOError
        If another process holds the lock, and this one is not to wait.
    OSError
        If the system, or the file's own, has no locks.
    """
    try:
        import fcntl
    except ImportError:
        raise OSError(errno.ENOTSUP, "this system has no locks on files") from None
    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Keep a folder that exists from others who lock it too, where the system has such locks.

    Raises
    ------
    OutputError
        If another holds the lock.
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
        except OSError:  # some systems open no folder, or have no locks
            pass
        yield
