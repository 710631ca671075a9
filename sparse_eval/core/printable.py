"""Text that cannot control a terminal."""

from __future__ import annotations

import re

#: Control characters, and characters that change the direction of text.
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


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
