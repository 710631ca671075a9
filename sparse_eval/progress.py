"""Whether to show that something is going on."""

from __future__ import annotations

import sys

from .errors import InvalidDataError

__all__ = ["is_shown"]


def is_shown(progress: bool | None) -> bool:
    """Say whether to show a progress bar: as asked, or else on a terminal only."""
    if progress is None:
        return sys.stderr is not None and sys.stderr.isatty()
    if not isinstance(progress, bool):
        raise InvalidDataError(f"progress: expected True, False or None, found {progress!r}")
    return progress
