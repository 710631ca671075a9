"""Apply the formulas of metrics to users, a block of them at a time."""

from __future__ import annotations

import math
import reprlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.threads import for_blocks
from ..errors import InvalidDataError, InvalidMetricError
from ..kernels.statistics import NAMES, sum_ideal, sweep, sweep_tied
from .columns import MetricColumns, fits
from .conventions import MOST_SLOTS, Convention, discount
from .grammar import Metric
from .plan import Plan
from .registry import Definition
from .statistics import Hits, Statistics, TiedHits, TiedStatistics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..core.types import Floats, Integers
    from ..inputs.relevance import Relevance
    from .aligned import Aligned
    from .lists import Lists

#: Discounts of so many ranks are tabulated, unless a user has more relevant items.
MAX_TABLE = 1 << 20


def measure(
    aligned: Aligned,
    plans: Sequence[Plan],
    num_threads: int | None = None,
    block: int | None = None,
) -> tuple[MetricColumns, Integers]:
    """Compute every plan for every user, and count each user's relevant items.

    Metrics over statistics are NaN for users without relevant items, but those of everyone.
    """
    columns = MetricColumns.empty(plans, aligned.n_users)
    swept = [row for row, plan in enumerate(plans) if plan.is_swept]
    n_relevant = None
    views = {row: plans[row].view for row in swept}
    for view in dict.fromkeys(views.values()):
        rows = [row for row in swept if views[row] == view]
        work = _Sweep(aligned.of(view), plans, rows, columns)
        for_blocks(work, aligned.n_users, num_threads, block)
        if view.items == "all":
            n_relevant = work.n_relevant
    if n_relevant is None:
        n_relevant = aligned.relevance.n_relevant
    for row, plan in enumerate(plans):
        if not plan.is_swept and plan.per_user:
            _measure_lists(aligned, plan, row, columns, num_threads, block)
        elif not plan.definition.per_user:
            columns.values[row] = np.nan
    return columns, n_relevant


class _Sweep:
    """Apply the formulas over statistics to a block of users at a time.

    They are applied while the block's statistics are still in the cache; the statistics of all
    users never exist at once.
    """

    def __init__(
        self, aligned: Aligned, plans: Sequence[Plan], swept: list[int], columns: MetricColumns
    ) -> None:
        rankings, relevance, convention = aligned.rankings, aligned.relevance, aligned.convention
        self.aligned = aligned
        self.columns = columns
        # In the order of a loop over blocks: tuples are read faster than the attributes of plans.
        self.formulas = [
            (row, plan.depth, plan.metric, plan.definition.formula, plan.arguments)
            for row, plan in ((row, plans[row]) for row in swept)
        ]
        # A user without items of those that count adds nothing to either sum of a micro average.
        self.empty = {
            row: 0.0 if plans[row].is_micro and plans[row].items != "all" else np.nan
            for row in swept
            if not plans[row].of_everyone
        }
        self.cutoffs = np.array(sorted({plans[row].depth for row in swept}), np.int64)
        uses = {name for row in swept for name in plans[row].uses}
        self.exponential = any(plans[row].is_exponential for row in swept)
        self.slots = convention.ideal == "slots"
        self.limited_ideal = convention.ideal == "length"
        longest = int(rankings.lengths.max(initial=0))
        deepest = max(
            # A position may be as large as a catalogue: the sweep computes what no table holds.
            min(longest, MAX_TABLE) if rankings.last_positions is None else longest,
            int(np.diff(relevance.indptr).max(initial=0)),
        )
        self.ideal_cutoffs = self.cutoffs
        if self.slots:  # no metric that needs the ideal list has a larger cut-off, see `check`
            self.ideal_cutoffs = np.minimum(self.cutoffs, MOST_SLOTS)
            deepest = max(deepest, int(self.ideal_cutoffs.max()))
        self.tables = discount_tables(convention, min(int(self.cutoffs[-1]), deepest))
        self.gapped = rankings.gapped_positions is not None
        self.positions = rankings.positions if self.gapped else np.empty(0, np.int32)
        self.n_relevant = np.empty(aligned.n_users, np.int64)
        self.collects_hits = "hits" in uses
        self.optional = _OptionalStatistics(aligned, uses, int(self.cutoffs[-1])) if uses else None
        # A thread takes a buffer and gives it back: a fresh one for every block would cost more in
        # page faults than the sweep itself.
        self.buffers: list[Floats] = []

    def __call__(self, first: int, last: int) -> None:
        """Compute the columns of the users from `first` to `last`."""
        size = last - first
        n_sums = len(NAMES) * len(self.cutoffs)
        try:
            buffer = self.buffers.pop()
        except IndexError:
            buffer = np.empty(n_sums * size)  # no later block is larger
        table = buffer[: n_sums * size].reshape(len(NAMES), len(self.cutoffs), size)
        first_found, hits = self._fill(first, last, table)
        _check_sizes(table, first)
        statistics = self._statistics(first, last, table, first_found, hits)
        without_relevant = first + np.flatnonzero(self.n_relevant[first:last] == 0)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 for these users
            for row, depth, metric, formula, arguments in self.formulas:
                value = formula(statistics[depth], **arguments)
                self.columns.store(row, first, last, value, metric)
                # Here, while the row is in the cache: later it took a tenth of the whole time.
                if row in self.empty:
                    self.columns.values[row, without_relevant] = self.empty[row]
        self.buffers.append(buffer)

    def _fill(self, first: int, last: int, table: Floats) -> tuple[Integers, Hits | TiedHits]:
        """Fill the table of statistics; return each user's first hit, and all hits if needed."""
        rankings, relevance = self.aligned.rankings, self.aligned.relevance
        hit_gains, binary_hits = self.aligned.hit_gains
        users, bounds = slice(first, last), slice(first, last + 1)
        indptr = relevance.indptr[bounds]
        lists = (rankings.indptr[bounds], rankings.items, self.positions)
        lengths = rankings.lengths[users]
        # A user without a list gets an ideal list of one item, so that nothing is divided by 0.
        limits = np.maximum(lengths, 1) if self.limited_ideal else lengths[:0]
        sum_ideal(
            indptr, relevance.gains, relevance.binary, self.ideal_cutoffs, *self.tables,
            self.exponential, self.slots, limits, room_for_ideal(indptr, relevance.binary),
            table, self.n_relevant[users],
        )  # fmt: skip
        first_found = np.zeros(last - first, np.int64)
        hits = _allocate_hits(lists[0], indptr, self.collects_hits)
        relevant = (indptr, relevance.items, hit_gains)
        if rankings.last_positions is None:
            sweep(
                *lists, self.gapped, *relevant, binary_hits, self.cutoffs, self.tables[0],
                float(self.aligned.convention.shift), self.exponential, table, first_found,
                self.collects_hits, *hits,
            )  # fmt: skip
        else:
            tied_hits = TiedHits(*hits, np.empty_like(hits.ranks))
            sweep_tied(
                *lists, rankings.last_positions, lengths, *relevant, self.cutoffs, self.tables[0],
                self.exponential, table, self.collects_hits, *tied_hits,
            )  # fmt: skip
            return first_found, tied_hits
        return first_found, hits

    def _statistics(
        self, first: int, last: int, table: Floats, first_found: Integers, hits: Hits | TiedHits
    ) -> dict[int, Statistics]:
        """Return the statistics of a block by cut-off."""
        n_relevant = self.n_relevant[first:last]
        lengths = self.aligned.rankings.lengths[first:last].view()
        for shared in (table, n_relevant, first_found, lengths):
            shared.flags.writeable = False  # formulas are anybody's, and lengths the caller's
        optional: dict[str, Any] = {}
        ideal_gain = None
        if self.optional is not None:
            optional = self.optional.of_block(first, last, n_relevant, hits)
            ideal_gain = self.optional.ideal_gain(first, last, self.ideal_cutoffs)
        kind = TiedStatistics if isinstance(hits, TiedHits) else Statistics
        statistics = {}
        for cut, k in enumerate(self.cutoffs.tolist()):
            named = dict(zip(NAMES, table[:, cut], strict=True))
            optional["ideal_gain"] = None if ideal_gain is None else ideal_gain[cut]
            raised = (named.pop("dcg_exp"), named.pop("idcg_exp"))
            optional["raised_sums"] = raised if self.exponential else None
            statistics[k] = kind(k, n_relevant, first_found, lengths, **named, **optional)
        return statistics


def sum_largest(relevance: Relevance, first: int, last: int, cutoffs: Integers) -> Floats:
    """Return the sums of the largest gains of users at each cut-off, shape (cut-offs, users)."""
    indptr = relevance.indptr[first : last + 1]
    n_ranks = int(np.diff(indptr).max(initial=0))
    undiscounted = np.concatenate(([0.0], np.ones(n_ranks)))
    table = np.zeros((len(NAMES), len(cutoffs), last - first))
    sum_ideal(
        indptr, relevance.gains, relevance.binary, cutoffs, undiscounted, np.cumsum(undiscounted),
        False, False, np.empty(0, np.int64), room_for_ideal(indptr, relevance.binary), table,
        np.empty(last - first, np.int64),
    )  # fmt: skip
    sums: Floats = table[NAMES.index("idcg")]
    return sums


def room_for_ideal(indptr: Integers, binary: bool) -> Floats:
    """Return an array for the gains of any row, which `sum_ideal` sorts unless all are 1."""
    return np.empty(0 if binary else int(np.diff(indptr).max(initial=0)))


def _allocate_hits(list_indptr: Integers, relevant_indptr: Integers, collect: bool) -> Hits:
    """Return room for the hits of a block, none if they are not collected."""
    if not collect:
        return Hits(list_indptr[:0], list_indptr[:0], np.empty(0))
    n_listed = int(list_indptr[-1] - list_indptr[0])
    most = min(n_listed, int(relevant_indptr[-1] - relevant_indptr[0]))
    return Hits(np.empty(len(list_indptr), np.int64), np.empty(most, np.int64), np.empty(most))


class _OptionalStatistics:
    """Statistics that only some metrics use, computed for a block where a plan needs them."""

    def __init__(self, aligned: Aligned, uses: set[str], deepest: int) -> None:
        self.aligned = aligned
        self.uses = uses
        self.deepest = deepest  # the last cut-off, down to which hits are collected
        self.largest_gain = aligned.largest_gain if "hits" in uses else 0.0

    def of_block(
        self, first: int, last: int, n_relevant: Integers, hits: Hits | TiedHits
    ) -> dict[str, Any]:
        """Return the optional attributes of `Statistics` for a block of users."""
        attributes: dict[str, Any] = {}
        if "hits" in self.uses:
            name = "tied_hits" if isinstance(hits, TiedHits) else "all_hits"
            attributes |= {name: hits, "largest_gain": self.largest_gain}
        if "total_gain" in self.uses:
            total = attributes["total_gain"] = self._total_gain(first, last, n_relevant)
            _check_sums(total * self.aligned.side_data.n_items, first, "g · rank")
        if "candidates" in self.uses:
            candidates = attributes["n_candidates"] = self.aligned.count_candidates(first, last)
            self._check_candidates(candidates, first, last, n_relevant, hits)
        if "population" in self.uses:
            attributes["n_population"] = self.aligned.count_population(first, last)
        if "judged" in self.uses:
            attributes["n_judged"] = np.diff(self.aligned.relevance.indptr[first : last + 1])
        return attributes

    def ideal_gain(self, first: int, last: int, cutoffs: Integers) -> Floats | None:
        """Return `Statistics.ideal_gain` at each cut-off, None if no metric uses it."""
        if "ideal_gain" not in self.uses:
            return None
        return sum_largest(self.aligned.relevance, first, last, cutoffs)

    def _total_gain(self, first: int, last: int, n_relevant: Integers) -> Floats:
        relevance = self.aligned.relevance
        if relevance.binary and self.aligned.weights is None:
            return n_relevant.astype(np.float64)
        indptr = relevance.indptr[first : last + 1]
        rows = np.repeat(np.arange(last - first), np.diff(indptr))
        gains = self.aligned.relevant_gains[indptr[0] : indptr[-1]]
        return np.bincount(rows, gains, last - first).astype(np.float64)

    def _check_candidates(
        self,
        candidates: Integers,
        first: int,
        last: int,
        n_relevant: Integers,
        hits: Hits | TiedHits,
    ) -> None:
        """Raise if a list holds more items than the user has candidates."""
        lengths = np.minimum(self.aligned.rankings.lengths[first:last], self.deepest)
        too_long = lengths - np.diff(hits.indptr) > candidates - n_relevant
        too_long &= n_relevant > 0
        if too_long.any():
            user = int(np.flatnonzero(too_long)[0])
            raise InvalidDataError(
                f"the list of user {first + user} reaches position {lengths[user]}, but there are "
                f"{candidates[user]} items to recommend; positions beyond the catalogue have no "
                "meaning for auc, mean_rank and percentile_rank"
            )


def _measure_lists(
    aligned: Aligned,
    plan: Plan,
    row: int,
    columns: MetricColumns,
    num_threads: int | None,
    block: int | None,
) -> None:
    """Apply a formula over lists that has a value for each user."""

    def work(first: int, last: int) -> None:
        lists = aligned.lists(plan.metric.k, np.arange(first, last))
        with np.errstate(divide="ignore", invalid="ignore"):  # of empty lists
            value = plan.definition.formula(lists, **plan.arguments)
            columns.store(row, first, last, value, plan.metric)

    for_blocks(work, aligned.n_users, num_threads, block)


def collect_hits(aligned: Aligned, k: int) -> Hits:
    """Return every hit down to rank `k` of all users."""
    collected: list[Hits] = []

    def keep(statistics: Statistics) -> Floats:
        assert statistics.all_hits is not None  # noqa: S101 - the definition uses them
        collected.append(statistics.all_hits)
        return statistics.hits

    definition = Definition("hits", keep, "", "", uses=("hits",))
    plan = Plan(Metric("hits", k), definition, {})
    measure(aligned, [plan], num_threads=1, block=max(aligned.n_users, 1))
    return collected[0]


def values_of_lists(aligned: Aligned, plans: Iterable[Plan], users: Integers) -> list[float]:
    """Return metrics that are one number for all `users`; NaN where one is not defined."""
    lists: dict[int, Lists] = {}
    values = []
    for plan in plans:
        k = plan.metric.k
        if k not in lists:
            lists[k] = aligned.lists(k, users)
        values.append(value_of_lists(plan, lists[k]))
    return values


def value_of_lists(plan: Plan, lists: Any) -> float:
    """Return a metric that is one number for all users, of lists or of what was counted of them.

    Without users the value is NaN if the formula divides by their number; coverage is 0.

    Raises
    ------
    InvalidMetricError
        If the formula returns something else.
    """
    try:
        value = plan.definition.formula(lists, **plan.arguments)
    except ZeroDivisionError:
        if lists.n_users:
            raise
        return math.nan
    if plan.definition.combine is not None:
        value = plan.definition.combine(value, **plan.arguments)
    if not fits(value, ()):
        raise InvalidMetricError(
            f"the formula of metric {plan.metric} returned {reprlib.repr(value)}; expected one "
            "number",
            metric=plan.metric,
        )
    return float(value)


def _check_sizes(table: Floats, first_user: int) -> None:
    # At the last cut-off these three bound every other statistic of gains.
    for name in ("gain", "idcg", "idcg_exp"):
        gain = "2^g − 1" if name == "idcg_exp" else "g"
        _check_sums(table[NAMES.index(name), -1], first_user, gain)
    for name in ("idcg", "idcg_exp"):
        _check_ideal(table[NAMES.index(name), -1], first_user)


def _check_sums(sums: Floats, first_user: int, summand: str) -> None:
    if not np.isfinite(sums).all():
        user = first_user + int(np.flatnonzero(~np.isfinite(sums))[0])
        raise InvalidDataError(
            f"row {user} of the validation matrix: the gains are so large that the sum of "
            f"{summand} is not finite; scale them down, or set each to 1",
            row=user,
        )


def _check_ideal(ideal: Floats, first_user: int) -> None:
    # Below the smallest normal number a sum has few digits left, and 5e-324 / log2(3) is 5e-324.
    is_small = (ideal > 0) & (ideal < np.finfo(np.float64).tiny)
    if is_small.any():
        user = first_user + int(np.flatnonzero(is_small)[0])
        raise InvalidDataError(
            f"row {user} of the validation matrix: all gains are below 1e-307, where numbers lose "
            "digits; scale them up, or set each to 1",
            row=user,
        )


def discount_tables(convention: Convention, deepest: int) -> tuple[Floats, Floats]:
    """Return the discount of every rank down to `deepest` at least, and their running sums.

    Entry r belongs to rank r, and to the ranks from 1 to r.
    """
    return _discount_tables(convention.shift, max(1024, 1 << deepest.bit_length()))


@lru_cache(maxsize=8)
def _discount_tables(shift: int, size: int) -> tuple[Floats, Floats]:
    discounts = np.array([0.0] + [discount(rank, shift) for rank in range(1, size)])
    sums = np.cumsum(discounts)
    discounts.flags.writeable = sums.flags.writeable = False
    return discounts, sums
