"""`BlockResult`: the values of every metric for each user of a block, beside its lists."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.exact_sums import Moments
from ..core.hashing import digest_labels, fingerprints, hash_labels, splitmix64
from ..core.versions import installed_version
from ..errors import InvalidDataError
from ..metrics.measure import measure, values_of_lists
from ..metrics.random_baseline import random_totals
from .candidates import candidate_counts, candidate_hashes
from .counts import find_first_ranks, seen_counts
from .intervals import FEWEST_FOR_T, N_GROUPS
from .totals import ListCounts, ListSums, MergeKey, Part, Ratios, Span, Totals, UserValues

if TYPE_CHECKING:
    from ..core.types import AnyArray, Booleans, Floats, Hashes, Integers
    from ..inputs.axes import Axis
    from ..metrics.aligned import Aligned
    from ..metrics.columns import MetricColumns
    from ..metrics.plan import Plan
    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from .candidates import CandidateCounts
    from .counts import FirstRanks, SeenCounts
    from .totals import Retrieval


@dataclass(frozen=True, eq=False)
class BlockResult:
    """The columns of a block of users, and all that they were computed from.

    Attributes
    ----------
    request : Request
    aligned : Aligned
        The lists and relevant items of the users.
    columns : MetricColumns
        NaN for a user that is left out.
    n_relevant : ndarray of int64, shape (n_users,)
        Relevant items of each user.
    first_row : int
        The number of the first user, where users have no labels.
    retrieval : Retrieval or None
        How the rankings were made, if by a model.
    items_digest : str or None
        A digest of the catalogue's labels, where the block does not hold all of them.
    """

    request: Request
    aligned: Aligned
    columns: MetricColumns
    n_relevant: Integers
    first_row: int = 0
    retrieval: Retrieval | None = None
    items_digest: str | None = None

    @classmethod
    def compute(
        cls, request: Request, aligned: Aligned, num_threads: int | None = None
    ) -> BlockResult:
        """Measure every metric, and leave out the users that do not count."""
        columns, n_relevant = measure(aligned, request.plans, num_threads)
        result = cls(request, aligned, columns, n_relevant)
        alike: dict[tuple[bool, bool], list[int]] = {}
        for row, plan in enumerate(request.plans):
            alike.setdefault(plan.counts_apart(request.convention), []).append(row)
        without_relevant = n_relevant == 0
        exclude = request.no_relevant == "exclude"
        for rows in alike.values():
            is_out = ~result.counted(request.plans[rows[0]])
            # Of swept metrics: where the others are NaN already, few or none are left to find.
            not_yet = np.flatnonzero(is_out & ~without_relevant)
            kept_nan = [
                exclude and plan.is_swept and not plan.of_everyone
                for plan in map(request.plans.__getitem__, rows)
            ]
            left_out = not_yet if all(kept_nan) else np.flatnonzero(is_out)
            for row, is_nan in zip(rows, kept_nan, strict=True):
                plan = request.plans[row]
                counts_zero = plan.items == "all" and not plan.of_everyone
                if plan.is_swept and not exclude and counts_zero:
                    columns.values[row, without_relevant] = 0.0
                columns.values[row, not_yet if is_nan else left_out] = np.nan
        return result

    def counted(self, plan: Plan | None = None) -> Booleans:
        """Return for each user whether it counts for a plan, or in general."""
        convention, no_relevant = self.request.convention, self.request.no_relevant
        every_list, every_user = (False, False) if plan is None else plan.counts_apart(convention)
        has_list = self.aligned.has_list
        if every_list:
            return has_list.copy()
        if no_relevant == "zero":
            counted = np.ones(len(has_list), bool)
        elif no_relevant == "judged":
            counted = np.diff(self.aligned.relevance.indptr) > 0
        else:
            counted = self.n_relevant > 0
        if self.request.without_list == "exclude" and not every_user:
            counted &= has_list
        return counted

    def users_of(self, row: int) -> Integers:
        """Return the rows of the users that count for a plan and for whom it is defined."""
        plan = self.request.plans[row]
        counted = self.counted(plan)
        if plan.definition.per_user:
            counted &= ~np.isnan(self.columns.values[row])
        return np.flatnonzero(counted)

    def value_over(self, row: int, users: Integers) -> float:
        """Return a metric of some users: a mean, or one number about all of them."""
        plan = self.request.plans[row]
        if plan.definition.per_user:
            mean = self.columns.mean(row, users)
            return plan.number_of(mean) if plan.is_micro else mean
        return values_of_lists(self.aligned, [plan], users)[0]

    @cached_property
    def overall(self) -> dict[int, float]:
        """The numbers about all users that are not means, by the position of their metric."""
        return {
            row: self.value_over(row, self.users_of(row))
            for row, plan in enumerate(self.request.plans)
            if not plan.definition.per_user
        }

    def moments(self, row: int) -> Moments:
        """Return the sums of a metric's values, empty where it has none."""
        if not self.request.plans[row].per_user:
            return Moments()
        return self.columns.moments(row, self.users_of(row), squares=True)

    @property
    def n_without_list(self) -> int:
        """The number of users with relevant items and no list."""
        return int(np.count_nonzero((self.n_relevant > 0) & ~self.aligned.has_list))

    @cached_property
    def seen(self) -> SeenCounts | None:
        """What the users have in train, None where it is not known."""
        return seen_counts(self.aligned, self.counted())

    @cached_property
    def first_ranks(self) -> FirstRanks | None:
        """The first ranks of the lists; None if there are no lists or a model made them."""
        return None if self.retrieval else find_first_ranks(self.aligned)

    @cached_property
    def candidates(self) -> CandidateCounts | None:
        """What the candidates were, None where they were the whole catalogue."""
        hashes = self._candidate_hashes
        if hashes is None:
            return None
        return candidate_counts(self.aligned, self.counted(), self.user_hashes, hashes)

    @cached_property
    def _candidate_hashes(self) -> Hashes | None:
        if self.request.judged_only:  # whose numbers may be other ones in every block
            return self._relevance_hashes
        return candidate_hashes(self.aligned, self.aligned.relevance.items_index)

    @cached_property
    def propensities(self) -> dict[str, str]:
        """A digest of each input by which hits are weighted, by its name."""
        side_data = self.aligned.side_data
        return {
            name: side_data.digest_of_propensities(name)
            for name in sorted(self.request.weighted_by)
        }

    @property
    def per_user_values(self) -> Floats:
        """The rows of the metrics that have a value for each user."""
        rows = [row for row, plan in enumerate(self.request.plans) if plan.per_user]
        values = self.columns.values
        return values if len(rows) == len(values) else values[rows]

    @property
    def labels(self) -> Axis | None:
        """The users' labels, None where they are row numbers."""
        return self.aligned.relevance.users

    @cached_property
    def user_ids(self) -> AnyArray:
        """Labels or row numbers, in an array of int64 or of text."""
        labels = self.labels
        if labels is None:
            return np.arange(self.first_row, self.first_row + len(self.n_relevant))
        array = labels.to_numpy()
        if array.dtype.kind in "iu" and not (array.dtype.kind == "u" and (array >= 2**63).any()):
            return array.astype(np.int64)
        listed = labels.tolist()
        if listed and all(type(label) is int and -(2**63) <= label < 2**63 for label in listed):
            return np.array(listed, np.int64)
        if all(isinstance(label, str) for label in listed):
            return np.array(list(map(str, listed)), object)
        raise InvalidDataError(
            "users whose evaluations are merged or saved need labels that are all text, or all "
            "whole numbers of 64 bits; make them so, as with map(str, labels)"
        )

    @cached_property
    def user_hashes(self) -> Hashes:
        """A hash of each user's label or row number, the same wherever it is evaluated."""
        try:
            return hash_labels(self.user_ids)
        except InvalidDataError:  # labels of several types, of which blocks cannot be merged
            assert self.labels is not None  # noqa: S101 - row numbers are of one type
            return hash_labels(np.array([repr(label) for label in self.labels.tolist()], object))

    @cached_property
    def groups(self) -> Integers:
        """The group of each user, for the jackknife."""
        return (self.user_hashes % np.uint64(N_GROUPS)).astype(np.int64)

    @cached_property
    def fingerprints(self) -> Hashes:
        """A hash of each user's relevant items and their gains, and of candidates if given."""
        hashes = self._candidate_hashes
        if hashes is None or self.request.judged_only:
            return self._relevance_hashes
        return splitmix64(self._relevance_hashes ^ splitmix64(hashes))

    @cached_property
    def _relevance_hashes(self) -> Hashes:
        """A hash of each user's judged items and their gains."""
        relevance = self.aligned.relevance
        items, labels = relevance.items, relevance.items_index
        keys = None if labels is None else labels.item_keys
        return fingerprints(relevance.indptr, items, relevance.gains, keys)

    def list_counts(self, row: int) -> ListCounts:
        """Count the lists of each group of users, and how often they hold each item."""
        k, users = self.request.plans[row].metric.k, self.users_of(row)
        n_users, n_listed = np.zeros((2, N_GROUPS), np.int64)
        item_counts = np.zeros((N_GROUPS, self.aligned.side_data.n_items), np.int64)
        for group in range(N_GROUPS):
            lists = self.aligned.lists(k, users[self.groups[users] == group])
            n_users[group], n_listed[group] = lists.n_users, lists.n_listed
            item_counts[group] = lists.item_counts
        return ListCounts(n_users, n_listed, item_counts)

    def list_sums(self, row: int) -> ListSums:
        """Return what a number about all lists is made of, for each group of users."""
        plan, users = self.request.plans[row], self.users_of(row)
        groups = self.groups[users]
        members = [users[groups == group] for group in range(N_GROUPS)]
        lists = (self.aligned.lists(plan.metric.k, group) for group in members)
        sums = [plan.definition.formula(one, **plan.arguments) for one in lists]
        return ListSums(np.array(list(map(len, members)), np.int64), np.stack(sums))

    def ratios(self, row: int) -> Ratios:
        """Return the sums of a micro average for each group of users."""
        users, below = self.users_of(row), self.columns.denominators[row]
        groups = self.groups[users]
        members = (users[groups == group] for group in range(N_GROUPS))
        return tuple(
            (self.columns.moments(row, group), Moments.of(below[group], squares=False))
            for group in members
        )

    def random_totals(self, *, all_users: bool, drawn: bool = True) -> RandomTotals:
        """Return the random baseline of every metric, see `random_totals`."""
        users = [self.users_of(row) for row in range(len(self.request.plans))]
        keys = self.user_hashes if drawn else None
        return random_totals(self.aligned, self.request.plans, users, keys, all_users=all_users)

    def totals(self) -> Totals:
        """Return the exact sums over the users."""
        plans = self.request.plans
        convention = self.request.convention
        samples: list[Floats | None] = []
        lists: dict[tuple[bool, bool, int], ListCounts] = {}
        list_sums: dict[int, ListSums] = {}
        for row, plan in enumerate(plans):
            values = self.columns.values[row, self.users_of(row) if plan.per_user else slice(0)]
            samples.append(values if len(values) < FEWEST_FOR_T else None)
            key = (*plan.counts_apart(convention), plan.metric.k)
            if plan.definition.combine is not None:
                list_sums[row] = self.list_sums(row)
            elif not plan.definition.per_user and key not in lists:
                lists[key] = self.list_counts(row)
        return Totals(
            self._merge_key(),
            self._span(),
            int(np.count_nonzero(self.counted())),
            self.n_without_list,
            tuple(self.moments(row) for row in range(len(plans))),
            tuple(samples),
            {row: self.ratios(row) for row, plan in enumerate(plans) if plan.is_micro},
            lists,
            self.retrieval,
            seen=self.seen,
            candidates=self.candidates,
            list_sums=list_sums,
            first_ranks=self.first_ranks,
        )

    def part(self, *, per_user: bool) -> Part:
        """Return what is sent to whoever merges blocks."""
        if not per_user:
            return Part(self.totals())
        values = UserValues(
            self.user_ids,
            self.counted(),
            self.n_relevant,
            self.fingerprints,
            self.per_user_values,
        )
        return Part(self.totals(), values)

    def _merge_key(self) -> MergeKey:
        request, aligned = self.request, self.aligned
        catalogue = request.needs_catalogue
        items = self.items_digest
        if catalogue and items is None:
            sides = (aligned.relevance.items_index, aligned.rankings.items_index)
            labels = max((index for index in sides if index is not None), key=len, default=None)
            items = None if labels is None else digest_labels(labels.to_numpy())
        return MergeKey(
            request.names,
            request.convention.name,
            request.no_relevant,
            aligned.side_data.n_items if catalogue else None,
            items if catalogue else None,
            aligned.largest_gain if request.needs_largest_gain else None,
            aligned.side_data.digest_of(request.side_inputs) if request.side_inputs else None,
            installed_version(),
            request.corrected,
            request.seen,
            self.propensities,
            request.without_list,
        )

    def _span(self) -> Span:
        users = self.user_ids
        if not len(users):
            return Span(0, 0, 0, 0)
        first, last = users[[users.argmin(), users.argmax()]].tolist()
        return Span(first, last, len(users), int(self.user_hashes.sum(dtype=np.uint64)))
