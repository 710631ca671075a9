"""Sums over each user's list at all cut-offs, in one pass (`sweep`).

Metrics are NumPy formulas of these sums. There is one kernel instead of one per metric: it is
compiled and cached once, and reads each list once.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

import numpy as np

from .jit import kernel
from .sorting import sort_falling

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .hits import Hits, TiedHits
    from .jit import Array
    from .structures import Rows

    Floats = NDArray[np.float64]


class Sums:
    """The sums of a sweep for each user, in the order of its `table`.

    For each cut-off k, they are sums over the positions r <= k of the list. The gain is g, the hit
    h and the discount d(r) = 1 / log2(r + 1). To add a sum, declare it here and compute it in
    `sweep`; formulas read it by name from `metrics.user_statistics.Statistics`.
    """

    hits: Floats  # Σ h
    gain: Floats  # Σ g
    dcg: Floats  # Σ g·d(r)
    dcg_exp: Floats  # Σ (2^g − 1)·d(r)
    dcg_binary: Floats  # Σ h·d(r)
    idcg: Floats  # the same three over the ideal list
    idcg_exp: Floats
    idcg_binary: Floats
    precision_sum: Floats  # Σ h·(hits so far / r)
    reciprocal_sum: Floats  # Σ h/r
    reciprocal_gain: Floats  # Σ g/r


NAMES = tuple(Sums.__annotations__)

#: 1 / ln 2.
OVER_LOG_2 = 1.4426950408889634

#: The index of each sum along the first axis of a `table`; numba treats them as constants.
AT: Any = namedtuple("AT", NAMES)(*range(len(NAMES)))


@kernel
def sum_ideal(
    indptr: Array,
    gains: Array,
    cutoffs: Array,
    discounts: Array,
    discount_sums: Array,
    limits: Array,
    ideal: Array,
    row: int,
    table: Array,
    n_relevant: Array,
) -> None:
    """Write the number of relevant items and the ideal sums of a block of users.

    The sums of gains are written to the given row of `table`. `indptr` holds the bounds of the
    block's rows of `gains`. Cut-offs ascend, ``discounts[r]`` is the discount of rank r, and
    ``discount_sums[r]`` the sum over the ranks 1 to r. The ideal list has the user's relevant
    items, at most ``limits[user]`` of them unless `limits` is empty. `ideal` (float64) has room for
    the longest row. `table` has shape (statistics, cut-offs, users).
    """
    limited = len(limits) > 0
    for user in range(len(indptr) - 1):
        n = int(np.int64(0))  # a literal 0 would compile `sort_falling` once more
        for entry in range(indptr[user], indptr[user + 1]):
            if gains[entry] > 0.0:
                ideal[n] = gains[entry]
                n += 1
        n_relevant[user] = n
        reached = min(n, limits[user]) if limited else n
        sort_falling(ideal, n)
        total = 0.0
        rank = 1
        for cut in range(len(cutoffs)):
            while rank <= reached and rank <= cutoffs[cut]:
                total += ideal[rank - 1] * discounts[rank]
                rank += 1
            table[row, cut, user] = total
            table[AT.idcg_binary, cut, user] = discount_sums[rank - 1]


@kernel
def sweep(
    lists: Rows,
    gapped_positions: Array,
    relevant: Rows,
    gains: Array,
    raised: Array,
    binary: bool,
    cutoffs: Array,
    discounts: Array,
    shift: float,
    table: Array,
    first_hit: Array,
    found: Hits,
) -> None:
    """Write the statistics of a block of users, except the ideal ones.

    Both `indptr` contain only the block's users. Lists are sorted by position; if
    `gapped_positions` is empty, the positions are 1, 2, 3, …. Relevant items are sorted by id.
    If `binary`, every gain is 1, and gains are not read. `raised` has 2^g − 1 of each gain, and is
    empty if no metric uses it. The other arguments are as for `sum_ideal`; past the end of
    `discounts`, the discount of rank r is 1 / log2(r + `shift`).
    `first_hit` must be zero, and remains zero for a user without a hit.
    Every hit down to the last cut-off is written to `found`, unless `found` is empty.
    """
    list_indptr, list_items = lists
    relevant_indptr, relevant_items = relevant
    gapped = len(gapped_positions) > 0
    exponential = len(raised) > 0
    collect = len(found.indptr) > 0
    n_cutoffs = len(cutoffs)
    n_hits = 0

    for user in range(len(list_indptr) - 1):
        if collect:
            found.indptr[user] = n_hits
        start = relevant_indptr[user]
        stop = relevant_indptr[user + 1]

        # Three words with a bit for each id: from its lowest six bits, from the next six, and from
        # all of them mixed. They rule out most irrelevant items without a search, which has
        # unpredictable branches; the third word by itself saves a tenth of the time. Unsigned
        # indices cannot count from the end, so loops over them become vector instructions.
        low_bits = np.uint64(0)
        high_bits = np.uint64(0)
        mixed_bits = np.uint64(0)
        for other in range(np.uint64(start), np.uint64(stop)):
            item = relevant_items[other]
            low_bits |= np.uint64(1) << np.uint64(item & 63)
            high_bits |= np.uint64(1) << np.uint64((item >> 6) & 63)
            mixed_bits |= np.uint64(1) << np.uint64((item ^ (item >> 6) ^ (item >> 12)) & 63)

        hits = 0
        first = 0
        gain_sum = 0.0
        dcg = 0.0
        dcg_exp = 0.0
        dcg_binary = 0.0
        precision_sum = 0.0
        reciprocal_sum = 0.0
        reciprocal_gain = 0.0
        begin = list_indptr[user]
        end = list_indptr[user + 1] if start < stop else begin  # no search for hits
        entry = begin
        for cut in range(n_cutoffs):
            cutoff = cutoffs[cut]
            while entry < end:
                rank = gapped_positions[entry] if gapped else entry - begin + 1
                if rank > cutoff:
                    break
                item = list_items[np.uint64(entry)]
                entry += 1
                low = low_bits >> np.uint64(item & 63)
                high = high_bits >> np.uint64((item >> 6) & 63)
                mixed = mixed_bits >> np.uint64((item ^ (item >> 6) ^ (item >> 12)) & 63)
                if low & high & mixed & np.uint64(1) == 0:
                    continue
                # A binary search down to 64 items. Of these, the ones before this item are counted,
                # because the end of each search would be another unpredictable branch, and most
                # users have fewer items. This is not a function, because numba would count
                # references to its arguments.
                hit = start
                size = stop - start
                while size > 64:
                    half = size >> 1
                    if relevant_items[np.uint64(hit + half)] <= item:
                        hit += half
                    size -= half
                for other in range(np.uint64(hit + 1), np.uint64(hit + size)):
                    hit += relevant_items[other] <= item
                if relevant_items[np.uint64(hit)] != item:
                    continue
                # Reading scattered gains of a large matrix would take most of the time.
                gain = 1.0 if binary else gains[hit]
                if gain <= 0.0:
                    continue
                # Only a few hits of very long lists are past the end of `discounts`. A logarithm of
                # the C library would have other bits on other processors, so it is computed from a
                # discount in the middle of the table: log2 x = n + log2 y + log2(1 + d) for
                # x = y·2^n·(1 + d), where d is below 2^-18.
                if rank < len(discounts):
                    discount = discounts[rank]
                else:
                    below = rank + shift
                    halvings = 0.0
                    while below >= len(discounts):
                        below /= 2.0
                        halvings += 1.0
                    whole = np.floor(below)
                    more = (below - whole) / whole
                    logarithm = 1.0 / discounts[np.int64(whole - shift)]
                    logarithm += more * (1.0 - more * (0.5 - more / 3.0)) * OVER_LOG_2
                    discount = 1.0 / (logarithm + halvings)
                hits += 1
                if collect:
                    found.ranks[n_hits] = rank
                    found.gains[n_hits] = gain
                    n_hits += 1
                first = rank if hits == 1 else first
                gain_sum += gain
                dcg += gain * discount
                dcg_binary += discount
                if exponential:
                    dcg_exp += raised[hit] * discount
                precision_sum += hits / rank
                reciprocal_sum += 1.0 / rank
                reciprocal_gain += gain / rank
            first_hit[user] = first
            table[AT.hits, cut, user] = hits
            table[AT.gain, cut, user] = gain_sum
            table[AT.dcg, cut, user] = dcg
            table[AT.dcg_exp, cut, user] = dcg_exp
            table[AT.dcg_binary, cut, user] = dcg_binary
            table[AT.precision_sum, cut, user] = precision_sum
            table[AT.reciprocal_sum, cut, user] = reciprocal_sum
            table[AT.reciprocal_gain, cut, user] = reciprocal_gain
    if collect:
        found.indptr[len(list_indptr) - 1] = n_hits


@kernel
def sweep_tied(
    lists: Rows,
    positions: Array,
    last_positions: Array,
    lengths: Array,
    relevant: Rows,
    gains: Array,
    raised: Array,
    cutoffs: Array,
    discounts: Array,
    table: Array,
    found: TiedHits,
) -> None:
    """Write the expected statistics of lists in which equal scores share positions.

    An item that ties for the positions a to b is at each of them with probability 1 / (b − a + 1).
    So its expected discount at a cut-off is the mean of the discounts from a to b. Positions beyond
    the cut-off or the list count 0. Only the gain statistics have an expectation of this form; the
    others are not changed. The arguments are as for `sweep`, but `table` must be zero. The first
    and last rank that each hit may take, and its gain, are written to `found`.

    References
    ----------
    F. McSherry and M. Najork (2008). Computing information retrieval performance measures
    efficiently in the presence of tied scores. ECIR 2008.
    https://doi.org/10.1007/978-3-540-78646-7_38
    """
    list_indptr, list_items = lists
    relevant_indptr, relevant_items = relevant
    exponential = len(raised) > 0
    collect = len(found.indptr) > 0
    n_hits = 0
    for user in range(len(list_indptr) - 1):
        if collect:
            found.indptr[user] = n_hits
        start = relevant_indptr[user]
        stop = relevant_indptr[user + 1]
        for entry in range(list_indptr[user], list_indptr[user + 1]):
            hit = start + np.searchsorted(relevant_items[start:stop], list_items[entry])
            if hit == stop or relevant_items[hit] != list_items[entry]:
                continue
            if gains[hit] <= 0.0:
                continue
            gain = gains[hit]
            group_first = positions[entry]
            group_last = last_positions[entry]
            if collect:
                found.ranks[n_hits] = group_first
                found.last_ranks[n_hits] = group_last
                found.gains[n_hits] = gain
                n_hits += 1
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
                table[AT.hits, cut, user] += share
                table[AT.gain, cut, user] += gain * share
                table[AT.dcg, cut, user] += gain * discount
                if exponential:
                    table[AT.dcg_exp, cut, user] += raised[hit] * discount
                table[AT.dcg_binary, cut, user] += discount
    if collect:
        found.indptr[len(list_indptr) - 1] = n_hits
