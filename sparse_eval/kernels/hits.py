"""Sums over the ranks and gains of each user's hits that the sweep does not compute.

In every kernel, `out` receives one value per user. In the kernels of measures that distinguish
unjudged items, hits are all judged items, and hits with gains above 1 are relevant. The last kernel
is about random lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .jit import allocating_kernel, kernel

if TYPE_CHECKING:
    from .jit import Array


class Hits(NamedTuple):
    """Every hit of a block of users, ordered by rank.

    `ranks` and `gains` of user u are at ``[indptr[u]:indptr[u + 1]]``.
    """

    indptr: Array
    ranks: Array
    gains: Array


class TiedHits(NamedTuple):
    """Every hit of a block of users that may be in the list.

    A hit has each rank from `ranks` to `last_ranks`, both included, with the same probability.
    """

    indptr: Array
    ranks: Array
    gains: Array
    last_ranks: Array


@kernel
def count_within(hits: Hits, limits: Array, out: Array) -> None:
    """Count the hits down to rank ``limits[user]``."""
    for user in range(len(out)):
        count = 0
        for entry in range(hits.indptr[user], hits.indptr[user + 1]):
            if hits.ranks[entry] > limits[user]:
                break
            count += 1
        out[user] = count


@kernel
def sum_ranks(hits: Hits, k: int, graded: bool, out: Array) -> None:
    """Write Σ r, or Σ g·r if `graded`, down to rank k."""
    for user in range(len(out)):
        total = 0.0
        for entry in range(hits.indptr[user], hits.indptr[user + 1]):
            if hits.ranks[entry] > k:
                break
            total += hits.ranks[entry] * hits.gains[entry] if graded else float(hits.ranks[entry])
        out[user] = total


@kernel
def sum_tied_ranks(hits: TiedHits, lengths: Array, graded: bool, out: Array) -> None:
    """Write the expected Σ r, or Σ g·r if `graded`, over the ranks down to ``lengths[user]``.

    Each hit has every rank from `ranks` to `last_ranks`, both included, with the same probability.
    """
    for user in range(len(out)):
        total = 0.0
        for entry in range(hits.indptr[user], hits.indptr[user + 1]):
            first = hits.ranks[entry]
            reached = min(hits.last_ranks[entry], lengths[user])
            if reached >= first:
                size = hits.last_ranks[entry] - first + 1
                mean = (reached - first + 1) * (first + reached) / (2.0 * size)
                total += mean * hits.gains[entry] if graded else mean
        out[user] = total


@allocating_kernel
def sum_geometric(hits: Hits, k: int, p: float, graded: bool, out: Array) -> None:
    """Write Σ p^(r − 1), or Σ g·p^(r − 1) if `graded`, down to rank k."""
    powers = np.empty(min(k, 1000))  # computing them one by one took most of the time
    for rank in range(1, len(powers) + 1):
        powers[rank - 1] = p ** (rank - 1)
    for user in range(len(out)):
        total = 0.0
        for entry in range(hits.indptr[user], hits.indptr[user + 1]):
            rank = hits.ranks[entry]
            if rank > k:
                break
            power = powers[rank - 1] if rank <= len(powers) else p ** (rank - 1)
            total += power * hits.gains[entry] if graded else power
        out[user] = total


@kernel
def interpolate(hits: Hits, k: int, needed: Array, out: Array) -> None:
    """Write the largest precision at the ranks down to k with at least ``needed[user]`` hits."""
    for user in range(len(out)):
        start = hits.indptr[user]
        count = 0
        for entry in range(start, hits.indptr[user + 1]):
            count += hits.ranks[entry] <= k
        largest = 0.0
        for n_hits in range(max(needed[user], 1), count + 1):
            largest = max(largest, n_hits / hits.ranks[start + n_hits - 1])
        out[user] = largest


@kernel
def sum_cascade(hits: Hits, k: int, chances: Array, out: Array) -> None:
    """Write Σ (1/r)·R·Π (1 − R of the hits before) for the chance R of each hit, down to rank k.

    This is the expected reciprocal rank: a reader stops at an item with probability R.

    References
    ----------
    O. Chapelle, D. Metzler, Y. Zhang and P. Grinspan (2009). Expected reciprocal rank for graded
    relevance. CIKM 2009. https://doi.org/10.1145/1645953.1646033
    """
    for user in range(len(out)):
        total = 0.0
        going_on = 1.0
        for entry in range(hits.indptr[user], hits.indptr[user + 1]):
            if hits.ranks[entry] > k:
                break
            stop = chances[entry]
            total += going_on * stop / hits.ranks[entry]
            going_on *= 1.0 - stop
        out[user] = total


@allocating_kernel
def count_pairs(hits: Hits, lengths: Array, concordant: Array, discordant: Array) -> None:
    """Count the pairs of the first `lengths` positions by whether the larger gain comes first.

    A position without a hit has gain 0, so only the numbers of misses before and after a hit are
    needed. The pairs of h hits are counted with a Fenwick tree over their gains, in O(h log h).
    """
    longest = 0
    for user in range(len(lengths)):
        longest = max(longest, hits.indptr[user + 1] - hits.indptr[user])
    tree = np.zeros(longest + 1, np.int64)
    for user in range(len(lengths)):
        start = hits.indptr[user]
        stop = start
        with_misses = 0
        against_misses = 0
        graded = False
        while stop < hits.indptr[user + 1] and hits.ranks[stop] <= lengths[user]:
            misses_before = hits.ranks[stop] - 1 - (stop - start)
            against_misses += misses_before
            with_misses -= misses_before  # the misses after it are added below
            graded = graded or hits.gains[stop] != hits.gains[start]
            stop += 1
        n = stop - start
        with_misses += n * (lengths[user] - n)
        falling = 0
        rising = 0
        if graded:
            distinct = np.unique(hits.gains[start:stop])
            size = len(distinct)
            tree[: size + 1] = 0
            for before in range(n):
                gain = hits.gains[start + before]
                # The numbers of earlier hits with at most this gain, and with less.
                leaf = np.searchsorted(distinct, gain) + 1
                at_most = 0
                node = leaf
                while node > 0:
                    at_most += tree[node]
                    node -= node & -node
                less = 0
                node = leaf - 1
                while node > 0:
                    less += tree[node]
                    node -= node & -node
                falling += before - at_most
                rising += less
                node = leaf
                while node <= size:
                    tree[node] += 1
                    node += node & -node
        concordant[user] = with_misses + falling
        discordant[user] = against_misses + rising


@kernel
def sum_preferences(hits: Hits, k: int, n_relevant: Array, n_judged: Array, out: Array) -> None:
    """Write Σ 1 − min(judged misses above, n) / min(judged misses, n) over the hits to rank k.

    References
    ----------
    C. Buckley and E. M. Voorhees (2004). Retrieval evaluation with incomplete information.
    SIGIR 2004. https://doi.org/10.1145/1008992.1009000
    """
    for user in range(len(out)):
        n = n_relevant[user]
        most = min(n_judged[user] - n, n)
        misses = 0
        total = 0.0
        for entry in range(hits.indptr[user], hits.indptr[user + 1]):
            if hits.ranks[entry] > k:
                break
            if hits.gains[entry] <= 1.0:
                misses += 1
            elif misses > 0:
                total += 1.0 - min(misses, n) / most
            else:
                total += 1.0
        out[user] = total


@kernel
def sum_inferred(hits: Hits, k: int, smoothing: float, out: Array) -> None:
    """Write the sum over the hits to rank k of the precisions inferred at their ranks.

    The inferred precision is 1/r + (judged above / r)·(hits above + ε) / (judged above + 2ε), where
    ε is `smoothing`.

    References
    ----------
    E. Yilmaz and J. A. Aslam (2006). Estimating average precision with incomplete and imperfect
    judgments. CIKM 2006. https://doi.org/10.1145/1183614.1183633
    """
    for user in range(len(out)):
        n_hits = 0
        total = 0.0
        start = hits.indptr[user]
        for entry in range(start, hits.indptr[user + 1]):
            rank = hits.ranks[entry]
            if rank > k:
                break
            if hits.gains[entry] > 1.0:
                judged = entry - start
                share = (n_hits + smoothing) / (judged + 2 * smoothing)
                total += 1.0 / rank + judged / rank * share
                n_hits += 1
        out[user] = total


@kernel
def first_hit_chances(
    n_hits: Array, n_candidates: Array, depths: Array, any_hit: Array, reciprocal: Array
) -> None:
    """Write the probability of a hit in the list, and the expected 1 / rank of the first hit.

    The list is the first `depths` of `n_candidates` items in random order, `n_hits` of which are
    hits. The reciprocal rank is 0 if there is no hit.
    """
    for row in range(len(n_hits)):
        none_yet = 1.0
        total = 0.0
        left = n_candidates[row]
        for rank in range(1, depths[row] + 1):
            here = none_yet * n_hits[row] / left
            total += here / rank
            none_yet *= (left - n_hits[row]) / left
            left -= 1
            if none_yet == 0.0:
                break
        any_hit[row] = 1.0 - none_yet
        reciprocal[row] = total
