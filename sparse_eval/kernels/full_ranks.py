"""Ranks of held-out items in the whole catalogue, counted in a blocked product.

For nearly all items, the 16-bit product already shows whether they are above or below a held-out
item. The others, about one in 3,000, are too near and are scored exactly. Products are stored as
16-bit integers, in units of the largest norm of their chunk of items, because more of them can be
compared at once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .exact import score_exactly
from .jit import kernel, part
from .products import ROUNDING, ROWS_AT_ONCE, multiply
from .sorting import is_better
from .vectors import COMPARED_AT_ONCE, LANES, count_in_line, prefetch

if TYPE_CHECKING:
    from .jit import Array
    from .structures import Catalogue, CountingSpace, HeldOut, Packed, Seen, Task, Users

#: The integer that represents a relative score equal to the largest norm of a chunk. Products that
#: are slightly larger because of rounding still fit into 16 bits.
WHOLE = 30_000

#: The product of an item that does not count.
_NOTHING = -(2**15)

#: The smallest norm used as a unit, and a bound on the error of smaller scores.
LEAST_NORM = 2.0**-80
_LOST = 2.0**-100


@kernel
def count_above(
    first: int,
    last: int,
    users: Users,
    catalogue: Catalogue,
    packed: Packed,
    seen: Seen,
    task: Task,
    error: float,
    held_out: HeldOut,
    space: CountingSpace,
    counts: Array,
) -> None:
    """Count the unseen candidates that are above each held-out item of users, or tie with it.

    Users are sorted by their lowest held-out score, so the users of a tile are done after about the
    same number of items. ``packed.weights`` are in units of ``1 / WHOLE`` of the largest norm of a
    chunk; `error` bounds the error of a cosine. Counts start at 0, and the number of products
    computed is added to ``counts[0]``.
    """
    n_items = len(catalogue.norms)
    for tile in range(first, last, task.tile):
        n_of_tile = min(task.tile, last - tile)
        for a in range(n_of_tile):
            row = users.result_row[tile + a]
            space.slot[a] = a
            space.start[a] = held_out.indptr[row]
            space.stop[a] = held_out.indptr[row + 1]
            space.n_near[a] = 0
            _divide_seen(a, users.row[tile + a], packed, seen, task, space)
        n = n_of_tile
        for begin in range(0, n_items, task.chunk):
            norm = np.float64(catalogue.norms[begin])
            kept = 0
            for a in range(n):
                slot = space.slot[a]
                at = tile + slot
                if _narrow(at, slot, begin, norm, n_items, users, task, held_out, space):
                    space.slot[kept] = slot
                    space.rows[kept] = users.direction[at]
                    kept += 1
            n = kept
            if n == 0:
                break
            size = min(task.chunk, n_items - begin)
            strip = begin // LANES
            n_strips = -(-size // LANES)
            strips = packed.strips[strip : strip + n_strips]
            weights = packed.weights[begin : begin + n_strips * LANES]
            rows = space.rows[:n]
            for s in range(n_strips):  # a strip stays in the L1 cache for all users
                for a in range(0, n, ROWS_AT_ONCE):
                    multiply(users.directions, rows, a, strips, s, weights, space.products)
            counts[0] += n * size
            padded = -(-size // COMPARED_AT_ONCE) * COMPARED_AT_ONCE
            for a in range(n):
                slot = space.slot[a]
                line = space.products[a, :padded]
                for j in range(size, padded):
                    line[j] = _NOTHING
                seen_start = space.seen_start[slot, begin // task.chunk :]
                for entry in range(seen_start[0], seen_start[1]):
                    line[space.seen_index[entry] - begin] = _NOTHING
                _count_line(
                    tile + slot, slot, begin, line, norm, error, users, catalogue, held_out, space
                )
        for slot in range(n_of_tile):
            _decide(tile + slot, slot, users, catalogue, held_out, space)


@part
def _divide_seen(
    slot: int, user: int, packed: Packed, seen: Seen, task: Task, space: CountingSpace
) -> None:
    """Record the candidates that a user has seen, chunk by chunk, after those of earlier slots."""
    starts = space.seen_start[slot]
    n_before = 0
    if slot > 0:
        n_before = space.seen_start[slot - 1, len(starts) - 2]
    starts[:2] = n_before
    starts[2:] = 0
    for entry in range(seen.indptr[user], seen.indptr[user + 1]):
        index = packed.index_of[seen.items[entry]]
        if index >= 0:
            starts[index // task.chunk + 2] += 1
    for chunk in range(2, len(starts)):
        starts[chunk] += starts[chunk - 1]
    for entry in range(seen.indptr[user], seen.indptr[user + 1]):
        index = packed.index_of[seen.items[entry]]
        if index >= 0:
            following = index // task.chunk + 1  # its start becomes the end of the chunk
            space.seen_index[starts[following]] = index
            starts[following] += 1


@part
def _narrow(
    at: int,
    slot: int,
    begin: int,
    norm: float,
    n_items: int,
    users: Users,
    task: Task,
    held_out: HeldOut,
    space: CountingSpace,
) -> bool:
    """Keep the held-out items with scores that an item of `norm` can reach; return if any remain.

    No item from `begin` on is above a held-out item with a higher score, and all are above one with
    a lower score.
    """
    start = space.start[slot]
    stop = space.stop[slot]
    largest = (norm * (1.0 + ROUNDING) + _LOST) * users.scale[at]
    while start < stop and held_out.scores[start] > largest:
        start += 1
    if start < stop and held_out.scores[stop - 1] < -largest:
        seen_start = space.seen_start[slot]
        n_seen = seen_start[len(seen_start) - 2] - seen_start[begin // task.chunk]
        n_left = n_items - begin - n_seen
        while start < stop and held_out.scores[stop - 1] < -largest:
            stop -= 1
            held_out.above[stop] += n_left
    space.start[slot] = start
    space.stop[slot] = stop
    return bool(start < stop)


@part
def _count_line(
    at: int,
    slot: int,
    begin: int,
    line: Array,
    norm: float,
    error: float,
    users: Users,
    catalogue: Catalogue,
    held_out: HeldOut,
    space: CountingSpace,
) -> None:
    """Count the products of a line above each held-out item, and record those that are too near."""
    unit = max(norm, LEAST_NORM) / WHOLE
    width = (norm * (error + ROUNDING) + _LOST) / unit + 0.5  # up to half a unit is rounded off
    selected = space.selected[slot]
    wanted = space.wanted[slot]
    for h in range(space.start[slot], space.stop[slot]):
        if space.n_near[slot] + len(line) + LANES > len(selected):
            _decide(at, slot, users, catalogue, held_out, space)
        score = held_out.scores[h] / users.scale[at] / unit
        low = max(math.ceil(score - width) - 1, _NOTHING)
        high = min(math.floor(score + width), -_NOTHING - 1)
        n = space.n_near[slot]
        above, n_near = count_in_line(line, low, high, begin, selected, n)
        held_out.above[h] += above
        for e in range(n, n_near):
            wanted[e] = h
        space.n_near[slot] = n_near


@part
def _decide(
    at: int,
    slot: int,
    users: Users,
    catalogue: Catalogue,
    held_out: HeldOut,
    space: CountingSpace,
) -> None:
    """Compare items with the held-out items that they are near to, by exact scores."""
    selected = space.selected[slot]
    n = space.n_near[slot]
    width = catalogue.factors.shape[1]
    for e in range(n):
        selected[e] = catalogue.item_of[selected[e]]
        prefetch(catalogue.factors, selected[e] * width, width)
    score_exactly(users.row[at], users.factors, catalogue.factors, selected, n, space.exact)
    for e in range(n):
        h = space.wanted[slot, e]
        if selected[e] != held_out.items[h]:
            held_out.above[h] += is_better(
                space.exact[e], selected[e], held_out.scores[h], held_out.items[h]
            )
            held_out.tied[h] += space.exact[e] == held_out.scores[h]
    space.n_near[slot] = 0
