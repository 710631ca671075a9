"""Quotes of delimited text: without them, Arrow reads twice as fast."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array

_LINE_END, _QUOTE = ord("\n"), ord('"')


@kernel
def strip_quotes(text: Array, separator: int, out: Array) -> int:
    """Copy lines without the quotes around their fields.

    Parameters
    ----------
    text : ndarray of uint8
    separator : int
        The byte between two fields.
    out : ndarray of uint8, of the same shape

    Returns
    -------
    int
        The number of bytes that were copied. It is 0 if a field needs its quotes, because it
        contains a quote or a separator. It is -1 if a quote does not enclose a whole field within a
        line.
    """
    size = 0
    before = _LINE_END
    inside = False
    are_needed = False
    for i in range(len(text)):
        byte = text[i]
        if byte == _QUOTE:
            beside = before
            if inside:
                beside = text[i + 1] if i + 1 < len(text) else _LINE_END
                are_needed = are_needed or beside == _QUOTE
            # A doubled quote is taken for one that closes a field, and one that opens it again.
            if beside not in (separator, _LINE_END, _QUOTE):
                return -1
            inside = not inside
        else:
            if inside and byte == _LINE_END:
                return -1
            are_needed = are_needed or (inside and byte == separator)
            out[size] = byte
            size += 1
        before = byte
    if inside:
        return -1
    return 0 if are_needed else size
