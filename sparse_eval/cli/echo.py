"""Print text on standard output and standard error, where ids cannot control a terminal."""

from __future__ import annotations

import sys

import typer

from ..core.formatting import printable


def echo(text: str = "", *, err: bool = False, nl: bool = True, data: bool = False) -> None:
    """Print text for people, or `data` for programs.

    Control characters are escaped, as ids may hold them. Data keep every character, unless they go
    to a terminal.
    """
    stream = sys.stderr if err else sys.stdout
    if not data or (stream is not None and stream.isatty()):
        text = printable(text)
    typer.echo(text, err=err, nl=nl, color=True)  # without it, click drops what looks like a colour
