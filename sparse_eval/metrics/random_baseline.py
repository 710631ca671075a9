"""The random baseline: the value of each metric if every user's list were drawn at random.

All orders of a user's eligible items are equally likely. These are the catalogue or the given
candidates, without the items that the user has seen; relevant items that were seen are in no list.
A list has k items or, without a cut-off, the length of the user's own list. The own list has no
other influence. The sums over users are exact, and the draws for a user depend only on the user. So
the baseline computed in blocks of users has the same bits as for all users at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from operator import add
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..core import elementary
from ..core.csr import indptr_from_counts
from ..core.exact_sums import Moments
from ..core.hashing import uniforms
from ..core.threads import BLOCK
from ..inputs.rankings import Rankings
from ..kernels.catalogue import draw_ranks
from ..kernels.hits import first_hit_chances
from ..kernels.statistics import AT, NAMES
from .aligned import RandomLists
from .conventions import MOST_SLOTS
from .measure import (
    MetricColumns,
    discount_tables,
    fill_ideal,
    measure,
    ratio_of,
    sum_largest,
    value_of_lists,
)
from .plan import View
from .user_statistics import FULL_LIST, Statistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..core.types import Floats, Hashes, Integers
    from ..inputs.eligible import Eligible
    from .aligned import Aligned
    from .plan import Plan


#: The number of random lists drawn for each user if the expectation is unknown.
DRAWS = 10

#: The largest total number of items to draw. Whole catalogues for every user may have more.
_MOST_ITEMS = 100_000_000


class Expectation(NamedTuple):
    """The mean of a metric under random rankings, and its standard error, 0 if it is exact."""

    mean: float
    error: float


UNKNOWN = Expectation(math.nan, math.nan)


class RandomSums(NamedTuple):
    """Sums of the results of random lists over users, which can be added up in any order.

    Attributes
    ----------
    values : tuple of Moments
        The sum of the expectations, or a sum for each draw.
    denominators : tuple of Moments
        The sums of denominators for a micro average; otherwise empty.
    """

    values: tuple[Moments, ...]
    denominators: tuple[Moments, ...] = ()

    def merge(self, other: RandomSums) -> RandomSums:
        """Return the sums over the users of both, who are different."""
        return RandomSums(*(tuple(map(add, *sums)) for sums in zip(self, other, strict=True)))

    def expectation(self, plan: Plan) -> Expectation:
        """Return the mean over the users, or the number that a plan computes from their sums."""
        if self.denominators and self.values[0].n:
            pairs = zip(self.values, self.denominators, strict=True)
            means = np.array([plan.number_of(ratio_of(above, below)) for above, below in pairs])
        else:
            means = np.array([moments.mean for moments in self.values])
        if len(means) == 1:
            return Expectation(float(means[0]), 0.0)
        error = float(means.std(ddof=1)) / math.sqrt(len(means))
        return Expectation(float(means.mean()), error)


#: For each plan, its sums, or the expectation itself if it is computed from all users at once. None
#: if it needs all users and only some of them are available.
RandomTotals: TypeAlias = "tuple[RandomSums | Expectation | None, ...]"


def random_totals(
    aligned: Aligned,
    plans: Sequence[Plan],
    users: Sequence[Integers],
    keys: Hashes | None,
    *,
    all_users: bool,
) -> RandomTotals:
    """Return the random baseline of each plan over the `users` that count for it.

    Parameters
    ----------
    users : sequence of ndarray of int64
        For each plan, the rows of the users that count.
    keys : ndarray of uint64, shape (n_users,), or None
        A hash of each user, the seed of the user's random lists. With None, no lists are drawn, and
        only expectations with a closed form are returned.
    all_users : bool
        Whether these are all users, and not only a block. For a block, metrics of all lists
        together, such as coverage, are left out.
    """
    totals: list[RandomSums | Expectation | None] = [None] * len(plans)
    rankings = aligned.rankings  # of which only the lengths are kept
    aligned = replace(aligned, rankings=rankings.keep(np.zeros(len(rankings.items), bool)))
    exact = [row for row, plan in enumerate(plans) if is_exact(plan)]
    columns = _expected_columns(aligned, [plans[row] for row in exact])
    for number, row in enumerate(exact):
        totals[row] = _summed([columns], number, users[row])
    drawn: dict[tuple[bool, bool, bool], list[int]] = {}
    for row in sorted(set(range(len(plans))).difference(exact)):
        plan = plans[row]
        if not (plan.definition.per_user or all_users):
            continue
        expected = _expected_lists(aligned, plan, users[row])
        if expected is None:  # one draw serves all plans that can share it
            key = (plan.is_swept, plan.metric.cutoff is None, plan.uses_judged)
            drawn.setdefault(key, []).append(row)
        else:
            totals[row] = expected
    if keys is None:
        return tuple(totals)
    for (swept, whole, judged), rows in drawn.items():
        depth = max(plans[row].metric.k for row in rows)
        draw = _draw_ranks if swept else _draw_lists
        hits = aligned.of(View(judged=judged))
        lists = (draw(hits, whole, depth, keys, seed) for seed in range(DRAWS))
        shared = [plans[row] for row in rows]
        values = _of_drawn(aligned, lists, shared, [users[row] for row in rows])
        for row, total in zip(rows, values, strict=True):
            totals[row] = total
    return tuple(totals)


def is_exact(plan: Plan) -> bool:
    """Return whether a plan over statistics has an exact expectation."""
    formula = plan.definition.formula
    return plan.is_swept and (formula.expected is not None or formula.closed_form(plan.arguments))


def _summed(draws: Sequence[MetricColumns], row: int, users: Integers) -> RandomSums:
    """Sum a row of each draw over the users with a defined value."""
    values, below = [], []
    for columns in draws:
        defined = users[~np.isnan(columns.values[row, users])]
        values.append(columns.moments(row, defined))
        if row in columns.denominators:
            below.append(Moments.of(columns.denominators[row][defined], squares=False))
    return RandomSums(tuple(values), tuple(below))


def _count_as_zero(
    aligned: Aligned, columns: MetricColumns, plans: Iterable[Plan], rows: Iterable[int]
) -> None:
    """Set the values of users without relevant items to 0 if the formula makes them 0 / 0."""
    without_relevant = np.flatnonzero(aligned.relevance.n_relevant == 0)
    for row, plan in zip(rows, plans, strict=True):
        if plan.is_swept and not plan.for_all_users:
            columns.values[row, without_relevant] = 0.0


def _expected_columns(aligned: Aligned, plans: Sequence[Plan]) -> MetricColumns:
    """Apply formulas to the expectations of the statistics, a block of users at a time."""
    columns = MetricColumns.empty(plans, aligned.n_users)
    views: dict[View, list[int]] = {}
    for row, plan in enumerate(plans):
        views.setdefault(plan.view, []).append(row)
    parts = [(aligned.of(view), rows) for view, rows in views.items()]
    for first in range(0, aligned.n_users, BLOCK):
        last = min(first + BLOCK, aligned.n_users)
        eligible = aligned.eligible_items(np.arange(first, last))
        for part, rows in parts:
            chosen = [plans[row] for row in rows]
            # Users without relevant items, or without eligible ones.
            with np.errstate(divide="ignore", invalid="ignore"):
                for k, statistics in _expected_statistics(part, eligible, first, last, chosen):
                    for row, plan in zip(rows, chosen, strict=True):
                        if plan.metric.k == k:
                            of = plan.definition.formula
                            value = (of.expected or of.function)(statistics, **plan.arguments)
                            columns.store(row, first, last, value, plan.metric)
    for part, rows in parts:
        _count_as_zero(part, columns, [plans[row] for row in rows], rows)
    return columns


def _expected_statistics(
    aligned: Aligned, eligible: Eligible, first: int, last: int, plans: Sequence[Plan]
) -> Iterator[tuple[int, ExpectedStatistics]]:
    """Yield each cut-off of the plans with the expectations for a block of users."""
    convention, relevance, size = aligned.convention, aligned.relevance, last - first
    exponential = any(plan.is_exponential for plan in plans)
    indptr = relevance.indptr[first : last + 1]
    entries = slice(indptr[0], indptr[-1])
    rows = np.repeat(np.arange(size), np.diff(indptr))
    reachable = eligible.contain(rows, relevance.items[entries])
    gains = np.where(reachable, aligned.hit_gains[0][entries], 0.0)
    n_hits = np.bincount(rows[gains > 0], minlength=size)
    gain = np.bincount(rows, gains, size).astype(np.float64)
    raised = elementary.exp2m1(gains) if exponential else gains
    exp_gain = np.bincount(rows, raised, size).astype(np.float64)
    values: dict[str, Any] = {
        "all_gain": np.bincount(rows, aligned.relevant_gains[entries], size),
        "largest_gain": aligned.largest_gain,
    }
    uses = frozenset().union(*(plan.uses for plan in plans))
    if "candidates" in uses:
        values["candidates"] = aligned.count_candidates(first, last)
    lengths, n_drawn = aligned.rankings.lengths[first:last], eligible.counts
    for k in sorted({plan.metric.k for plan in plans}):
        depths = np.minimum(lengths if k == FULL_LIST else k, n_drawn)
        deepest = max(int(depths.max(initial=1)), int(np.diff(indptr).max(initial=0)))
        if convention.ideal == "slots":
            deepest = max(deepest, min(k, MOST_SLOTS))
        tables = discount_tables(convention, deepest)
        ideal_cutoff = deepest if convention.ideal == "all" else min(k, deepest)
        table = np.zeros((len(NAMES), 1, size))
        n_relevant = values["n_relevant"] = np.empty(size, np.int64)
        fill_ideal(
            relevance, slice(first, last), np.array([ideal_cutoff]), tables, table, n_relevant,
            exponential, convention.ideal, depths,
        )  # fmt: skip
        for name in ("idcg", "idcg_exp", "idcg_binary"):
            values[name] = table[getattr(AT, name), 0]
        if any("ideal_gain" in plan.definition.uses for plan in plans):
            values["largest_sum"] = sum_largest(relevance, first, last, np.array([k]))[0]
        chances = Chances(n_drawn, depths, n_hits, gain, exp_gain, tables[1][depths])
        yield k, ExpectedStatistics.of(k, chances, **values)


def _expected_lists(
    aligned: Aligned, plan: Plan, users: Integers
) -> RandomSums | Expectation | None:
    """Return the expectation of a plan over lists, None if it is unknown."""
    formula = plan.definition.formula.expected
    if formula is None:
        return None
    no_lists = replace(aligned.rankings, lengths=np.zeros(aligned.n_users, np.int64))
    lists = replace(aligned, rankings=no_lists).lists(plan.metric.k, users)
    depths = aligned.rankings.lengths[users] if plan.metric.cutoff is None else plan.metric.k
    random = RandomLists(lists, np.broadcast_to(depths, len(users)))
    with np.errstate(divide="ignore", invalid="ignore"):  # users who have seen everything
        value = formula(random, **plan.arguments)
    if value is None or np.ndim(value) == 0:
        return None if value is None else Expectation(float(value), 0.0)
    return RandomSums((Moments.of(value[~np.isnan(value)], squares=False),))


def _of_drawn(
    aligned: Aligned,
    draws: Iterable[Rankings | None],
    plans: Sequence[Plan],
    users: Sequence[Integers],
) -> list[RandomSums | Expectation]:
    """Measure random lists that are drawn several times."""
    measured: list[MetricColumns] = []
    overall: list[list[float]] = [[] for _ in plans]
    for rankings in draws:
        if rankings is None:
            return [UNKNOWN] * len(plans)
        drawn = replace(aligned, rankings=rankings)
        columns, *_ = measure(drawn, plans)
        _count_as_zero(aligned, columns, plans, range(len(plans)))
        measured.append(columns)
        for row, plan in enumerate(plans):
            if not plan.definition.per_user:
                lists = drawn.lists(plan.metric.k, users[row])
                overall[row].append(value_of_lists(plan, lists))
    totals: list[RandomSums | Expectation] = []
    for row, plan in enumerate(plans):
        if plan.definition.per_user:
            totals.append(_summed(measured, row, users[row]))
        else:
            means = np.array(overall[row])
            error = float(means.std(ddof=1)) / math.sqrt(len(means))
            totals.append(Expectation(float(means.mean()), error))
    return totals


def _draw_ranks(aligned: Aligned, whole: bool, depth: int, keys: Hashes, seed: int) -> Rankings:
    """Draw the ranks of the items that can be hits; statistics need no other ranks.

    If `whole`, lists have the lengths of the users' own lists, otherwise `depth` items.
    """
    relevance, candidates = aligned.relevance, aligned.eligible.counts
    rows = np.repeat(np.arange(aligned.n_users), np.diff(relevance.indptr))
    hit = (aligned.hit_gains[0] > 0) & aligned.eligible.contain(rows, relevance.items)
    rows, items = rows[hit], relevance.items[hit]
    counts = np.bincount(rows, minlength=aligned.n_users)
    indptr = indptr_from_counts(counts)
    ranks = np.empty(len(items), np.int64)
    draw_ranks(uniforms(keys, counts, seed), candidates, indptr, ranks)
    lengths = np.minimum(aligned.rankings.lengths if whole else depth, candidates)
    reached = ranks <= lengths[rows]
    rows, items, ranks = rows[reached], items[reached], ranks[reached]
    order = np.lexsort((ranks, rows))
    counts = np.bincount(rows, minlength=aligned.n_users)
    return Rankings(
        aligned.rankings.shape,
        indptr_from_counts(counts),
        items[order],
        ranks[order].astype(np.int32),
        lengths,
    )


def _draw_lists(
    aligned: Aligned, whole: bool, depth: int, keys: Hashes, seed: int
) -> Rankings | None:
    """Draw lists of items that can be recommended to the users; None if they would be too long."""
    side_data, n_users = aligned.side_data, aligned.n_users
    lengths = aligned.rankings.lengths
    deepest = min(int(lengths.max(initial=1)) if whole else depth, side_data.n_items)
    if deepest * n_users > _MOST_ITEMS:
        return None
    numbers = uniforms(keys, np.full(n_users, deepest), seed).reshape(n_users, deepest)
    ids = aligned.eligible.draw(numbers)
    if whole:
        ids[np.arange(deepest) >= lengths[:, None]] = -1
    return Rankings.from_topk(ids, shape=(n_users, side_data.n_items))


@dataclass(frozen=True)
class Chances:
    """The eligible items that each user's random list of m items is drawn from.

    Attributes
    ----------
    n_candidates : ndarray of int64
        C, the number of eligible items; all their orders are equally likely.
    depths : ndarray of int64
        m <= C, the length of the list.
    n_hits : ndarray of int64
        The number of eligible items that are hits.
    gain, exp_gain : ndarray of float64
        The sums of g and of 2^g − 1 over the hits.
    discount_sum : ndarray of float64
        The sum of the discounts of ranks 1 to m.
    """

    n_candidates: Integers
    depths: Integers
    n_hits: Integers
    gain: Floats
    exp_gain: Floats
    discount_sum: Floats

    @cached_property
    def share(self) -> Floats:
        """The probability that a candidate is in the list, m / C."""
        return self.depths / np.maximum(self.n_candidates, 1)

    @cached_property
    def harmonic(self) -> Floats:
        """1 + 1/2 + … + 1/m."""
        deepest = int(self.depths.max(initial=0))
        sums = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, deepest + 1))))
        return sums[self.depths]

    def over(self, sums: Floats) -> Floats:
        """Return the expectation at a single rank of a quantity with these sums over candidates."""
        return sums / np.maximum(self.n_candidates, 1)

    @cached_property
    def first_hits(self) -> tuple[Floats, Floats]:
        """The probability of any hit, and the expected reciprocal rank of the first hit."""
        return chances_of_first(self.n_hits, self.n_candidates, self.depths)

    @cached_property
    def any_miss(self) -> Floats:
        """The probability that the list contains an item that is not a hit."""
        n_misses = self.n_candidates - self.n_hits
        return chances_of_first(n_misses, self.n_candidates, self.depths)[0]


def chances_of_first(
    n_hits: Integers, n_candidates: Integers, depths: Integers
) -> tuple[Floats, Floats]:
    """Return each list's probability of a hit, and the expected reciprocal rank of its first hit.

    A list is the first `depths` of `n_candidates` items in random order; `n_hits` of them are hits.
    """
    cases = np.stack((n_hits, n_candidates, depths))
    unique, inverse = np.unique(cases, axis=1, return_inverse=True)
    any_hit, reciprocal = np.empty(unique.shape[1]), np.empty(unique.shape[1])
    hits, candidates, depths = np.ascontiguousarray(unique)
    first_hit_chances(hits, candidates, depths, any_hit, reciprocal)
    return any_hit[inverse], reciprocal[inverse]


class ExpectedStatistics(Statistics):
    """The expectations of `Statistics` for a random ranking of each user's candidates."""

    chances: Chances

    @classmethod
    def of(cls, k: int, chances: Chances, **others: Any) -> ExpectedStatistics:
        """Compute the expectations at cut-off `k`.

        `others` are the attributes that do not depend on the order of the list. As in the formulas,
        `candidates` include relevant items that no list can hold, and `chances` do not.
        """
        c, m = chances, chances.depths
        n_hits = c.n_hits.astype(np.float64)
        # A hit at rank r has (r − 1)(n − 1)/(C − 1) hits above it.
        hits_above = (c.n_hits - 1) / np.maximum(c.n_candidates - 1, 1)
        precision_sum = c.over(n_hits) * (c.harmonic + hits_above * (m - c.harmonic))
        values = {
            "k": k,
            "first_found": np.zeros(len(m), np.int64),
            "lengths": m,
            "hits": n_hits * c.share,
            "gain": c.gain * c.share,
            "dcg": c.over(c.gain) * c.discount_sum,
            "dcg_binary": c.over(n_hits) * c.discount_sum,
            "precision_sum": precision_sum,
            "reciprocal_sum": c.over(n_hits) * c.harmonic,
            "reciprocal_gain": c.over(c.gain) * c.harmonic,
            "dcg_exp": c.over(c.exp_gain) * c.discount_sum,
            "chances": chances,
        }
        return cls(values | others)

    @property
    def any_hit(self) -> Floats:
        """The probability of a hit."""
        return self.chances.first_hits[0]

    @property
    def order_of_list(self) -> Floats:
        """The expectation: 1/2 for a list with hits and misses, 1 for a list with only hits."""
        hits_alone = np.where(self.chances.depths > 0, 1.0 - self.chances.any_miss, 0.0)
        return (self.any_hit + hits_alone) / 2

    @property
    def reciprocal_rank(self) -> Floats:
        """The expected reciprocal rank of the first hit."""
        return self.chances.first_hits[1]

    @property
    def step_sum(self) -> Floats:
        """E[h(h + 1) / 2], with hypergeometric h."""
        c, m = self.chances, self.chances.depths
        pairs = np.maximum(c.n_candidates * (c.n_candidates - 1), 1)
        steps: Floats = c.n_hits * (c.n_hits - 1) / pairs * (m * (m - 1)) / 2 + self.hits
        return steps

    def hits_within(self, ranks: Integers) -> Floats:
        """Return the expected number of hits down to a given rank for each user."""
        c = self.chances
        return c.over(c.n_hits.astype(np.float64)) * np.minimum(ranks, c.depths)

    @cached_property
    def rank_sum(self) -> Floats:
        """E[Σ h·r]."""
        c, m = self.chances, self.chances.depths
        return c.over(c.n_hits.astype(np.float64)) * (m * (m + 1) / 2)

    @cached_property
    def gain_rank_sum(self) -> Floats:
        """E[Σ g·r]."""
        c, m = self.chances, self.chances.depths
        return c.over(c.gain) * (m * (m + 1) / 2)

    def geometric_sum(self, p: float, graded: bool) -> Floats:
        """E[Σ h·p^(r − 1)], or E[Σ g·p^(r − 1)] if `graded`."""
        c = self.chances
        total = c.gain if graded else c.n_hits.astype(np.float64)
        powers: Floats = -elementary.expm1(c.depths * elementary.log(p)) / (1 - p)
        return c.over(total) * powers
