"""Counts of the candidates above each held-out item of a row, where the scores of all are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import part
from .sorting import is_better

if TYPE_CHECKING:
    from .jit import Array
    from .structures import HeldOut

#: Candidates are compared with each of so many held-out items; among more of them their place is
#: searched for, which waits for memory at each step but keeps the work in proportion to the input.
COMPARED = 256

#: An item behind all others.
_LAST = 2**31


@part
def count_above_row(n: int, items: Array, exact: Array, row: int, held_out: HeldOut) -> None:
    """Count the first `n` items above each held-out item of a row, and those that tie with it.

    The held-out items are sorted, the best first, and nothing is counted yet.
    """
    count_some_above_row(n, items, exact, row, held_out)
    add_up_row(row, held_out)


@part
def count_some_above_row(n: int, items: Array, exact: Array, row: int, held_out: HeldOut) -> None:
    """Do what `count_above_row` does for some of the items; `add_up_row` follows the last ones."""
    start = held_out.indptr[row]
    stop = held_out.indptr[row + 1]
    if stop - start > COMPARED:
        for e in range(n):
            place_candidate(exact[e], items[e], start, stop, held_out)
        return
    for h in range(start, stop):
        above = 0
        for e in range(n):
            if items[e] != held_out.items[h]:
                above += is_better(exact[e], items[e], held_out.scores[h], held_out.items[h])
                held_out.tied[h] += exact[e] == held_out.scores[h]
        held_out.above[h] += above


@part
def add_up_row(row: int, held_out: HeldOut) -> None:
    """Sum what was written down of a row, if its held-out items are more than are compared."""
    start = held_out.indptr[row]
    stop = held_out.indptr[row + 1]
    if stop - start > COMPARED:
        add_up(start, stop, held_out)


@part
def place_candidate(score: float, item: int, start: int, stop: int, held_out: HeldOut) -> None:
    """Write down from which held-out item on a candidate is above, and with which it ties.

    Until `add_up`, counts are differences from one held-out item to the next.
    """
    first = _first_below(score, -1, start, stop, held_out)
    place = first
    if first < stop and held_out.scores[first] == score:
        end = _first_below(score, _LAST, first, stop, held_out)
        held_out.tied[first] += 1
        if end < stop:
            held_out.tied[end] -= 1
        place = _first_below(score, item, first, end, held_out)
        if place > first and held_out.items[place - 1] == item:  # it does not tie with itself
            held_out.tied[place - 1] -= 1
            if place < stop:
                held_out.tied[place] += 1
    if place < stop:
        held_out.above[place] += 1


@part
def add_up(start: int, stop: int, held_out: HeldOut) -> None:
    """Sum what `place_candidate` wrote down of the candidates of a row."""
    for h in range(start + 1, stop):
        held_out.above[h] += held_out.above[h - 1]
        held_out.tied[h] += held_out.tied[h - 1]


@part
def _first_below(score: float, item: int, start: int, stop: int, held_out: HeldOut) -> int:
    """Return the first held-out item that is worse than a candidate, `stop` if none is."""
    low = start
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if is_better(score, item, held_out.scores[middle], held_out.items[middle]):
            high = middle
        else:
            low = middle + 1
    return low
