"""The command line, ``sparse-eval COMMAND`` or ``python -m sparse_eval COMMAND``.

Results are printed to standard output, progress and warnings to standard error. Bad input ends a
command with an error in one line and exit status 2. The status is 75 if the disk is full, another
process uses a folder, or a scheduler is gone. A bug prints its traceback and how to report it, with
exit status 70. Ctrl-C ends a command with 130, and SIGTERM with 143. This module imports next to
nothing, so that signals are handled while the commands and their dependencies are imported.
"""

from __future__ import annotations

import shlex
import sys
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING

from .terminal import LINE, message_lines, report_interruption, signals_as_interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["main"]

#: The exit status of a command that ended in a bug, which sysexits.h calls EX_SOFTWARE.
BUG = 70

#: The exit status if the same command may succeed later, which sysexits.h calls EX_TEMPFAIL.
TRY_AGAIN = 75

#: Options that print the help.
_HELP = {"-h", "--help", "--help-all"}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; `arguments` default to the arguments of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:  # accepted anywhere on the line
        words = ["--debug", *(word for word in words if word != "--debug")]
    with signals_as_interrupts() as received, message_lines(words):
        try:
            from ..core.progress import lines_without_terminal
            from . import messages  # noqa: F401 - while there is memory for it
            from .commands import app

            LINE.set(shlex.join(["sparse-eval", *words]))
            with lines_without_terminal():
                app(args=words, prog_name="sparse-eval")
        except BaseException as end:
            done = isinstance(end, SystemExit) and not end.code
            if received and not done:  # compiled modules turn interruptions into ImportError
                raise SystemExit(report_interruption(end, received)) from None
            if isinstance(end, SystemExit):
                if isinstance(end.__context__, BrokenPipeError) and _HELP & {*words}:
                    raise SystemExit(0) from None  # the reader had enough of the help
                raise
            raise SystemExit(_print_error(end, debug)) from None


def _print_error(error: BaseException, debug: bool) -> int:
    """Print the error, and return the exit status."""
    from ..errors import SparseEvalError, WorkerError
    from .messages import FULL, bug_report, lacks_memory, message_of
    from .terminal import tell

    expected = isinstance(error, SparseEvalError | OSError | UnicodeEncodeError)
    is_bug = not expected and not lacks_memory(error)
    with suppress(OSError):  # where standard error is full, the status has to do
        if debug or is_bug:
            tell("".join(traceback.format_exception(error)).strip())
        tell(bug_report(error) if is_bug else f"error: {message_of(error)}")
    cause = error.__cause__ if isinstance(error, SparseEvalError) else error
    passes = isinstance(cause, TimeoutError) or (isinstance(cause, OSError) and cause.errno in FULL)
    if isinstance(error, WorkerError):
        passes = error.may_pass
    return BUG if is_bug else TRY_AGAIN if passes else 2
