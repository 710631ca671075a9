"""Write names of models and items into charts and tables, where long ones have little room."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from ..core.formatting import numbers

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Longest names in a legend, in characters.
MAX_NAME = 32

#: Where a line may end: after a separator, and in runs without one.
_PIECES = re.compile(r"[^_/,;:|=\-\s]{1,16}[_/,;:|=\-\s]*|[_/,;:|=\-\s]+")


def one_line(name: str) -> str:
    """Return a name in one line of characters that can be printed."""
    line = " ".join(str(name).split()) or "(no name)"
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )


def shorten(name: str, longest: int = MAX_NAME, head: int | None = None) -> str:
    """Return a name in one line, without its middle if it is too long for a chart.

    Names of models mostly differ at their end, so that has more room unless `head` says how much
    is kept of the start.
    """
    line = one_line(name)
    if len(line) <= longest:
        return line
    head = longest // 3 if head is None else head
    return f"{line[:head]}…{line[len(line) - (longest - head - 1) :]}"


def short_names(names: Iterable[str], longest: int = MAX_NAME) -> list[str]:
    """Shorten names so that those that differ are still told apart."""
    lines = [one_line(name) for name in names]
    for share in (1 / 3, 1 / 2, 2 / 3, 5 / 6, 1 / 6):
        short = [shorten(line, longest, int(longest * share)) for line in lines]
        if len(set(short)) == len(set(lines)):
            return short
    return [f"{number}: {shorten(line, longest - 4)}" for number, line in enumerate(lines, start=1)]


def legend_columns(names: Sequence[str], points: float = 317) -> int:
    """Return how many names fit beside each other in a legend of a chart of so many points."""
    longest = max(map(len, short_names(names)))
    # In points: what is left of the axis, the width of a character, and the gap between two names.
    return min(len(names), max(int((points - 57) // (5.2 * longest + 48)), 1))


def escape_mathematics(text: str) -> str:
    r"""Escape "$", which starts mathematics in matplotlib, and "_", which hides a label."""
    text = text.replace("$", r"\$")
    return f"\u200b{text}" if text.startswith("_") else text


def pieces(text: str) -> list[str]:
    """Cut a name where a line may end: behind separators, and in runs of many letters."""
    return _PIECES.findall(text)


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
