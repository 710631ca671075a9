"""Sums over lists in which an item counts for each of its groups, less the more often they come.

The items of a row are at ``[indptr[row]:indptr[row + 1]]`` of `items`, those that do not count have
False in `counted`. The groups of an item are at ``[group_indptr[item]:group_indptr[item + 1]]`` of
`groups`. Scratch has an entry for each group; it is left as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .jit import kernel

if TYPE_CHECKING:
    from .jit import Array


@kernel
def sum_by_groups(
    indptr: Array,
    items: Array,
    counted: Array,
    group_indptr: Array,
    groups: Array,
    decay: float,
    discounts: Array,
    worth: Array,
    out: Array,
) -> None:
    """Write Σ over the list of ``discounts[rank]`` · Σ over groups of decay^(items of it above).

    `worth` is scratch, and 1.
    """
    for row in range(len(out)):
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            if counted[entry]:
                gain = 0.0
                for place in range(group_indptr[items[entry]], group_indptr[items[entry] + 1]):
                    gain += worth[groups[place]]
                    worth[groups[place]] *= decay
                total += gain * discounts[entry - indptr[row] + 1]
        out[row] = total
        for entry in range(indptr[row], indptr[row + 1]):
            for place in range(group_indptr[items[entry]], group_indptr[items[entry] + 1]):
                worth[groups[place]] = 1.0


@kernel
def order_by_new_groups(
    indptr: Array,
    items: Array,
    group_indptr: Array,
    groups: Array,
    decay: float,
    taken: Array,
    worth: Array,
    best_indptr: Array,
    best: Array,
) -> None:
    """Write the items of each row, at every rank one that adds most; of equal ones the last.

    Row r gets ``best_indptr[r + 1] - best_indptr[r]`` items. `taken`, False for each of `items`,
    and `worth`, 1, are scratch; `taken` is not left as it was.
    """
    for row in range(len(indptr) - 1):
        for rank in range(best_indptr[row], best_indptr[row + 1]):
            most = -1.0
            chosen = indptr[row]
            for entry in range(indptr[row], indptr[row + 1]):
                if not taken[entry]:
                    gain = 0.0
                    for place in range(group_indptr[items[entry]], group_indptr[items[entry] + 1]):
                        gain += worth[groups[place]]
                    if gain >= most:
                        most = gain
                        chosen = entry
            taken[chosen] = True
            best[rank] = items[chosen]
            for place in range(group_indptr[items[chosen]], group_indptr[items[chosen] + 1]):
                worth[groups[place]] *= decay
        for rank in range(best_indptr[row], best_indptr[row + 1]):
            for place in range(group_indptr[best[rank]], group_indptr[best[rank] + 1]):
                worth[groups[place]] = 1.0


@kernel
def sum_precision_by_groups(
    indptr: Array,
    items: Array,
    counted: Array,
    relevant_indptr: Array,
    relevant_items: Array,
    group_indptr: Array,
    groups: Array,
    sizes: Array,
    found: Array,
    out: Array,
) -> None:
    """Write the mean over the groups of the relevant items of their average precision.

    0 without relevant items. `sizes` and `found` are scratch, and 0.
    """
    for row in range(len(out)):
        n_groups = 0
        for entry in range(relevant_indptr[row], relevant_indptr[row + 1]):
            item = relevant_items[entry]
            for place in range(group_indptr[item], group_indptr[item + 1]):
                n_groups += sizes[groups[place]] == 0
                sizes[groups[place]] += 1
                found[groups[place]] = 0
        total = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            if counted[entry]:
                rank = entry - indptr[row] + 1
                for place in range(group_indptr[items[entry]], group_indptr[items[entry] + 1]):
                    group = groups[place]
                    found[group] += 1
                    total += found[group] / (float(rank) * sizes[group])
        out[row] = total / max(n_groups, 1)
        for entry in range(relevant_indptr[row], relevant_indptr[row + 1]):
            item = relevant_items[entry]
            for place in range(group_indptr[item], group_indptr[item + 1]):
                sizes[groups[place]] = 0
                found[groups[place]] = 0
