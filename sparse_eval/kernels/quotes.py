"""Quotes in blocks of delimited text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array

_QUOTE, _NEWLINE = ord('"'), ord("\n")


@kernel
def has_closed_quotes(text: Array, sep: int) -> bool:
    """Return whether each field that begins with a quote ends with one, in its line.

    Other readers agree about such text: a quote in a quoted field is doubled, and a quote inside
    any other field is part of it. `text` has whole lines of bytes, the last one with its end.
    """
    at = 0
    while at < len(text):  # the beginning of a field
        if text[at] == _QUOTE:
            while True:
                at += 1
                while text[at] != _QUOTE:
                    if text[at] == _NEWLINE:
                        return False
                    at += 1
                at += 1
                if text[at] == sep or text[at] == _NEWLINE:
                    break
                if text[at] != _QUOTE:
                    return False
        else:
            while text[at] != sep and text[at] != _NEWLINE:
                at += 1
        at += 1
    return True
