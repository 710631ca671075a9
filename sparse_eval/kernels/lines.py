"""Lines of products: the products of a user and a batch of items, and selection by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact import extend_list, extend_ranks, limit_of_ranks
from .jit import part
from .vectors import LANES, compress

if TYPE_CHECKING:
    from .jit import Array
    from .structures import HeldOut, Lists, Task, Users

    Single = np.float32


@part
def bound_of_best(values: Array, k: int) -> float:
    """Return a lower bound on the k-th largest value, close to it.

    It is found by bisection: counting is vectorized, and took a tenth of the time of a selection,
    which has unpredictable branches. Minus infinity marks values that do not count.
    """
    low: Single | float = np.float32(np.inf)
    high: Single | float = np.float32(-np.inf)
    n_finite = 0
    for j in range(len(values)):
        is_finite = values[j] > -np.inf
        n_finite += is_finite
        low = values[j] if is_finite and values[j] < low else low
        high = values[j] if values[j] > high else high
    if n_finite < k:
        return -np.inf
    for _ in range(10):
        middle = np.float32(0.5) * (low + high)
        reached = 0
        for j in range(len(values)):
            reached += values[j] >= middle
        if reached >= k:
            low = middle
        else:
            high = middle
    return float(low)


@part
def select_above(line: Array, bound: Single, items: Array, selected: Array) -> int:
    """Write the items whose product is at least `bound`; return their number.

    `selected` has room for `LANES` more.
    """
    n = 0
    whole = len(line) - len(line) % LANES
    for lane in range(0, whole, LANES):
        n = compress(line, lane, bound, items, selected, n)
    for j in range(whole, len(line)):
        if line[j] >= bound and line[j] > -np.inf:
            selected[n] = items[j]
            n += 1
    return n


@part
def _bound_of_list(line: Array, maxima: Array, k: int) -> float:
    """Return a lower bound on the k-th largest product of a line, if the line is long enough.

    The k-th largest of the maxima of disjoint parts of the line is at most the k-th largest
    product, and needs no sorting of the line.
    """
    n_parts = len(maxima)
    if not len(line) >= n_parts >= k:
        return -np.inf
    for g in range(n_parts):
        maxima[g] = line[g]
    for base in range(n_parts, len(line), n_parts):
        some = line[base : min(base + n_parts, len(line))]
        for g in range(len(some)):
            maxima[g] = some[g] if some[g] > maxima[g] else maxima[g]
    return bound_of_best(maxima, k)


@part
def _reachable(
    row: int, line: Array, margin: Single, k: int, scale: float, held_out: HeldOut
) -> int:
    """Return how many held-out items of a row have fewer than `k` items of a line above them."""
    start: int = held_out.indptr[row]
    alive: int = held_out.alive[row]
    for h in range(start, start + alive):
        least = np.float32(held_out.scores[h] / scale) + margin
        above = np.int32(0)
        for j in range(len(line)):
            above += line[j] > least
        if above >= k:  # the same holds for all worse ones
            return h - start
    return alive


@part
def extend_by_line(
    at: int,
    slot: int,
    line: Array,
    items: Array,
    margin: Single,
    maxima: Array,
    users: Users,
    item_factors: Array,
    task: Task,
    held_out: HeldOut | None,
    limits: Array,
    lists: Lists | None,
    selected: Array,
    exact: Array,
    is_last: bool,
) -> None:
    """Add the items of a line to the list of a user, or count them, and raise the limit.

    Either `held_out` or `lists` is None, and numba compiles only the code for the other one.

    Products are exact up to `margin`; the products of seen items are minus infinity. At the first
    line, the limit of a user is minus infinity, and lists and counts are empty. After the last
    line, a list needs no limit.
    """
    limit = limits[at]
    scale = users.scale[at]
    is_first = limit == -np.inf
    if lists is not None:
        if is_first:
            bound = np.float32(_bound_of_list(line, maxima, task.k)) - np.float32(2.0) * margin
        else:
            bound = np.float32(limit) - margin
        n = select_above(line, bound, items, selected)
        if n > 0 or is_first:
            limits[at] = extend_list(
                slot, n, limit, task.k, users.row[at], scale, users.factors, item_factors, lists,
                selected, exact, is_last,
            )  # fmt: skip
    if held_out is not None:
        row = users.result_row[at]
        if is_first:
            alive = _reachable(row, line, margin, task.k, scale, held_out)
            limit = limit_of_ranks(row, alive, scale, held_out)
        n = select_above(line, np.float32(limit) - margin, items, selected)
        limits[at] = extend_ranks(
            row, n, task.k, users.row[at], scale, users.factors, item_factors, held_out, selected,
            exact,
        )  # fmt: skip
