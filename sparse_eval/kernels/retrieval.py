"""Exact retrieval: users' best items, or the ranks of held-out ones, without scoring every pair.

Single-precision products of blocks of users and items only *select*. A pair is looked at when its
product is not below what the user still needs by more than the rounding error; what counts is its
exact score: the dot product of the stored factors, accumulated in double precision in the order of
the factors. So neither the BLAS nor the sizes of blocks nor the number of threads can change a
result, and lists and ranks agree to the last bit.

Lengths are relative: users' vectors have length 1, those of items at most 1. ``error`` bounds the
rounding error of a product of two such vectors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .jit import inlined, kernel

if TYPE_CHECKING:
    from .jit import Array

#: Products compared at once; only where one of them passes are they looked at one by one.
_LANE = 32

#: So many numbers are looked through one by one.
_FEW = 64

#: Classes into which `collect` orders the keys of items.
_BUCKETS = 64

#: Items on which it is estimated how many a user needs.
_SAMPLE = 512

#: So many times fewer items must a user need by their keys: finding them has its price.
_WORTH = 1.4

#: To gather an item and to pack it for the product costs as much as so many products.
_GATHERED = 32


class Catalogue(NamedTuple):
    """The candidate items.

    Attributes
    ----------
    factors : ndarray of float, shape (n_ids, f)
        As stored, of all items.
    unit : ndarray of float32, shape (n, f)
        The candidates' factors, divided by the largest norm, by falling norm.
    norms : ndarray of float32, shape (n,)
        Of the rows of `unit`.
    item_of : ndarray of int32, shape (n,)
        Row of `factors` of each row of `unit`.
    """

    factors: Array
    unit: Array
    norms: Array
    item_of: Array


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
    unit : ndarray of float32, shape (n, f)
        The users' factors, divided by their norm.
    scale : ndarray of float64, shape (n,)
        The user's norm times the largest norm of an item.
    cosine : ndarray of float32, shape (n,)
        At most the cosine of the angle between the user and the centre of the group.
    """

    factors: Array
    row: Array
    place: Array
    unit: Array
    scale: Array
    cosine: Array


class Groups(NamedTuple):
    """Users of similar direction: `start` bounds them, row `centre` of `projections` is theirs.

    ``projections[c, i]`` is the product of a centre, of length 1, and an item of the catalogue.
    """

    start: Array
    centre: Array
    projections: Array


class Seen(NamedTuple):
    """What users have seen: the items of a CSR matrix, ascending within a row."""

    indptr: Array
    items: Array


class Lists(NamedTuple):
    """Each row's best items so far: the first `size` of a row; `dropped` is the best that fell out.

    Either all of it belongs to the results, or to a block of users at work.
    """

    items: Array
    scores: Array
    size: Array
    dropped: Array


class HeldOut(NamedTuple):
    """Held-out items, each row's best first.

    Attributes
    ----------
    indptr : ndarray of int64, shape (n_rows + 1,)
        Where a row starts.
    items : ndarray of int32
        Rows of the item factors.
    scores : ndarray of float64
        Exact scores.
    above : ndarray of int64
        Unseen candidates that are better, as far as they have been counted.
    tied : ndarray of int64
        Unseen candidates of the same score, likewise.
    alive : ndarray of int64, shape (n_rows,)
        So many of a row may still be among the first k; the others need not be counted further.
    """

    indptr: Array
    items: Array
    scores: Array
    above: Array
    tied: Array
    alive: Array


class Task(NamedTuple):
    """What is asked for, and sizes, none of which changes a result."""

    k: int
    ranks: bool
    error: float
    batch: int
    maxima: int
    tile: int
    chunk: int


@kernel
def measure_rows(first: int, last: int, factors: Array, norms: Array) -> None:
    """Write the lengths of some rows; NaN for a row that is not finite."""
    width = factors.shape[1]
    for row in range(first, last):
        total = 0.0
        odd = 0.0
        for f in range(0, width - 1, 2):  # two sums: one would wait for itself
            total += np.float64(factors[row, f]) * np.float64(factors[row, f])
            odd += np.float64(factors[row, f + 1]) * np.float64(factors[row, f + 1])
        if width % 2 == 1:
            total += np.float64(factors[row, width - 1]) * np.float64(factors[row, width - 1])
        total += odd
        if 1e-200 < total < 1e300:
            norms[row] = math.sqrt(total)
            continue
        # Squares may be out of the range of numbers though the length is not.
        largest = 0.0
        finite = True
        for f in range(width):
            value = abs(np.float64(factors[row, f]))
            if not value < np.inf:
                finite = False
            largest = max(largest, value)
        total = 0.0
        if largest > 0.0 and finite:
            for f in range(width):
                part = np.float64(factors[row, f]) / largest
                total += part * part
        norms[row] = largest * math.sqrt(total) if finite else np.nan


@kernel
def scale_rows(
    first: int, last: int, factors: Array, rows: Array, lengths: Array, out: Array
) -> None:
    """Write ``factors[rows[i]] / lengths[i]`` in single precision."""
    for i in range(first, last):
        row = rows[i]
        inverse = 1.0 / lengths[i]
        for f in range(factors.shape[1]):
            out[i, f] = np.float64(factors[row, f]) * inverse


@kernel
def assign(
    first: int, last: int, unit: Array, centres: Array, nearest: Array, cosine: Array
) -> None:
    """Find the centre of largest cosine for some users."""
    products = np.dot(unit[first:last], centres.T)
    for i in range(last - first):
        line = products[i]
        best = 0
        for c in range(len(line)):
            if line[c] > line[best]:
                best = c
        nearest[first + i] = best
        cosine[first + i] = line[best]


@inlined
def _is_better(score: float, item: int, other_score: float, other_item: int) -> bool:
    return score > other_score or (score == other_score and item < other_item)


@kernel
def select_best(scores: Array, items: Array, n: int, k: int) -> None:
    """Bring the `k` best of the first `n` to the front, the k-th to place k - 1."""
    low = 0
    high = n - 1
    while low < high:
        middle = (low + high) >> 1
        score = scores[middle]
        item = items[middle]
        i = low
        j = high
        while i <= j:
            while _is_better(scores[i], items[i], score, item):
                i += 1
            while _is_better(score, item, scores[j], items[j]):
                j -= 1
            if i <= j:
                scores[i], scores[j] = scores[j], scores[i]
                items[i], items[j] = items[j], items[i]
                i += 1
                j -= 1
        if k - 1 <= j:
            high = j
        elif k - 1 >= i:
            low = i
        else:
            return


@kernel
def sort_best(scores: Array, items: Array, n: int) -> None:
    """Sort the first `n`, the best first (Shell's sort: nearly all lists are short)."""
    gap = 1
    while gap < n // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(gap, n):
            score = scores[i]
            item = items[i]
            j = i - gap
            while j >= 0 and _is_better(score, item, scores[j], items[j]):
                scores[j + gap] = scores[j]
                items[j + gap] = items[j]
                j -= gap
            scores[j + gap] = score
            items[j + gap] = item
        gap //= 3


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
def _score_exactly(
    user: int, user_factors: Array, item_factors: Array, items: Array, n: int, out: Array
) -> None:
    """Write the exact scores of the first `n` items; `out` has room for seven more.

    Eight sums at a time: a sum alone waits for each of its additions, in an order that is part of
    the definition.
    """
    for i in range(0, n, 8):
        i0 = items[i]
        i1 = items[min(i + 1, n - 1)]
        i2 = items[min(i + 2, n - 1)]
        i3 = items[min(i + 3, n - 1)]
        i4 = items[min(i + 4, n - 1)]
        i5 = items[min(i + 5, n - 1)]
        i6 = items[min(i + 6, n - 1)]
        i7 = items[min(i + 7, n - 1)]
        s0 = 0.0
        s1 = 0.0
        s2 = 0.0
        s3 = 0.0
        s4 = 0.0
        s5 = 0.0
        s6 = 0.0
        s7 = 0.0
        for f in range(user_factors.shape[1]):
            u = np.float64(user_factors[user, f])
            s0 += u * np.float64(item_factors[i0, f])
            s1 += u * np.float64(item_factors[i1, f])
            s2 += u * np.float64(item_factors[i2, f])
            s3 += u * np.float64(item_factors[i3, f])
            s4 += u * np.float64(item_factors[i4, f])
            s5 += u * np.float64(item_factors[i5, f])
            s6 += u * np.float64(item_factors[i6, f])
            s7 += u * np.float64(item_factors[i7, f])
        out[i] = s0
        out[i + 1] = s1
        out[i + 2] = s2
        out[i + 3] = s3
        out[i + 4] = s4
        out[i + 5] = s5
        out[i + 6] = s6
        out[i + 7] = s7


@kernel
def score_held_out(
    first: int, last: int, rows: Array, user_factors: Array, item_factors: Array, held: HeldOut
) -> None:
    """Score the held-out items of some rows, ``rows[i]`` being the user's, and sort them."""
    longest = 0
    for place in range(first, last):
        longest = max(longest, held.indptr[place + 1] - held.indptr[place])
    exact = np.empty(longest + 7)
    for place in range(first, last):
        start = held.indptr[place]
        n = held.indptr[place + 1] - start
        items = held.items[start : start + n]
        _score_exactly(rows[place], user_factors, item_factors, items, n, exact)
        sort_best(exact, items, n)
        for h in range(n):
            held.scores[start + h] = exact[h]


@inlined
def _row_of(seen_items: Array, start: int, stop: int, item: int) -> int:
    """Return the first entry of a row of `seen_items` that is not below `item`."""
    low = start
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if seen_items[middle] < item:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def _holds(items: Array, item: int) -> bool:
    """Say whether `items`, which ascend, hold `item`."""
    if len(items) <= _FEW:  # as quick as a step or two of a search, and nothing to predict
        equal = 0
        for e in range(len(items)):
            equal += items[e] == item
        return equal > 0
    at = _row_of(items, 0, len(items), item)
    return at < len(items) and items[at] == item


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


@kernel
def find_seen(
    first: int, last: int, rows: Array, indptr: Array, items: Array, seen: Seen, found: Array
) -> None:
    """Mark the entries of some rows that the user, ``rows[i]``, has seen."""
    for place in range(first, last):
        start = seen.indptr[rows[place]]
        stop = seen.indptr[rows[place] + 1]
        for entry in range(indptr[place], indptr[place + 1]):
            at = _row_of(seen.items, start, stop, items[entry])
            found[entry] = at < stop and seen.items[at] == items[entry]


@kernel
def pick_batch(projection: Array, norms: Array, size: int, scores: Array, places: Array) -> None:
    """Write the places of the `size` largest projections to the front of `places`.

    `scores` and `places` have room for twice as many.
    """
    n = 0
    least = np.float32(-np.inf)
    full = False
    for j in range(len(projection)):
        if full and norms[j] < least:  # a projection is no longer than its item
            break
        if not full or projection[j] > least:
            scores[n] = projection[j]
            places[n] = j
            n += 1
            if n == 2 * size:
                select_best(scores, places, n, size)
                n = size
                least = scores[size - 1]
                full = True
    if n > size:
        select_best(scores, places, n, size)


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

    The key of an item is the largest product that it can have with a user, of length 1, whose
    angle to the centre has at least this cosine: its own length, turned by as much of its angle
    as is left. The items' places are written by falling bucket of the key: bucket b starts at
    ``starts[b]`` and has no key above ``tops[b]``.
    """
    n = _reach(norms, least)
    cosine32 = np.float32(cosine)
    sine32 = np.float32(math.sqrt(max(1.0 - cosine * cosine, 0.0)))
    zero = np.float32(0.0)
    for j in range(n):
        across = norms[j] * norms[j] - projection[j] * projection[j]
        across = across if across > zero else zero
        turned = projection[j] * cosine32 + np.sqrt(across) * sine32
        keys[j] = norms[j] if projection[j] >= norms[j] * cosine32 else turned
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


@kernel
def extend_list(
    i: int,
    n: int,
    limit: float,
    task: Task,
    user: int,
    scale: float,
    user_factors: Array,
    item_factors: Array,
    lists: Lists,
    found: Array,
    exact: Array,
) -> float:
    """Put the first `n` found items into list `i`; return what a product must now exceed."""
    _score_exactly(user, user_factors, item_factors, found, n, exact)
    k = task.k
    scores = lists.scores[i]
    items = lists.items[i]
    size = lists.size[i]
    # Not at every step: to select costs more than to look at what a higher limit would keep away.
    enough = k if limit == -np.inf else k + k // 8 + 4
    for e in range(n):
        scores[size] = exact[e]
        items[size] = found[e]
        size += 1
        if size == len(scores) or (e == n - 1 and size >= enough):
            lists.size[i] = size
            _cut(i, k, lists)
            size = lists.size[i]
            limit = scores[k - 1] / scale - 3.0 * task.error
    lists.size[i] = size
    return limit


@kernel
def _cut(i: int, k: int, lists: Lists) -> None:
    """Keep the `k` best of list `i`, and the best score of the others."""
    scores = lists.scores[i]
    size = lists.size[i]
    select_best(scores, lists.items[i], size, k)
    for j in range(k, size):
        lists.dropped[i] = max(lists.dropped[i], scores[j])
    lists.size[i] = min(size, k)


@kernel
def start_list(
    i: int,
    line: Array,
    items: Array,
    task: Task,
    user: int,
    scale: float,
    user_factors: Array,
    item_factors: Array,
    lists: Lists,
    maxima: Array,
    found: Array,
    exact: Array,
) -> float:
    """Make list `i` from a first batch of items; return as `extend_list`.

    The k-th largest of the maxima of disjoint parts of the batch is at most the k-th largest
    product, and found without sorting the batch.
    """
    n = len(items)
    width = task.maxima
    bound = np.float32(-np.inf)
    if n >= width >= task.k:
        for g in range(width):
            maxima[g] = line[g]
        for base in range(width, n - width + 1, width):
            part = line[base : base + width]
            for g in range(width):
                maxima[g] = part[g] if part[g] > maxima[g] else maxima[g]
        bound = np.float32(_bound_of_best(maxima, task.k) - 3.0 * task.error)
    n_found = 0
    for lane in range(0, n, _LANE):
        part = line[lane : min(lane + _LANE, n)]
        passing = 0
        for j in range(len(part)):
            passing += part[j] >= bound
        if passing == 0:
            continue
        for j in range(len(part)):
            if part[j] >= bound and part[j] > -np.inf:
                found[n_found] = items[lane + j]
                n_found += 1
    return extend_list(
        i, n_found, -np.inf, task, user, scale, user_factors, item_factors, lists, found, exact
    )


@inlined
def _limit_of_ranks(place: int, alive: int, task: Task, scale: float, held: HeldOut) -> float:
    """Return what a product must exceed: nearly the lowest held-out score that is alive."""
    held.alive[place] = alive
    if alive == 0:
        return np.inf
    limit: float = held.scores[held.indptr[place] + alive - 1] / scale - 3.0 * task.error
    return limit


@kernel
def start_ranks(
    place: int,
    line: Array,
    items: Array,
    task: Task,
    user: int,
    scale: float,
    user_factors: Array,
    item_factors: Array,
    held: HeldOut,
    found: Array,
    exact: Array,
) -> float:
    """Count the items of a first batch above each held-out one; return as `extend_ranks`."""
    start = held.indptr[place]
    n_held = held.indptr[place + 1] - start
    alive = n_held
    for h in range(start, start + n_held):
        score = held.scores[h] / scale
        high = np.float32(score + 2.0 * task.error)
        low = np.float32(score - 2.0 * task.error)
        above = 0
        n_found = 0
        for lane in range(0, len(line), _LANE):
            part = line[lane : min(lane + _LANE, len(line))]
            higher = 0
            near = 0
            for j in range(len(part)):
                higher += part[j] > high
                near += part[j] >= low
            above += higher
            if near > higher:
                for j in range(len(part)):
                    if low <= part[j] <= high and items[lane + j] != held.items[h]:
                        found[n_found] = items[lane + j]
                        n_found += 1
        if n_found > 0:
            _score_exactly(user, user_factors, item_factors, found, n_found, exact)
            for e in range(n_found):
                above += _is_better(exact[e], found[e], held.scores[h], held.items[h])
                held.tied[h] += exact[e] == held.scores[h]
        held.above[h] = above
        if above >= task.k:  # and so for all that are worse
            alive = h - start
            break
    return _limit_of_ranks(place, alive, task, scale, held)


@kernel
def extend_ranks(
    place: int,
    n: int,
    products: Array,
    task: Task,
    user: int,
    scale: float,
    user_factors: Array,
    item_factors: Array,
    held: HeldOut,
    found: Array,
    exact: Array,
) -> float:
    """Count the first `n` found items; return what a product must now exceed."""
    start = held.indptr[place]
    alive = held.alive[place]
    for e in range(n):
        scored = False
        for h in range(start + alive - 1, start - 1, -1):
            score = held.scores[h] / scale
            if products[e] > score + 2.0 * task.error:
                held.above[h] += 1
            elif products[e] < score - 2.0 * task.error:
                break
            elif found[e] != held.items[h]:
                if not scored:
                    _score_exactly(user, user_factors, item_factors, found[e : e + 1], 1, exact)
                    scored = True
                held.above[h] += _is_better(exact[0], found[e], held.scores[h], held.items[h])
                held.tied[h] += exact[0] == held.scores[h]
    while alive > 0 and held.above[start + alive - 1] >= task.k:
        alive -= 1
    return _limit_of_ranks(place, alive, task, scale, held)


@inlined
def _find_passing(
    line: Array, bound: float, items: Array, seen: Seen, user: int, found: Array, products: Array
) -> int:
    """Write the unseen items whose product exceeds `bound`, and the products; return how many."""
    n = 0
    mine = seen.items[seen.indptr[user] : seen.indptr[user + 1]]
    for lane in range(0, len(line), _LANE):
        # A slice, so that its indices start at 0: where numba cannot tell that an index is not
        # negative, a loop over it is not vectorized. The comparison then takes a tenth of the time.
        part = line[lane : min(lane + _LANE, len(line))]
        passing = 0
        for j in range(len(part)):
            passing += part[j] > bound
        if passing == 0:
            continue
        for j in range(len(part)):
            if part[j] > bound:
                item = items[lane + j]
                if not _holds(mine, item):
                    found[n] = item
                    products[n] = part[j]
                    n += 1
    return n


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

    ``limits[i]`` becomes what a product of user i must exceed, infinity for a user who is done.
    The others need about as many items as have norms above that, see `search_by_norm`.
    ``counts[0]`` is raised by the products computed.
    """
    n_items, width = catalogue.unit.shape
    most = 0
    for group in range(first, last):
        most = max(most, groups.start[group + 1] - groups.start[group])
    batch = min(task.batch, n_items)
    block = max(batch, task.chunk)
    capacity = 1 if task.ranks else task.k + max(task.k // 2, 64)
    lists = Lists(
        np.empty((most, capacity), np.int32),
        np.empty((most, capacity)),
        np.empty(most, np.int64),
        np.empty(most),
    )
    done = np.empty(most, np.bool_)
    reaches = np.empty(most, np.int64)
    chosen = np.empty(most, np.int64)
    cosines = np.empty(most, np.float32)
    needs = np.empty(task.tile, np.int64)
    active = np.empty(task.tile, np.int64)
    rows = np.empty((task.tile, width), np.float32)
    products = np.empty(max(most * batch, task.tile * task.chunk), np.float32)
    gathered = np.empty((block, width), np.float32)
    items = np.empty(block, np.int32)
    batch_places = np.empty(batch, np.int32)
    in_batch = np.zeros(n_items, np.uint8)
    slot = np.full(len(catalogue.factors), -1, np.int32)
    keys = np.empty(max(n_items, 2 * batch), np.float32)
    places = np.empty(max(n_items, 2 * batch), np.int32)
    starts = np.empty(_BUCKETS + 1, np.int64)
    tops = np.empty(_BUCKETS, np.float32)
    maxima = np.empty(task.maxima, np.float32)
    found = np.empty(block, np.int32)
    passed = np.empty(block, np.float32)
    exact = np.empty(block + 7)
    n_sample = min(n_items, _SAMPLE)
    sample_norm = np.empty(n_sample, np.float32)
    sample_along = np.empty(n_sample, np.float32)
    sample_across = np.empty(n_sample, np.float32)
    zero = np.float32(0.0)
    # Rounding of a key, and of what it is compared with.
    slack = np.float32(6.0 * task.error)
    for group in range(first, last):
        start = groups.start[group]
        n = groups.start[group + 1] - start
        projection = groups.projections[groups.centre[group]]

        # The items that are most likely in the lists of all: who has the first k of them knows
        # what an item must reach.
        pick_batch(projection, catalogue.norms, batch, keys, places)
        for j in range(batch):
            place = places[j]
            batch_places[j] = place
            items[j] = catalogue.item_of[place]
            in_batch[place] = 1
            slot[items[j]] = j
            for f in range(width):
                gathered[j, f] = catalogue.unit[place, f]
        block_products = products[: n * batch].reshape(n, batch)
        np.dot(users.unit[start : start + n], gathered[:batch].T, block_products)
        counts[0] += n * batch
        for i in range(n):
            user = users.row[start + i]
            line = block_products[i]
            for entry in range(seen.indptr[user], seen.indptr[user + 1]):
                j = slot[seen.items[entry]]
                if j >= 0:
                    line[j] = -np.inf
            if task.ranks:
                limits[start + i] = start_ranks(
                    users.place[start + i], line, items[:batch], task, user,
                    users.scale[start + i], users.factors, catalogue.factors, held, found, exact,
                )  # fmt: skip
            else:
                lists.size[i] = 0
                lists.dropped[i] = -np.inf
                limits[start + i] = start_list(
                    i, line, items[:batch], task, user, users.scale[start + i], users.factors,
                    catalogue.factors, lists, maxima, found, exact,
                )  # fmt: skip
        for j in range(batch):
            slot[items[j]] = -1

        # Who needs far fewer items by their keys than by their norms? A sample of items tells.
        for j in range(n_sample):
            place = j * n_items // n_sample
            norm = catalogue.norms[place]
            across = norm * norm - projection[place] * projection[place]
            sample_norm[j] = norm
            sample_along[j] = projection[place]
            sample_across[j] = np.sqrt(across if across > zero else zero)
        n_chosen = 0
        for i in range(n):
            limit = limits[start + i] - slack
            done[i] = limit == np.inf
            if done[i]:
                continue
            cosine = users.cosine[start + i]
            across = np.float32(1.0) - cosine * cosine
            sine = np.sqrt(across if across > zero else zero)
            need = 0
            for j in range(n_sample):
                turned = sample_along[j] * cosine + sample_across[j] * sine
                key = sample_norm[j] if sample_along[j] >= sample_norm[j] * cosine else turned
                need += key >= limit
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
            cosine = 1.0
            for a in range(n_active):
                i = chosen[tile + a]
                least = min(least, float(limits[start + i]))
                cosine = min(cosine, float(users.cosine[start + i]))
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
                b = int((tops[0] - (limits[start + i] - slack)) * per_bucket)
                needs[a] = starts[min(max(b, 0), _BUCKETS - 1) + 1]
                cost += reaches[i]
            by_need = np.argsort(needs[:n_active])
            cheapest = cost
            n_kept = 0
            for a in range(n_active):
                need = needs[by_need[a]]
                cost += need - reaches[chosen[tile + by_need[a]]]
                if cost + _GATHERED * need <= cheapest:
                    cheapest = cost + _GATHERED * need
                    n_kept = a + 1
            for a in range(n_kept):
                active[a] = chosen[tile + by_need[a]]
                done[active[a]] = True
            n_active = n_kept
            n_rows = 0
            bucket = 0
            for begin in range(0, total, task.chunk):
                while starts[bucket + 1] <= begin:
                    bucket += 1
                kept = 0
                for a in range(n_active):
                    if tops[bucket] + slack >= limits[start + active[a]]:
                        active[kept] = active[a]
                        kept += 1
                n_active = kept
                if n_active == 0:
                    break
                if n_rows != n_active:
                    n_rows = n_active
                    for a in range(n_rows):
                        at = start + active[a]
                        for f in range(width):
                            rows[a, f] = users.unit[at, f]
                size = min(task.chunk, total - begin)
                for j in range(size):
                    place = places[begin + j]
                    items[j] = catalogue.item_of[place]
                    for f in range(width):
                        gathered[j, f] = catalogue.unit[place, f]
                block_products = products[: n_rows * size].reshape(n_rows, size)
                np.dot(rows[:n_rows], gathered[:size].T, block_products)
                counts[0] += n_rows * size
                for a in range(n_rows):
                    i = active[a]
                    user = users.row[start + i]
                    n_found = _find_passing(
                        block_products[a], limits[start + i], items, seen, user, found, passed
                    )
                    if n_found == 0:
                        continue
                    if task.ranks:
                        limits[start + i] = extend_ranks(
                            users.place[start + i], n_found, passed, task, user,
                            users.scale[start + i], users.factors, catalogue.factors, held, found,
                            exact,
                        )  # fmt: skip
                    else:
                        limits[start + i] = extend_list(
                            i, n_found, limits[start + i], task, user, users.scale[start + i],
                            users.factors, catalogue.factors, lists, found, exact,
                        )  # fmt: skip
        for j in range(batch):
            in_batch[batch_places[j]] = 0
        for i in range(n):
            if done[i] and not task.ranks:
                _hand_over(i, users.place[start + i], task.k, lists, out)
            if done[i]:
                limits[start + i] = np.inf


@inlined
def _hand_over(i: int, place: int, k: int, lists: Lists, out: Lists) -> None:
    """Copy a list to the results, the best first."""
    if lists.size[i] > k:
        _cut(i, k, lists)
    size = lists.size[i]
    sort_best(lists.scores[i], lists.items[i], size)
    out.size[place] = size
    out.dropped[place] = lists.dropped[i]
    for j in range(size):
        out.items[place, j] = lists.items[i, j]
        out.scores[place, j] = lists.scores[i, j]


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
    n_items, width = catalogue.unit.shape
    n = last - first
    capacity = 1 if task.ranks else task.k + max(task.k // 2, 64)
    lists = Lists(
        np.empty((n, capacity), np.int32),
        np.empty((n, capacity)),
        np.empty(n, np.int64),
        np.empty(n),
    )
    active = np.empty(n, np.int64)
    rows = np.empty((n, width), np.float32)
    products = np.empty(n * task.chunk, np.float32)
    found = np.empty(task.chunk, np.int32)
    passed = np.empty(task.chunk, np.float32)
    exact = np.empty(task.chunk + 7)
    slack = np.float32(6.0 * task.error)
    for i in range(n):
        active[i] = i
        place = users.place[chosen[first + i]]
        if task.ranks:  # what is still alive is counted from the start
            for h in range(held.indptr[place], held.indptr[place] + held.alive[place]):
                held.above[h] = 0
                held.tied[h] = 0
        else:  # and what is in a list already will be found again
            lists.size[i] = 0
            lists.dropped[i] = -np.inf
    n_active = n
    n_rows = 0
    for begin in range(0, n_items, task.chunk):
        kept = 0
        for a in range(n_active):
            if catalogue.norms[begin] + slack >= limits[chosen[first + active[a]]]:
                active[kept] = active[a]
                kept += 1
        n_active = kept
        if n_active == 0:
            break
        if n_rows != n_active:
            n_rows = n_active
            for a in range(n_rows):
                at = chosen[first + active[a]]
                for f in range(width):
                    rows[a, f] = users.unit[at, f]
        size = min(task.chunk, n_items - begin)
        items = catalogue.item_of[begin : begin + size]
        block_products = products[: n_rows * size].reshape(n_rows, size)
        np.dot(rows[:n_rows], catalogue.unit[begin : begin + size].T, block_products)
        counts[0] += n_rows * size
        for a in range(n_rows):
            i = active[a]
            at = chosen[first + i]
            user = users.row[at]
            n_found = _find_passing(block_products[a], limits[at], items, seen, user, found, passed)
            if n_found == 0:
                continue
            if task.ranks:
                limits[at] = extend_ranks(
                    users.place[at], n_found, passed, task, user, users.scale[at], users.factors,
                    catalogue.factors, held, found, exact,
                )  # fmt: skip
                continue
            limits[at] = extend_list(
                i, n_found, limits[at], task, user, users.scale[at], users.factors,
                catalogue.factors, lists, found, exact,
            )  # fmt: skip
    if not task.ranks:
        for i in range(n):
            _hand_over(i, users.place[chosen[first + i]], task.k, lists, out)


@kernel
def count_above(
    first: int,
    last: int,
    users: Users,
    catalogue: Catalogue,
    seen: Seen,
    candidate: Array,
    task: Task,
    held: HeldOut,
    counts: Array,
) -> None:
    """Count all unseen candidates above every held-out item of some users, and those of its score.

    The users are in the order of their lowest held-out score, so that those of a block are done
    after about as many items. Seen items are counted first and taken off last: they are few.
    """
    n_items, width = catalogue.unit.shape
    n = last - first
    rows = np.empty((n, width), np.float32)
    active = np.empty(n, np.int64)
    limits = np.empty(n)
    most = task.chunk
    for i in range(n):
        row = users.row[first + i]
        most = max(most, seen.indptr[row + 1] - seen.indptr[row])
    products = np.empty(n * task.chunk, np.float32)
    found = np.empty(most, np.int32)
    exact = np.empty(most + 7)
    slack = 6.0 * task.error
    for i in range(n):
        active[i] = i
        place = users.place[first + i]
        lowest = held.scores[held.indptr[place + 1] - 1]
        limits[i] = lowest / users.scale[first + i] - 3.0 * task.error
    n_active = n
    n_rows = 0
    for begin in range(0, n_items, task.chunk):
        kept = 0
        for a in range(n_active):
            if catalogue.norms[begin] + slack >= limits[active[a]]:
                active[kept] = active[a]
                kept += 1
        n_active = kept
        if n_active == 0:
            break
        if n_rows != n_active:
            n_rows = n_active
            for a in range(n_rows):
                at = first + active[a]
                for f in range(width):
                    rows[a, f] = users.unit[at, f]
        size = min(task.chunk, n_items - begin)
        items = catalogue.item_of[begin : begin + size]
        block_products = products[: n_rows * size].reshape(n_rows, size)
        np.dot(rows[:n_rows], catalogue.unit[begin : begin + size].T, block_products)
        counts[0] += n_rows * size
        for a in range(n_rows):
            at = first + active[a]
            place = users.place[at]
            line = block_products[a]
            for h in range(held.indptr[place], held.indptr[place + 1]):
                score = held.scores[h] / users.scale[at]
                high = np.float32(score + 2.0 * task.error)
                low = np.float32(score - 2.0 * task.error)
                above = 0
                near = 0
                for j in range(size):
                    above += line[j] > high
                    near += line[j] >= low
                if near > above:
                    n_found = 0
                    for j in range(size):
                        if line[j] >= low and line[j] <= high and items[j] != held.items[h]:
                            found[n_found] = items[j]
                            n_found += 1
                    _score_exactly(
                        users.row[at], users.factors, catalogue.factors, found, n_found, exact
                    )
                    for e in range(n_found):
                        above += _is_better(exact[e], found[e], held.scores[h], held.items[h])
                        held.tied[h] += exact[e] == held.scores[h]
                held.above[h] += above
    for i in range(n):
        row = users.row[first + i]
        place = users.place[first + i]
        n_found = 0
        for entry in range(seen.indptr[row], seen.indptr[row + 1]):
            if candidate[seen.items[entry]]:
                found[n_found] = seen.items[entry]
                n_found += 1
        _score_exactly(row, users.factors, catalogue.factors, found, n_found, exact)
        for h in range(held.indptr[place], held.indptr[place + 1]):
            for e in range(n_found):
                held.above[h] -= _is_better(exact[e], found[e], held.scores[h], held.items[h])
                held.tied[h] -= exact[e] == held.scores[h]


@kernel
def list_plainly(
    first: int,
    last: int,
    chosen: Array,
    rows: Array,
    cold: bool,
    user_factors: Array,
    item_factors: Array,
    candidates: Array,
    seen: Seen,
    k: int,
    out: Lists,
) -> None:
    """Make the lists of users whose scores are all 0 (`cold`) or too small to be selected from.

    `chosen` are rows of the results; `candidates` ascend.
    """
    n = len(candidates)
    unseen = np.empty(n, np.int32)
    exact = np.zeros(n + 7)
    for c in range(first, last):
        place = chosen[c]
        row = rows[place]
        entry = seen.indptr[row]
        stop = seen.indptr[row + 1]
        size = 0
        for j in range(n):
            while entry < stop and seen.items[entry] < candidates[j]:
                entry += 1
            if entry == stop or seen.items[entry] != candidates[j]:
                unseen[size] = candidates[j]
                size += 1
                if cold and size > k:  # the lower ids come first
                    break
        out.dropped[place] = -np.inf
        if cold:
            if size > k:
                out.dropped[place] = 0.0
        else:
            _score_exactly(row, user_factors, item_factors, unseen, size, exact)
            sort_best(exact, unseen, size)
            if size > k:
                out.dropped[place] = exact[k]
        out.size[place] = min(size, k)
        for j in range(min(size, k)):
            out.items[place, j] = unseen[j]
            out.scores[place, j] = 0.0 if cold else exact[j]


@kernel
def rank_plainly(
    first: int,
    last: int,
    chosen: Array,
    rows: Array,
    cold: bool,
    user_factors: Array,
    item_factors: Array,
    candidates: Array,
    seen: Seen,
    held: HeldOut,
) -> None:
    """Count what is above each held-out item, for users as in `list_plainly`."""
    n = len(candidates)
    unseen = np.empty(n, np.int32)
    exact = np.zeros(n + 7)
    for c in range(first, last):
        place = chosen[c]
        row = rows[place]
        entry = seen.indptr[row]
        stop = seen.indptr[row + 1]
        size = 0
        for j in range(n):
            while entry < stop and seen.items[entry] < candidates[j]:
                entry += 1
            if entry == stop or seen.items[entry] != candidates[j]:
                unseen[size] = candidates[j]
                size += 1
        if not cold:
            _score_exactly(row, user_factors, item_factors, unseen, size, exact)
        held.alive[place] = held.indptr[place + 1] - held.indptr[place]
        for h in range(held.indptr[place], held.indptr[place + 1]):
            if cold:
                held.above[h] = _row_of(unseen, 0, size, held.items[h])
                held.tied[h] = size - 1
                continue
            for e in range(size):
                if unseen[e] != held.items[h]:
                    held.above[h] += _is_better(exact[e], unseen[e], held.scores[h], held.items[h])
                    held.tied[h] += exact[e] == held.scores[h]
