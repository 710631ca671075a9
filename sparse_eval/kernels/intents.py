"""Sums over lists in which an item counts for each of its groups, and repeated groups count less.

Items of `lists` that do not count have False in `counted`. `groups` are the groups of each item.
Scratch arrays have an entry for each group, and are reset before a kernel returns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array
    from .structures import Rows


@kernel
def sum_by_groups(
    lists: Rows,
    counted: Array,
    groups: Rows,
    decay: float,
    discounts: Array,
    worth: Array,
    out: Array,
) -> None:
    """Write Σ over the list of ``discounts[rank]`` · Σ over groups of decay^(items of it above).

    `worth` is scratch and must be 1.
    """
    for row in range(len(out)):
        items = lists.items[lists.indptr[row] : lists.indptr[row + 1]]
        is_counted = counted[lists.indptr[row] :]
        total = 0.0
        for place in range(len(items)):
            if is_counted[place]:
                gain = 0.0
                item = items[place]
                for group in groups.items[groups.indptr[item] : groups.indptr[item + 1]]:
                    gain += worth[group]
                    worth[group] *= decay
                total += gain * discounts[place + 1]
        out[row] = total
        for item in items:
            for group in groups.items[groups.indptr[item] : groups.indptr[item + 1]]:
                worth[group] = 1.0


@kernel
def order_by_new_groups(
    lists: Rows, groups: Rows, decay: float, taken: Array, worth: Array, best: Rows
) -> None:
    """Order the items of each row greedily by their new groups.

    At each rank, the item that adds the most is taken; of items that add the same, the last one.
    Row r of `best` has room for the first items of this order. `taken` and `worth` are scratch.
    `taken` must be False for each item of `lists` and is not reset; `worth` must be 1.
    """
    for row in range(len(lists.indptr) - 1):
        items = lists.items[lists.indptr[row] : lists.indptr[row + 1]]
        is_taken = taken[lists.indptr[row] :]
        ordered = best.items[best.indptr[row] : best.indptr[row + 1]]
        for rank in range(len(ordered)):
            largest = -1.0
            chosen = 0
            for place in range(len(items)):
                if not is_taken[place]:
                    gain = 0.0
                    item = items[place]
                    for group in groups.items[groups.indptr[item] : groups.indptr[item + 1]]:
                        gain += worth[group]
                    if gain >= largest:
                        largest = gain
                        chosen = place
            is_taken[chosen] = True
            ordered[rank] = items[chosen]
            item = items[chosen]
            for group in groups.items[groups.indptr[item] : groups.indptr[item + 1]]:
                worth[group] *= decay
        for item in ordered:
            for group in groups.items[groups.indptr[item] : groups.indptr[item + 1]]:
                worth[group] = 1.0


@kernel
def sum_precision_by_groups(
    lists: Rows,
    counted: Array,
    relevant: Rows,
    groups: Rows,
    sizes: Array,
    found: Array,
    out: Array,
) -> None:
    """Write the mean average precision over the groups of the relevant items.

    It is 0 without relevant items. `sizes` and `found` are scratch and must be 0.
    """
    for row in range(len(out)):
        items = lists.items[lists.indptr[row] : lists.indptr[row + 1]]
        is_counted = counted[lists.indptr[row] :]
        n_groups = 0
        for item in relevant.items[relevant.indptr[row] : relevant.indptr[row + 1]]:
            for group in groups.items[groups.indptr[item] : groups.indptr[item + 1]]:
                n_groups += sizes[group] == 0
                sizes[group] += 1
                found[group] = 0
        total = 0.0
        for place in range(len(items)):
            if is_counted[place]:
                item = items[place]
                for group in groups.items[groups.indptr[item] : groups.indptr[item + 1]]:
                    found[group] += 1
                    total += found[group] / (float(place + 1) * sizes[group])
        out[row] = total / max(n_groups, 1)
        for item in relevant.items[relevant.indptr[row] : relevant.indptr[row + 1]]:
            for group in groups.items[groups.indptr[item] : groups.indptr[item + 1]]:
                sizes[group] = 0
                found[group] = 0
