"""Ctrl-C and SIGTERM end a command alike: it keeps finished work and shows how to go on.

Handlers of signals belong to the process, so only the command line sets them, while a command runs.
"""

from __future__ import annotations

import signal
import traceback
from contextlib import contextmanager
from contextvars import ContextVar
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from .echo import echo_at_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: The signals that end a command, unless its parent process ignores them.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: Describes the work that an interruption would leave now.
_left: ContextVar[Callable[[], str | None]] = ContextVar("_left")


class _Interrupt(KeyboardInterrupt):
    """A signal that asks the process to end.

    If a KeyboardInterrupt itself passes through ``exec`` or ``eval``, which many imports call,
    Python ends its process with SIGINT, regardless of the exit status.
    """


@contextmanager
def signals_as_interrupts() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt when a signal asks the process to end.

    Yields
    ------
    list of int
        The signals received so far.
    """
    received: list[int] = []
    is_over = False
    leaves(None)

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        if not is_over:
            raise _Interrupt

    replaced = {}
    try:
        if current_thread() is main_thread():  # only this thread may set handlers
            for number in _SIGNALS:
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    replaced[number] = signal.signal(number, interrupt)
        yield received
    finally:
        is_over = True
        for number, handler in replaced.items():
            signal.signal(number, handler)


def leaves(what: str | Callable[[], str | None] | None) -> None:
    """Describe the work that an interruption leaves from now on: by text or a function of it."""
    _left.set(what if callable(what) else lambda: what)


def tell_interruption(end: BaseException, received: list[int]) -> int:
    """Describe the work that an interrupted command leaves, undisturbed by more signals.

    What was half made at `end` is deleted here, where Python's complaints about it are not shown.

    Returns
    -------
    int
        The exit status, as a shell would have it: 130, or 143.
    """
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    error: BaseException | None = end
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__
    echo_at_the_end(f"interrupted: {_left.get()() or 'nothing is kept'}")
    return 128 + received[-1]
