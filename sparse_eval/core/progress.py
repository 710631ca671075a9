"""Whether to show that something is going on."""

from __future__ import annotations

import sys

from ..errors import InvalidDataError

__all__ = ["is_shown"]


def is_shown(progress: bool | None) -> bool:
    """Say whether to show a progress bar: as asked, else on a terminal and in a notebook.

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
    """Say whether it is a notebook's kernel, which has no terminal and can show bars."""
    interactive = sys.modules.get("IPython")  # loaded already, if so
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")
