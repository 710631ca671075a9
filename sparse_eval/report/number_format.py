"""Format numbers, p-values and shares for the report."""

from __future__ import annotations

import math

from ..core.formatting import numbers


def format_number(value: float | None) -> str:
    """Return a number with five significant digits."""
    return format_numbers(value)[0]


def format_numbers(*values: float | None) -> list[str]:
    """Return numbers that belong together, such as the ends of an interval, with equal decimals."""
    texts = numbers(*(math.nan if value is None else value for value in values))
    return [text.replace("-", "\N{MINUS SIGN}") or "–" for text in texts]


def format_p(p: float | None) -> str:
    """Return what follows "p" in a sentence: "= 0.012" or "< 0.001"."""
    if p is None:
        return "unknown"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def format_share(part: float, whole: float) -> str:
    """Return a share in per cent."""
    if not whole:
        return "–"
    percent = 100 * part / whole
    return f"{percent:.0f} %" if percent >= 1 or percent == 0 else f"{percent:.1g} %"
