"""The random baseline: what each metric would be if every user's list were drawn at random."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ..core.exact_sums import Moments
from ..core.threads import BLOCK
from ..inputs.rankings import Rankings
from ..kernels.catalogue import draw_lists, draw_ranks, uniforms
from ..kernels.statistics import NAMES, sum_ideal
from ..metrics import FULL_LIST
from .conventions import MOST_SLOTS
from .expectation import Chances, ExpectedStatistics
from .measure import Plan, Setting, Sums, discount_tables, make_lists, measure, value_of_lists
from .random_lists import RandomLists

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Values = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = ["Expectation", "expect_at_random", "is_exact"]

#: Random lists are drawn so many times for each user where no expectation is known.
REPEATED = 10
SEED = 0

#: Lists of more items than this are not drawn: whole catalogues for everybody.
_MOST_ITEMS = 100_000_000


class Expectation(NamedTuple):
    """The mean of a metric under a random ranking, and its standard error: 0 where it is exact."""

    mean: float
    error: float


def expect_at_random(
    setting: Setting, plans: list[Plan], users: list[Integers]
) -> list[Expectation]:
    """Return what the mean of each plan over `users`, those that count for it, is at random.

    Every order of a user's candidates is equally likely: of the catalogue less what the user has
    seen. A list has k items; where there is no cut-off, as many as the user's own. NaN where
    lists would have to be drawn that are too long.
    """
    found = [Expectation(math.nan, math.nan)] * len(plans)
    linear = [row for row, plan in enumerate(plans) if is_exact(plan)]
    sums = _expected_sums(setting, [plans[row] for row in linear])
    _count_nothing_as_zero(setting, sums, [plans[row] for row in linear])
    for place, row in enumerate(linear):
        found[row] = Expectation(sums.mean(place, users[row]), 0.0)
    drawn: dict[tuple[str, bool], list[int]] = {}
    for row in sorted(set(range(len(plans))) - set(linear)):
        metric, definition, _ = plans[row]
        value = _expected_lists(setting, plans[row], users[row])
        if value is None:  # one draw serves all plans that can share it
            drawn.setdefault((definition.over, metric.cutoff is None), []).append(row)
        else:
            found[row] = Expectation(value, 0.0)
    for (over, whole), rows in drawn.items():
        draw = _draw_ranks if over == "statistics" else _draw_lists
        some, theirs = [plans[row] for row in rows], [users[row] for row in rows]
        depth = max(plan.metric.k for plan in some)
        means = np.array(
            [
                _means(setting, draw(setting, whole, depth, seed), some, theirs)
                for seed in range(SEED, SEED + REPEATED)
            ]
        )
        errors = means.std(axis=0, ddof=1) / math.sqrt(REPEATED)
        for place, row in enumerate(rows):
            found[row] = Expectation(float(means[:, place].mean()), float(errors[place]))
    return found


def _count_nothing_as_zero(setting: Setting, sums: Sums, plans: list[Plan]) -> None:
    """Give users without relevant items, where they count, the 0 that they count in the means."""
    nothing = np.flatnonzero(setting.relevance.n_relevant == 0)
    for row, plan in enumerate(plans):
        if plan.definition.over == "statistics":
            sums.columns[row, nothing] = 0.0


def is_exact(plan: Plan) -> bool:
    """Say whether a plan over statistics has an exact expectation."""
    definition = plan.definition
    return definition.over == "statistics" and (
        definition.expected is not None or definition.closed_form(plan.arguments)
    )


def _expected_sums(setting: Setting, plans: list[Plan]) -> Sums:
    """Apply formulas to the expectations of the statistics, a block of users at a time."""
    sums = Sums.empty(plans, setting.n_users)
    if not plans:
        return sums
    cutoffs = sorted({plan.metric.k for plan in plans})
    exponential = any(plan.is_exponential for plan in plans)
    for first in range(0, setting.n_users, BLOCK):
        last = min(first + BLOCK, setting.n_users)
        block = _Block(setting, first, last, exponential)
        with np.errstate(divide="ignore", invalid="ignore"):  # users without relevant items
            for k in cutoffs:
                statistics = block.expect(k)
                for row, plan in enumerate(plans):
                    if plan.metric.k == k:
                        formula = plan.definition.expected or plan.definition.formula
                        value = formula(statistics, **plan.arguments)
                        sums.put(row, first, last, value, plan.metric)
    return sums


class _Block:
    """The users of a block, and what random lists of theirs are drawn from."""

    def __init__(self, setting: Setting, first: int, last: int, exponential: bool) -> None:
        self.setting = setting
        self.exponential = exponential
        self.lengths = setting.rankings.lengths[first:last]
        self.n_candidates = setting.n_candidates[first:last]
        self.indptr = setting.relevance.indptr[first : last + 1]
        entries = slice(self.indptr[0], self.indptr[-1])
        owners = np.repeat(np.arange(last - first), np.diff(self.indptr))
        gains = setting.hit_gains[0][entries]
        size = last - first
        self.n_hits = np.bincount(owners[gains > 0], minlength=size)
        self.gain = np.bincount(owners, gains, size).astype(np.float64)
        raised = np.exp2(gains) - 1.0 if exponential else gains
        self.exp_gain = np.bincount(owners, raised, size).astype(np.float64)
        self.total_gain = np.bincount(owners, setting.relevance.gains[entries], size)

    def expect(self, k: int) -> ExpectedStatistics:
        """Return the expectations at cut-off `k`."""
        setting = self.setting
        convention, relevance = setting.convention, setting.relevance
        depths = np.minimum(self.lengths if k == FULL_LIST else k, self.n_candidates)
        deepest = max(int(depths.max(initial=1)), int(np.diff(self.indptr).max(initial=0)))
        if convention.ideal == "slots":
            deepest = max(deepest, min(k, MOST_SLOTS))
        tables = discount_tables(convention, deepest)
        table = np.zeros((len(NAMES), 1, len(depths)))
        n_relevant = np.empty(len(depths), np.int64)
        sum_ideal(
            self.indptr, relevance.gains, relevance.binary, np.array([min(k, deepest)]), *tables,
            self.exponential, convention.ideal == "slots",
            np.maximum(depths, 1) if convention.ideal == "length" else depths[:0],
            table, n_relevant,
        )  # fmt: skip
        chances = Chances(
            self.n_candidates, depths, self.n_hits, self.gain, self.exp_gain, tables[1][depths]
        )
        ideal = tuple(table[NAMES.index(f"idcg{kind}"), 0] for kind in ("", "_exp", "_binary"))
        return ExpectedStatistics.of(
            k,
            n_relevant,
            ideal,
            chances,
            total_gain=self.total_gain,
            largest_gain=float(relevance.gains.max(initial=0.0)),
        )


def _expected_lists(setting: Setting, plan: Plan, users: Integers) -> float | None:
    expected = plan.definition.expected
    if expected is None:
        return None
    nobodys = replace(setting, rankings=_no_lists(setting))
    lists = make_lists(nobodys, plan.metric.k, users)
    depths = setting.rankings.lengths[users] if plan.metric.cutoff is None else plan.metric.k
    random = RandomLists(lists, np.broadcast_to(depths, len(users)))
    with np.errstate(divide="ignore", invalid="ignore"):  # users who have seen everything
        value = expected(random, **plan.arguments)
    if value is None or np.ndim(value) == 0:
        return None if value is None else float(value)
    return Moments.of(value[~np.isnan(value)], squares=False).mean


def _no_lists(setting: Setting) -> Rankings:
    shape = setting.rankings.shape
    return Rankings.from_topk(np.empty((0, 1), np.int32), shape=shape)


def _means(
    setting: Setting, lists: Rankings | None, plans: list[Plan], users: list[Integers]
) -> list[float]:
    if lists is None:
        return [math.nan] * len(plans)
    drawn = replace(setting, rankings=lists)
    sums, _ = measure(drawn, plans)
    _count_nothing_as_zero(setting, sums, plans)
    means = []
    for row, plan in enumerate(plans):
        if plan.definition.per_user:
            defined = users[row][~np.isnan(sums.columns[row, users[row]])]
            means.append(sums.mean(row, defined))
        else:
            means.append(value_of_lists(drawn, plan, users[row]))
    return means


def _draw_ranks(setting: Setting, whole: bool, depth: int, seed: int) -> Rankings:
    """Draw the ranks of the items that can be hits, which is all that the statistics need.

    Lists are as long as the users' own if `whole`, otherwise of `depth` places.
    """
    relevance = setting.relevance
    candidates = setting.n_candidates
    owners = np.repeat(np.arange(setting.n_users), np.diff(relevance.indptr))
    hit = setting.hit_gains[0] > 0
    owners, items = owners[hit], relevance.items[hit]
    indptr = np.concatenate(([0], np.cumsum(np.bincount(owners, minlength=setting.n_users))))
    ranks = np.empty(len(items), np.int64)
    draw_ranks(uniforms(seed, 0, len(ranks)), candidates, indptr, ranks)
    lengths = np.minimum(setting.rankings.lengths if whole else depth, candidates)
    reached = ranks <= lengths[owners]
    owners, items, ranks = owners[reached], items[reached], ranks[reached]
    order = np.lexsort((ranks, owners))
    counts = np.bincount(owners, minlength=setting.n_users)
    return Rankings(
        setting.rankings.shape,
        np.concatenate((np.zeros(1, np.int64), np.cumsum(counts))),
        items[order],
        ranks[order].astype(np.int32),
        lengths,
    )


def _draw_lists(setting: Setting, whole: bool, depth: int, seed: int) -> Rankings | None:
    """Draw lists of items that the users have not seen; None if they would be too long."""
    training, n_users = setting.context.training, setting.n_users
    lengths = setting.rankings.lengths
    n_items = setting.context.n_items
    deepest = min(int(lengths.max(initial=1)) if whole else depth, n_items)
    if deepest * n_users > _MOST_ITEMS:
        return None
    if training is None:
        indptr, items = np.zeros(n_users + 1, np.int64), np.empty(0, np.int32)
    else:
        indptr, items = training.indptr[: n_users + 1], training.items
    ids = np.empty((n_users, deepest), np.int32)
    numbers = uniforms(seed, 0, ids.size).reshape(ids.shape)
    draw_lists(numbers, indptr, items, n_items, ids)
    if whole:
        ids[np.arange(deepest) >= lengths[:, None]] = -1
    return Rankings.from_topk(ids, shape=(n_users, n_items))
