"""Locks on files, by which processes keep out of each other's way."""

from __future__ import annotations

import errno


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
