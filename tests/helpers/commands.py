"""What tests of the command line share."""

from __future__ import annotations

from collections.abc import Callable

#: A command run in this process: returns its status, standard output and standard error.
Command = Callable[..., tuple[int, str, str]]

#: Options of a quick training.
SMALL = ("--factors", "4", "--iterations", "2")
