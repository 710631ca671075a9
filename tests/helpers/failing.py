"""Calls that fail, as by a full disk, or are interrupted."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def full(*_: Any, **__: Any) -> None:
    """Raise the error of a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@contextmanager
def interrupted_at(owner: Any, name: str, call: int) -> Iterator[None]:
    """Press Ctrl-C when a function is called for the n-th time; expect that it ends the block."""
    calls, function = [0], getattr(owner, name)

    def pressed(*given: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return function(*given, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, pressed)
        with pytest.raises(KeyboardInterrupt):
            yield
