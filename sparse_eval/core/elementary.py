"""Elementary functions of arrays, with the same bits on every processor.

NumPy and the C library choose their routines by the processor, and the last bit of a result may
depend on it. The functions here use only operations that IEEE 754 rounds the same everywhere: sums,
products and quotients. They compute with pairs of floats whose sum is the number, as Dekker (1971)
describes, to about 70 bits. So nearly every result is the float next to the true value.

Use them wherever a number that the package returns depends on a logarithm or a power. A short array
takes 0.2 ms, and a million numbers 0.3 s. Square roots are exact in NumPy.

References
----------
T. J. Dekker (1971). A floating-point technique for extending the available precision. Numerische
Mathematik 18. https://doi.org/10.1007/BF01397083
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .threads import for_blocks

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from .types import Floats

#: A number as the sum of two floats, or many of them as two arrays.
Pair = tuple[Any, Any]

#: log 2, 1 / log 2, 1/7, 1/5, 1/3 and 1/5!, 1/4!, 1/3! as pairs.
_LN2 = (0.6931471805599453, 2.3190468138462996e-17)
_OVER_LN2 = (1.4426950408889634, 2.0355273740931033e-17)
_ODD = (
    (0.14285714285714285, 7.93016446160826e-18),
    (0.2, -1.1102230246251566e-17),
    (0.3333333333333333, 1.850371707708594e-17),
)
_FACTORIALS = (
    (0.008333333333333333, 1.1564823173178714e-19),
    (0.041666666666666664, 2.3129646346357427e-18),
    (0.16666666666666666, 9.25185853854297e-18),
)
_HALF = (0.5, 0.0)

_ROOT_HALF = 0.7071067811865476

#: 2^27 + 1, which splits a float into two halves.
_SPLITTER = 134217729.0

#: Few enough numbers for the cache of a core.
_BLOCK = 4096

_ONE = (1.0, 0.0)

#: Above this number, e^x is infinite; below the negative of it, 0.
_LARGEST = 800.0


def log(values: ArrayLike) -> Floats:
    """Return natural logarithms: −inf of 0, and NaN of negative numbers."""
    return _blockwise(lambda x: _logarithm(x, 0.0, _LN2, _ONE), values)


def log1p(values: ArrayLike) -> Floats:
    """Return the natural logarithms of 1 + x."""
    return _blockwise(lambda x: _logarithm(x, 1.0, _LN2, _ONE), values)


def log2(values: ArrayLike) -> Floats:
    """Return logarithms to base 2."""
    return _blockwise(lambda x: _logarithm(x, 0.0, _ONE, _OVER_LN2), values)


def exp(values: ArrayLike) -> Floats:
    """Return e^x."""
    return _blockwise(lambda x: _exponential((x, 0.0)), values)


def expm1(values: ArrayLike) -> Floats:
    """Return e^x − 1, precise near 0."""
    return _blockwise(lambda x: _exponential((x, 0.0), minus=1.0), values)


def exp2m1(values: ArrayLike) -> Floats:
    """Return 2^x − 1, exact for whole numbers."""
    numbers = np.asarray(values, np.float64)
    if ((numbers == np.floor(numbers)) & (np.abs(numbers) < 1000)).all():  # as gains usually are
        return np.ldexp(1.0, numbers.astype(np.int64)) - 1.0
    return _blockwise(lambda x: _exponential(_multiply(_LN2, (x, 0.0)), minus=1.0), values)


def power(bases: ArrayLike, exponents: ArrayLike) -> Floats:
    """Return base^exponent, for finite bases that are not negative."""

    def of_block(base: Floats, exponent: Floats) -> Floats:
        wholes, logs = _log_parts(base, 0.0)
        logs = _add(_multiply(_LN2, (wholes, 0.0)), logs)
        powers = _exponential(_multiply(logs, (exponent, 0.0)))
        return np.where(base > 0, powers, np.power(0.0, exponent))

    return _blockwise(of_block, bases, exponents)


def _blockwise(function: Callable[..., Floats], *arrays: ArrayLike) -> Floats:
    """Apply a function to blocks of arrays, whatever the error settings of the caller."""
    given = np.broadcast_arrays(*(np.asarray(array, np.float64) for array in arrays))
    flat = [array.ravel() for array in given]
    out = np.empty(given[0].size)

    def apply(first: int, last: int) -> None:
        with np.errstate(all="ignore"):  # which holds in this thread only
            out[first:last] = function(*(array[first:last] for array in flat))

    for_blocks(apply, len(out), block=_BLOCK)
    return out.reshape(given[0].shape)


def _log_parts(values: Floats, more: float) -> tuple[Floats, Pair]:
    """Return n and a pair p for each x = values + more: log x = n·log 2 + p."""
    high, low = _sum(values, more)
    mantissas, exponents = np.frexp(high)
    exponents = exponents - (mantissas < _ROOT_HALF)
    logs = _log_near_1(np.ldexp(high, -exponents), np.ldexp(low, -exponents))
    return exponents.astype(np.float64), logs


def _logarithm(values: Floats, more: float, log_of_2: Pair, factor: Pair) -> Floats:
    wholes, logs = _log_parts(values, more)
    total: Any = _add(_multiply(log_of_2, (wholes, 0.0)), _multiply(factor, logs))[0]
    number = values + more
    is_usual = (number > 0.0) & (number < np.inf)
    special = np.where(number == 0.0, -np.inf, np.where(number > 0.0, number, np.nan))
    return np.where(is_usual, total, special)


def _exponential(numbers: Pair, minus: float = 0.0) -> Floats:
    """Return e^x − minus, for pairs x."""
    high = np.clip(numbers[0], -_LARGEST, _LARGEST)
    low = np.where(high == numbers[0], numbers[1], 0.0)
    wholes = np.rint(high * _OVER_LN2[0])
    near = _expm1_near_0(*_add((high, low), _multiply(_LN2, (-wholes, 0.0))))
    exponents = wholes.astype(np.int64)
    raised = np.ldexp(_add(_ONE, near)[0], exponents)
    # 2^n·(e^r − 1) + (2^n − minus): the difference of two rounded numbers would lose bits.
    scale = np.ldexp(1.0, np.minimum(exponents, 1000))
    total = _add((scale * near[0], scale * near[1]), (scale - minus, 0.0))[0]
    result: Floats = np.where((exponents < 1000) & (minus > 0.0), total, raised)
    return result


def _log_near_1(high: Floats, low: Floats) -> Pair:
    """Return the logarithm of pairs between √½ and √2, as 2·artanh((x − 1) / (x + 1))."""
    above, below = _ordered_sum(high - 1.0, low), _sum(high, 1.0)
    below = _ordered_sum(below[0], below[1] + low)
    first = above[0] / below[0]
    reached = _product(first, below[0])
    rest = ((above[0] - reached[0]) - reached[1] + above[1]) - first * below[1]
    root = _ordered_sum(first, rest / below[0])
    square = _multiply(root, root)
    total: Pair = (np.zeros_like(high), 0.0)
    for odd in range(43, 7, -2):  # these terms are so small that floats are precise enough
        total = (total[0] * square[0] + 1.0 / odd, 0.0)
    for term in (*_ODD, _ONE):
        total = _add(term, _multiply(square, total))
    result = _multiply(root, total)
    return 2.0 * result[0], 2.0 * result[1]


def _expm1_near_0(high: Floats, low: Floats) -> Pair:
    """Return e^x − 1 of pairs between −½ and ½, by the series of x / 4."""
    x = (high / 4.0, low / 4.0)
    tail = np.zeros_like(high)
    for n in range(18, 5, -1):  # the terms after x⁵/5!, divided by it
        tail = (tail * x[0] + x[0]) / n
    total = _multiply(_FACTORIALS[0], _add(_ONE, (tail, 0.0)))
    for term in (*_FACTORIALS[1:], _HALF, _ONE):
        total = _add(term, _multiply(x, total))
    total = _multiply(x, total)
    for _ in range(2):  # e^2x − 1 = 2(e^x − 1) + (e^x − 1)²
        total = _add((2.0 * total[0], 2.0 * total[1]), _multiply(total, total))
    return total


def _ordered_sum(a: Any, b: Any) -> Pair:
    """Return a + b and its rounding error, if b is not larger than a."""
    total = a + b
    return total, b - (total - a)


def _sum(a: Any, b: Any) -> Pair:
    """Return a + b and its rounding error."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _product(a: Any, b: Any) -> Pair:
    """Return a·b and its rounding error."""
    total = a * b
    (a_high, a_low), (b_high, b_low) = _halves(a), _halves(b)
    return total, ((a_high * b_high - total) + a_high * b_low + a_low * b_high) + a_low * b_low


def _halves(a: Any) -> Pair:
    """Return two floats of at most 26 bits whose sum is a."""
    scaled = _SPLITTER * a
    high = scaled - (scaled - a)
    return high, a - high


def _add(a: Pair, b: Pair) -> Pair:
    high, low = _sum(a[0], b[0])
    return _ordered_sum(high, low + (a[1] + b[1]))


def _multiply(a: Pair, b: Pair) -> Pair:
    high, low = _product(a[0], b[0])
    return _ordered_sum(high, low + (a[0] * b[1] + a[1] * b[0]))
