"""The sweep: one pass over each user's list and relevant items, all cut-offs at once.

The pass emits named statistics, from which every metric is a NumPy formula. One kernel instead of
one per metric compiles once, is cached, and reads each list once.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .jit import inlined, kernel

if TYPE_CHECKING:
    from .jit import Array

#: The statistics of a sweep in the order of the first axis of its `table`. At each cut-off k,
#: over the list positions r <= k, with gain g, hit h and discount d(r) = 1 / log2(r + 1).
NAMES = (
    "hits",  # Σ h
    "gain",  # Σ g
    "dcg",  # Σ g·d(r)
    "dcg_exp",  # Σ (2^g − 1)·d(r)
    "dcg_binary",  # Σ h·d(r)
    "idcg",  # the same three over the ideal order
    "idcg_exp",
    "idcg_binary",
    "precision_sum",  # Σ h·(hits so far / r)
    "reciprocal_sum",  # Σ h/r
    "reciprocal_gain",  # Σ g/r
)


@inlined
def raised_gain(gain: float) -> float:
    """2^g − 1: exact for whole numbers, and to the last digits for small ones too."""
    if gain < 0.5:
        return math.expm1(gain * 0.6931471805599453)  # the natural logarithm of 2
    return float(2.0**gain - 1.0)


@kernel
def sum_ideal(
    indptr: Array,
    gains: Array,
    binary: bool,
    cutoffs: Array,
    discounts: Array,
    discount_sums: Array,
    exponential: bool,
    slots: bool,
    limits: Array,
    table: Array,
    n_relevant: Array,
) -> None:
    """Write the number of relevant items and the ideal sums of a block of users.

    `indptr` bounds the block's rows of `gains`; `binary` says that every gain is 1, which spares
    reading and sorting them. Cut-offs ascend, ``discounts[r]`` belongs to rank r and
    ``discount_sums[r]`` to the ranks 1 to r. With `slots` the ideal list has an item of gain 1 at
    every rank down to the cut-off; otherwise it has the user's own, and no more of them than
    `limits` says, which is empty where there is no limit. `table` is (statistics, cut-offs,
    users).
    """
    n_users = len(indptr) - 1
    n_cutoffs = len(cutoffs)
    limited = len(limits) > 0
    if binary or slots:  # sums of discounts
        for user in range(n_users):
            n = indptr[user + 1] - indptr[user]
            if not binary:
                n = 0
                for entry in range(indptr[user], indptr[user + 1]):
                    n += gains[entry] > 0.0
            n_relevant[user] = n
            if limited:
                n = min(n, limits[user])
            for cut in range(n_cutoffs):
                total = discount_sums[cutoffs[cut] if slots else min(n, cutoffs[cut])]
                table[5, cut, user] = total
                table[6, cut, user] = total
                table[7, cut, user] = total
        return

    longest = 0
    for user in range(n_users):
        longest = max(longest, indptr[user + 1] - indptr[user])
    ideal = np.empty(longest, np.float64)
    for user in range(n_users):
        n = 0
        for entry in range(indptr[user], indptr[user + 1]):
            if gains[entry] > 0.0:
                ideal[n] = gains[entry]
                n += 1
        n_relevant[user] = n
        reached = min(n, limits[user]) if limited else n
        if n <= 32:
            for i in range(1, n):
                gain = ideal[i]
                j = i
                while j > 0 and ideal[j - 1] < gain:
                    ideal[j] = ideal[j - 1]
                    j -= 1
                ideal[j] = gain
        else:
            ideal[:n] = np.sort(ideal[:n])[::-1]
        linear = 0.0
        raised = 0.0
        rank = 1
        for cut in range(n_cutoffs):
            while rank <= reached and rank <= cutoffs[cut]:
                discount = discounts[rank]
                linear += ideal[rank - 1] * discount
                if exponential:
                    raised += raised_gain(ideal[rank - 1]) * discount
                rank += 1
            table[5, cut, user] = linear
            table[6, cut, user] = raised
            table[7, cut, user] = discount_sums[rank - 1]


@kernel
def sweep(
    list_indptr: Array,
    list_items: Array,
    gapped_positions: Array,
    gapped: bool,
    relevant_indptr: Array,
    relevant_items: Array,
    gains: Array,
    binary: bool,
    cutoffs: Array,
    discounts: Array,
    shift: float,
    exponential: bool,
    table: Array,
    first_hit: Array,
    collect: bool,
    hit_indptr: Array,
    hit_ranks: Array,
    hit_gains: Array,
) -> None:
    """Write the statistics of a block of users, all but the ideal ones.

    The two `indptr` bound the block's users only. Lists are in the order of their positions,
    which are read only if `gapped`, and otherwise 1, 2, 3, …; relevant items are in the order of
    their ids. The rest is as in `sum_ideal`; beyond the table the discount of rank r is
    1 / log2(r + `shift`). `first_hit` is zero on entry, and stays so for a user without a hit.
    With `collect` the rank and gain of every hit down to the last cut-off are
    written too, ``hit_indptr`` bounding those of each user.
    """
    n_cutoffs = len(cutoffs)
    n_hits = 0

    for user in range(len(list_indptr) - 1):
        if collect:
            hit_indptr[user] = n_hits
        start = relevant_indptr[user]
        stop = relevant_indptr[user + 1]
        if start == stop:
            for cut in range(n_cutoffs):
                for name in range(5):
                    table[name, cut, user] = 0.0
                for name in range(8, 11):
                    table[name, cut, user] = 0.0
            continue

        # A bit for the lowest and one for the next six bits of each id: most recommended items
        # are not relevant, and these say so without the binary search, whose branches nobody can
        # predict. They took a quarter off the sweep.
        low_bits = np.uint64(0)
        high_bits = np.uint64(0)
        for entry in range(start, stop):
            item = relevant_items[entry]
            low_bits |= np.uint64(1) << np.uint64(item & 63)
            high_bits |= np.uint64(1) << np.uint64((item >> 6) & 63)

        hits = 0
        gain_sum = 0.0
        dcg = 0.0
        dcg_exp = 0.0
        dcg_binary = 0.0
        precision_sum = 0.0
        reciprocal_sum = 0.0
        reciprocal_gain = 0.0
        begin = list_indptr[user]
        end = list_indptr[user + 1]
        entry = begin
        for cut in range(n_cutoffs):
            cutoff = cutoffs[cut]
            while entry < end:
                rank = gapped_positions[entry] if gapped else entry - begin + 1
                if rank > cutoff:
                    break
                item = list_items[entry]
                entry += 1
                low = low_bits >> np.uint64(item & 63)
                high = high_bits >> np.uint64((item >> 6) & 63)
                if low & high & np.uint64(1) == 0:
                    continue
                # The binary search, without an early end: that would be one more such branch. And
                # not a function, because numba would count the references of what it is passed.
                found = start
                size = stop - start
                while size > 1:
                    half = size >> 1
                    if relevant_items[found + half] <= item:
                        found += half
                    size -= half
                if relevant_items[found] != item:
                    continue
                # Of a large matrix, reading one gain here and there costs more than all else.
                gain = 1.0 if binary else gains[found]
                if gain <= 0.0:
                    continue
                # Beyond the table lie only a few hits of very long lists.
                discount = (
                    discounts[rank] if rank < len(discounts) else 1.0 / math.log2(rank + shift)
                )
                hits += 1
                if collect:
                    hit_ranks[n_hits] = rank
                    hit_gains[n_hits] = gain
                    n_hits += 1
                if hits == 1:
                    first_hit[user] = rank
                gain_sum += gain
                dcg += gain * discount
                dcg_binary += discount
                if exponential:
                    dcg_exp += raised_gain(gain) * discount
                precision_sum += hits / rank
                reciprocal_sum += 1.0 / rank
                reciprocal_gain += gain / rank
            table[0, cut, user] = hits
            table[1, cut, user] = gain_sum
            table[2, cut, user] = dcg
            table[3, cut, user] = dcg_exp
            table[4, cut, user] = dcg_binary
            table[8, cut, user] = precision_sum
            table[9, cut, user] = reciprocal_sum
            table[10, cut, user] = reciprocal_gain
    if collect:
        hit_indptr[len(list_indptr) - 1] = n_hits


@kernel
def sweep_tied(
    list_indptr: Array,
    list_items: Array,
    positions: Array,
    last_positions: Array,
    lengths: Array,
    relevant_indptr: Array,
    relevant_items: Array,
    gains: Array,
    cutoffs: Array,
    discounts: Array,
    exponential: bool,
    table: Array,
) -> None:
    """As `sweep`, for lists whose equal scores share positions: expectations over their orders.

    An item that ties for the positions a to b stands at each of them with probability
    1 / (b − a + 1), so its expected discount at a cut-off is the mean of the discounts from a to
    b, those beyond the cut-off or the list counting 0 (McSherry and Najork, 2008). Only the gain
    statistics have an expectation of this form; the others are zero.
    """
    table[:5] = 0.0
    table[8:] = 0.0
    for user in range(len(list_indptr) - 1):
        start = relevant_indptr[user]
        stop = relevant_indptr[user + 1]
        for entry in range(list_indptr[user], list_indptr[user + 1]):
            found = start + np.searchsorted(relevant_items[start:stop], list_items[entry])
            if found == stop or relevant_items[found] != list_items[entry]:
                continue
            if gains[found] <= 0.0:
                continue
            gain = gains[found]
            group_first = positions[entry]
            group_last = last_positions[entry]
            size = group_last - group_first + 1
            reached = min(group_last, lengths[user])
            rank = group_first
            discount_sum = 0.0
            for cut in range(len(cutoffs)):
                while rank <= reached and rank <= cutoffs[cut]:
                    discount_sum += discounts[rank]
                    rank += 1
                share = (rank - group_first) / size
                discount = discount_sum / size
                table[0, cut, user] += share
                table[1, cut, user] += gain * share
                table[2, cut, user] += gain * discount
                if exponential:
                    table[3, cut, user] += raised_gain(gain) * discount
                table[4, cut, user] += discount
