"""The command line, ``sparse-eval COMMAND`` or ``python -m sparse_eval COMMAND``.

Results are printed to standard output, progress and warnings to standard error. Bad input ends a
command with an error in one line and exit status 2; a bug with its traceback, how to report it and
exit status 70; Ctrl-C ends it with 130, and SIGTERM with 143. Slow imports happen inside the
commands.
"""

from __future__ import annotations

import shlex
import sys
import traceback
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

import typer

from ..core.progress import lines_without_terminal
from ..errors import SparseEvalError
from .comparing import compare, report
from .compiling import compile_ahead
from .echo import echo
from .interrupts import (
    signals_as_interrupts,
    tell_interruption,
    tell_what_is_kept,
    was_interrupted,
)
from .listing import metrics
from .messages import bug_report, lacks_memory, message_of
from .options import expand_groups
from .recommending import recommend
from .scoring import evaluate, score
from .training import demo, run, split, train
from .tuning import tune

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]

#: The exit status of a command that ended in a bug, which sysexits.h calls EX_SOFTWARE.
BUG = 70

app = typer.Typer(
    name="sparse-eval",
    help="Evaluate recommenders trained on large implicit-feedback data.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (
    demo, run, split, train, tune, score, evaluate, recommend, compare, report, metrics,
):  # fmt: skip
    app.command()(expand_groups(tell_what_is_kept(_command)))
app.command("compile")(tell_what_is_kept(compile_ahead))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command; `arguments` default to those of the process."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    if debug:  # accepted anywhere on the line
        words = ["--debug", *(word for word in words if word != "--debug")]
    with signals_as_interrupts() as received:
        try:
            with lines_without_terminal():
                app(args=words, prog_name="sparse-eval", obj=shlex.join(["sparse-eval", *words]))
        except BaseException as end:
            if was_interrupted(end, received):
                raise SystemExit(tell_interruption(end, received)) from None
            if isinstance(end, SystemExit):
                raise
            raise SystemExit(_tell_error(end, debug)) from None


def _tell_error(error: BaseException, debug: bool) -> int:
    """Say what went wrong, and return the exit status."""
    if isinstance(error, SparseEvalError | OSError | UnicodeEncodeError) or lacks_memory(error):
        with suppress(OSError):  # where standard error is full, the status has to do
            if debug:
                echo("".join(traceback.format_exception(error)), nl=False, err=True)
            echo(f"error: {message_of(error)}", err=True)
        return 2
    with suppress(OSError):
        # Whatever else is raised is a bug.
        echo("".join(traceback.format_exception(error)), nl=False, err=True)
        echo(bug_report(error), err=True)
    return BUG


def _print_version(requested: bool) -> None:
    if requested:
        echo(version("sparse_eval"))
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    show_version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    # `main` handles the first option, and a callback the second.
    pass
