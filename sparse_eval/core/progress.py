"""Progress display: a bar, a line from time to time, or nothing."""

from __future__ import annotations

import sys
import warnings
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
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
    """Show progress as lines, as in a log, if `progress_bar` would show nothing by default."""
    token = _with_lines.set(True)
    try:
        yield
    finally:
        _with_lines.reset(token)


def progress_bar(progress: bool | None, values: Iterable[Any] = (), **options: Any) -> Any:
    """Return a tqdm bar or an object with the same methods, shown as `progress` requests.

    By default there is a bar on a terminal and in a notebook. Elsewhere nothing is shown, or lines
    within `lines_without_terminal`. A loop that ends within a second shows no bar unless `progress`
    is true. Pass ``refresh=False`` with values next to the bar, or tqdm draws it at once.
    """
    interactive = sys.modules.get("IPython")  # a notebook has already imported it
    shell = None if interactive is None else interactive.get_ipython()
    in_notebook, has_errors = hasattr(shell, "kernel"), sys.stderr is not None
    if progress is None and not (in_notebook or (has_errors and sys.stderr.isatty())):
        if not (has_errors and _with_lines.get()):
            return _Hidden(values)
        seconds = {"mininterval": SECONDS_PER_LINE, "delay": SECONDS_PER_LINE, "miniters": 1}
        options |= {"file": _Lines(), "bar_format": _LINE, "leave": False} | seconds
    elif progress is False or not (in_notebook or has_errors):
        return _Hidden(values)
    else:
        options |= {} if progress else {"delay": DELAY}
        # A notebook shows standard error in a red box.
        options |= {"file": sys.stdout} if in_notebook else {}
    with warnings.catch_warnings():
        # tqdm warns that a notebook without widgets gets a text bar.
        warnings.simplefilter("ignore")
        from tqdm.auto import tqdm
    return tqdm(values or None, **options)


class _Hidden(nullcontext[Any]):
    """A bar that is not shown and does not start a thread, as tqdm would."""

    n = 0

    def __enter__(self) -> _Hidden:
        return self

    def __iter__(self) -> Iterator[Any]:
        return iter(self.enter_result)

    def update(self, *_: object, **__: object) -> None:
        """Do nothing."""

    set_postfix = set_postfix_str = update


class _Lines:
    """Standard error for tqdm: one line after another instead of one that is drawn over."""

    def write(self, drawn: str) -> None:
        """Write a line."""
        if line := drawn.replace("\x1b[A", "").strip():  # without cursor movements
            sys.stderr.write(f"{line}\n")

    def flush(self) -> None:
        """Flush standard error."""
        sys.stderr.flush()
