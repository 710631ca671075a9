"""`Measured`: the values of every metric for each user of a block, with its lists."""

from __future__ import annotations

import math
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from ..core.exact_sums import Moments
from ..core.hashing import digest_labels, fingerprints, hash_labels, splitmix64
from ..core.threads import for_blocks
from ..core.versions import installed_version
from ..inputs.candidates import mark_seen
from ..kernels.catalogue import count_seen
from ..kernels.structures import Rows
from ..metrics.measure import measure, value_of_lists
from ..metrics.random_baseline import random_totals
from .counts import CandidateCounts, FirstRanks, ListSums, SeenCounts, Span
from .intervals import FEWEST_FOR_T, N_GROUPS
from .partial_results import Part, list_key, micro_average
from .user_values import ARRAYS, UserValues

if TYPE_CHECKING:
    from ..core.types import AnyArray, Booleans, Floats, Hashes, Integers
    from ..inputs.axes import Axis
    from ..metrics.aligned import Aligned
    from ..metrics.measure import MetricColumns
    from ..metrics.random_baseline import RandomTotals
    from ..metrics.request import Request
    from .counts import Retrieval
    from .partial_results import ListKey, MergeKey, Ratios


class Measured(Part):
    """The part of a block whose lists are here: each sum is computed when it is first read.

    Numbers about all users are computed from the lists, so that formulas can read all of them.

    Attributes
    ----------
    aligned : Aligned
        The lists and relevant items of the users.
    numbers : MetricColumns
        The value of each metric for each user, NaN for a user that is left out.
    n_relevant : ndarray of int64, shape (n_users,)
        Relevant items of each user.
    first_row : int
        The number of the first user, if users have no labels.
    items_digest : str or None
        A digest of the catalogue's labels, where the block does not hold all of them.
    """

    aligned: Aligned
    numbers: MetricColumns
    n_relevant: Integers
    first_row: int
    items_digest: str | None
    _counted: dict[tuple[bool, bool], Booleans]
    _sums: dict[int, Moments]

    def __init__(
        self,
        request: Request,
        aligned: Aligned,
        numbers: MetricColumns,
        n_relevant: Integers,
        first_row: int,
        retrieval: Retrieval | None,
        items_digest: str | None,
        has_hits: bool,
    ) -> None:
        vars(self).update(
            request=request, aligned=aligned, numbers=numbers, n_relevant=n_relevant,
            first_row=first_row, retrieval=retrieval, items_digest=items_digest, has_hits=has_hits,
            saved={}, _counted={}, _sums={},
        )  # fmt: skip

    @classmethod
    def compute(
        cls,
        request: Request,
        aligned: Aligned,
        num_threads: int | None = None,
        first_row: int = 0,
        retrieval: Retrieval | None = None,
        items_digest: str | None = None,
    ) -> Measured:
        """Measure every metric, and leave out the users that do not count."""
        numbers, n_relevant, has_hits = measure(aligned, request.plans, num_threads)
        about = first_row, retrieval, items_digest, has_hits
        block = cls(request, aligned, numbers, n_relevant, *about)
        has_relevant = n_relevant > 0
        exclude = request.no_relevant == "exclude"
        left_out: dict[tuple[bool, bool], tuple[Integers, Integers]] = {}
        for row, plan in enumerate(request.plans):
            key = plan.exceptions(request.convention)
            if key not in left_out:
                is_out = ~block.counts(*key)
                left_out[key] = np.flatnonzero(is_out), np.flatnonzero(is_out & has_relevant)
            needs_relevant = plan.is_swept and not plan.for_all_users
            if needs_relevant and not exclude and plan.items == "all":
                numbers.values[row, ~has_relevant] = 0.0
            # Without relevant items these are NaN already.
            numbers.values[row, left_out[key][exclude and needs_relevant]] = np.nan
        return block

    def counts(self, every_list: bool = False, every_user: bool = False) -> Booleans:
        """Return for each user whether it counts: for a plan, given its `Plan.exceptions`."""
        request, masks, key = self.request, self._counted, (every_list, every_user)
        if key not in masks:
            if every_list:
                mask = self.aligned.has_list
            elif request.no_relevant == "zero":
                mask = np.ones(len(self.n_relevant), bool)
            elif request.no_relevant == "judged":
                mask = np.diff(self.aligned.relevance.indptr) > 0
            else:
                mask = self.n_relevant > 0
            if request.without_list == "exclude" and not (every_user or every_list):
                mask = mask & self.aligned.has_list
            masks[key] = mask  # only once it is complete: other threads may read it
        return masks[key]

    def users_of(self, row: int) -> Integers:
        """Return the rows of the users that count for a plan and have a defined value."""
        plan = self.request.plans[row]
        counted = self.counts(*plan.exceptions(self.request.convention))
        if plan.definition.per_user:
            counted = counted & ~np.isnan(self.numbers.values[row])
        return np.flatnonzero(counted)

    def value_over(self, row: int, users: Integers) -> float:
        """Return a metric of some users: a mean, or one number about all of them."""
        plan = self.request.plans[row]
        if plan.definition.per_user:
            mean = self.numbers.mean(row, users)
            return plan.number_of(mean) if plan.is_micro else mean
        return value_of_lists(plan, self.aligned.lists(plan.metric.k, users))

    def random_totals(self, *, all_users: bool, drawn: bool = True) -> RandomTotals:
        """Return the random baseline of every metric, see `random_totals`."""
        users = [self.users_of(row) for row in range(len(self.request.plans))]
        keys = self.user_hashes if drawn else None
        return random_totals(self.aligned, self.request.plans, users, keys, all_users=all_users)

    @cached_property
    def counted(self) -> Booleans:
        """Whether each user counts in the means."""
        return self.counts()

    @property
    def labels(self) -> Axis | None:
        """The users' labels, None if they are row numbers."""
        return self.aligned.relevance.users

    @cached_property
    def user_ids(self) -> AnyArray:
        """Labels or row numbers, in an array of int64 or of text."""
        if self.labels is not None:
            return self.labels.to_numpy()
        return np.arange(self.first_row, self.first_row + len(self.n_relevant))

    @cached_property
    def user_hashes(self) -> Hashes:
        """A hash of each user's label or row number, the same wherever it is evaluated."""
        return hash_labels(self.user_ids)

    @cached_property
    def groups(self) -> Integers:
        """The group of each user, for the jackknife."""
        return (self.user_hashes % np.uint64(N_GROUPS)).astype(np.int64)

    @cached_property
    def candidate_hashes(self) -> Hashes | None:
        """A hash of each user's candidates, None if they are the whole catalogue."""
        if self.request.judged_only:  # whose numbers may be other ones in every block
            return self.relevance_hashes
        candidates, labels = self.aligned.side_data.candidates, self.aligned.relevance.items_index
        if candidates is None:
            return None
        if labels is not None and len(labels) < candidates.shape[1]:
            labels = candidates.items_index
        return candidates.fingerprints(self.aligned.n_users, labels)

    @cached_property
    def relevance_hashes(self) -> Hashes:
        """A hash of each user's judged items and their gains."""
        relevance = self.aligned.relevance
        items, labels = relevance.items, relevance.items_index
        keys = None if labels is None else labels.item_keys
        return fingerprints(relevance.indptr, items, relevance.gains, keys)

    def computed(self, *, per_user: bool = True) -> Part:
        """Return the part without lists, and without the users' values unless `per_user`."""
        known = {one.name: getattr(self, one.name) for one in fields(Part) if one.name != "values"}
        if not per_user:
            return Part(**known)
        return Part(**known, values=UserValues(*(getattr(self.values, name) for name in ARRAYS)))

    def overall(self, row: int, left_out: int | None = None) -> float:
        """Compute a number about all users, or about all but those of a group."""
        if left_out is None:
            return self.known_overall[row]
        if self.request.plans[row].is_micro:
            return micro_average(self.request.plans[row], self.ratios[row], left_out)
        users = self.users_of(row)
        users = users[self.groups[users] != left_out]
        return self.value_over(row, users) if len(users) else math.nan

    @cached_property
    def known_overall(self) -> dict[int, float]:
        """The numbers about all users that are not means, by the position of their metric."""
        return {
            row: self.value_over(row, self.users_of(row))
            for row, plan in enumerate(self.request.plans)
            if not plan.per_user
        }

    def group_sizes(self, row: int) -> Integers:
        """Return the number of users that count in each group of the jackknife."""
        return np.bincount(self.groups[self.users_of(row)], minlength=N_GROUPS)

    @property
    def n_users(self) -> int:
        """The number of users, whether or not they count."""
        return len(self.n_relevant)

    @property
    def values(self) -> UserValues:
        """The values of the users."""
        return _BlockValues(self)  # not kept, since it refers to the block

    @cached_property
    def fingerprints(self) -> Hashes:
        """A hash of each user's relevant items and their gains, and of candidates if given."""
        hashes = self.candidate_hashes
        if hashes is None or self.request.judged_only:
            return self.relevance_hashes
        return splitmix64(self.relevance_hashes ^ splitmix64(hashes))

    @cached_property
    def n_counted(self) -> int:
        """The number of users that count in the means."""
        return int(np.count_nonzero(self.counted))

    @cached_property
    def n_without_list(self) -> int:
        """The number of users with relevant items and no list."""
        return int(np.count_nonzero((self.n_relevant > 0) & ~self.aligned.has_list))

    def sums(self, row: int) -> Moments:
        """Return the sums of the users' values, computed when they are first asked for."""
        if row not in self._sums:
            has_values = self.request.plans[row].per_user
            users = self.users_of(row)
            sums = self.numbers.moments(row, users, squares=True) if has_values else Moments()
            self._sums[row] = sums
        return self._sums[row]

    def sample(self, row: int) -> Floats | None:
        """Return the users' values while they are too few for an interval from their sums."""
        users = self.users_of(row) if self.request.plans[row].per_user else slice(0)
        values = self.numbers.values[row, users]
        return values if len(values) < FEWEST_FOR_T else None

    @property
    def moments(self) -> tuple[Moments, ...]:
        """The sums of the values of each metric, empty if it has none."""
        return tuple(map(self.sums, range(len(self.request.plans))))

    @property
    def samples(self) -> tuple[Floats | None, ...]:
        """The values of each metric while they are too few for an interval from their sums."""
        return tuple(map(self.sample, range(len(self.request.plans))))

    @cached_property
    def ratios(self) -> dict[int, Ratios]:
        """The sums of each micro average."""
        return {
            row: tuple(
                (self.numbers.moments(row, group), Moments.of(below[group], squares=False))
                for group in self._members(row)
            )
            for row, below in self.numbers.denominators.items()
        }

    @cached_property
    def lists(self) -> dict[ListKey, ListSums]:
        """The sums behind the metrics of all lists."""
        sums: dict[ListKey, ListSums] = {}
        for row, plan in enumerate(self.request.plans):
            key = list_key(self.request, row)
            if not plan.definition.per_user and key not in sums:
                sums[key] = self._list_sums(row)
        return sums

    def _list_sums(self, row: int) -> ListSums:
        """Return the sums behind the metrics of all lists, for each group of users."""
        plan = self.request.plans[row]
        n_users, n_listed, sums = [], [], []
        for members in self._members(row):
            lists = self.aligned.lists(plan.metric.k, members)
            n_users.append(lists.n_users)
            n_listed.append(lists.n_listed)
            is_combined = plan.definition.formula.combine is not None
            sums.append(plan.compute(lists) if is_combined else lists.item_counts)
        return ListSums(np.array(n_users), np.array(n_listed), np.stack(sums))

    def _members(self, row: int) -> list[Integers]:
        """Return the rows of the users that count for a plan, by group of the jackknife."""
        users = self.users_of(row)
        groups = self.groups[users]
        return [users[groups == group] for group in range(N_GROUPS)]

    @cached_property
    def seen(self) -> SeenCounts | None:
        """Counts of items that users have in train, None without train."""
        training = self.aligned.side_data.training
        if training is None:
            return None
        rankings, relevance = self.aligned.rankings, self.aligned.relevance
        n_users = len(self.n_relevant)
        n_items = max(rankings.shape[1], relevance.shape[1], training.n_items)
        relevant, listed = np.empty((2, n_users), np.int64)

        def count(first: int, last: int) -> None:
            bounds = slice(first, last + 1)
            seen = Rows(training.indptr[bounds], training.items)
            wanted = Rows(relevance.indptr[bounds], relevance.items)
            lists = Rows(rankings.indptr[bounds], rankings.items)
            outs = relevant[first:last], listed[first:last]
            seen_by = np.full(n_items, -1, np.int32)
            count_seen(seen, wanted, relevance.gains, lists, seen_by, *outs)

        for_blocks(count, n_users)
        is_cold = training.user_counts[:n_users] == 0
        n_held_out = int(np.count_nonzero(relevance.gains > 0))
        n_cold = int(np.count_nonzero(self.counted & is_cold))
        return SeenCounts(n_cold, int(relevant.sum()), int(listed.sum()), n_held_out)

    @cached_property
    def first_ranks(self) -> FirstRanks | None:
        """The first ranks of the lists; None if there are no lists or a model made them."""
        rankings, relevance = self.aligned.rankings, self.aligned.relevance
        starts = rankings.indptr[:-1][np.diff(rankings.indptr) > 0]
        if self.retrieval or not len(starts):
            return None
        positions = rankings.gapped_positions
        smallest = 1 if positions is None else int(positions[starts].min())
        if smallest == 1:
            return FirstRanks(1, True)
        stored = mark_seen(rankings.indptr, rankings.items, relevance.indptr, relevance.items)
        return FirstRanks(smallest, not stored.all())

    @cached_property
    def candidates(self) -> CandidateCounts | None:
        """Counts of the candidates, None if they were the whole catalogue."""
        aligned, candidates = self.aligned, self.aligned.side_data.candidates
        if candidates is None:
            return None
        hashes = self.candidate_hashes
        assert hashes is not None  # noqa: S101 - there are candidates
        relevance, rankings = aligned.relevance, aligned.rankings
        is_relevant = relevance.gains > 0
        outside = ~candidates.hold(relevance.indptr, relevance.items)
        listed = ~candidates.hold(rankings.indptr, rankings.items)
        return CandidateCounts(
            candidates.kind,
            self.n_counted,
            int(aligned.eligible.counts[self.counted].sum()),
            int(np.count_nonzero(outside & is_relevant)),
            int(np.count_nonzero(listed)),
            int(np.count_nonzero(is_relevant)),
            int(splitmix64(self.user_hashes ^ hashes).sum(dtype=np.uint64)),
        )

    @cached_property
    def span(self) -> Span:
        """The range, number and hash of its users."""
        return Span.of(self.user_ids, self.user_hashes)

    @cached_property
    def key(self) -> MergeKey:
        """The settings that must be equal in evaluations that are merged."""
        request, aligned, side_data = self.request, self.aligned, self.aligned.side_data
        catalogue = request.needs_catalogue
        items = self.items_digest
        if catalogue and items is None:
            sides = (aligned.relevance.items_index, aligned.rankings.items_index)
            labels = max((index for index in sides if index is not None), key=len, default=None)
            items = None if labels is None else digest_labels(labels.to_numpy())
        weighted = sorted(request.weighted_by)
        inputs = request.side_inputs
        return {
            "metrics": request.names,
            "convention": request.convention.name,
            "no_relevant": request.no_relevant,
            # None if no metric depends on them.
            "n_items": side_data.n_items if catalogue else None,
            "items": items if catalogue else None,
            "largest_gain": aligned.largest_gain if request.needs_largest_gain else None,
            "side_data": side_data.digest_of(inputs) if inputs else None,
            "version": installed_version(),
            "seen": request.seen,
            "propensities": {name: side_data.digest_of_propensities(name) for name in weighted},
            "without_list": request.without_list,
            "retrieval": self.retrieval and self.retrieval.via,
            "candidates": side_data.candidates and side_data.candidates.kind,
        }


class _BlockValues(UserValues):
    """The values of the users of a block, of which some are computed when they are read."""

    block: Measured

    def __init__(self, block: Measured) -> None:
        training = block.aligned.side_data.training
        n_seen = None if training is None else training.user_counts[: len(block.n_relevant)]
        vars(self).update(block=block, counted=block.counted, n_relevant=block.n_relevant)
        vars(self).update(labels=block.labels, n_seen=n_seen, has_list=block.aligned.has_list)

    @property
    def user_ids(self) -> AnyArray:
        """Labels or row numbers, in an array of int64 or of text."""
        return self.block.user_ids

    @property
    def fingerprints(self) -> Hashes:
        """A hash of each user's relevant items and their gains, and of candidates if given."""
        return self.block.fingerprints

    @property
    def columns(self) -> Floats:
        """The rows of the metrics that have a value for each user."""
        rows = [row for row, plan in enumerate(self.block.request.plans) if plan.per_user]
        values = self.block.numbers.values
        return values if len(rows) == len(values) else values[rows]
