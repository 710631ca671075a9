"""Counts over lists and the catalogue, similarity of items, and draws of random lists.

Each kernel processes a block of users. An `indptr` holds the bounds of the rows of lists, users or
items. The `indptr` of a block's users is a slice of the whole `indptr` and points into whole
arrays. The result of a user depends only on the rows of that user, not on the block or the number
of threads.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from .jit import allocating_kernel, kernel, part

if TYPE_CHECKING:
    from .jit import Array
    from .structures import Rows


def pack_bits(item_indptr: Array, item_users: Array, n_users: int) -> tuple[Array, Array]:
    """Return bitmaps of the users of popular items, for `sum_similarities`.

    Returns
    -------
    bits : ndarray of uint64, shape (n_popular, n_words)
    bit_row : ndarray of int64, shape (n_items,)
        The row of `bits` of each item, or -1.

    Notes
    -----
    An item is popular if at least one user in 256 has it. Counting the common bits of two bitmaps
    is then faster than looking up the users of the rarer item: eight words take the time of one
    lookup. `sum_similarities` took two to five times as long without bitmaps. It took up to twice
    as long with bitmaps only for items of at least one user in 64. The bitmaps take at most 8 bytes
    per interaction; beyond this limit, the least popular items get none.
    """
    degrees = np.diff(item_indptr)
    words = (n_users + 63) >> 6
    popular = np.flatnonzero(degrees * 256 >= n_users)
    room = len(item_users) // max(words, 1)
    if len(popular) > room:
        popular = popular[np.argsort(-degrees[popular], kind="stable")[:room]]
    bits = np.zeros((len(popular), words), np.uint64)
    bit_row = np.full(len(degrees), -1, np.int64)
    bit_row[popular] = np.arange(len(popular))
    set_bits(item_indptr, item_users, popular, bits)
    return bits, bit_row


@kernel
def set_bits(item_indptr: Array, item_users: Array, items: Array, bits: Array) -> None:
    """Set the bits of the users of ``items[i]`` in ``bits[i]``, which must be zero."""
    for i in range(len(items)):
        for entry in range(item_indptr[items[i]], item_indptr[items[i] + 1]):
            user = np.uint64(item_users[entry])
            bits[i, user >> np.uint64(6)] |= np.uint64(1) << (user & np.uint64(63))


@part
def count_bits(word: np.uint64) -> np.uint64:
    """Return the number of bits set, in a form that compiles to one instruction."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    pairs = word & np.uint64(0x3333333333333333)
    word = pairs + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    # np.multiply overflows silently, as intended, if this runs without compilation.
    total: np.uint64 = np.multiply(word, np.uint64(0x0101010101010101)) >> np.uint64(56)
    return total


@allocating_kernel
def sum_similarities(
    lists: Rows,
    k: int,
    users: Rows,
    bits: Array,
    bit_row: Array,
    cache: Array,
    jaccard: bool,
    out: Array,
) -> None:
    """Write the sums of the similarities between the first `k` items of each list.

    ``out[user]`` is a sum over the unordered pairs of the first k items of the user's list. U_i are
    the users of item i in the training data. The similarity of a pair is |U_i ∩ U_j| /
    sqrt(|U_i|·|U_j|), or if `jaccard` |U_i ∩ U_j| / |U_i ∪ U_j|. It is 0 if U_i or U_j is empty.
    Lists are complete and sorted by rank, `users` are the training data by item, and `bits` and
    `bit_row` come from `pack_bits`.

    `cache`, int64 of shape (slots, 2), stores the number of common users of pairs. It belongs to
    one thread and is zero at first, and the number of slots is a power of two. Blocks with the same
    training data may share it. The lists of a model have many pairs in common: 2^17 slots halved
    the time of 30,000 real lists. Random lists have few pairs in common and took up to a fifth
    longer.

    The result does not depend on the cache or the bitmaps, which only affect how integers are
    counted. The order of the additions depends only on the list and the training data.
    """
    n_items = len(users.indptr) - 1
    n_words = bits.shape[1]
    last_slot = len(cache) - 1
    longest = 0
    for user in range(len(lists.indptr) - 1):
        longest = max(longest, lists.indptr[user + 1] - lists.indptr[user])
    longest = min(longest, k)
    items = np.empty(longest, np.int64)
    degrees = np.empty(longest, np.int64)
    ranks = np.empty(longest, np.int64)
    added = np.empty(longest, np.float64)
    scratch = np.zeros(n_words, np.uint64)

    for user in range(len(lists.indptr) - 1):
        begin = lists.indptr[user]
        length = min(lists.indptr[user + 1] - begin, longest)

        # Sort by descending number of users, so that for each pair the users of the rarer item are
        # looked up. This took 0.6 of the time of looking up the users of the better ranked item.
        # The sort may be quadratic, because the loop over pairs is quadratic too.
        for rank in range(length):
            added[rank] = 0.0
            item = np.int64(lists.items[begin + rank])
            degree = users.indptr[item + 1] - users.indptr[item]
            index = rank
            while index > 0 and degrees[index - 1] < degree:
                items[index] = items[index - 1]
                degrees[index] = degrees[index - 1]
                ranks[index] = ranks[index - 1]
                index -= 1
            items[index] = item
            degrees[index] = degree
            ranks[index] = rank

        for first in range(length):
            item = items[first]
            row = bit_row[item]
            filled = row >= 0
            bitmap = bits[row] if filled else scratch
            for second in range(first + 1, length):
                other = items[second]
                degree = degrees[second]
                # For a rare item, counting is faster than the cache.
                slot = -1
                key = np.int64(0)
                if degree >= 32:
                    low = min(item, other)
                    high = max(item, other)
                    key = low * n_items + high  # never 0, because low < high
                    slot = (((low * 0x9E3779B1) >> 16) ^ high) & last_slot
                if slot >= 0 and cache[slot, 0] == key:
                    common = cache[slot, 1]
                else:
                    other_row = bit_row[other]
                    both = np.uint64(0)
                    if row >= 0 and other_row >= 0:
                        for word in range(n_words):
                            both += count_bits(bits[row, word] & bits[other_row, word])
                    else:
                        # Looking up bits takes less than half the time of merging two sorted rows,
                        # which has unpredictable branches.
                        if not filled:
                            for entry in range(users.indptr[item], users.indptr[item + 1]):
                                u = np.uint64(users.items[entry])
                                scratch[u >> np.uint64(6)] |= np.uint64(1) << (u & np.uint64(63))
                            filled = True
                        for entry in range(users.indptr[other], users.indptr[other + 1]):
                            u = np.uint64(users.items[entry])
                            bit = bitmap[u >> np.uint64(6)] >> (u & np.uint64(63))
                            both += bit & np.uint64(1)
                    common = np.int64(both)
                    if slot >= 0:
                        cache[slot, 0] = key
                        cache[slot, 1] = common
                if common > 0:
                    if jaccard:
                        divisor = float(degrees[first] + degree - common)
                    else:
                        divisor = math.sqrt(np.float64(degrees[first]) * np.float64(degree))
                    added[max(ranks[first], ranks[second])] += common / divisor
            if filled and row < 0:
                for entry in range(users.indptr[item], users.indptr[item + 1]):
                    scratch[np.uint64(users.items[entry]) >> np.uint64(6)] = np.uint64(0)

        total = 0.0
        for rank in range(length):
            total += added[rank]
        out[user] = total


@kernel
def count_listed(indptr: Array, items: Array, k: int, users: Array, counts: Array) -> None:
    """Add to `counts` the number of lists of `users` that have each item among the first `k`."""
    for user in users:
        start = indptr[user]
        for entry in range(start, min(start + k, indptr[user + 1])):
            counts[items[entry]] += 1


@allocating_kernel
def popular_unseen(order: Array, seen_indptr: Array, seen_items: Array, out: Array) -> None:
    """Write the k most popular items that each user has not seen, padded with -1.

    `order` holds every item of the catalogue, or every item that may be listed, the most popular
    first; all seen items are among them. `out` has shape (n_users, k).
    """
    k = out.shape[1]
    largest = 0
    for item in order:
        largest = max(largest, item)
    seen = np.zeros(largest + 1, np.bool_)
    for user in range(len(seen_indptr) - 1):
        for entry in range(seen_indptr[user], seen_indptr[user + 1]):
            seen[seen_items[entry]] = True
        n_listed = 0
        for index in range(len(order)):
            if n_listed == k:
                break
            if not seen[order[index]]:
                out[user, n_listed] = order[index]
                n_listed += 1
        while n_listed < k:
            out[user, n_listed] = -1
            n_listed += 1
        for entry in range(seen_indptr[user], seen_indptr[user + 1]):
            seen[seen_items[entry]] = False


@allocating_kernel
def draw_ranks(numbers: Array, n_candidates: Array, indptr: Array, out: Array) -> None:
    """Draw for each user distinct ranks from 1 to ``n_candidates[user]``, in random order.

    Each ordered choice is equally likely. The number of draws is the length of the user's row of
    `indptr`, at most ``n_candidates[user]``. `numbers`, uniform in [0, 1), and `out` have one entry
    per draw of the block.
    """
    most = 0
    for user in range(len(n_candidates)):
        most = max(most, n_candidates[user])
    # A shuffle that stops after the user's draws and is then undone. It needs one number per draw
    # for any number of candidates, and never rejects a number.
    order = np.arange(most)
    for user in range(len(n_candidates)):
        begin = indptr[user] - indptr[0]
        n = indptr[user + 1] - indptr[user]
        left = n_candidates[user]
        for i in range(n):
            # Always below `left`: the product of an integer and a number of at most 1 − 2^−53
            # rounds down.
            index = i + np.int64(numbers[begin + i] * (left - i))
            out[begin + i] = order[index] + 1
            order[index] = order[i]
        for i in range(n):
            index = i + np.int64(numbers[begin + i] * (left - i))
            order[index] = index


@allocating_kernel
def draw_lists(
    numbers: Array, seen_indptr: Array, seen_items: Array, n_items: int, out: Array
) -> None:
    """Draw for each user a list of distinct unseen items, padded with -1.

    Each ordered choice is equally likely. `out` and `numbers`, uniform in [0, 1), have shape
    (n_users, k). Seen items ascend and are below `n_items`.
    """
    k = out.shape[1]
    # As in `draw_ranks`, draw ids below the number of unseen items. Each seen item with such an id
    # is replaced by an unseen item with a higher id.
    order = np.arange(n_items)
    for user in range(len(seen_indptr) - 1):
        start = seen_indptr[user]
        stop = seen_indptr[user + 1]
        left = n_items - (stop - start)
        beyond = n_items - 1
        last = stop - 1
        for entry in range(start, stop):
            item = seen_items[entry]
            if item >= left:
                break
            while seen_items[last] == beyond:  # ends at the latest at this entry
                last -= 1
                beyond -= 1
            order[item] = beyond
            beyond -= 1
        n = min(k, left)
        for i in range(n):
            index = i + np.int64(numbers[user, i] * (left - i))
            out[user, i] = order[index]
            order[index] = order[i]
        for i in range(n, k):
            out[user, i] = -1
        for i in range(n):
            index = i + np.int64(numbers[user, i] * (left - i))
            order[index] = index
        for entry in range(start, stop):
            item = seen_items[entry]
            if item >= left:
                break
            order[item] = item


@kernel
def count_seen(
    seen: Rows,
    relevant: Rows,
    gains: Array,
    lists: Rows,
    seen_by: Array,
    relevant_out: Array,
    listed_out: Array,
) -> None:
    """Write how many relevant items, with a gain above 0, and listed items each user has seen.

    `seen_by` (int32) has an entry for each item, initially -1: the last user so far who has seen
    it. Indices are unsigned, so numba need not check for negative ones, which took a third of the
    time.
    """
    for user in range(len(seen.indptr) - 1):
        mark = np.int32(user)
        for item in seen.items[seen.indptr[user] : seen.indptr[user + 1]]:
            seen_by[np.uint32(item)] = mark
        n_relevant = 0
        for entry in range(np.uint64(relevant.indptr[user]), np.uint64(relevant.indptr[user + 1])):
            item = np.uint32(relevant.items[entry])
            n_relevant += (gains[entry] > 0.0) & (seen_by[item] == mark)
        n_listed = 0
        for item in lists.items[lists.indptr[user] : lists.indptr[user + 1]]:
            n_listed += seen_by[np.uint32(item)] == mark
        relevant_out[user] = n_relevant
        listed_out[user] = n_listed


@allocating_kernel
def count_unseen_candidates(
    seen: Rows, relevant: Rows, gains: Array, lists: Rows, n_items: int, out: Array
) -> None:
    """Write the number of candidates of each user: items that the list could have held.

    These are the items of the catalogue except those that the user has seen. Relevant items, with a
    gain above 0, and items in the list count as candidates even if they were seen.
    """
    hidden = np.zeros(n_items, np.bool_)
    for user in range(len(seen.indptr) - 1):
        start = seen.indptr[user]
        stop = seen.indptr[user + 1]
        out[user] = n_items
        if start == stop:
            continue
        for entry in range(start, stop):
            hidden[seen.items[entry]] = True
        for entry in range(relevant.indptr[user], relevant.indptr[user + 1]):
            if gains[entry] > 0.0:
                hidden[relevant.items[entry]] = False
        for entry in range(lists.indptr[user], lists.indptr[user + 1]):
            hidden[lists.items[entry]] = False
        n_hidden = 0
        for entry in range(start, stop):
            n_hidden += hidden[seen.items[entry]]  # entries of other users are still set
        out[user] = n_items - n_hidden
