"""Checking options that are numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import InvalidDataError

__all__ = ["check_number", "check_whole"]


def check_whole(name: str, value: Any, least: int | None = None, most: int | None = None) -> int:
    """Return `value` as an int, or raise `InvalidDataError` that names the option and its range."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or (least is not None and value < least) or (most is not None and value > most):
        if most is not None:
            expected = f" from {least} to {most}"
        else:
            expected = "" if least is None else f" of at least {least}"
        raise InvalidDataError(f"{name}: expected a whole number{expected}, found {value!r}")
    return int(value)


def check_number(name: str, value: Any, least: float, *, open_end: bool = False) -> float:
    """Return `value` as a float, or raise `InvalidDataError` that names the option and its range.

    The range starts at `least`, or above it with `open_end`, and holds finite numbers only.
    """
    number = isinstance(value, int | float | np.integer | np.floating)
    if (
        not number
        or isinstance(value, bool)
        or (isinstance(value, int) and value.bit_length() > 1000)  # too large for a float
        or not math.isfinite(value)
        or value < least
        or (open_end and value == least)
    ):
        limit = f"above {least:g}" if open_end else f"of at least {least:g}"
        raise InvalidDataError(f"{name}: expected a finite number {limit}, found {value!r}")
    return float(value)
