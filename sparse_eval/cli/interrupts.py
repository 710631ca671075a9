"""Ctrl-C and SIGTERM end a command alike: what is finished is kept, and a line says how to go on.

Handlers of signals belong to the process, so only the command line sets them, while a command runs.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial, wraps
from pathlib import Path
from threading import Timer, current_thread, main_thread
from typing import TYPE_CHECKING, Any

from .echo import echo_at_the_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

#: The signals that end a command, unless whoever started it has them ignored.
_SIGNALS = (signal.SIGINT, signal.SIGTERM)

#: The files of a search and a sweep, as in `jobs.tune` and `jobs.sweep_table`, which may not
#: be imported yet.
STUDY, TABLE = "study.jsonl", "table.csv"

#: Seconds after which a signal comes again that Python lost.
_AGAIN = 0.02

#: The exit status of typer for a command in which KeyboardInterrupt was raised.
_INTERRUPTED = 128 + signal.SIGINT


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
        The signals that came.
    """
    received: list[int] = []
    is_over = False
    _left.set(_nothing)

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        if not is_over:  # a traceback would be all that comes of it
            raise _Interrupt

    def unraisable(event: Any) -> None:
        # Python drops what is raised while an object is deleted, also by the handler above.
        if not received:
            hook(event)
        elif event.exc_type is _Interrupt:
            Timer(_AGAIN, os.kill, (os.getpid(), received[-1])).start()

    if current_thread() is not main_thread():  # only the main thread may set handlers
        yield received
        return
    replaced = {
        number: handler
        for number in _SIGNALS
        if (handler := signal.getsignal(number)) not in (signal.SIG_IGN, None)
    }
    hook = sys.unraisablehook
    try:
        sys.unraisablehook = unraisable
        for number in replaced:
            signal.signal(number, interrupt)
        yield received
    finally:
        is_over = True
        sys.unraisablehook = hook
        for number, handler in replaced.items():
            signal.signal(number, handler)


def was_interrupted(end: BaseException, received: list[int]) -> bool:
    """Return whether a signal is what ended a command.

    Whatever else was raised after one came is its doing: compiled modules make an ImportError of
    the interruption of their import.
    """
    status = end.code if isinstance(end, SystemExit) else None
    if isinstance(end, KeyboardInterrupt) or status == _INTERRUPTED:
        return True
    return bool(received) and not (isinstance(end, SystemExit) and not status)


def tell_interruption(end: BaseException, received: list[int]) -> int:
    """Say what an interrupted command leaves, undisturbed by more signals.

    What was half made at `end` is deleted here, where Python's complaints about it are not shown.

    Returns
    -------
    int
        The exit status, as a shell would have it: 130, or 143.
    """
    if received:
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)
    error: BaseException | None = end
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error = error.__context__
    echo_at_the_end(f"interrupted: {_left.get()() or 'nothing is kept'}")
    return 128 + received[-1] if received else _INTERRUPTED


def tell_what_is_kept(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command of which `tell_interruption` can say what it leaves and how to go on."""

    @wraps(command)
    def run(*given: Any, **values: Any) -> None:
        left = _LEFT.get(command.__name__, _nothing)
        _left.set(partial(left, **values))
        command(*given, **values)
        _left.set(lambda: "the command was done, and everything is kept")

    return run


def _nothing(**_: Any) -> None:
    """Return what is left before a command has begun, and by those that write only at their end."""


#: Returns what the command leaves if it is interrupted now.
_left: ContextVar[Callable[[], str | None]] = ContextVar("_left", default=_nothing)


def _left_by_score(out: Path | None, checkpoint: list[str], **_: Any) -> str | None:
    if out is not None and (out / TABLE).exists():
        return f"what was scored is in {out / TABLE}; the same command goes on from there"
    if out is None and (len(checkpoint) > 1 or Path(checkpoint[0]).is_dir()):
        return "nothing is kept; with --out FOLDER the same command would go on from what is done"
    return None


def _left_by_tune(out: Path, **_: Any) -> str | None:
    if not (out / STUDY).exists():
        return None
    return f"finished trials are in {out / STUDY}; the same command goes on after them"


def _left_by_run(out: Path | None, **_: Any) -> str | None:
    """Return what `demo` and `run` leave."""
    if out is None or not (out / "split" / "labels.npz").exists():
        return None
    if (out / "model.npz").exists():
        command = f"score {out / 'model.npz'} --split {out / 'split'}"
        return f"{out} has the split and the model; go on with: sparse-eval {command}"
    return f"{out} has the split; go on with: sparse-eval train {out / 'split'}"


def _left_by_train(checkpoints: Path | None, input: Path, **_: Any) -> str | None:
    if checkpoints is None or not any(checkpoints.glob("[!.]*.npz")):
        return None
    command = f"score {checkpoints}" + (f" --split {input}" if input.is_dir() else "")
    return f"checkpoints so far are in {checkpoints}; compare them with: sparse-eval {command}"


#: What commands leave when they are interrupted, by the name of their function.
_LEFT: dict[str, Callable[..., str | None]] = {
    "compile_ahead": lambda: (
        "kernels compiled so far are kept; the same command compiles the others"
    ),
    "demo": _left_by_run,
    "run": _left_by_run,
    "score": _left_by_score,
    "train": _left_by_train,
    "tune": _left_by_tune,
}
