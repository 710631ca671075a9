"""Times that are written as text: whole numbers, or ISO 8601 dates."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from .lines import MalformedLineError, parse_number

if TYPE_CHECKING:
    from collections.abc import Callable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Digits of a second that `datetime` cannot hold, and would leave out.
_NANOSECONDS = re.compile(r"[.,]\d{6}(\d{1,3})(\d*)", re.ASCII)


def parser_of(text: str) -> Callable[[str], int]:
    """Return the function that reads times written like this one."""
    return nanoseconds if math.isnan(parse_number(text)) else whole


def whole(text: str) -> int:
    """Return a whole number, also one that is written as 1e9 or 1.0."""
    try:
        result = 2**63 if "_" in text else int(text)
    except ValueError:  # 1e9 and 1.0 are whole numbers too
        number = parse_number(text)
        result = int(number) if number.is_integer() else 2**63
    if -(2**63) <= result < 2**63:
        return result
    raise MalformedLineError(f"expected a whole number as timestamp, found {text!r}")


def nanoseconds(text: str) -> int:
    """Return an ISO 8601 date as nanoseconds since 1970."""
    try:
        date = datetime.fromisoformat(text.strip())
        date = date.replace(tzinfo=date.tzinfo or UTC)
        result = (date - _EPOCH) // timedelta(microseconds=1) * 1000
        if digits := _NANOSECONDS.search(text):
            result = 2**63 if digits[2].strip("0") else result + int(digits[1].ljust(3, "0"))
    except (ValueError, OverflowError):
        result = 2**63
    if not -(2**63) <= result < 2**63:
        raise MalformedLineError(f"expected a whole number or an ISO 8601 date, found {text!r}")
    return result
