"""Exact retrieval of the best items of users, or of the ranks of held-out items, by selection.

Most pairs are never scored: products of directions in 16-bit integers *select* items. An item is
scored exactly if its product, plus a bound on its error, reaches the limit of the user. Only exact
scores enter the result. So neither the blocks of users and items nor the number of threads can
change a result, and lists and ranks agree to the last bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .exact import contains, extend_list, extend_ranks, write_list
from .jit import kernel, part
from .lines import bound_of_best, extend_by_line, select_above
from .products import ROUNDING, ROWS_AT_ONCE, mark_above, multiply, pack
from .sorting import sort_best_first
from .vectors import DISTANCE, LANES, prefetch

if TYPE_CHECKING:
    from .jit import Array
    from .structures import (
        Catalogue,
        Groups,
        GroupSpace,
        HeldOut,
        Lists,
        Seen,
        Task,
        Users,
        Workspace,
    )

    Single = np.float32

#: The number of classes into which `collect` sorts the keys of items.
BUCKETS = 128

#: The size of the sample for the estimate of how many items a user needs.
SAMPLE = 512

#: Use the keys only if they cut the items of a user by at least this factor; computing them takes
#: time.
_MIN_SAVING = 1.4

#: The cost of scanning an item, in products.
_COST_PER_ITEM = 4


@part
def _count_at_least(norms: Array, least: float) -> int:
    """Return the number of norms, which descend, that are at least `least`."""
    low = 0
    high = len(norms)
    while low < high:
        middle = (low + high) >> 1
        if norms[middle] >= least:
            low = middle + 1
        else:
            high = middle
    return low


@part
def _key(norm: Single, projection: Single, cosine: Single, sine: Single) -> Single:
    """Return a bound on the product of an item and any user with the given angle to the centre.

    This is the norm of the item. If the item's angle to the centre is larger than the user's, it is
    multiplied by the cosine of the difference of the two angles.
    """
    # norm² − projection² would lose the difference to rounding.
    across = np.sqrt((norm - projection) * (norm + projection))
    turned = projection * cosine + across * sine
    return norm if projection >= norm * cosine else turned


@part
def _sine(cosine: Single) -> Single:
    one = np.float32(1.0)
    return np.float32(np.sqrt(max((one - cosine) * (one + cosine), np.float32(0.0))))


@kernel
def collect(
    projection: Array,
    norms: Array,
    cosine: float,
    least: float,
    in_batch: Array,
    keys: Array,
    order: Array,
    starts: Array,
    tops: Array,
    counts: Array,
) -> int:
    """Collect the items outside the batch whose key is at least `least`; return their number.

    Their indices in the catalogue are written to `order`, by descending bucket of the key. Bucket b
    starts at ``starts[b]`` and has no key above ``tops[b]``. `counts` has room for a count of each
    bucket.
    """
    n = _count_at_least(norms, least)
    cosine32 = np.float32(cosine)
    sine32 = _sine(cosine32)
    for j in range(n):
        keys[j] = _key(norms[j], projection[j], cosine32, sine32)
    top = norms[0]
    bottom = np.float32(max(least, -1.0))
    per_bucket = np.float32(BUCKETS) / max(top - bottom, np.float32(1e-30))
    for b in range(BUCKETS):
        counts[b] = 0
    for j in range(n):
        if keys[j] >= bottom and in_batch[j] == 0:
            b = min(max(int((top - keys[j]) * per_bucket), 0), BUCKETS - 1)
            counts[b] += 1
    total = 0
    for b in range(BUCKETS):
        starts[b] = total
        tops[b] = top - b / per_bucket
        total += counts[b]
        counts[b] = starts[b]
    starts[BUCKETS] = total
    for j in range(n):
        if keys[j] >= bottom and in_batch[j] == 0:
            b = min(max(int((top - keys[j]) * per_bucket), 0), BUCKETS - 1)
            order[counts[b]] = j
            counts[b] += 1
    return total


@part
def _prefetch_user(at: int, users: Users, seen: Seen, held_out: HeldOut | None) -> None:
    """Prefetch the data of a user."""
    user = users.row[at]
    width = users.factors.shape[1]
    prefetch(users.factors, user * width, width)
    prefetch(seen.items, seen.indptr[user], seen.indptr[user + 1] - seen.indptr[user])
    if held_out is not None:
        h = held_out.indptr[users.result_row[at]]
        n = held_out.indptr[users.result_row[at] + 1] - h
        prefetch(held_out.scores, h, n)
        prefetch(held_out.items, h, n)
        prefetch(held_out.above, h, n)


@kernel
def pick_batch(projection: Array, catalogue: Catalogue, size: int, order: Array) -> None:
    """Write the indices of about the `size` largest projections to the front of `order`.

    `order` has room for the whole catalogue.
    """
    # A projection is at most the norm of its item, so a bound from a few projections excludes the
    # items with smaller norms.
    few = min(16 * size, len(projection))
    reach = _count_at_least(catalogue.norms, bound_of_best(projection[:few], size))
    longest = projection[: max(reach, few)]
    select_above(longest, np.float32(bound_of_best(longest, size)), catalogue.order, order)


@kernel
def begin_batch(
    first: int,
    n: int,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    task: Task,
    held_out: HeldOut | None,
    limits: Array,
    lists: Lists | None,
    space: GroupSpace,
    work: Workspace,
) -> None:
    """Process the first batch of items for `n` users from `first` on, and write their limits."""
    margin = space.margins[0]
    for j in range(task.batch):
        margin = max(margin, space.margins[j])
    for i in range(n):
        at = first + i
        user = users.row[at]
        _prefetch_user(first + min(i + DISTANCE, n - 1), users, seen, held_out)
        line = space.products[i, : task.batch]
        for entry in range(seen.indptr[user], seen.indptr[user + 1]):
            item = seen.items[entry]
            if (space.in_slot[item >> 5] >> (item & 31)) & 1:
                line[space.slot[item]] = -np.inf
        if held_out is not None:
            row = users.result_row[at]
            held_out.alive[row] = held_out.indptr[row + 1] - held_out.indptr[row]
        if lists is not None:
            lists.size[i] = 0
            lists.dropped[i] = -np.inf
        limits[at] = -np.inf
        extend_by_line(
            at, i, line, space.items, margin, space.maxima, users, catalogue.factors, task,
            held_out, limits, lists, work.selected, work.exact, False,
        )  # fmt: skip


@kernel
def scan(
    n: int,
    order: Array,
    bounds: Array,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    task: Task,
    held_out: HeldOut | None,
    limits: Array,
    lists: Lists | None,
    work: Workspace,
) -> int:
    """Scan the items in an order, for the first `n` of ``work.at``; return the number of products.

    ``bounds[c]`` bounds the relative scores of all items from chunk c on. A user is done when this
    bound is below the user's limit.
    """
    width = catalogue.factors.shape[1]
    n_products = 0
    n_strips = 0
    marks = work.marks[:0].reshape(0, 1)
    for c in range(-(-len(order) // task.chunk)):
        alive = 0
        for a in range(n):
            if bounds[c] >= limits[work.at[a]]:
                alive += 1
            else:
                work.limits[a] = np.inf
        if alive == 0:
            break
        if -(-alive // LANES) != n_strips:
            kept = 0
            for a in range(n):
                if bounds[c] >= limits[work.at[a]]:
                    work.at[kept] = work.at[a]
                    work.slot[kept] = work.slot[a]
                    work.limits[kept] = limits[work.at[a]]
                    kept += 1
            n = kept
            n_strips = -(-n // LANES)
            for a in range(n):
                work.rows[a] = users.direction[work.at[a]]
            pack(users.directions, work.rows, n, work.strips)
            work.limits[n : n_strips * LANES] = np.inf
            marks = work.marks[: (task.chunk + ROWS_AT_ONCE) * n_strips].reshape(-1, n_strips)
        rows = order[c * task.chunk : min((c + 1) * task.chunk, len(order))]
        for j in range(0, len(rows), ROWS_AT_ONCE):
            for s in range(n_strips):
                mark_above(
                    catalogue.directions, rows, j, work.strips, s, catalogue.weights,
                    catalogue.margins, work.limits, marks,
                )  # fmt: skip
        n_products += len(rows) * alive
        work.n_hits[:n] = 0
        for j in range(len(rows)):
            for s in range(n_strips):
                mark = np.int64(marks[j, s])
                a = s * LANES
                while mark:
                    if mark & 1:
                        item = catalogue.item_of[rows[j]]
                        prefetch(catalogue.factors, item * width, width)
                        if work.n_hits[a] == 0:
                            _prefetch_user(work.at[a], users, seen, held_out)
                        work.hits[a, work.n_hits[a]] = item
                        work.n_hits[a] += 1
                    mark >>= 1
                    a += 1
        for a in range(n):
            if work.n_hits[a] == 0:
                continue
            at = work.at[a]
            user = users.row[at]
            seen_by_user = seen.items[seen.indptr[user] : seen.indptr[user + 1]]
            n_selected = 0
            for e in range(work.n_hits[a]):
                if not contains(seen_by_user, work.hits[a, e]):
                    work.selected[n_selected] = work.hits[a, e]
                    n_selected += 1
            if n_selected == 0:
                continue
            if held_out is not None:
                limits[at] = extend_ranks(
                    users.result_row[at], n_selected, task.k, user, users.scale[at], users.factors,
                    catalogue.factors, held_out, work.selected, work.exact,
                )  # fmt: skip
            if lists is not None:
                limits[at] = extend_list(
                    work.slot[a], n_selected, limits[at], task.k, user, users.scale[at],
                    users.factors, catalogue.factors, lists, work.selected, work.exact, False,
                )  # fmt: skip
            work.limits[a] = limits[at]
    return n_products


@kernel
def search_groups(
    first: int,
    last: int,
    groups: Groups,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    task: Task,
    held_out: HeldOut | None,
    out: Lists | None,
    limits: Array,
    space: GroupSpace,
    work: Workspace,
    lists: Lists | None,
    counts: Array,
) -> None:
    """Search for the users of groups, near the centre of each group.

    ``limits[i]`` becomes the relative score that items of user i must reach, or infinity if the
    user is done. `ordered.search_in_order` continues with the other users. The number of products
    computed is added to ``counts[0]``. `lists` has room for the lists of a group while they grow.
    `lists` and `out` are None if items are counted; otherwise `held_out` is None.
    """
    n_items = len(catalogue.norms)
    batch = task.batch
    n_strips = -(-batch // LANES)
    n_sample = len(space.sample_norm)
    slack = np.float32(ROUNDING)
    order = space.order
    items = space.items
    chosen = space.chosen
    needs = space.needs
    by_need = space.by_need
    starts = space.starts
    tops = space.tops
    for group in range(first, last):
        begin = groups.start[group]
        n = groups.start[group + 1] - begin
        projection = groups.projections[groups.centre[group]]

        # The first batch consists of the items most likely to be in the users' lists: the k-th best
        # of them gives each user a limit.
        pick_batch(projection, catalogue, batch, order)
        for j in range(batch):
            index = order[j]
            space.indices[j] = index
            items[j] = catalogue.item_of[index]
            space.weights[j] = catalogue.weights[index]
            space.margins[j] = catalogue.margins[index]
            space.in_batch[index] = 1
            space.slot[items[j]] = j
            space.in_slot[items[j] >> 5] |= np.uint32(1 << (items[j] & 31))
        pack(catalogue.directions, space.indices, batch, space.strips)
        rows = users.direction[begin : begin + n]
        for i in range(0, n, ROWS_AT_ONCE):
            for c in range(n_strips):
                multiply(users.directions, rows, i, space.strips, c, space.weights, space.products)
        counts[0] += n * batch
        begin_batch(begin, n, users, catalogue, seen, task, held_out, limits, lists, space, work)
        for j in range(batch):
            space.in_slot[items[j] >> 5] = 0

        # A sample of items shows which users need far fewer items by key than by norm.
        for j in range(n_sample):
            index = j * n_items // n_sample
            space.sample_norm[j] = catalogue.norms[index]
            space.sample_along[j] = projection[index]
        n_chosen = 0
        for i in range(n):
            limit = limits[begin + i] - slack
            space.done[i] = limit == np.inf
            if space.done[i]:
                continue
            cosine = users.cosine[begin + i]
            sine = _sine(cosine)
            need = 0
            for j in range(n_sample):
                need += _key(space.sample_norm[j], space.sample_along[j], cosine, sine) >= limit
            space.reaches[i] = _count_at_least(catalogue.norms, limit)
            if _MIN_SAVING * need * n_items < space.reaches[i] * n_sample:
                chosen[n_chosen] = i
                space.cosines[n_chosen] = cosine
                n_chosen += 1
        sort_best_first(space.cosines, chosen, n_chosen)

        # Users with similar angles share the keys, and the scan in the order of the keys.
        for tile in range(0, n_chosen, task.tile):
            n_active = min(task.tile, n_chosen - tile)
            lowest_limit = np.inf
            cosine = np.float32(1.0)
            for a in range(n_active):
                i = chosen[tile + a]
                lowest_limit = min(lowest_limit, float(limits[begin + i]))
                cosine = min(cosine, users.cosine[begin + i])
            lowest_limit -= float(slack)
            total = collect(
                projection, catalogue.norms, cosine, lowest_limit, space.in_batch, space.keys,
                order, starts, tops, space.counts,
            )  # fmt: skip
            # The users who need the most items would prolong the scan only for themselves, so cut
            # at the lowest total cost.
            cost = 0
            per_bucket = BUCKETS / max(tops[0] - max(lowest_limit, -1.0), 1e-30)
            for a in range(n_active):
                i = chosen[tile + a]
                b = int((tops[0] - (limits[begin + i] - slack)) * per_bucket)
                needs[a] = -starts[min(max(b, 0), BUCKETS - 1) + 1]
                by_need[a] = a
                cost += space.reaches[i]
            sort_best_first(needs, by_need, n_active)  # negative: the smallest need comes first
            cheapest = cost
            n_kept = int(np.int64(0))  # a literal 0 would compile `scan` once more
            for a in range(n_active):
                need = -int(needs[a])
                cost += need - space.reaches[chosen[tile + by_need[a]]]
                if cost + _COST_PER_ITEM * need <= cheapest:
                    cheapest = cost + _COST_PER_ITEM * need
                    n_kept = a + 1
            for a in range(n_kept):
                i = chosen[tile + by_need[a]]
                work.slot[a] = i
                work.at[a] = begin + i
                space.done[i] = True
            bucket = 0
            n_chunks = -(-total // task.chunk)
            for c in range(n_chunks):
                while starts[bucket + 1] <= c * task.chunk:
                    bucket += 1
                space.bounds[c] = tops[bucket] + slack
            counts[0] += scan(
                n_kept, order[:total], space.bounds[:n_chunks], users, catalogue, seen, task,
                held_out, limits, lists, work,
            )  # fmt: skip
        for j in range(batch):
            space.in_batch[space.indices[j]] = 0
        for i in range(n):
            if space.done[i]:
                if lists is not None and out is not None:
                    write_list(i, users.result_row[begin + i], task.k, lists, work.room, out)
                limits[begin + i] = np.inf
