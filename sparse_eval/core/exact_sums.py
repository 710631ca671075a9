"""Exact sums of floats: count, sum and sum of squares as integers, without rounding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..kernels.sums import DIGITS, SQUARE_DIGITS, add_exactly

if TYPE_CHECKING:
    from .types import Floats, Integers

#: The number of values added before the digits of a sum are carried, far from an overflow.
_AT_ONCE = 1 << 24

#: The inverse of the unit of `Moments.total`, 2^-1074, which is the smallest positive float.
_UNIT = 1 << 1074


class Moments(NamedTuple):
    """Sums of numbers with the same bits in any order of addition.

    Attributes
    ----------
    n : int
        The number of values.
    total : int
        The sum of the finite values, in units of 2^-1074.
    squares : int
        The sum of their squares, in units of 2^-2148; 0 if it was not requested.
    non_finite : float
        The sum of the infinite and NaN values; 0 if there are none.

    Examples
    --------
    >>> import numpy as np
    >>> moments = Moments.of(np.array([0.1] * 10))
    >>> moments.sum, moments.mean, moments.std
    (1.0, 0.1, 0.0)
    """

    n: int = 0
    total: int = 0
    squares: int = 0
    non_finite: float = 0.0

    @classmethod
    def of(cls, values: Floats, *, squares: bool = True) -> Moments:
        """Return the moments of an array."""
        finite = np.isfinite(values)
        non_finite = 0.0
        n = len(values)
        if not finite.all():
            with np.errstate(invalid="ignore"):  # inf − inf
                non_finite = float(values[~finite].sum())
            values = values[finite]
        bits = np.ascontiguousarray(values, np.float64).view(np.int64)
        total = total_of_squares = 0
        for first in range(0, len(bits), _AT_ONCE):
            digits = np.zeros(DIGITS, np.int64)
            square_digits = np.zeros(SQUARE_DIGITS if squares else 0, np.int64)
            add_exactly(bits[first : first + _AT_ONCE], digits, square_digits)
            total += _from_digits(digits)
            total_of_squares += _from_digits(square_digits)
        return cls(n, total, total_of_squares, non_finite)

    def __add__(self, other: object) -> Moments:
        """Return the moments of the values of both."""
        if not isinstance(other, Moments):
            return NotImplemented
        return Moments(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            self.non_finite + other.non_finite,
        )

    def equals(self, other: Moments) -> bool:
        """Return whether both are equal, treating NaN as equal to NaN."""
        return self == other or (
            self[:3] == other[:3] and math.isnan(self.non_finite) and math.isnan(other.non_finite)
        )

    @property
    def sum(self) -> float:
        """The sum, rounded once; infinite if it overflows."""
        return self.non_finite or _divide(self.total, _UNIT)

    @property
    def mean(self) -> float:
        """The sum, rounded once, divided by the number of values; NaN if there are none."""
        if self.n == 0:
            return math.nan
        total = self.sum
        if math.isinf(total) and not self.non_finite:  # the sum overflows, but not the mean
            return _divide(self.total, self.n * _UNIT)
        return total / self.n

    @property
    def std(self) -> float:
        """The standard deviation with n − 1, rounded once; NaN for fewer than two values."""
        if self.n < 2 or self.non_finite:
            return math.nan
        pairs = self.n * (self.n - 1)
        # The integer square root is truncated; a last bit records whether it was inexact. In this
        # unit, floats and the midpoints between them are integers, so rounding needs no more than
        # this bit.
        squared = (self.n * self.squares - self.total**2) * pairs << 10
        root = math.isqrt(squared)
        return _divide(2 * root + (root**2 < squared), pairs * _UNIT << 6)


def _from_digits(digits: Integers) -> int:
    total = 0
    for digit in digits[::-1].tolist():
        total = (total << 32) + digit
    return total


def _divide(numerator: int, denominator: int) -> float:
    """Return the correctly rounded quotient of two integers, infinite if it overflows."""
    try:
        return numerator / denominator  # Python rounds it once
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
