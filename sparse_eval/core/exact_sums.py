"""How many numbers there are, their sum and the sum of their squares, without any rounding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..kernels.sums import DIGITS, SQUARE_DIGITS, add_exactly

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Moments"]

#: Values that are added before the digits of a sum are carried: far fewer than would overflow.
_AT_ONCE = 1 << 24

#: What the whole numbers are multiples of: 2^-1074, the smallest float, and its square.
_UNIT = 1 << 1074


class Moments(NamedTuple):
    """Sums of numbers. They can be added in any order, to the same bits.

    Attributes
    ----------
    n : int
        How many numbers.
    total : int
        Their sum in units of 2^-1074.
    squares : int
        The sum of their squares in units of 2^-2148; 0 where it was not asked for.
    endless : float
        The sum of those that are not finite, which are in no other sum; 0 without any.
    """

    n: int = 0
    total: int = 0
    squares: int = 0
    endless: float = 0.0

    @classmethod
    def of(cls, values: NDArray[np.float64], *, squares: bool = True) -> Moments:
        """Add up an array."""
        finite = np.isfinite(values)
        endless = 0.0
        n = len(values)
        if not finite.all():
            with np.errstate(invalid="ignore"):  # inf − inf
                endless = float(values[~finite].sum())
            values = values[finite]
        bits = np.ascontiguousarray(values, np.float64).view(np.int64)
        total = total_of_squares = 0
        for first in range(0, len(bits), _AT_ONCE):
            digits = np.zeros(DIGITS, np.int64)
            square_digits = np.zeros(SQUARE_DIGITS if squares else 0, np.int64)
            add_exactly(bits[first : first + _AT_ONCE], digits, square_digits)
            total += _whole(digits)
            total_of_squares += _whole(square_digits)
        return cls(n, total, total_of_squares, endless)

    def __add__(self, other: object) -> Moments:
        """Return the moments of both."""
        if not isinstance(other, Moments):
            return NotImplemented
        return Moments(
            self.n + other.n,
            self.total + other.total,
            self.squares + other.squares,
            self.endless + other.endless,
        )

    def equals(self, other: Moments) -> bool:
        """Say whether both are the same, NaN being the same as NaN."""
        return self == other or (
            self[:3] == other[:3] and math.isnan(self.endless) and math.isnan(other.endless)
        )

    @property
    def sum(self) -> float:
        """The sum, rounded once; infinite where no float is as large."""
        return self.endless or _rounded(self.total, _UNIT)

    @property
    def mean(self) -> float:
        """The sum, rounded once, divided by the number; NaN of nothing."""
        if self.n == 0:
            return math.nan
        total = self.sum
        if math.isinf(total) and not self.endless:  # of numbers near the largest float
            return _rounded(self.total, self.n * _UNIT)
        return total / self.n

    @property
    def std(self) -> float:
        """The standard deviation with n − 1, rounded once; NaN below two."""
        if self.n < 2 or self.endless:
            return math.nan
        pairs = self.n * (self.n - 1)
        # The root is cut off to a whole number, with a last bit that says whether it was. Floats,
        # and what is halfway between two, are whole numbers here: rounding sees no difference.
        squared = (self.n * self.squares - self.total**2) * pairs << 10
        root = math.isqrt(squared)
        return _rounded(2 * root + (root**2 < squared), pairs * _UNIT << 6)


def _whole(digits: NDArray[np.int64]) -> int:
    total = 0
    for digit in digits[::-1].tolist():
        total = (total << 32) + digit
    return total


def _rounded(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator  # of whole numbers, Python rounds once
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf
