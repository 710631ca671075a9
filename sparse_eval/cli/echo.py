"""Print on standard output and standard error without letting ids control a terminal."""

from __future__ import annotations

import sys
from contextlib import suppress

from ..core.printable import printable


def echo(text: str = "", *, err: bool = False, nl: bool = True, data: bool = False) -> None:
    """Print text for people, or `data` for programs.

    Control characters are escaped, because ids may hold them. Data keep every character, unless
    they go to a terminal.
    """
    import typer

    stream = sys.stderr if err else sys.stdout
    if not data or (stream is not None and stream.isatty()):
        text = printable(text)
    typer.echo(text, err=err, nl=nl, color=True)  # or click would drop colour sequences


def echo_at_the_end(text: str) -> None:
    """Print a last message on standard error, even if imports were interrupted."""
    with suppress(AttributeError, OSError, ValueError):  # it is closed
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
