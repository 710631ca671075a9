"""Apply the formulas of metrics to users, one block at a time."""

from __future__ import annotations

import math
import reprlib
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core import elementary
from ..core.csr import indptr_from_counts
from ..core.exact_sums import Moments
from ..core.threads import for_blocks
from ..errors import InvalidDataError, InvalidMetricError
from ..kernels.hits import Hits, TiedHits
from ..kernels.statistics import AT, NAMES, sum_ideal, sweep, sweep_tied
from ..kernels.structures import Rows
from .conventions import MOST_SLOTS, Convention, discount
from .grammar import Metric
from .plan import Plan
from .registry import Definition, Formula
from .user_statistics import Statistics, TiedStatistics

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..core.types import Floats, Integers
    from ..inputs.relevance import Relevance
    from .aligned import Aligned


#: The number of ranks whose discounts are tabulated, unless a user has more relevant items.
MAX_TABLE = 1 << 20


def measure(
    aligned: Aligned,
    plans: Sequence[Plan],
    num_threads: int | None = None,
    block: int | None = None,
) -> tuple[MetricColumns, Integers, bool]:
    """Compute every plan for every user, and count each user's relevant items.

    The last result is whether a list has a relevant item, as far as the cut-offs reach.

    Metrics over statistics are NaN for users without relevant items, except metrics that are
    defined for them.
    """
    columns = MetricColumns.empty(plans, aligned.n_users)
    swept = [row for row, plan in enumerate(plans) if plan.is_swept]
    n_relevant, has_hits = None, False
    views = {row: plans[row].view for row in swept}
    for view in dict.fromkeys(views.values()):
        rows = [row for row in swept if views[row] == view]
        work = _Sweep(aligned.of(view), plans, rows, columns)
        for_blocks(work, aligned.n_users, num_threads, block)
        has_hits |= work.has_hits
        if view.items == "all":
            n_relevant = work.n_relevant
    if n_relevant is None:
        n_relevant = aligned.relevance.n_relevant
    for row, plan in enumerate(plans):
        if not plan.is_swept and plan.per_user:
            _measure_lists(aligned, plan, row, columns, num_threads, block)
        elif not plan.definition.per_user:
            columns.values[row] = np.nan
    return columns, n_relevant, has_hits


class _Sweep:
    """Apply the formulas over statistics to a block of users at a time.

    They are applied while the block's statistics are still in the cache. The statistics of all
    users never exist at the same time.
    """

    def __init__(
        self, aligned: Aligned, plans: Sequence[Plan], swept: list[int], columns: MetricColumns
    ) -> None:
        rankings, relevance, convention = aligned.rankings, aligned.relevance, aligned.convention
        self.aligned = aligned
        self.columns = columns
        # For the loop over blocks: tuples are read faster than the attributes of plans.
        self.formulas = [
            (row, plan.metric.k, plan.metric, plan.definition.formula.function, plan.arguments)
            for row, plan in ((row, plans[row]) for row in swept)
        ]
        # A user without items that count adds nothing to either sum of a micro average.
        self.empty = {
            row: 0.0 if plans[row].is_micro and plans[row].items != "all" else np.nan
            for row in swept
            if not plans[row].for_all_users
        }
        self.cutoffs = np.array(sorted({plans[row].metric.k for row in swept}), np.int64)
        uses = {name for row in swept for name in plans[row].uses}
        if "candidates" in uses:
            uses.add("hits")  # to check that lists do not hold more items than there are candidates
        self.exponential = any(plans[row].is_exponential for row in swept)
        longest = int(rankings.lengths.max(initial=0))
        deepest = max(
            # A position may be as large as the catalogue; beyond the table, the sweep computes
            # discounts itself.
            min(longest, MAX_TABLE) if rankings.last_positions is None else longest,
            int(np.diff(relevance.indptr).max(initial=0)),
        )
        self.ideal_cutoffs = self.cutoffs
        if (
            convention.ideal == "slots"
        ):  # no metric that needs the ideal list has a larger cut-off, see `check`
            self.ideal_cutoffs = np.minimum(self.cutoffs, MOST_SLOTS)
            deepest = max(deepest, int(self.ideal_cutoffs.max()))
        last_rank = min(int(self.cutoffs[-1]), deepest)
        if convention.ideal == "all":
            last_rank = deepest
            self.ideal_cutoffs = np.full_like(self.cutoffs, deepest)
        self.tables = discount_tables(convention, last_rank)
        gapped = rankings.gapped_positions is not None
        self.positions = rankings.positions if gapped else np.empty(0, np.int32)
        self.n_relevant = np.empty(aligned.n_users, np.int64)
        self.has_hits = False
        self.uses = uses
        self.raised = np.empty(0)
        if self.exponential:
            gains, is_binary = aligned.hit_gains
            self.raised = gains if is_binary else elementary.exp2m1(gains)
        left_out = () if self.exponential else ("dcg_exp", "idcg_exp")
        self.sums = [(at, name) for at, name in enumerate(NAMES) if name not in left_out]
        self.largest_gain = aligned.largest_gain if "hits" in uses else 0.0
        # Threads take a buffer and return it: with a new buffer for every block, page faults would
        # cost more than the sweep itself.
        self.buffers: list[Floats] = []

    def __call__(self, first: int, last: int) -> None:
        """Compute the columns of the users from `first` to `last`."""
        size = last - first
        n_sums = len(NAMES) * len(self.cutoffs)
        try:
            buffer = self.buffers.pop()
        except IndexError:
            buffer = np.empty(0)
        if len(buffer) < n_sums * size:  # none is free, or one of the smaller last block
            buffer = np.empty(n_sums * size)
        table = buffer[: n_sums * size].reshape(len(NAMES), len(self.cutoffs), size)
        found = self._fill(first, last, table)
        _check_sizes(table, first)
        if table[AT.hits, -1].any():
            self.has_hits = True
        statistics = self._statistics(first, last, table, found)
        without_relevant = first + np.flatnonzero(self.n_relevant[first:last] == 0)
        with np.errstate(divide="ignore", invalid="ignore"):  # 0 / 0 for these users
            for row, k, metric, formula, arguments in self.formulas:
                value = formula(statistics[k], **arguments)
                self.columns.store(row, first, last, value, metric)
                # Done here while the row is in the cache; later, it took a tenth of the whole time.
                if row in self.empty:
                    self.columns.values[row, without_relevant] = self.empty[row]
        self.buffers.append(buffer)

    def _fill(self, first: int, last: int, table: Floats) -> dict[str, Any]:
        """Fill the table of sums; return the first hits, and all hits if a metric needs them."""
        rankings, relevance = self.aligned.rankings, self.aligned.relevance
        hit_gains, binary_hits = self.aligned.hit_gains
        users, bounds = slice(first, last), slice(first, last + 1)
        lengths = rankings.lengths[users]
        lists, relevant = (Rows(each.indptr[bounds], each.items) for each in (rankings, relevance))
        first_found = np.zeros(last - first, np.int64)
        found: dict[str, Any] = {"first_found": first_found}
        collect = "hits" in self.uses
        sizes = (int(rows.indptr[-1] - rows.indptr[0]) for rows in (lists, relevant))
        most = min(sizes) if collect else 0
        indptr = np.empty(last - first + 1 if collect else 0, np.int64)
        hits = Hits(indptr, np.empty(most, np.int64), np.empty(most))
        if rankings.last_positions is None:
            sweep(
                lists, self.positions, relevant, hit_gains, self.raised, binary_hits,
                self.cutoffs, self.tables[0], float(self.aligned.convention.shift), table,
                first_found, hits,
            )  # fmt: skip
            if collect:
                found["all_hits"] = hits
        else:
            tied_hits = TiedHits(*hits, np.empty(most, np.int64))
            table[:] = 0.0
            sweep_tied(
                lists, self.positions, rankings.last_positions, lengths, relevant, hit_gains,
                self.raised, self.cutoffs, self.tables[0], table, tied_hits,
            )  # fmt: skip
            if collect:
                found["tied_hits"] = tied_hits
        fill_ideal(
            relevance, users, self.ideal_cutoffs, self.tables, table, self.n_relevant[users],
            self.exponential, self.aligned.convention.ideal, lengths,
        )  # fmt: skip
        return found

    def _statistics(
        self, first: int, last: int, table: Floats, found: dict[str, Any]
    ) -> dict[int, Statistics]:
        """Return the statistics of a block, by cut-off."""
        n_relevant = self.n_relevant[first:last]
        lengths = self.aligned.rankings.lengths[first:last].view()
        for shared in (table, n_relevant, found["first_found"], lengths):
            shared.flags.writeable = False  # formulas may be foreign code
        if self.uses:
            found |= self._optional(first, last, n_relevant, found)
        largest = found.pop("largest_sum", None)
        kind = Statistics if self.aligned.rankings.last_positions is None else TiedStatistics
        statistics = {}
        for cut, k in enumerate(self.cutoffs.tolist()):
            values = {name: table[at, cut] for at, name in self.sums} | found
            if largest is not None:
                values["largest_sum"] = largest[cut]
            statistics[k] = kind(values | {"k": k, "n_relevant": n_relevant, "lengths": lengths})
        return statistics

    def _optional(
        self, first: int, last: int, n_relevant: Integers, found: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the attributes of `Statistics` that only some metrics use."""
        aligned = self.aligned
        indptr = aligned.relevance.indptr[first : last + 1]
        values: dict[str, Any] = {}
        if "hits" in self.uses:
            values["largest_gain"] = self.largest_gain
        if "total_gain" in self.uses:
            total = n_relevant.astype(np.float64)
            if not aligned.relevance.binary or aligned.weights is not None:
                rows = np.repeat(np.arange(last - first), np.diff(indptr))
                gains = aligned.relevant_gains[indptr[0] : indptr[-1]]
                total = np.bincount(rows, gains, last - first).astype(np.float64)
            values["all_gain"] = total
            _check_sums(total * aligned.side_data.n_items, first, "g · rank")
        if "candidates" in self.uses:
            candidates = values["candidates"] = aligned.count_candidates(first, last)
            hits = found.get("all_hits") or found["tied_hits"]
            reached = np.minimum(aligned.rankings.lengths[first:last], self.cutoffs[-1])
            _check_candidates(candidates, reached, np.diff(hits.indptr), first, n_relevant)
        if "judged" in self.uses:
            values["judged_items"] = np.diff(indptr)
        if "ideal_gain" in self.uses:
            values["largest_sum"] = sum_largest(aligned.relevance, first, last, self.cutoffs)
        return values


def fill_ideal(
    relevance: Relevance,
    users: slice,
    cutoffs: Integers,
    tables: tuple[Floats, Floats],
    table: Floats,
    n_relevant: Integers,
    exponential: bool,
    ideal: str,
    lengths: Integers,
) -> None:
    """Write the numbers of relevant items of some users, and the sums over ideal lists.

    `ideal` is as in `Convention`, and `lengths` are the lengths of the users' lists.
    """
    # A user without a list gets an ideal list of one item, so that nothing is divided by 0.
    limits = np.maximum(lengths, 1) if ideal == "length" else lengths[:0]
    indptr = relevance.indptr[users.start : users.stop + 1]
    if relevance.binary or ideal == "slots":  # sums of discounts
        n_relevant[:] = np.diff(indptr)
        if not relevance.binary:
            is_relevant = relevance.gains[indptr[0] : indptr[-1]] > 0.0
            n_relevant[:] = np.diff(indptr_from_counts(is_relevant)[indptr - indptr[0]])
        reached = np.minimum(n_relevant, limits) if len(limits) else n_relevant
        for cut, k in enumerate(cutoffs.tolist()):
            sums = tables[1][k if ideal == "slots" else np.minimum(reached, k)]
            table[[AT.idcg, AT.idcg_exp, AT.idcg_binary], cut] = sums
        return
    room = np.empty(int(np.diff(indptr).max(initial=0)))
    given = cutoffs, *tables, limits, room
    table[AT.idcg_exp] = 0.0
    sum_ideal(indptr, relevance.gains, *given, AT.idcg, table, n_relevant)
    if exponential:
        raised = elementary.exp2m1(relevance.gains[indptr[0] : indptr[-1]])
        sum_ideal(indptr - indptr[0], raised, *given, AT.idcg_exp, table, n_relevant)


def sum_largest(relevance: Relevance, first: int, last: int, cutoffs: Integers) -> Floats:
    """Return the sums of the largest gains of users at each cut-off, shape (cut-offs, users)."""
    n_ranks = int(np.diff(relevance.indptr[first : last + 1]).max(initial=0))
    undiscounted = np.concatenate(([0.0], np.ones(n_ranks)))
    table = np.zeros((len(NAMES), len(cutoffs), last - first))
    lengths = np.empty(last - first, np.int64)
    fill_ideal(
        relevance, slice(first, last), cutoffs, (undiscounted, np.cumsum(undiscounted)), table,
        np.empty_like(lengths), False, "relevant", lengths,
    )  # fmt: skip
    sums: Floats = table[AT.idcg]
    return sums


def _check_candidates(
    candidates: Integers, reached: Integers, n_hits: Integers, first: int, n_relevant: Integers
) -> None:
    """Raise if a list holds more items than the user has candidates."""
    too_long = (reached - n_hits > candidates - n_relevant) & (n_relevant > 0)
    if too_long.any():
        user = int(np.flatnonzero(too_long)[0])
        raise InvalidDataError(
            f"the list of user {first + user} reaches position {reached[user]}, but there are "
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
        with np.errstate(divide="ignore", invalid="ignore"):  # empty lists
            value = plan.compute(lists)
            columns.store(row, first, last, value, plan.metric)

    for_blocks(work, aligned.n_users, num_threads, block)


def collect_hits(aligned: Aligned, k: int) -> Hits:
    """Return every hit down to rank `k` of all users."""
    collected: list[Hits] = []

    def keep(statistics: Statistics) -> Floats:
        collected.append(statistics.all_hits)
        return statistics.hits

    definition = Definition("hits", Formula(keep), "", "", uses=("hits",))
    plan = Plan(Metric("hits", k), definition, {})
    measure(aligned, [plan], num_threads=1, block=max(aligned.n_users, 1))
    return collected[0]


def value_of_lists(plan: Plan, lists: Any) -> float:
    """Return a metric that is one number for all users, from lists or their counts.

    Without users, the value is NaN if the formula divides by their number; coverage is 0.

    Raises `InvalidMetricError` if the formula does not return one number.
    """
    try:
        value = plan.compute(lists)
    except ZeroDivisionError:
        if lists.n_users:
            raise
        return math.nan
    if plan.definition.formula.combine is not None:
        value = plan.definition.formula.combine(value, **plan.arguments)
    if not fits(value, ()):
        raise InvalidMetricError(
            f"the formula of metric {plan.metric} returned {reprlib.repr(value)}; expected one "
            "number",
            metric=plan.metric,
        )
    return float(value)


def _check_sizes(table: Floats, first_user: int) -> None:
    # At the last cut-off, these three bound every other statistic of gains.
    for name in ("gain", "idcg", "idcg_exp"):
        gain = "2^g − 1" if name == "idcg_exp" else "g"
        _check_sums(table[getattr(AT, name), -1], first_user, gain)
    for name in ("idcg", "idcg_exp"):
        _check_ideal(table[getattr(AT, name), -1], first_user)


def _check_sums(sums: Floats, first_user: int, summand: str) -> None:
    if not np.isfinite(sums).all():
        user = first_user + int(np.flatnonzero(~np.isfinite(sums))[0])
        raise InvalidDataError(
            f"row {user} of the validation matrix: the gains are so large that the sum of "
            f"{summand} is not finite; scale them down, or set each to 1",
            row=user,
        )


def _check_ideal(ideal: Floats, first_user: int) -> None:
    # Below the smallest normal number, a sum has few digits left: 5e-324 / log2(3) is 5e-324.
    is_small = (ideal > 0) & (ideal < np.finfo(np.float64).tiny)
    if is_small.any():
        user = first_user + int(np.flatnonzero(is_small)[0])
        raise InvalidDataError(
            f"row {user} of the validation matrix: all gains are below 1e-307, where numbers lose "
            "digits; scale them up, or set each to 1",
            row=user,
        )


def discount_tables(convention: Convention, deepest: int) -> tuple[Floats, Floats]:
    """Return the discount of every rank down to at least `deepest`, and the running sums.

    Entry r is the discount of rank r, and the sum over the ranks from 1 to r.
    """
    return _discount_tables(convention.shift, max(1024, 1 << deepest.bit_length()))


@lru_cache(maxsize=8)
def _discount_tables(shift: int, size: int) -> tuple[Floats, Floats]:
    discounts = np.concatenate(([0.0], discount(np.arange(1, size), shift)))
    sums = np.cumsum(discounts)
    discounts.flags.writeable = sums.flags.writeable = False
    return discounts, sums


class MetricColumns(NamedTuple):
    """The values of some plans for each user, before any user is left out.

    Attributes
    ----------
    values : ndarray of float64, shape (n_plans, n_users)
        For a micro average, the numerators. NaN if the plan has only one number for all users.
    denominators : dict of int to ndarray of float64, shape (n_users,)
        The denominators of micro averages, by row.
    """

    values: Floats
    denominators: dict[int, Floats]

    @classmethod
    def empty(cls, plans: Sequence[Plan], n_users: int) -> MetricColumns:
        """Allocate the columns of `plans`."""
        micro = (row for row, plan in enumerate(plans) if plan.is_micro)
        return cls(np.empty((len(plans), n_users)), {row: np.empty(n_users) for row in micro})

    def store(self, row: int, first: int, last: int, value: object, metric: object) -> None:
        """Store the result of a metric's formula for the users from `first` to `last`."""
        size = last - first
        if isinstance(value, tuple) and len(value) == 2:
            above, below = value
            if fits(above, (size,)) and (fits(below, ()) or fits(below, (size,))):
                if row in self.denominators:
                    self.values[row, first:last], self.denominators[row][first:last] = above, below
                else:
                    self.values[row, first:last] = _divide(above, below)
                return
        elif row not in self.denominators and fits(value, (size,)):
            self.values[row, first:last] = np.asarray(value)
            return
        raise InvalidMetricError(
            f"the formula of metric {metric} returned {reprlib.repr(value)} for {size} users; "
            "expected a real number for each, or a pair of numerators and denominators, which "
            "average=micro needs",
            metric=metric,
        )

    def moments(
        self, row: int, users: Integers | slice = slice(None), *, squares: bool = False
    ) -> Moments:
        """Sum the values of some users, or their numerators."""
        return Moments.of(self.values[row, users], squares=squares)

    def mean(self, row: int, users: Integers | slice = slice(None)) -> float:
        """Return the mean over some users, or the ratio of sums of a micro average.

        Each sum is rounded once, so it does not depend on the order of the users. The mean is NaN
        without users.
        """
        above = self.moments(row, users)
        if row in self.denominators and above.n:
            return ratio_of(above, Moments.of(self.denominators[row][users], squares=False))
        return above.mean


def ratio_of(above: Moments, below: Moments) -> float:
    """Return the ratio of two sums, each rounded once; 0 / 0 is 0."""
    if math.isinf(above.sum) or math.isinf(below.sum):  # numbers near the largest float
        return above.mean / (below.mean or 1.0)
    return above.sum / (below.sum or 1.0)


def fits(value: object, shape: tuple[int, ...]) -> bool:
    """Return whether a value is real and has the given shape."""
    return isinstance(value, np.ndarray | np.number | int | float) and (
        np.shape(value) == shape and np.asarray(value).dtype.kind in "fiub"
    )


def _divide(above: Floats, below: Floats | float) -> Floats:
    """Divide; 0 / 0 is 0."""
    return np.divide(above, below, out=np.zeros(np.shape(above)), where=np.not_equal(below, 0))
