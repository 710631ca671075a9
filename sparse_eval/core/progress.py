"""Whether to show progress bars."""

from __future__ import annotations

import sys

from ..errors import InvalidDataError


def is_shown(progress: bool | None) -> bool:
    """Return whether to show a progress bar; by default on a terminal and in a notebook.

    Raises
    ------
    InvalidDataError
        If `progress` is neither a bool nor None.
    """
    if progress is None:
        return (sys.stderr is not None and sys.stderr.isatty()) or _in_notebook()
    if not isinstance(progress, bool):
        raise InvalidDataError(f"progress: expected True, False or None, found {progress!r}")
    return progress


def _in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, which shows bars without a terminal."""
    interactive = sys.modules.get("IPython")  # imported already, if it is a notebook
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")
