"""What a command shows on a terminal, and how Ctrl-C and SIGTERM end it: with finished work kept.

Ids that are printed cannot control the terminal. Handlers of signals belong to the process, so only
the command line sets them, while a command runs.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from threading import current_thread, main_thread
from typing import TYPE_CHECKING

from ..core.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: The command line.
LINE: ContextVar[str] = ContextVar("LINE")

#: Whether notes about the steps of a command are left out.
QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)


def echo(text: str = "", *, err: bool = False, nl: bool = True, data: bool = False) -> None:
    """Print text for people, or `data` for programs.

    Control characters are escaped, because ids may hold them. Data keep every character, unless
    they go to a terminal. If the reader has enough, as ``head -1``, the rest is not printed.
    """
    import typer

    stream = sys.stderr if err else sys.stdout
    if not data or (stream is not None and stream.isatty()):
        text = printable(text)
    try:
        typer.echo(text, err=err, nl=nl, color=True)  # or click would drop colour sequences
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def note(text: str) -> None:
    """Print a note about a step of the command on standard error, unless it is to be quiet."""
    if not QUIET.get():
        echo(text, err=True)


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
    said = printable(f"interrupted: {_left.get()() or 'nothing is kept'}")
    with suppress(AttributeError, OSError, ValueError):  # it is closed
        sys.stderr.write(f"{said}\n")  # without typer, whose import may be what was interrupted
        sys.stderr.flush()
    return 128 + received[-1]
