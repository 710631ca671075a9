"""Print on standard output and standard error without letting ids control a terminal."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from contextvars import ContextVar

from ..core.printable import printable

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


def echo_at_the_end(text: str) -> None:
    """Print a last message on standard error, even if imports were interrupted."""
    with suppress(AttributeError, OSError, ValueError):  # it is closed
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
