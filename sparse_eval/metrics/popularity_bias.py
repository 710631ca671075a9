"""The metrics of how popular the recommended items are, and how equally they are shown.

Metrics of all users together add up integers over users, and `Formula.combine` computes the
value from these sums. So the value does not depend on how users are divided into blocks.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from ..core import elementary
from ..errors import InvalidDataError
from .conventions import discount
from .registry import Choice, Number, metric

if TYPE_CHECKING:
    from ..core.types import Booleans, Floats, Integers, Items
    from ..inputs.training import Training
    from .aligned import Lists

ABDOLLAHPOURI = "Abdollahpouri, Burke and Mobasher, 2019, FLAIRS, arXiv:1901.07555"
ZHU = "Zhu, Wang and Caverlee, 2020, SIGIR, doi:10.1145/3397271.3401177"
DIAZ = "Diaz, Mitra, Ekstrand et al., 2020, CIKM, doi:10.1145/3340531.3411962"

#: The share of the interactions, in tenths, that belong to the most popular items, before the tail.
_HEAD = 8

TAIL = Number(
    "tail",
    "interactions",
    0,
    math.inf,
    "which items are the long tail: those behind the most popular ones that have 80 % of the "
    "interactions, as Elliot has it, and WarpRec but for the first item behind a head of just "
    "80 %; as RecBole has it, up to 1, this share of the items in train, the least popular (at "
    "least one), and above 1, items in train with at most so many users",
)

#: Weights of positions are integer multiples of 2^-60, stored as two numbers of 30 bits.
_BITS = 30


def long_tail(training: Training, tail: float | str) -> Booleans:
    """Return whether each item is in the long tail."""
    counts = training.item_counts
    if isinstance(tail, str):
        order = training.by_popularity
        before = np.cumsum(counts[order]) - counts[order]
        is_tail = np.zeros(len(counts), bool)
        is_tail[order[10 * before >= _HEAD * counts.sum()]] = True
        return is_tail
    if tail > 1:
        return (counts > 0) & (counts <= tail)
    known = np.flatnonzero(counts)
    rarest = known[np.argsort(counts[known], kind="stable")]
    is_tail = np.zeros(len(counts), bool)
    is_tail[rarest[: max(int(len(known) * tail), 1)]] = True
    return is_tail


@metric(
    "aplt",
    over="lists",
    options=(TAIL,),
    needs=("train",),
    expected=lambda random, tail: random.mean_of(
        long_tail(random.lists.train, tail).astype(np.float64)
    ),
    source=ABDOLLAHPOURI,
)
def aplt(lists: Lists, tail: float | str) -> Floats:
    """share of the list that is in the long tail

    listed items of the long tail / list length

    The share of the list that consists of little-known items, the long tail.
    """
    return lists.mean_of(long_tail(lists.train, tail).astype(np.float64))


@metric(
    "aclt",
    over="lists",
    options=(TAIL,),
    needs=("train",),
    upper=np.inf,
    expected=lambda random, tail: (
        random.share * random.sum_unseen(long_tail(random.lists.train, tail).astype(np.float64))
    ),
    source=ABDOLLAHPOURI,
)
def aclt(lists: Lists, tail: float | str) -> Floats:
    """number of listed items that are in the long tail

    listed items of the long tail

    How many items of the list are little-known, in the long tail.
    """
    in_tail = long_tail(lists.train, tail)[lists.items]
    return np.bincount(lists.rows, in_tail, len(lists.users)).astype(np.float64)


def variation(sums: Integers, **_: object) -> float:
    """Return std / mean of the groups' ratios; NaN if one has no ratio, or all are 0."""
    above, below = sums.astype(np.float64)
    if len(below) < 2 or not below.all() or not above.any():
        return math.nan
    ratios = above / below
    return float(ratios.std() / ratios.mean())


#: A metric of groups of items that should all have equal chances.
of_groups = partial(
    metric, over="lists", per_user=False, higher_is_better=False, combine=variation, source=ZHU
)


def _beyond(lists: Lists, entries: Booleans | slice) -> Items:
    """Return those listed items that could not be recommended to their users."""
    items = lists.items[entries]
    return items[~lists.eligible.contain(lists.rows[entries], items)]


def _hits_of_groups(lists: Lists, codes: Integers) -> Integers:
    """Count for each group the hits, and the relevant items that a list can hold or does hold."""
    n_groups = int(codes.max(initial=-1)) + 1
    is_hit = lists.gains > 0
    hits = np.bincount(codes[lists.items[is_hit]], minlength=n_groups)
    indptr, items, gains = lists.relevant
    owners = np.repeat(np.arange(len(lists.users)), np.diff(indptr))[gains > 0]
    items = items[gains > 0]
    relevant = np.append(items[lists.eligible.contain(owners, items)], _beyond(lists, is_hit))
    return np.stack((hits, np.bincount(codes[relevant], minlength=n_groups)))


def _given_groups(lists: Lists) -> Integers:
    """Return the group of each item, numbered from 0 on."""
    codes: Integers = lists.groups.indices[lists.groups.data > 0].astype(np.int64)
    if len(codes) != lists.n_items:  # each item has at least one
        raise InvalidDataError(
            "groups= of se.ItemData puts an item into several groups; reo and rsp are of items "
            "with one group each",
            argument="groups",
        )
    return codes


@of_groups("reo", needs=("item_groups",), upper=np.inf)
def reo(lists: Lists) -> Integers:
    """how unequal the groups' chances are to be recommended where they are relevant

    std / mean over groups of items of hits / relevant unseen items

    How unequally kinds of items are recommended to the users who are interested in them; 0 if
    equally.
    """
    return _hits_of_groups(lists, _given_groups(lists))


def _shown_of_groups(lists: Lists, codes: Integers) -> Integers:
    """Count for each group the listed items, and the items that a list can hold or does hold."""
    n_groups = int(codes.max(initial=-1)) + 1
    shown = np.bincount(codes[lists.items], minlength=n_groups)
    everyone = np.ones(len(lists.users))
    eligible = np.rint(lists.eligible.sum_over_users(everyone)).astype(np.int64)
    counts = np.bincount(codes[_beyond(lists, slice(None))], minlength=n_groups)
    np.add.at(counts, codes, eligible)
    return np.stack((shown, counts))


@of_groups("rsp", needs=("item_groups",), upper=np.inf)
def rsp(lists: Lists) -> Integers:
    """how unequal the groups' chances are to be recommended

    std / mean over groups of items of listed / unseen items

    How unequally kinds of items are recommended; 0 if each gets its share.
    """
    return _shown_of_groups(lists, _given_groups(lists))


@of_groups("pop_reo", options=(TAIL,), needs=("train",))
def pop_reo(lists: Lists, tail: float | str) -> Integers:
    """how unequal their chances are to be recommended where they are relevant

    reo of the long tail and the other items

    How unequally popular and little-known items are recommended to the users who are interested in
    them; 0 if equally.
    """
    return _hits_of_groups(lists, long_tail(lists.train, tail).astype(np.int64))


@of_groups("pop_rsp", options=(TAIL,), needs=("train",))
def pop_rsp(lists: Lists, tail: float | str) -> Integers:
    """how unequal their chances are to be recommended

    rsp of the long tail and the other items

    How unequally popular and little-known items are recommended; 0 if both get their share.
    """
    return _shown_of_groups(lists, long_tail(lists.train, tail).astype(np.int64))


def gini_of_exposure(sums: Integers, **_: object) -> float:
    """Return the Gini index; NaN without any list."""
    high, low = sums
    values = np.sort(high / 2.0**_BITS + low / 2.0 ** (2 * _BITS))
    n, total = len(values), math.fsum(values)
    if total == 0:
        return math.nan
    return math.fsum((2 * np.arange(1, n + 1) - n - 1) * values) / (n * total)


@metric(
    "exposure_gini",
    over="lists",
    options=(
        Choice("weights", ("geometric", "log"), "p^(r − 1), or 1 / log2(r + 1)"),
        Number("p", "0.85", 0, 1, "probability of going on to the next item"),
    ),
    per_user=False,
    higher_is_better=False,
    combine=gini_of_exposure,
    source=DIAZ,
)
def exposure(lists: Lists, weights: str, p: float) -> Integers:
    """inequality of how often, and how far up, the N items are recommended

    gini of Σ w(r) of each item, w(r) = p^(r − 1)

    How unequally attention is spread over the items, if the top of a list gets most of it: 0 if
    equally, near 1 if a few get all.
    """
    ranks = np.arange(1, int(lists.lengths.max(initial=0)) + 1)
    is_geometric = weights == "geometric"
    of_ranks = elementary.power(p, ranks - 1) if is_geometric else discount(ranks, 1)
    scale = 1 << _BITS
    high, low = np.zeros((2, len(ranks)), np.int64)
    for place, weight in enumerate(of_ranks.tolist()):
        high[place], low[place] = divmod(int(weight * scale * scale), scale)
    sums = np.zeros((2, lists.n_items), np.int64)
    for total, part in zip(sums, (high, low), strict=True):
        np.add.at(total, lists.items, part[lists.ranks - 1])
    return sums
