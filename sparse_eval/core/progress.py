"""How progress is shown: as a bar, as a line now and then, or not at all."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Seconds before a bar appears.
DELAY = 1.0

#: Seconds between two lines.
SECONDS_PER_LINE = 30.0

_LINE = "{desc}: {n_fmt}/{total_fmt}{unit} in {elapsed}, {remaining} left{postfix}"

_with_lines: ContextVar[bool] = ContextVar("_with_lines", default=False)


@contextmanager
def lines_without_terminal() -> Iterator[None]:
    """Show progress in lines, as in a log, where `progress_bar` would show none by default."""
    token = _with_lines.set(True)
    try:
        yield
    finally:
        _with_lines.reset(token)


def progress_bar(progress: bool | None, values: Iterable[Any] = (), **options: Any) -> Any:
    """Return a bar of tqdm, which is shown as `progress` says, or something like it.

    By default there is a bar on a terminal and in a notebook, and elsewhere nothing, or lines
    within `lines_without_terminal`. What is done within a second shows no bar, unless it is asked
    for. Give new values beside the bar ``refresh=False``, because tqdm would draw it at once.
    """
    in_notebook, has_errors = _in_notebook(), sys.stderr is not None
    if progress is None and not (in_notebook or (has_errors and sys.stderr.isatty())):
        if not (has_errors and _with_lines.get()):
            return _Hidden(values)
        options |= {"file": _Lines(), "bar_format": _LINE, "leave": False}
    elif progress is False or not (in_notebook or has_errors):
        return _Hidden(values)
    else:
        options |= {} if progress else {"delay": DELAY}
        # A notebook shows what is written to standard error in a red box.
        options |= {"file": sys.stdout} if in_notebook else {}
    with warnings.catch_warnings():
        # That a notebook has no widgets, so that its bar is one of text.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm(values or None, **options)


def _in_notebook() -> bool:
    """Return whether this is the kernel of a notebook, which shows bars without a terminal."""
    interactive = sys.modules.get("IPython")  # imported already, if it is a notebook
    shell = None if interactive is None else interactive.get_ipython()
    return hasattr(shell, "kernel")


class _Hidden(nullcontext[Any]):
    """A bar that is not shown, and leaves the process as it is: tqdm would start a thread."""

    n = 0

    def __enter__(self) -> _Hidden:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self.enter_result)

    def update(self, *_: object, **__: object) -> None:
        """Do nothing."""

    set_postfix = set_postfix_str = update


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
