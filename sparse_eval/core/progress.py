"""How progress is shown: as a bar, as a line now and then, or not at all."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Seconds before a bar appears.
DELAY = 1.0

#: Seconds between two lines.
SECONDS_PER_LINE = 30.0

_LINE = "{desc}: {n_fmt}/{total_fmt}{unit} in {elapsed}, {remaining} left{postfix}"

_with_lines: ContextVar[bool] = ContextVar("_with_lines", default=False)


@contextmanager
def lines_without_terminal() -> Iterator[None]:
    """Show progress in lines, as in a log, where `display` would show none by default."""
    token = _with_lines.set(True)
    try:
        yield
    finally:
        _with_lines.reset(token)


def display(progress: bool | None) -> dict[str, Any]:
    """Return the arguments of tqdm that show progress as `progress` says.

    By default there is a bar on a terminal and in a notebook, and elsewhere nothing, or lines
    within `lines_without_terminal`. What is done within a second shows no bar, unless it is asked
    for.
    """
    if is_shown(progress):
        # A notebook shows what is written to standard error in a red box.
        options: dict[str, Any] = {"file": sys.stdout} if _in_notebook() else {}
        return options if progress else {"delay": DELAY, **options}
    if progress is None and _with_lines.get() and sys.stderr is not None:
        return {"file": _Lines(), "bar_format": _LINE, "leave": False}
    return {"disable": True}


def is_shown(progress: bool | None) -> bool:
    """Return whether to show a progress bar; by default on a terminal and in a notebook."""
    if progress is None:
        return (sys.stderr is not None and sys.stderr.isatty()) or _in_notebook()
    return progress and (sys.stderr is not None or _in_notebook())


def _in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, which shows bars without a terminal."""
    interactive = sys.modules.get("IPython")  # imported already, if it is a notebook
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")


class _Lines:
    """Standard error for tqdm: what it draws over and over becomes a line now and then."""

    def __init__(self) -> None:
        self._last = monotonic()

    def write(self, drawn: str) -> None:
        """Write a line if enough time has passed since the one before."""
        line = drawn.replace("\x1b[A", "").strip()  # without the movements of the cursor
        now = monotonic()
        if line and now - self._last >= SECONDS_PER_LINE:
            self._last = now
            sys.stderr.write(f"{line}\n")

    def flush(self) -> None:
        """Flush standard error."""
        sys.stderr.flush()
