"""Exact retrieval: users' best items, or the ranks of held-out ones, without scoring every pair.

Products of directions in 16-bit integers only *select*. A pair is looked at when its product, with
all that rounding may have taken from it, is above what the user still needs; what counts is its
exact score. So neither the blocks of users and items nor the number of threads can change a
result, and lists and ranks agree to the last bit.

Lengths are relative: users' vectors have length 1, those of items at most 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .exact import (
    HeldOut,
    Lists,
    Seen,
    count_line,
    extend_list,
    extend_ranks,
    hand_over,
    holds,
    limit_of_ranks,
    rank,
    score_exactly,
)
from .jit import inlined, kernel
from .prefetch import prefetch
from .products import LANES, ROUNDING, ROWS_AT_ONCE, UNIT, mark_above, multiply, pack

if TYPE_CHECKING:
    from .jit import Array

    Single = np.float32

#: Products compared at once; only where one of them passes are they looked at one by one.
_LANE = 32

#: So many users ahead is fetched what belongs to them.
_AHEAD = 8

#: Users whose products with the centres are in the first cache.
_BLOCK = 10 * ROWS_AT_ONCE

#: Classes into which `collect` orders the keys of items.
_BUCKETS = 128

#: Items on which it is estimated how many a user needs.
_SAMPLE = 512

#: So many times fewer items must a user need by their keys: finding them has its price.
_WORTH = 1.4

#: To go through an item costs as much as so many products.
_PER_ITEM = 4


class Catalogue(NamedTuple):
    """The candidate items, by falling norm.

    Attributes
    ----------
    factors : ndarray of float, shape (n_ids, f)
        As stored, of all items.
    directions : ndarray of int32, shape (n, pairs)
        See `products`.
    norms : ndarray of float32, shape (n,)
        Divided by the largest.
    weights : ndarray of float32, shape (n,)
        Norms in units of a product of directions.
    margins : ndarray of float32, shape (n,)
        How far a product times its weight may be from the relative score.
    item_of : ndarray of int32, shape (n,)
        Rows of `factors`.
    order : ndarray of int32, shape (n,)
        0, 1, 2, …: the order in which users go through the items if they have no better one.
    """

    factors: Array
    directions: Array
    norms: Array
    weights: Array
    margins: Array
    item_of: Array
    order: Array


class Users(NamedTuple):
    """Users in the order of their groups.

    Attributes
    ----------
    factors : ndarray of float, shape (n_users, f)
        As stored, of all users.
    row : ndarray of int64, shape (n,)
        Row of `factors`, and of what they have seen.
    place : ndarray of int64, shape (n,)
        Row of the results.
    directions : ndarray of int32, shape (n, pairs)
        See `products`.
    direction : ndarray of int64, shape (n,)
        Row of `directions`.
    scale : ndarray of float64, shape (n,)
        The user's norm times the largest norm of an item.
    cosine : ndarray of float32, shape (n,)
        At most the cosine of the angle between the user and the centre of the group.
    """

    factors: Array
    row: Array
    place: Array
    directions: Array
    direction: Array
    scale: Array
    cosine: Array


class Groups(NamedTuple):
    """Users of similar direction: `start` bounds them, row `centre` of `projections` is theirs.

    ``projections[c, i]`` is at least the product of a centre, of length 1, and an item of the
    catalogue, and at most the item's norm.
    """

    start: Array
    centre: Array
    projections: Array


class Task(NamedTuple):
    """What is asked for, and sizes, none of which changes a result."""

    k: int
    ranks: bool
    batch: int
    maxima: int
    tile: int
    chunk: int


class Sweep(NamedTuple):
    """What `sweep` writes to: the users at work, and what is found for them.

    Attributes
    ----------
    at : ndarray of int64, shape (tile,)
        Their places in `Users`.
    slot : ndarray of int64, shape (tile,)
        Their rows of `lists`.
    lists : Lists
        Of the users of a group.
    rows : ndarray of int64, shape (tile,)
        Rows of their directions.
    strips : ndarray of int32, shape (⌈tile / LANES⌉, pairs, LANES)
        Their directions.
    limits : ndarray of float32
        What they need, lane by lane.
    marks : ndarray of uint16
        What passes.
    hits, n_hits : ndarray of int32, shape (tile, chunk), and of int64, shape (tile,)
        Items that passed.
    found, exact : ndarray of int32 and of float64
        Those of one user that are unseen, and their scores.
    """

    at: Array
    slot: Array
    lists: Lists
    rows: Array
    strips: Array
    limits: Array
    marks: Array
    hits: Array
    n_hits: Array
    found: Array
    exact: Array


@inlined
def _new_sweep(tile: int, most: int, block: int, pairs: int, task: Task) -> Sweep:
    """Make room for `tile` users at once, of `most` with lists, and `block` items found."""
    n_strips = -(-tile // LANES)
    capacity = 1 if task.ranks else task.k + max(task.k // 2, 64)
    return Sweep(
        np.empty(tile, np.int64),
        np.empty(tile, np.int64),
        Lists(
            np.empty((most, capacity), np.int32),
            np.empty((most, capacity)),
            np.empty(most, np.int64),
            np.empty(most),
        ),
        np.empty(tile, np.int64),
        np.empty((n_strips, pairs, LANES), np.int32),
        np.empty(n_strips * LANES, np.float32),
        np.empty((task.chunk + ROWS_AT_ONCE) * n_strips, np.uint16),
        np.empty((tile, task.chunk), np.int32),
        np.empty(tile, np.int64),
        np.empty(block, np.int32),
        np.empty(block + 7),
    )


@kernel
def assign(
    first: int, last: int, directions: Array, centres: Array, nearest: Array, cosine: Array
) -> None:
    """Find the centre of largest cosine for some users, and that cosine, give or take its error."""
    n = len(centres)
    n_strips = -(-n // LANES)
    identity = np.arange(max(n, _BLOCK))
    strips = np.empty((n_strips, directions.shape[1], LANES), np.int32)
    pack(centres, identity, n, strips)
    weights = np.full(n_strips * LANES, 1.0 / UNIT / UNIT, np.float32)
    products = np.empty((_BLOCK + ROWS_AT_ONCE, n_strips * LANES), np.float32)
    for begin in range(first, last, _BLOCK):
        size = min(_BLOCK, last - begin)
        chosen = directions[begin : begin + size]
        rows = identity[:size]
        for i in range(0, size, ROWS_AT_ONCE):
            for s in range(n_strips):
                multiply(chosen, rows, i, strips, s, weights, products)
        for i in range(size):
            line = products[i, :n]
            best = line[0]
            for c in range(n):
                best = line[c] if line[c] > best else best
            centre = 0
            while line[centre] < best:
                centre += 1
            nearest[begin + i] = centre
            cosine[begin + i] = best


@kernel
def project(
    first: int, last: int, catalogue: Catalogue, centres: Array, projections: Array
) -> None:
    """Write the projections of some items on every centre, see `Groups`."""
    n = last - first
    n_strips = -(-n // LANES)
    identity = np.arange(max(n, len(centres)))
    strips = np.empty((n_strips, centres.shape[1], LANES), np.int32)
    pack(catalogue.directions[first:last], identity, n, strips)
    weights = np.zeros(n_strips * LANES, np.float32)
    weights[:n] = catalogue.weights[first:last]
    products = np.empty((len(centres) + ROWS_AT_ONCE, n_strips * LANES), np.float32)
    rows = identity[: len(centres)]
    for c in range(0, len(centres), ROWS_AT_ONCE):
        for s in range(n_strips):
            multiply(centres, rows, c, strips, s, weights, products)
    norms = catalogue.norms[first:last]
    margins = catalogue.margins[first:last]
    for c in range(len(centres)):
        line = products[c]
        out = projections[c, first:last]
        for j in range(n):
            most = line[j] + margins[j]
            out[j] = most if most < norms[j] else norms[j]


@inlined
def _bound_of_best(values: Array, k: int) -> float:
    """Return a number that at least `k` of the values reach, nearly the k-th largest.

    By bisection: counting is done by vector instructions, and took a tenth of the time of a
    selection, whose branches nobody can predict.
    """
    low = values[0]
    high = values[0]
    for j in range(len(values)):
        low = values[j] if values[j] < low else low
        high = values[j] if values[j] > high else high
    bound: float = low
    for _ in range(0 if low == -np.inf else 10):
        middle = np.float32(0.5) * (low + high)
        reached = 0
        for j in range(len(values)):
            reached += values[j] >= middle
        if reached >= k:
            low = middle
        else:
            high = middle
        bound = low
    return bound


@inlined
def _reach(norms: Array, least: float) -> int:
    """Return how many norms, which descend, are at least `least`."""
    low = 0
    high = len(norms)
    while low < high:
        middle = (low + high) >> 1
        if norms[middle] >= least:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _key(norm: Single, projection: Single, cosine: Single, sine: Single) -> Single:
    """Bound the product of an item with any user whose angle to the centre has this cosine.

    It is the length of the item, turned by as much of its angle to the centre as is left.
    """
    # Not norm² − projection²: their difference would be lost in rounding.
    across = np.sqrt((norm - projection) * (norm + projection))
    turned = projection * cosine + across * sine
    return norm if projection >= norm * cosine else turned


@inlined
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
    places: Array,
    starts: Array,
    tops: Array,
) -> int:
    """Find the items, outside of the batch, whose key is at least `least`; return their number.

    Their places are written by falling bucket of the key: bucket b starts at ``starts[b]`` and has
    no key above ``tops[b]``.
    """
    n = _reach(norms, least)
    cosine32 = np.float32(cosine)
    sine32 = _sine(cosine32)
    for j in range(n):
        keys[j] = _key(norms[j], projection[j], cosine32, sine32)
    top = norms[0]
    bottom = np.float32(max(least, -1.0))
    per_bucket = np.float32(_BUCKETS) / max(top - bottom, np.float32(1e-30))
    counts = np.zeros(_BUCKETS, np.int64)
    for j in range(n):
        if keys[j] >= bottom and in_batch[j] == 0:
            b = min(max(int((top - keys[j]) * per_bucket), 0), _BUCKETS - 1)
            counts[b] += 1
    total = 0
    for b in range(_BUCKETS):
        starts[b] = total
        tops[b] = top - b / per_bucket
        total += counts[b]
        counts[b] = starts[b]
    starts[_BUCKETS] = total
    for j in range(n):
        if keys[j] >= bottom and in_batch[j] == 0:
            b = min(max(int((top - keys[j]) * per_bucket), 0), _BUCKETS - 1)
            places[counts[b]] = j
            counts[b] += 1
    return total


@inlined
def _fetch(at: int, users: Users, seen: Seen, ranks: bool, held: HeldOut) -> None:
    """Have all fetched that belongs to a user."""
    user = users.row[at]
    width = users.factors.shape[1]
    prefetch(users.factors, user * width, width)
    prefetch(seen.items, seen.indptr[user], seen.indptr[user + 1] - seen.indptr[user])
    if ranks:
        h = held.indptr[users.place[at]]
        n = held.indptr[users.place[at] + 1] - h
        prefetch(held.scores, h, n)
        prefetch(held.items, h, n)
        prefetch(held.above, h, n)


@inlined
def _find_best(line: Array, bound: Single, items: Array, found: Array) -> int:
    """Write the items whose product is at least `bound`; return how many."""
    n = 0
    for lane in range(0, len(line), _LANE):
        part = line[lane : min(lane + _LANE, len(line))]
        passing = np.int32(0)
        for j in range(len(part)):
            passing += part[j] >= bound
        if passing == 0:
            continue
        for j in range(len(part)):
            if part[j] >= bound and part[j] > -np.inf:
                found[n] = items[lane + j]
                n += 1
    return n


@kernel
def pick_batch(projection: Array, catalogue: Catalogue, size: int, places: Array) -> None:
    """Write where the `size` largest projections are, or nearly so, to the front of `places`.

    `places` has room for the whole catalogue.
    """
    # A projection is no longer than its item: from a few of them follows who need not be looked at.
    few = min(16 * size, len(projection))
    reach = _reach(catalogue.norms, _bound_of_best(projection[:few], size))
    longest = projection[: max(reach, few)]
    _find_best(longest, np.float32(_bound_of_best(longest, size)), catalogue.order, places)


@kernel
def begin_batch(
    first: int,
    n: int,
    products: Array,
    slot: Array,
    in_slot: Array,
    margins: Array,
    items: Array,
    maxima: Array,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    task: Task,
    held: HeldOut,
    limits: Array,
    work: Sweep,
) -> None:
    """Begin with a first batch of items: write what `n` users from `first` on now need.

    Item i has column ``slot[i]``, if its bit of `in_slot` says that it has one.
    """
    size = len(items)
    margin = 0.0
    for j in range(size):
        margin = max(margin, float(margins[j]))
    for i in range(n):
        at = first + i
        user = users.row[at]
        _fetch(first + min(i + _AHEAD, n - 1), users, seen, task.ranks, held)
        line = products[i, :size]
        for entry in range(seen.indptr[user], seen.indptr[user + 1]):
            item = seen.items[entry]
            if (in_slot[item >> 5] >> (item & 31)) & 1:
                line[slot[item]] = -np.inf
        if task.ranks:
            place = users.place[at]
            alive = held.indptr[place + 1] - held.indptr[place]
            for h in range(held.indptr[place], held.indptr[place + 1]):
                above = count_line(
                    line, margins, items, h, user, users.scale[at], users.factors,
                    catalogue.factors, held, work.found, work.exact,
                )  # fmt: skip
                held.above[h] = above
                if above >= task.k:  # and so for all that are worse
                    alive = h - held.indptr[place]
                    break
            limits[at] = limit_of_ranks(place, alive, users.scale[at], held)
            continue
        # The k-th largest of the maxima of disjoint parts of the batch is at most the k-th largest
        # product, and found without sorting the batch.
        bound = np.float32(-np.inf)
        if size >= task.maxima >= task.k:
            for g in range(task.maxima):
                maxima[g] = line[g]
            for base in range(task.maxima, size - task.maxima + 1, task.maxima):
                part = line[base : base + task.maxima]
                for g in range(task.maxima):
                    maxima[g] = part[g] if part[g] > maxima[g] else maxima[g]
            bound = np.float32(_bound_of_best(maxima, task.k) - 2.0 * margin)
        work.lists.size[i] = 0
        work.lists.dropped[i] = -np.inf
        n_found = _find_best(line, bound, items, work.found)
        limits[at] = extend_list(
            i, n_found, -np.inf, task.k, user, users.scale[at], users.factors, catalogue.factors,
            work.lists, work.found, work.exact,
        )  # fmt: skip


@kernel
def sweep(
    n: int,
    order: Array,
    bounds: Array,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    task: Task,
    held: HeldOut,
    limits: Array,
    work: Sweep,
) -> int:
    """Go through the items in an order, for the first `n` of ``work.at``; return the products.

    No item from chunk c on is above ``bounds[c]`` for any of them: a user is done when that is
    below what the user needs.
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
                            _fetch(work.at[a], users, seen, task.ranks, held)
                        work.hits[a, work.n_hits[a]] = item
                        work.n_hits[a] += 1
                    mark >>= 1
                    a += 1
        for a in range(n):
            if work.n_hits[a] == 0:
                continue
            at = work.at[a]
            user = users.row[at]
            mine = seen.items[seen.indptr[user] : seen.indptr[user + 1]]
            n_found = 0
            for e in range(work.n_hits[a]):
                if not holds(mine, work.hits[a, e]):
                    work.found[n_found] = work.hits[a, e]
                    n_found += 1
            if n_found == 0:
                continue
            if task.ranks:
                limits[at] = extend_ranks(
                    users.place[at], n_found, task.k, user, users.scale[at], users.factors,
                    catalogue.factors, held, work.found, work.exact,
                )  # fmt: skip
            else:
                limits[at] = extend_list(
                    work.slot[a], n_found, limits[at], task.k, user, users.scale[at],
                    users.factors, catalogue.factors, work.lists, work.found, work.exact,
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
    held: HeldOut,
    out: Lists,
    limits: Array,
    counts: Array,
) -> None:
    """Look for what users need near the centre of their group.

    ``limits[i]`` becomes what a relative score of user i must reach, infinity for a user who is
    done. The others need about as many items as have norms above that, see `search_by_norm`.
    ``counts[0]`` is raised by the products computed.
    """
    n_items = len(catalogue.norms)
    pairs = catalogue.directions.shape[1]
    most = 0
    for group in range(first, last):
        most = max(most, groups.start[group + 1] - groups.start[group])
    batch = min(task.batch, n_items)
    n_strips = -(-batch // LANES)
    work = _new_sweep(task.tile, most, max(batch, task.chunk), pairs, task)
    done = np.empty(most, np.bool_)
    reaches = np.empty(most, np.int64)
    chosen = np.empty(most, np.int64)
    cosines = np.empty(most, np.float32)
    needs = np.empty(task.tile, np.int64)
    strips = np.empty((n_strips, pairs, LANES), np.int32)
    products = np.empty((most + ROWS_AT_ONCE, n_strips * LANES), np.float32)
    weights = np.zeros(n_strips * LANES, np.float32)
    margins = np.zeros(batch, np.float32)
    items = np.empty(batch, np.int32)
    batch_places = np.empty(batch, np.int32)
    in_batch = np.zeros(n_items, np.uint8)
    slot = np.empty(len(catalogue.factors), np.int32)
    in_slot = np.zeros((len(catalogue.factors) >> 5) + 1, np.uint32)
    keys = np.empty(n_items, np.float32)
    places = np.empty(n_items, np.int32)
    starts = np.empty(_BUCKETS + 1, np.int64)
    tops = np.empty(_BUCKETS, np.float32)
    bounds = np.empty(-(-n_items // task.chunk), np.float32)
    maxima = np.empty(task.maxima, np.float32)
    n_sample = min(n_items, _SAMPLE)
    sample_norm = np.empty(n_sample, np.float32)
    sample_along = np.empty(n_sample, np.float32)
    slack = np.float32(ROUNDING)
    for group in range(first, last):
        begin = groups.start[group]
        n = groups.start[group + 1] - begin
        projection = groups.projections[groups.centre[group]]

        # The items that are most likely in the lists of all: who has the first k of them knows
        # what an item must reach.
        pick_batch(projection, catalogue, batch, places)
        for j in range(batch):
            place = places[j]
            batch_places[j] = place
            items[j] = catalogue.item_of[place]
            weights[j] = catalogue.weights[place]
            margins[j] = catalogue.margins[place]
            in_batch[place] = 1
            slot[items[j]] = j
            in_slot[items[j] >> 5] |= np.uint32(1 << (items[j] & 31))
        pack(catalogue.directions, batch_places, batch, strips)
        rows = users.direction[begin : begin + n]
        for i in range(0, n, ROWS_AT_ONCE):
            for c in range(n_strips):
                multiply(users.directions, rows, i, strips, c, weights, products)
        counts[0] += n * batch
        begin_batch(
            begin, n, products, slot, in_slot, margins, items, maxima, users, catalogue, seen, task,
            held, limits, work,
        )  # fmt: skip
        for j in range(batch):
            in_slot[items[j] >> 5] = 0

        # Who needs far fewer items by their keys than by their norms? A sample of items tells.
        for j in range(n_sample):
            place = j * n_items // n_sample
            sample_norm[j] = catalogue.norms[place]
            sample_along[j] = projection[place]
        n_chosen = 0
        for i in range(n):
            limit = limits[begin + i] - slack
            done[i] = limit == np.inf
            if done[i]:
                continue
            cosine = users.cosine[begin + i]
            sine = _sine(cosine)
            need = 0
            for j in range(n_sample):
                need += _key(sample_norm[j], sample_along[j], cosine, sine) >= limit
            reaches[i] = _reach(catalogue.norms, limit)
            if _WORTH * need * n_items < reaches[i] * n_sample:
                chosen[n_chosen] = i
                cosines[n_chosen] = -cosine
                n_chosen += 1
        chosen[:n_chosen] = chosen[:n_chosen][np.argsort(cosines[:n_chosen])]

        # Users of about the same angle share the keys, and the products in their order.
        for tile in range(0, n_chosen, task.tile):
            n_active = min(task.tile, n_chosen - tile)
            least = np.inf
            cosine = np.float32(1.0)
            for a in range(n_active):
                i = chosen[tile + a]
                least = min(least, float(limits[begin + i]))
                cosine = min(cosine, users.cosine[begin + i])
            least -= float(slack)
            total = collect(
                projection, catalogue.norms, cosine, least, in_batch, keys, places, starts, tops
            )
            # Those who need most would keep the products going for themselves alone: where to
            # cut is where the whole is cheapest.
            cost = 0
            per_bucket = _BUCKETS / max(tops[0] - max(least, -1.0), 1e-30)
            for a in range(n_active):
                i = chosen[tile + a]
                b = int((tops[0] - (limits[begin + i] - slack)) * per_bucket)
                needs[a] = starts[min(max(b, 0), _BUCKETS - 1) + 1]
                cost += reaches[i]
            by_need = np.argsort(needs[:n_active])
            cheapest = cost
            n_kept = 0
            for a in range(n_active):
                need = needs[by_need[a]]
                cost += need - reaches[chosen[tile + by_need[a]]]
                if cost + _PER_ITEM * need <= cheapest:
                    cheapest = cost + _PER_ITEM * need
                    n_kept = a + 1
            for a in range(n_kept):
                i = chosen[tile + by_need[a]]
                work.slot[a] = i
                work.at[a] = begin + i
                done[i] = True
            bucket = 0
            n_chunks = -(-total // task.chunk)
            for c in range(n_chunks):
                while starts[bucket + 1] <= c * task.chunk:
                    bucket += 1
                bounds[c] = tops[bucket] + slack
            counts[0] += sweep(
                n_kept, places[:total], bounds[:n_chunks], users, catalogue, seen, task, held,
                limits, work,
            )  # fmt: skip
        for j in range(batch):
            in_batch[batch_places[j]] = 0
        for i in range(n):
            if done[i] and not task.ranks:
                hand_over(i, users.place[begin + i], task.k, work.lists, out)
            if done[i]:
                limits[begin + i] = np.inf


@kernel
def search_by_norm(
    first: int,
    last: int,
    chosen: Array,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    task: Task,
    held: HeldOut,
    out: Lists,
    limits: Array,
    counts: Array,
) -> None:
    """Go through the items by falling norm, for the users ``chosen[first:last]``.

    They have been through `search_groups`. A user is done when the norm is below the limit.
    """
    n = last - first
    work = _new_sweep(n, n, task.chunk, catalogue.directions.shape[1], task)
    for i in range(n):
        work.at[i] = chosen[first + i]
        work.slot[i] = i
        place = users.place[chosen[first + i]]
        if task.ranks:  # what is still alive is counted from the start
            for h in range(held.indptr[place], held.indptr[place] + held.alive[place]):
                held.above[h] = 0
                held.tied[h] = 0
        else:  # and what is in a list already will be found again
            work.lists.size[i] = 0
            work.lists.dropped[i] = -np.inf
    bounds = catalogue.norms[:: task.chunk] + np.float32(ROUNDING)
    counts[0] += sweep(n, catalogue.order, bounds, users, catalogue, seen, task, held, limits, work)
    if not task.ranks:
        for i in range(n):
            hand_over(i, users.place[chosen[first + i]], task.k, work.lists, out)


@kernel
def count_above(
    first: int,
    last: int,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    candidate: Array,
    chunk: int,
    held: HeldOut,
    counts: Array,
) -> None:
    """Count all unseen candidates above every held-out item of some users, and those of its score.

    The users are in the order of their lowest held-out score, so that those of a block are done
    after about as many items. Seen items are counted first and taken off last: they are few.
    """
    n_items = len(catalogue.norms)
    n = last - first
    most = chunk
    for i in range(n):
        row = users.row[first + i]
        most = max(most, seen.indptr[row + 1] - seen.indptr[row])
    found = np.empty(most, np.int32)
    exact = np.empty(most + 7)
    strips = np.empty((-(-chunk // LANES), catalogue.directions.shape[1], LANES), np.int32)
    weights = np.zeros(len(strips) * LANES, np.float32)
    products = np.empty((n + ROWS_AT_ONCE, len(weights)), np.float32)
    active = np.arange(first, last)
    for begin in range(0, n_items, chunk):
        kept = 0
        for a in range(n):
            place = users.place[active[a]]
            lowest = held.scores[held.indptr[place + 1] - 1] / users.scale[active[a]]
            if catalogue.norms[begin] + ROUNDING >= lowest:
                active[kept] = active[a]
                kept += 1
        n = kept
        if n == 0:
            break
        size = min(chunk, n_items - begin)
        items = catalogue.item_of[begin : begin + size]
        margins = catalogue.margins[begin : begin + size]
        pack(catalogue.directions, catalogue.order[begin : begin + size], size, strips)
        weights[:size] = catalogue.weights[begin : begin + size]
        rows = users.direction[active[:n]]
        for a in range(0, n, ROWS_AT_ONCE):
            for s in range(-(-size // LANES)):
                multiply(users.directions, rows, a, strips, s, weights, products)
        counts[0] += n * size
        for a in range(n):
            at = active[a]
            place = users.place[at]
            for h in range(held.indptr[place], held.indptr[place + 1]):
                held.above[h] += count_line(
                    products[a, :size], margins, items, h, users.row[at], users.scale[at],
                    users.factors, catalogue.factors, held, found, exact,
                )  # fmt: skip
    for i in range(first, last):
        row = users.row[i]
        place = users.place[i]
        n_found = 0
        for entry in range(seen.indptr[row], seen.indptr[row + 1]):
            if candidate[seen.items[entry]]:
                found[n_found] = seen.items[entry]
                n_found += 1
        score_exactly(row, users.factors, catalogue.factors, found, n_found, exact)
        for h in range(held.indptr[place], held.indptr[place + 1]):
            held.above[h] -= rank(n_found, found, exact, h, held, -1)
