"""From aligned lists and relevance to columns of numbers, block by block."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..core.exact_sums import Moments
from ..core.threads import for_blocks
from ..errors import InvalidDataError, InvalidMetricError
from ..inputs.training import take_rows as rows_of
from ..kernels.catalogue import count_unseen_candidates
from ..kernels.statistics import NAMES, sum_ideal, sweep, sweep_tied
from ..metrics import Convention, Definition, Hits, Lists, Metric, Statistics
from .conventions import MOST_SLOTS, discount

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from ..inputs.rankings import Rankings
    from ..inputs.relevance import Relevance
    from ..inputs.side_data import Context

    Values = NDArray[np.float64]
    Integers = NDArray[np.int64]

__all__ = [
    "Plan",
    "Setting",
    "Sums",
    "collect_hits",
    "count_candidates",
    "counts_apart",
    "discount_tables",
    "make_lists",
    "make_plans",
    "measure",
    "needs_catalogue",
    "needs_largest_gain",
    "ratio_of",
    "value_of_lists",
    "values_of_lists",
]

#: Discounts of so many ranks are kept, unless a user has more relevant items.
MAX_TABLE = 1 << 20


class Plan(NamedTuple):
    """A metric and what is known of it before any data are seen."""

    metric: Metric
    definition: Definition
    arguments: dict[str, Any]

    @property
    def is_micro(self) -> bool:
        """Whether users' numerators and denominators are added up first."""
        return self.arguments.get("average") == "micro"

    @property
    def is_exponential(self) -> bool:
        """Whether it needs the sums of 2^g − 1."""
        return self.arguments.get("gain") == "exp" or "exp" in self.definition.uses

    @property
    def per_user(self) -> bool:
        """Whether there is a value for each user."""
        return self.definition.per_user and not self.is_micro

    @property
    def upper(self) -> float:
        """The largest value it can take."""
        upper = self.definition.upper
        return upper(self.arguments) if callable(upper) else upper

    @property
    def needs(self) -> set[str]:
        """Inputs without which it cannot be computed."""
        chosen = {
            option.needs[value]
            for option in self.definition.options
            if (value := self.arguments[option.name]) in option.needs
        }
        return chosen | set(self.definition.needs)


@dataclass(frozen=True, eq=False)
class Setting:
    """What is evaluated: both sides, aligned, and what they are counted by."""

    rankings: Rankings
    relevance: Relevance
    context: Context
    convention: Convention

    @property
    def n_users(self) -> int:
        """Rows of both sides."""
        return len(self.relevance.indptr) - 1

    @property
    def largest_gain(self) -> float:
        """Of the whole validation data."""
        known = self.context.largest_gain
        return float(self.relevance.gains.max(initial=0.0)) if known is None else known

    @cached_property
    def hit_gains(self) -> tuple[Values, bool]:
        """What a hit of each relevant entry is worth in a list, and whether that is 1 for all."""
        gains, binary = self.relevance.gains, self.relevance.binary
        if self.convention.stored_zeros and not binary:
            return np.where(gains > 0, gains, 1.0), False
        return gains, binary

    @cached_property
    def n_candidates(self) -> Integers:
        """The candidates of every user, see `count_candidates`."""
        return count_candidates(self, 0, self.n_users)


def make_plans(
    metrics: Iterable[Metric], convention: Convention, given: frozenset[str]
) -> list[Plan]:
    """Say how each metric is computed, or raise `InvalidMetricError` where one cannot be."""
    plans = [Plan(metric, metric.definition, convention.arguments(metric)) for metric in metrics]
    for plan in plans:
        convention.check(plan.metric)
        for name in sorted(plan.needs - given):
            way = "--train on the command line" if name == "train" else "in Python only"
            raise InvalidMetricError(f"{plan.metric} needs {name}: give {name}= ({way})")
    return plans


def counts_apart(convention: Convention, plan: Plan) -> tuple[bool, bool]:
    """Say whether the convention lets a plan count every list, or users without a list."""
    of_lists = plan.definition.over == "lists" and plan.metric.name != "user_coverage"
    return convention.lists_of_all and of_lists, plan.metric.name in convention.without_list_zero


def needs_catalogue(plans: Iterable[Plan]) -> bool:
    """Say whether anything depends on how many items there are."""
    return any(
        plan.definition.over == "lists" or "candidates" in plan.definition.uses for plan in plans
    )


def needs_largest_gain(plans: Iterable[Plan]) -> bool:
    """Say whether anything depends on the largest gain of all."""
    return any(plan.definition.of_largest(plan.arguments) for plan in plans)


class Sums(NamedTuple):
    """The values of some plans for each user, before anybody is left out.

    Attributes
    ----------
    columns : ndarray of float64, shape (n_plans, n_users)
        The values, or the numerators of a micro average. NaN in the row of a plan that has one
        number for all users.
    denominators : dict of int to ndarray of float64, shape (n_users,)
        Of the micro averages, by row.
    """

    columns: Values
    denominators: dict[int, Values]

    @classmethod
    def empty(cls, plans: list[Plan], n_users: int) -> Sums:
        """Make room for the values of `plans`."""
        micro = (row for row, plan in enumerate(plans) if plan.is_micro)
        return cls(np.empty((len(plans), n_users)), {row: np.empty(n_users) for row in micro})

    def put(self, row: int, first: int, last: int, value: Any, name: object) -> None:
        """Store what the formula of a metric, `name`, returned for the users of a block."""
        pair = isinstance(value, tuple)
        size = last - first
        if pair and len(value) == 2:
            fits = _fits(value[0], (size,)) and (_fits(value[1], ()) or _fits(value[1], (size,)))
        else:
            fits = not pair and row not in self.denominators and _fits(value, (size,))
        if not fits:
            raise InvalidMetricError(
                f"the formula of metric {name} returned {_described(value)} for {size} users; "
                "expected a real number for each, or a pair of numerators and denominators, which "
                "average=micro needs"
            )
        if not pair:
            self.columns[row, first:last] = value
        elif row in self.denominators:
            self.columns[row, first:last], self.denominators[row][first:last] = value
        else:
            self.columns[row, first:last] = _ratio(*value)

    def mean(self, row: int, users: Any = slice(None)) -> float:
        """Return the mean of a plan over some users, or the ratio of sums of a micro average.

        Each sum is rounded once, so that it does not depend on their order. NaN for nobody.
        """
        above = self.moments(row, users)
        if row in self.denominators and above.n:
            return ratio_of(above, Moments.of(self.denominators[row][users], squares=False))
        return above.mean

    def moments(self, row: int, users: Any = slice(None), *, squares: bool = False) -> Moments:
        """Add up a plan's values of some users, or the numerators of a micro average."""
        return Moments.of(self.columns[row, users], squares=squares)


def _fits(value: Any, shape: tuple[int, ...]) -> bool:
    return isinstance(value, np.ndarray | np.number | int | float) and (
        np.shape(value) == shape and np.asarray(value).dtype.kind in "fiub"
    )


def _described(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if isinstance(value, tuple):
        return "(" + ", ".join(map(_described, value)) + ")"
    return f"a {type(value).__name__}"


def ratio_of(above: Moments, below: Moments) -> float:
    """Return the ratio of two sums, each rounded once; nothing out of nothing is 0."""
    if math.isinf(above.sum) or math.isinf(below.sum):  # of numbers near the largest float
        return above.mean / (below.mean or 1.0)
    return above.sum / (below.sum or 1.0)


def measure(
    setting: Setting,
    plans: list[Plan],
    num_threads: int | None = None,
    block: int | None = None,
) -> tuple[Sums, Integers]:
    """Compute every plan for every user, and count each user's relevant items.

    Metrics over statistics are NaN for users without relevant items.
    """
    sums = Sums.empty(plans, setting.n_users)
    swept = [row for row, plan in enumerate(plans) if plan.definition.over == "statistics"]
    if swept:
        n_relevant = _sweep(setting, plans, swept, sums, num_threads, block)
    else:
        n_relevant = setting.relevance.n_relevant
    for row, plan in enumerate(plans):
        if plan.definition.over == "lists" and plan.per_user:
            _measure_lists(setting, plan, row, sums, num_threads, block)
        elif not plan.definition.per_user:
            sums.columns[row] = np.nan
    return sums, n_relevant


def _sweep(
    setting: Setting,
    plans: list[Plan],
    swept: list[int],
    sums: Sums,
    num_threads: int | None,
    block: int | None,
) -> Integers:
    """Apply the formulas over statistics; return each user's number of relevant items.

    They are applied block by block, while the block's statistics are still in the cache; the
    statistics of all users never exist at once.
    """
    rankings, relevance, convention = setting.rankings, setting.relevance, setting.convention
    n_users = setting.n_users
    cutoffs = np.array(sorted({plans[row].metric.k for row in swept}), np.int64)
    uses = {use for row in swept for use in plans[row].definition.uses}
    exponential = any(plans[row].is_exponential for row in swept)
    slots, ideal_length = convention.ideal == "slots", convention.ideal == "length"
    last_positions = rankings.last_positions
    longest = int(rankings.lengths.max(initial=0))
    deepest = max(
        # A position may be as large as a catalogue: the sweep works out what no table holds.
        min(longest, MAX_TABLE) if last_positions is None else longest,
        int(np.diff(relevance.indptr).max(initial=0)),
    )
    cutoffs_of_ideal = cutoffs
    if slots:  # no metric that needs the ideal list has a larger cut-off, see `Convention.check`
        cutoffs_of_ideal = np.minimum(cutoffs, MOST_SLOTS)
        deepest = max(deepest, int(cutoffs_of_ideal.max()))
    tables = discount_tables(convention, min(int(cutoffs[-1]), deepest))
    gapped = rankings.gapped_positions is not None
    positions = rankings.positions if gapped else np.empty(0, np.int32)
    hit_gains, hits_binary = setting.hit_gains
    n_relevant = np.empty(n_users, np.int64)
    collect = "hits" in uses
    facts = _Facts(setting, uses, int(cutoffs[-1]))

    # A thread takes a buffer and gives it back: a fresh one for every block would cost more in
    # page faults than the sweep itself.
    buffers: list[Values] = []
    n_sums = len(NAMES) * len(cutoffs)
    formulas = [
        (row, plans[row].metric, plans[row].definition.formula, plans[row].arguments)
        for row in swept
    ]

    def work(first: int, last: int) -> None:
        size = last - first
        try:
            buffer = buffers.pop()
        except IndexError:
            buffer = np.empty(n_sums * size)  # no later block is larger
        table = buffer[: n_sums * size].reshape(len(NAMES), len(cutoffs), size)
        first_hit = np.zeros(size, np.int64)
        mine = slice(first, last)
        bounds = slice(first, last + 1)
        lists = (rankings.indptr[bounds], rankings.items, positions)
        lengths = rankings.lengths[mine]
        indptr = relevance.indptr[bounds]
        relevant = (indptr, relevance.items, hit_gains)
        # A user without a list has an ideal one, of one item, so that 0 is divided by something.
        limits = np.maximum(lengths, 1) if ideal_length else lengths[:0]
        sum_ideal(
            indptr, relevance.gains, relevance.binary, cutoffs_of_ideal, *tables, exponential,
            slots, limits, table, n_relevant[mine],
        )  # fmt: skip
        hits = _empty_hits(lists[0], indptr, collect)
        if last_positions is None:
            sweep(
                *lists, gapped, *relevant, hits_binary, cutoffs, tables[0], float(convention.shift),
                exponential, table, first_hit, collect, *hits,
            )  # fmt: skip
        else:
            tied = (*lists, last_positions, lengths, *relevant)
            sweep_tied(*tied, cutoffs, tables[0], exponential, table)
        _check_finite(table, first)
        known = facts.of_block(first, last, n_relevant[mine], hits) if uses else {}
        lengths = lengths.view()
        lengths.flags.writeable = False  # it is the caller's, and formulas may be anybody's
        at = {}
        for cut, k in enumerate(cutoffs.tolist()):
            named = dict(zip(NAMES, table[:, cut], strict=True))
            raised = (named.pop("dcg_exp"), named.pop("idcg_exp"))
            known["raised_sums"] = raised if exponential else None
            at[k] = Statistics(k, n_relevant[mine], first_hit, lengths, **named, **known)
        nothing_relevant = first + np.flatnonzero(n_relevant[mine] == 0)
        with np.errstate(divide="ignore", invalid="ignore"):  # of whom it makes 0/0
            for row, metric, formula, arguments in formulas:
                sums.put(row, first, last, formula(at[metric.k], **arguments), metric)
                # Here, while the row is in the cache: later it took a tenth of the whole time.
                sums.columns[row, nothing_relevant] = np.nan
        buffers.append(buffer)

    for_blocks(work, n_users, num_threads, block)
    return n_relevant


def _ratio(numerator: Values, denominator: Any) -> Values:
    """Divide; nothing out of nothing is 0."""
    ratio: Values = numerator / denominator
    if isinstance(denominator, np.ndarray):
        ratio[denominator == 0] = 0.0
    elif denominator == 0:
        ratio[:] = 0.0
    return ratio


def _empty_hits(list_indptr: Integers, relevant_indptr: Integers, collect: bool) -> Hits:
    if not collect:
        return Hits(list_indptr[:0], list_indptr[:0], np.empty(0))
    listed = int(list_indptr[-1] - list_indptr[0])
    most = min(listed, int(relevant_indptr[-1] - relevant_indptr[0]))
    return Hits(np.empty(len(list_indptr), np.int64), np.empty(most, np.int64), np.empty(most))


class _Facts:
    """What only some metrics use of users, made where it is used."""

    def __init__(self, setting: Setting, uses: set[str], deepest: int) -> None:
        self.setting = setting
        self.uses = uses
        self.deepest = deepest  # the last cut-off, down to which hits are known
        self.largest_gain = setting.largest_gain if "hits" in uses else 0.0

    def of_block(self, first: int, last: int, n_relevant: Integers, hits: Hits) -> dict[str, Any]:
        """Return the optional attributes of `Statistics` for a block of users."""
        known: dict[str, Any] = {}
        if "hits" in self.uses:
            known |= {"all_hits": hits, "largest_gain": self.largest_gain}
        if "total_gain" in self.uses:
            total = known["total_gain"] = self._total_gain(first, last, n_relevant)
            _check_sums(total * self.setting.context.n_items, first, "g · rank")
        if "candidates" in self.uses:
            candidates = known["n_candidates"] = count_candidates(self.setting, first, last)
            self._check_candidates(candidates, first, last, n_relevant, hits)
        return known

    def _total_gain(self, first: int, last: int, n_relevant: Integers) -> Values:
        if self.setting.relevance.binary:
            return n_relevant.astype(np.float64)
        indptr = self.setting.relevance.indptr[first : last + 1]
        owners = np.repeat(np.arange(last - first), np.diff(indptr))
        gains = self.setting.relevance.gains[indptr[0] : indptr[-1]]
        return np.bincount(owners, gains, last - first).astype(np.float64)

    def _check_candidates(
        self, candidates: Integers, first: int, last: int, n_relevant: Integers, hits: Hits
    ) -> None:
        lengths = np.minimum(self.setting.rankings.lengths[first:last], self.deepest)
        too_long = lengths - np.diff(hits.indptr) > candidates - n_relevant
        too_long &= n_relevant > 0
        if too_long.any():
            user = int(np.flatnonzero(too_long)[0])
            raise InvalidDataError(
                f"the list of user {first + user} reaches position {lengths[user]}, but there are "
                f"{candidates[user]} items to recommend; positions beyond the catalogue have no "
                "meaning for auc, mean_rank and percentile_rank"
            )


def count_candidates(setting: Setting, first: int, last: int) -> Integers:
    """Count the items that could be recommended to each user of a block.

    The catalogue less what the user has seen, unless it is relevant or in the list all the same.
    """
    context, training = setting.context, setting.context.training
    counts = np.full(last - first, context.n_items, np.int64)
    if training is None or setting.convention.whole_catalogue:
        return counts
    bounds = slice(first, last + 1)
    rankings, relevance = setting.rankings, setting.relevance
    count_unseen_candidates(
        training.indptr[bounds], training.items, relevance.indptr[bounds], relevance.items,
        setting.hit_gains[0], rankings.indptr[bounds], rankings.items, context.n_items, counts,
    )  # fmt: skip
    return counts


def _measure_lists(
    setting: Setting,
    plan: Plan,
    row: int,
    sums: Sums,
    num_threads: int | None,
    block: int | None,
) -> None:
    def work(first: int, last: int) -> None:
        lists = make_lists(setting, plan.metric.k, np.arange(first, last))
        with np.errstate(divide="ignore", invalid="ignore"):  # of empty lists
            value = plan.definition.formula(lists, **plan.arguments)
            sums.put(row, first, last, value, plan.metric)

    for_blocks(work, setting.n_users, num_threads, block)


def collect_hits(setting: Setting, k: int) -> Hits:
    """Return every hit down to rank `k` of all users."""
    found: list[Hits] = []

    def keep(statistics: Statistics) -> Values:
        assert statistics.all_hits is not None  # noqa: S101 - it uses them
        found.append(statistics.all_hits)
        return statistics.hits

    definition = Definition("hits", keep, "", "", uses=("hits",))
    plan = Plan(Metric("hits", k), definition, {})
    measure(setting, [plan], num_threads=1, block=max(setting.n_users, 1))
    return found[0]


def value_of_lists(setting: Setting, plan: Plan, users: Integers) -> float:
    """Return a metric that has one number for all `users` together; NaN if it is not defined."""
    return values_of_lists(setting, [plan], users)[0]


def values_of_lists(setting: Setting, plans: Iterable[Plan], users: Integers) -> list[float]:
    """Return several such metrics, which share what they need of the lists."""
    lists: dict[int, Lists] = {}
    values = []
    for plan in plans:
        k = plan.metric.k
        if k not in lists:
            lists[k] = make_lists(setting, k, users)
        value = plan.definition.formula(lists[k], **plan.arguments)
        if not _fits(value, ()):
            raise InvalidMetricError(
                f"the formula of metric {plan.metric} returned {_described(value)}; expected one "
                "number"
            )
        values.append(float(value))
    return values


def make_lists(setting: Setting, k: int, users: Integers) -> Lists:
    """Return the first `k` items of the lists of `users`.

    Raises
    ------
    InvalidDataError
        If a list has positions whose item is not known.
    """
    rankings, relevance, context = setting.rankings, setting.relevance, setting.context
    counts = np.minimum(np.diff(rankings.indptr)[users], k)
    incomplete = counts != np.minimum(rankings.lengths[users], k)
    if rankings.gapped_positions is not None and not incomplete.any():
        bounds, positions = rows_of(rankings.indptr, users, rankings.gapped_positions, limit=k)
        ranks = np.arange(1, len(positions) + 1) - np.repeat(bounds[:-1], counts)
        owners = np.repeat(np.arange(len(users)), counts)
        incomplete[owners[positions != ranks]] = True
    if incomplete.any():
        user = users[np.flatnonzero(incomplete)[0]]
        raise InvalidDataError(
            f"the list of user {user} has positions without an item; metrics of what is "
            "recommended need complete lists"
        )
    return Lists(
        k,
        users,
        (rankings.indptr, rankings.items),
        context.n_items,
        (relevance.indptr, relevance.items, relevance.gains),
        context.training,
        context.groups,
        context.vectors,
    )


def _check_finite(table: Values, first_user: int) -> None:
    # At the last cut-off these three bound every other statistic of gains.
    for name in ("gain", "idcg", "idcg_exp"):
        gain = "2^g − 1" if name == "idcg_exp" else "g"
        _check_sums(table[NAMES.index(name), -1], first_user, gain)


def _check_sums(sums: Values, first_user: int, of: str) -> None:
    if not np.isfinite(sums).all():
        user = first_user + int(np.flatnonzero(~np.isfinite(sums))[0])
        raise InvalidDataError(
            f"row {user} of the validation matrix: the gains are so large that the sum of {of} is "
            "not finite; scale them down or use gain=binary"
        )


def discount_tables(convention: Convention, deepest: int) -> tuple[Values, Values]:
    """Return the discount of every rank down to `deepest` at least, and their running sums.

    Entry r belongs to rank r, and to the ranks from 1 to r.
    """
    return _tables(convention.shift, max(1024, 1 << deepest.bit_length()))


@lru_cache(maxsize=8)
def _tables(shift: int, size: int) -> tuple[Values, Values]:
    single = np.array([0.0] + [discount(rank, shift) for rank in range(1, size)])
    sums = np.cumsum(single)
    single.flags.writeable = sums.flags.writeable = False
    return single, sums
