"""The command line, ``sparse-eval COMMAND`` or ``python -m sparse_eval COMMAND``.

Results are printed to standard output, progress and warnings to standard error. Bad input ends a
command with an error in one line and exit status 2. The status is 75 if the disk is full, another
process uses a folder, or a scheduler is gone. A bug prints its traceback and how to report it, with
exit status 70. Ctrl-C ends a command with 130, and SIGTERM with 143. This module imports next to
nothing, so that signals are handled while the commands and their dependencies are imported.
"""

from __future__ import annotations

import errno
import gc
import shlex
import sys
import traceback
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .terminal import LINE, bug_report, message_lines, signals_as_interrupts, tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = ["main"]

#: The exit status of a command that ended in a bug, which sysexits.h calls EX_SOFTWARE.
BUG = 70

#: The exit status if the same command may succeed later, which sysexits.h calls EX_TEMPFAIL.
TRY_AGAIN = 75

#: Errors of a full disk.
_FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; `arguments` default to the arguments of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:  # accepted anywhere on the line
        words = ["--debug", *(word for word in words if word != "--debug")]
    with signals_as_interrupts() as received, message_lines(words), _collecting_rarely(arguments):
        try:
            from ..core.progress import lines_without_terminal
            from .commands import app

            LINE.set(shlex.join(["sparse-eval", *words]))
            with lines_without_terminal():
                app(args=words, prog_name="sparse-eval")
        except BaseException as end:
            done = isinstance(end, SystemExit) and not end.code
            if received and not done:  # compiled modules turn interruptions into ImportError
                tell("interrupted")
                raise SystemExit(128 + received[-1]) from None
            if isinstance(end, SystemExit):
                raise
            raise SystemExit(_print_error(end, debug)) from None


@contextmanager
def _collecting_rarely(arguments: Sequence[str] | None) -> Iterator[None]:
    """Look for garbage rarely, and not at all when the process ends.

    Nearly all objects of a short command belong to imported modules, which are no garbage. Looking
    through them took a fifth of its time.
    """
    usual = gc.get_threshold()
    gc.set_threshold(50_000, *usual[1:])
    try:
        yield
    finally:
        gc.set_threshold(*usual)
        if arguments is None:  # the command of a process, which ends with it
            gc.freeze()


def _print_error(error: BaseException, debug: bool) -> int:
    """Print the error, and return the exit status."""
    from ..errors import SparseEvalError, WorkerError

    is_bug = not isinstance(error, SparseEvalError | OSError | MemoryError | UnicodeEncodeError)
    with suppress(OSError):  # where standard error is full, the status has to do
        if debug or is_bug:
            tell("".join(traceback.format_exception(error)).strip())
        tell(bug_report(error) if is_bug else f"error: {_message(error)}")
    cause = error.__cause__ if isinstance(error, SparseEvalError) else error
    passes = isinstance(cause, TimeoutError) or (
        isinstance(cause, OSError) and cause.errno in _FULL
    )
    if isinstance(error, WorkerError):
        passes = error.may_pass
    return BUG if is_bug else TRY_AGAIN if passes else 2


def _message(error: BaseException) -> str:
    """Return the message of an error in one line, with the option that it is about."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    if isinstance(error, UnicodeEncodeError):  # of a system whose output is no UTF-8
        return f"{error}; set PYTHONIOENCODING=utf-8"
    return " ".join([*str(error).splitlines(), *getattr(error, "__notes__", [])])
