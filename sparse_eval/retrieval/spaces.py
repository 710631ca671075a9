"""Work arrays for the kernels of retrieval, which allocate nothing themselves."""

from __future__ import annotations

import numpy as np

from ..kernels.products import ROWS_AT_ONCE
from ..kernels.retrieval import BUCKETS, SAMPLE
from ..kernels.structures import (
    CountingSpace,
    GroupSpace,
    Lists,
    OrderSpace,
    SortingRoom,
    Task,
    Workspace,
)
from ..kernels.vectors import COMPARED_AT_ONCE, LANES

#: Rows a power of two apart share few places of the first cache.
_PADDING = 3 * LANES


def growing_lists(n: int, k: int) -> Lists:
    """Return room for the lists of `n` users while they grow."""
    capacity = _capacity(k)
    return Lists(
        np.empty((n, capacity), np.int32),
        np.empty((n, capacity)),
        np.empty(n, np.int64),
        np.empty(n),
    )


def _capacity(k: int) -> int:
    return k + max(k // 2, 64)


def sorting_room(k: int) -> SortingRoom:
    """Return room for sorting a list that `growing_lists` has room for."""
    n = _capacity(k)
    return SortingRoom(np.empty(n), np.empty(n, np.int32), np.empty(n, np.int32))


def order_space(task: Task, maxima: int) -> OrderSpace:
    """Return room for `search_in_order`."""
    widest = -(-max(task.batch, task.chunk) // LANES) * LANES
    at, slot, rows = np.empty((3, task.tile), np.int64)
    return OrderSpace(
        at,
        slot,
        rows,
        np.empty((task.tile + ROWS_AT_ONCE, widest + _PADDING), np.float32),
        np.empty(maxima, np.float32),
        np.empty(widest + LANES, np.int32),
        np.empty(widest + 7),
        sorting_room(task.k),
    )


def counting_space(task: Task, n_items: int, most_seen: int) -> CountingSpace:
    """Return room for `count_above`, for tiles whose users have seen at most `most_seen` items."""
    widest = -(-task.chunk // COMPARED_AT_ONCE) * COMPARED_AT_ONCE
    capacity = 2 * widest + LANES
    slot, rows, start, stop, n_near = np.empty((5, task.tile), np.int64)
    return CountingSpace(
        slot,
        rows,
        start,
        stop,
        np.empty((task.tile + ROWS_AT_ONCE, widest + _PADDING), np.int16),
        n_near,
        np.empty((task.tile, capacity), np.int32),
        np.empty((task.tile, capacity), np.int64),
        np.empty(capacity + 7),
        np.empty((task.tile, -(-n_items // task.chunk) + 2), np.int64),
        np.empty(most_seen, np.int32),
    )


def group_space(
    task: Task, most: int, pairs: int, n_items: int, n_ids: int, maxima: int
) -> tuple[GroupSpace, Workspace]:
    """Return room for `search_groups`, for groups of at most `most` users."""
    n_strips = -(-task.batch // LANES)
    user_strips = -(-task.tile // LANES)
    block = max(task.batch, task.chunk)
    reaches, chosen = np.empty((2, most), np.int64)
    indices, items = np.empty((2, task.batch), np.int32)
    sample_norm, sample_along = np.empty((2, min(n_items, SAMPLE)), np.float32)
    groups = GroupSpace(
        np.empty(most, np.bool_),
        reaches,
        chosen,
        np.empty(most, np.float32),
        np.empty(task.tile, np.float32),
        np.empty(task.tile, np.int64),
        indices,
        items,
        np.zeros(n_strips * LANES, np.float32),
        np.zeros(task.batch, np.float32),
        np.empty((n_strips, pairs, LANES), np.int32),
        np.empty((most + ROWS_AT_ONCE, n_strips * LANES), np.float32),
        np.empty(maxima, np.float32),
        np.zeros(n_items, np.uint8),
        np.empty(n_ids, np.int32),
        np.zeros((n_ids >> 5) + 1, np.uint32),
        np.empty(n_items, np.float32),
        np.empty(n_items + LANES, np.int32),
        np.empty(BUCKETS + 1, np.int64),
        np.empty(BUCKETS, np.float32),
        np.empty(BUCKETS, np.int64),
        np.empty(-(-n_items // task.chunk), np.float32),
        sample_norm,
        sample_along,
    )
    at, slot, rows = np.empty((3, task.tile), np.int64)
    work = Workspace(
        at,
        slot,
        rows,
        np.empty((user_strips, pairs, LANES), np.int32),
        np.empty(user_strips * LANES, np.float32),
        np.empty((task.chunk + ROWS_AT_ONCE) * user_strips, np.uint16),
        np.empty((task.tile, task.chunk), np.int32),
        np.empty(task.tile, np.int64),
        np.empty(block + LANES, np.int32),
        np.empty(block + 7),
        sorting_room(task.k),
    )
    return groups, work
