"""Warnings at the caller's line, and text that cannot control a terminal."""

from __future__ import annotations

import re
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE = __name__.partition(".")[0]

#: Control characters, and characters that change the direction of text.
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line that called the package."""
    level = 2
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_PACKAGE):
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)


def no_attribute(owner: str, name: str, instead: Mapping[str, str]) -> AttributeError:
    """Return the error about an attribute, with the call that replaces a former one."""
    use = f"; use {instead[name]}" if name in instead else ""
    return AttributeError(f"{owner} has no attribute {name!r}{use}")


def printable(text: str) -> str:
    r"""Escape the characters of a text that control a terminal, as JSON does.

    These are control characters, except for the newline, and characters that change the direction
    of the text that follows.

    Examples
    --------
    >>> printable("a\x1b[31m\n\u202eb")
    'a\\u001b[31m\n\\u202eb'
    """
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
