"""Calls that fail, as by a full disk, or are interrupted."""

import errno
import os
from contextlib import contextmanager
from functools import wraps

import pytest


def full(*_, **__):
    """Raise the error of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def interrupted_at(owner, name, call):
    """Press Ctrl-C when a function is called for the n-th time; expect that it ends the block."""
    calls, function = [0], getattr(owner, name)

    @wraps(function)
    def pressed(*given, **options):
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return function(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, pressed)
        with pytest.raises(KeyboardInterrupt):
            yield
