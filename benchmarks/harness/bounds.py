"""Compare simulated shares with their bounds."""

from collections.abc import Iterable
from typing import TypeAlias

from .progress import say

#: The noise of a simulation, in standard errors.
NOISE = 2

#: The description of a share, the share, and its smallest and largest value.
Share: TypeAlias = tuple[str, float, float, float]


def out_of_bounds(shares: Iterable[Share]) -> list[str]:
    """Return the shares that are outside their bounds, as text."""
    found = [
        f"{what} {100 * share:.2f} %, not between {100 * low:.2f} and {100 * high:.2f} %"
        for what, share, low, high in shares
        if not low <= share <= high
    ]
    for line in found:
        say(f"out of bounds: {line}")
    return found
