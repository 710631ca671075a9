"""Metrics of lists that should contain relevant items from each of several groups.

The intents of a user are the groups of the user's relevant items. All intents count equally, as in
TREC's ndeval.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core import elementary
from ..core.csr import indptr_from_counts
from ..kernels.intents import order_by_new_groups, sum_by_groups, sum_precision_by_groups
from ..kernels.structures import Rows
from .conventions import STANDARD
from .measure import discount_tables
from .registry import Number, metric

if TYPE_CHECKING:
    from ..core.types import Floats
    from .aligned import Lists, RandomLists

ALPHA = Number(
    "alpha", "0.5", 0, 1, "an item is worth 1 − alpha as much for each one of its group above it"
)

CLARKE = "Clarke, Kolla, Cormack et al., 2008, SIGIR, doi:10.1145/1390334.1390446"
CLARKE_2011 = "Clarke, Craswell, Soboroff and Ashkan, 2011, WSDM, doi:10.1145/1935826.1935847"
AGRAWAL = "Agrawal, Gollapudi, Halverson and Ieong, 2009, WSDM, doi:10.1145/1498759.1498766"

#: The logarithm of a number below all positive floats.
_SMALLEST = -746.0


def _members(lists: Lists) -> tuple[Rows, int]:
    """Return the groups of each item, and the number of groups."""
    members = lists.group_members
    parts = (members.indptr.astype(np.int64), members.indices.astype(np.int64))
    return Rows(*parts), members.shape[1]


def _over(above: Floats, below: Floats) -> Floats:
    """Divide; 0 for a user without relevant items."""
    return np.divide(above, below, out=np.zeros(len(above)), where=below > 0)


def _discounted(lists: Lists, alpha: float, discounts: Floats) -> Floats:
    """Return the discounted sum of the gains of each list."""
    groups, n_groups = _members(lists)
    rows, worth = Rows(lists.indptr, lists.items), np.ones(n_groups)
    out = np.empty(len(lists.users))
    sum_by_groups(rows, lists.gains > 0, groups, 1 - alpha, discounts, worth, out)
    return out


def _relevant(lists: Lists) -> Rows:
    """Return the items that are relevant to each user, ascending."""
    indptr, items, gains = lists.relevant
    kept = np.flatnonzero(gains > 0)
    return Rows(np.searchsorted(kept, indptr), items[kept])


def _ideal(lists: Lists, alpha: float, discounts: Floats) -> Floats:
    """Return the same sum for a list that takes the item that adds the most at every rank."""
    groups, n_groups = _members(lists)
    relevant, worth = _relevant(lists), np.ones(n_groups)
    bounds = indptr_from_counts(np.minimum(np.diff(relevant.indptr), lists.k))
    best = Rows(bounds, np.empty(bounds[-1], relevant.items.dtype))
    taken = np.zeros(len(relevant.items), bool)
    order_by_new_groups(relevant, groups, 1 - alpha, taken, worth, best)
    out = np.empty(len(lists.users))
    everything = np.ones(len(best.items), bool)
    sum_by_groups(best, everything, groups, 1 - alpha, discounts, worth, out)
    return out


def _deepest(lists: Lists) -> int:
    """Return the last rank of any list or ideal list."""
    most = np.diff(lists.relevant[0]).max(initial=1)
    return min(lists.k, int(max(lists.lengths.max(initial=1), most)))


@metric(
    "alpha_ndcg",
    over="lists",
    options=(ALPHA,),
    needs=("item_groups",),
    cutoff="required",
    upper=np.inf,  # the ideal list is built greedily and may not be the best
    source=CLARKE,
)
def alpha_ndcg(lists: Lists, alpha: float) -> Floats:
    """ndcg that counts each item group of a relevant item less the more often it has come

    Σ h(r)·Σ (1 − alpha)^(hits of the group above) / log2(r + 1) / the ideal list's

    Ndcg that rewards variety: another item of a kind that is already in the list counts less.
    """
    discounts = discount_tables(STANDARD, _deepest(lists))[0]
    return _over(_discounted(lists, alpha, discounts), _ideal(lists, alpha, discounts))


@metric(
    "err_ia",
    over="lists",
    options=(ALPHA,),
    needs=("item_groups",),
    cutoff="required",
    source=CLARKE_2011,
)
def err_ia(lists: Lists, alpha: float) -> Floats:
    """intent-aware expected reciprocal rank, relative to items of all groups at every rank

    Σ (1/r)·h(r)·Σ (1 − alpha)^(hits of the group above) / (intents·Σ (1 − alpha)^(r − 1)/r)

    How soon the list shows every kind of item that may be of interest.
    """
    # Ranks so far down that the power underflows count nothing, for any cut-off.
    last = int(np.ceil(_SMALLEST / elementary.log1p(-alpha))) + 1
    ranks = np.arange(1, min(lists.k, last) + 1)
    discounts = np.concatenate(([0.0], 1 / np.arange(1, _deepest(lists) + 1)))
    with np.errstate(under="ignore"):
        largest = (elementary.power(1 - alpha, ranks - 1) / ranks).sum()
    n_intents = np.diff((lists.picked(*_relevant(lists)) @ lists.group_members).indptr)
    return _over(_discounted(lists, alpha, discounts), n_intents * largest)


def _expected_map_ia(random: RandomLists) -> Floats:
    lists = random.lists
    indptr, items = _relevant(lists)
    rows = np.repeat(np.arange(len(lists.users)), np.diff(indptr))
    reached = np.flatnonzero(lists.eligible.contain(rows, items))
    of_all = (lists.picked(indptr, items) @ lists.group_members).tocsr()
    reachable = lists.picked(np.searchsorted(reached, indptr), items[reached])
    of_reachable = (reachable @ lists.group_members).tocsr()
    n, depths = random.n_unseen, np.minimum(random.depths, random.n_unseen)
    harmonic = np.concatenate(([0.0], np.cumsum(1 / np.arange(1, depths.max(initial=0) + 1))))
    first = harmonic[depths]
    # With e items in a group, rank r holds one with probability e / n. It then has
    # (r − 1)(e − 1)/(n − 1) items of the group above it.
    users = np.repeat(np.arange(len(n)), np.diff(of_reachable.indptr))
    e = of_reachable.data
    above = (e - 1) / np.maximum(n - 1, 1)[users]
    sums = e / np.maximum(n, 1)[users] * (first[users] + above * (depths - first)[users])
    sizes = np.asarray(of_all[users, of_reachable.indices]).ravel() if len(users) else e
    n_intents = np.maximum(np.diff(of_all.indptr), 1)
    values: Floats = np.bincount(users, sums / sizes, len(n)) / n_intents
    return values


@metric("map_ia", over="lists", needs=("item_groups",), expected=_expected_map_ia, source=AGRAWAL)
def map_ia(lists: Lists) -> Floats:
    """intent-aware average precision, over the groups of the user's relevant items

    mean over groups of map of the relevant items of the group

    The average of map over the kinds of items that the user is interested in.
    """
    groups, n_groups = _members(lists)
    rows, hits = Rows(lists.indptr, lists.items), lists.gains > 0
    out = np.empty(len(lists.users))
    sizes, found = np.zeros((2, n_groups), np.int64)
    sum_precision_by_groups(rows, hits, _relevant(lists), groups, sizes, found, out)
    return out
