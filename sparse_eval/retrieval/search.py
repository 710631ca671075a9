"""Prepare a catalogue and groups of users, and run the kernels of retrieval on them.

`Search` orders the candidate items by falling norm, and processes users in blocks. `run` groups the
users of a block by direction, and the kernels search near the centre of each group first. If that
does not help a user, the items are searched by falling norm. `kernels.retrieval` explains why the
result is exact; `benchmarks/RETRIEVAL.md` has the gains.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import sparse

from ..core.threads import for_blocks
from ..kernels.cache import writable_folder
from ..kernels.candidates import list_exhaustively, rank_exhaustively
from ..kernels.centres import assign, project
from ..kernels.full_ranks import LEAST_NORM, WHOLE, count_above
from ..kernels.jit import is_ready
from ..kernels.ordered import search_in_order
from ..kernels.products import ROUNDING, UNIT, cosine_error, to_directions
from ..kernels.retrieval import search_groups
from ..kernels.structures import Catalogue, Groups, HeldOut, Lists, Packed, Task, Users
from ..kernels.vectors import LANES
from .ranker import FactorRanker
from .spaces import counting_space, group_space, growing_lists, order_space

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ..core.types import AnyArray, Floats, Integers, Items
    from .ranker import Options

    #: The 16-bit integers of two adjacent factors in one, as `kernels.products` takes them.
    Directions = NDArray[np.int32]


class SearchSettings(NamedTuple):
    """Sizes and limits that affect the time of a search, but not its results.

    Each rests on measurements of Gowalla and of synthetic data with two cores;
    `benchmarks/RETRIEVAL.md` has the figures.
    """

    # Users in memory at once, in addition to the factors. Up to `max_centres` centres divide them
    # into groups: finding 96 centres takes 2 % of the time. With 256 or 512 centres, shares fall by
    # a tenth, and the cost of each centre grows by as much. The numbers from 64 to 192 are within
    # the noise.
    users_per_block: int = 1 << 16
    max_centres: int = 96
    users_per_centre: int = 256
    max_group: int = 512
    # Users and items of a product near a centre: 64 or 256 users and 256 or 1,024 items are within
    # the noise, or slower.
    tile: int = 128
    chunk: int = 512
    # The same in the order of the norms. Products with more than 128 factors wait for memory.
    order_tile: int = 24
    wide: int = 128
    wide_tile: int = 96
    order_chunk: int = 2048
    order_block: int = 1536
    # The first batch near a centre has 4 · 64 items: with 512 lists took 5 % longer and ranks 15 %.
    min_parts: int = 64
    items_per_part: int = 4
    # In the order of the norms, more items in the first chunk give a better bound. In a large
    # catalogue they would be too many for users who need few.
    first_chunk: int = 4096
    large_catalogue: int = 60_000
    # Groups gain nothing up to 5,000 items. Otherwise about 256 users, at most one of 16, are
    # searched in order. All users are if these needed at most `easy_items` items each. Ranks of a
    # million users among 51,277 items took 5,500 items each in order, and 1,800 in groups with 0.72
    # of the time. Few users make poor groups.
    small_catalogue: int = 5_000
    tried_users: int = 256
    tried_share: int = 16
    easy_items: int = 5_000
    easy_for_ranks: int = 4_000
    few_users: int = 10_000
    easy_for_few: int = 12_000
    # Multiplications that a process spends on search in order before it compiles the kernels of
    # groups: both take about ten seconds. Where kernels are kept, later processes need not compile
    # them.
    worth_compiling: int = 2 * 10**12
    worth_keeping: int = 2 * 10**11
    # Multiplications of a call of a kernel, about a second's: Ctrl-C is heard after each.
    work_of_a_call: int = 5 * 10**10
    # Up to so many multiplications, threads cost more than they save. Ranks of 1,000 users among
    # 100 items of 8 factors took 1.1 ms with one thread, 1.5 ms with two.
    work_of_threads: int = 10**6
    # A search compares each held-out item with all items above it. For a user with the whole
    # catalogue held out, the time would grow with its square. Users with more than 4,096 held-out
    # items are ranked without a search, with this number of users and candidates in a call.
    most_held_out: int = 4096
    plain_users: int = 1_000
    plain_candidates: int = 1 << 20
    # Items projected on the centres in a call, and strips packed at once, which fit into the cache;
    # projections, or entries of lists, in memory at once.
    projected_items: int = 4096
    packed_strips: int = 256
    max_cells: int = 1 << 24


#: Users whose scores are smaller are ranked exactly: the selection would lose digits.
_TINY = 1e-250


class _Goal(NamedTuple):
    """The ranks of held-out items, or else the lists, that are searched for the users in `rows`.

    `k` and `batch` are as in `Task`, `maxima` as in `OrderSpace`.
    """

    rows: Integers
    held_out: HeldOut | None
    out: Lists | None
    k: int
    maxima: int = 0
    batch: int = 0


class GroupKernels:
    """The kernels of groups, which are compiled once for a process, and the work that they save.

    Attributes
    ----------
    multiplied : int
        The multiplications of searches in order that groups could have saved.
    """

    def __init__(self) -> None:
        self.multiplied = 0

    def are_worth(self, work: int, settings: SearchSettings) -> bool:
        """Return whether they are compiled, or the multiplications so far take longer than that.

        `work` is the number of multiplications of one more search in order.
        """
        if is_ready(search_groups):
            return True
        self.multiplied += work
        is_kept = writable_folder() is not None
        return self.multiplied > (settings.worth_keeping if is_kept else settings.worth_compiling)


#: The kernels of this process.
GROUP_KERNELS = GroupKernels()


class Search(FactorRanker):
    """Exact search of users' best items, or of the ranks of held-out items."""

    settings = SearchSettings()

    def __init__(self, user_factors: object, item_factors: object, options: Options) -> None:
        super().__init__(user_factors, item_factors, options)
        width = self.user_factors.shape[1]
        #: A bound on the error of a cosine of rounded directions.
        self.error = cosine_error(width)
        self.n_products = np.zeros(1, np.int64)
        # Users of one call of a kernel, and of one that searches in order.
        self.work_of_user = max(len(self.candidates) * int(width), 1)
        self.most_of_a_call = max(self.settings.work_of_a_call // self.work_of_user, 1)
        self.most_at_once = min(self.settings.order_block, self.most_of_a_call)

    @cached_property
    def catalogue(self) -> Catalogue:
        """The candidates, ordered by falling norm."""
        norms = self.item_norms
        # float32 sorts faster, and the order of nearly equal norms does not matter.
        short = (norms[self.candidates] / (self.largest or 1.0)).astype(np.float32)
        order = np.argsort(-short)
        short = short[order]
        rows = self.candidates[order]
        return Catalogue(
            self.item_factors,
            self._directions(self.item_factors, rows.astype(np.int64), norms[rows]),
            short,
            short / np.float32(UNIT**2),
            short * np.float32(self.error) + np.float32(ROUNDING),
            rows,
            np.arange(len(rows), dtype=np.int32),
        )

    def run(
        self, rows: Integers, k: int | None, held_out: HeldOut | None, out: Lists | None
    ) -> None:
        """Find the ranks of the held-out items of the users in `rows`, or else their lists.

        It searches near the centres of groups of users only if that is estimated to be faster.
        """
        self.check_users(rows)
        if held_out is not None:
            self.score_held_out(rows, held_out)
            if k is None:
                self._rank_all(rows, held_out)
                return
        assert k is not None  # noqa: S101 - lists have a length
        maxima = self.settings.min_parts
        while maxima < 2 * k and maxima < len(self.candidates):
            maxima *= 2
        batch = min(self.settings.items_per_part * maxima, len(self.candidates))
        goal = _Goal(rows, held_out, out, k, maxima, batch)
        in_order = len(self.candidates) <= self.settings.small_catalogue
        with self.bar(total=len(rows)) as bar:
            for block, result_rows in enumerate(self._regular_blocks(goal, bar)):
                if held_out is not None:
                    lengths = held_out.indptr[result_rows + 1] - held_out.indptr[result_rows]
                    held_out.alive[result_rows] = lengths
                if block == 0 and not in_order:
                    result_rows, in_order = self._try_in_order(goal, result_rows, bar)
                if in_order:
                    self._in_order(goal, self._users(rows, result_rows), bar)
                elif len(result_rows):
                    self._in_groups(goal, result_rows, bar)

    def _try_in_order(self, goal: _Goal, result_rows: Integers, bar: Any) -> tuple[Integers, bool]:
        """Search for some users in order; return the others, and whether to search so for them."""
        settings = self.settings
        is_first = np.zeros(len(result_rows), bool)
        is_first[:: max(len(result_rows) // settings.tried_users, settings.tried_share)] = True
        tried, others = result_rows[is_first], result_rows[~is_first]
        n_products = self._in_order(goal, self._users(goal.rows, tried), bar)
        if len(goal.rows) <= settings.few_users:
            easy = settings.easy_for_few
        else:
            easy = settings.easy_for_ranks if goal.out is None else settings.easy_items
        if n_products <= easy * len(tried):
            return others, True
        work = len(goal.rows) * self.work_of_user
        return others, not GROUP_KERNELS.are_worth(work, settings)

    def _in_order(
        self, goal: _Goal, users: Users, bar: Any, limits: NDArray[np.float32] | None = None
    ) -> int:
        """Search through the items by descending norm; return the number of products.

        `limits` are what groups have left to be done for each user: all by default, and nothing if
        infinite.
        """
        before = int(self.n_products[0])
        if limits is None:
            limits = np.full(len(users.row), -np.inf, np.float32)
        # The users of a tile are done after as many items.
        chosen = np.argsort(-limits, kind="stable")[np.count_nonzero(limits == np.inf) :]
        batch = (
            goal.batch
            if len(self.candidates) > self.settings.large_catalogue
            else self.settings.first_chunk
        )
        whole_strips = -(-max(batch, goal.batch) // LANES) * LANES
        cells = max(whole_strips, 1 if goal.out is None else 8 * goal.k)
        widest = (
            self.settings.wide_tile
            if self.user_factors.shape[1] > self.settings.wide
            else self.settings.order_tile
        )
        tile = max(min(widest, self.settings.max_cells // cells), 1)
        task = Task(goal.k, whole_strips, tile, self.settings.order_chunk)

        def make_space() -> tuple[object, ...]:
            lists = None if goal.out is None else growing_lists(task.tile, task.k)
            return order_space(task, goal.maxima), lists

        self._search(
            np.arange(len(chosen) + 1), (self.most_at_once, tile), bar, search_in_order,
            make_space, chosen, users, self.catalogue, self.packed, self.seen, task,
            goal.held_out, goal.out, limits,
        )  # fmt: skip
        return int(self.n_products[0]) - before

    def _in_groups(self, goal: _Goal, result_rows: Integers, bar: Any) -> None:
        """Search near the centres of groups, then in order for users that this does not help."""
        task = Task(goal.k, goal.batch, self.settings.tile, self.settings.chunk)
        cells = max(goal.batch, 1 if goal.out is None else 8 * goal.k)
        largest = max(min(self.settings.max_group, self.settings.max_cells // cells), 1)
        users, groups_of = self._grouped(goal.rows, result_rows, largest)
        limits = np.empty(len(result_rows), np.float32)
        pairs, n_items = self.catalogue.directions.shape[1], len(self.candidates)
        for groups in groups_of:
            n_groups, n_users = len(groups.centre), int(groups.start[-1] - groups.start[0])
            at_once = self.most_of_a_call * n_groups // max(n_users, 1)
            most = int(np.diff(groups.start).max(initial=0))

            def make_space(most: int = most) -> tuple[object, ...]:
                lists = None if goal.out is None else growing_lists(most, task.k)
                sizes = (most, pairs, n_items, self.shape[1], goal.maxima)
                return *group_space(task, *sizes), lists

            self._search(
                groups.start, (at_once, 1), bar, search_groups, make_space, groups, users,
                self.catalogue, self.seen, task, goal.held_out, goal.out, limits,
            )  # fmt: skip
        bar.update(-np.count_nonzero(limits < np.inf))
        self._in_order(goal, users, bar, limits)

    def _rank_all(self, rows: Integers, held_out: HeldOut) -> None:
        """Count all candidates above every held-out item of the users in `rows`."""
        held_out.alive[:] = np.diff(held_out.indptr)
        task = Task(1, 0, self.settings.order_tile, self.settings.order_chunk)
        # Weights are in units of the largest norm of each chunk.
        norms, weights = self.catalogue.norms, np.zeros_like(self.packed.weights)
        units = np.repeat(np.maximum(norms[:: task.chunk], LEAST_NORM), task.chunk)[: len(norms)]
        weights[: len(norms)] = norms / units.astype(np.float64) * (WHOLE / UNIT**2)
        packed = self.packed._replace(weights=weights)
        goal = _Goal(rows, held_out, None, len(self.candidates))
        with self.bar(total=len(rows)) as bar:
            for block in self._regular_blocks(goal, bar):
                result_rows = block[np.diff(held_out.indptr)[block] > 0]
                bar.update(len(block) - len(result_rows))
                lowest = held_out.scores[held_out.indptr[result_rows + 1] - 1]
                order = np.argsort(lowest / self.user_norms[rows[result_rows]])
                users = self._users(rows, result_rows[order])
                n_seen = np.concatenate(([0], np.cumsum(np.diff(self.seen.indptr)[users.row])))
                ends = np.minimum(np.arange(len(order)) + task.tile, len(order))
                most_seen = int((n_seen[ends] - n_seen[:-1]).max(initial=0))  # by a tile's users

                def make_space(most_seen: int = most_seen) -> tuple[object, ...]:
                    return (counting_space(task, len(self.candidates), most_seen),)

                self._search(
                    np.arange(len(order) + 1), (self.most_at_once, task.tile), bar, count_above,
                    make_space, users, self.catalogue, packed, self.seen, task, self.error,
                    held_out,
                )  # fmt: skip

    def _search(
        self,
        starts: Integers,
        sizes: tuple[int, int],
        bar: Any,
        kernel: Callable[..., None],
        make_space: Callable[[], tuple[object, ...]],
        *arguments: object,
    ) -> None:
        """Share a kernel that counts its products; `starts` are the users before each unit.

        `sizes` are the most and the fewest units of a call, if there are as many. A thread takes
        the space that it works in and gives it back: most blocks are shorter than the page faults
        of fresh memory.
        """
        spaces: list[tuple[object, ...]] = []
        n, n_users = len(starts) - 1, int(starts[-1] - starts[0])
        is_small = n_users * self.work_of_user <= self.settings.work_of_threads
        threads = 1 if is_small else self.threads
        block = max(min(n if is_small else n // (8 * threads), sizes[0]), sizes[1])

        def work(start: int, stop: int) -> None:
            counts = np.zeros(1, np.int64)
            try:
                space = spaces.pop()
            except IndexError:
                space = make_space()
            kernel(start, stop, *arguments, *space, counts)
            spaces.append(space)
            with self.lock:
                self.n_products += counts
                bar.update(int(starts[stop] - starts[start]))

        for_blocks(work, n, threads, block)

    def _regular_blocks(self, goal: _Goal, bar: Any) -> Iterator[Integers]:
        """Rank some users exactly, then yield the positions of the others in blocks.

        Ranked exactly are users whose scores are all zero (cold) or too small for the selection,
        and users with very many held-out items.
        """
        norms = self.user_norms[goal.rows]
        with np.errstate(under="ignore"):  # which the caller's settings may raise
            scale = norms * self.largest
        cold = (norms == 0.0) | (self.largest == 0.0)
        chosen = (scale < _TINY) | (norms < _TINY) | (self.largest < _TINY)
        if goal.held_out is not None and goal.k > self.settings.most_held_out:
            chosen |= np.diff(goal.held_out.indptr) > self.settings.most_held_out
        chosen &= ~cold
        for is_cold, users in ((True, np.flatnonzero(cold)), (False, np.flatnonzero(chosen))):
            if len(users):
                self._rank_plainly(goal, users, is_cold)
                bar.update(len(users))
        regular = np.flatnonzero(~cold & ~chosen)
        for start in range(0, len(regular), self.settings.users_per_block):
            yield regular[start : start + self.settings.users_per_block]

    def _rank_plainly(self, goal: _Goal, users: Integers, is_cold: bool) -> None:
        """Score every candidate of users at some positions of the goal's rows."""
        candidates, block = self.candidates, min(self.most_of_a_call, self.settings.plain_users)
        arguments = (users, goal.rows, is_cold, self.user_factors, self.item_factors)
        if goal.held_out is None:
            rest: tuple[object, ...] = (candidates, self.seen, goal.k, goal.out)
            for_blocks(list_exhaustively, len(users), self.threads, block, (*arguments, *rest))
            return
        size = max(len(candidates), 1) if is_cold else self.settings.plain_candidates
        for start in range(0, max(len(candidates), 1), size):
            are_last = start + size >= len(candidates)
            rest = (candidates[start : start + size], self.seen, goal.held_out, are_last)
            for_blocks(rank_exhaustively, len(users), self.threads, block, (*arguments, *rest))

    def _directions(self, factors: AnyArray, rows: Items | Integers, norms: Floats) -> Directions:
        width = factors.shape[1]
        directions = np.empty((len(rows), width + width % 2), np.int16)
        arguments = (factors, rows, norms, directions)
        for_blocks(to_directions, len(rows), self.threads, None, arguments)
        return directions.view(np.int32)

    @cached_property
    def packed(self) -> Packed:
        """The catalogue in strips, for the search in order."""
        directions = self.catalogue.directions
        n, pairs = directions.shape
        n_strips = -(-n // LANES)
        strips = np.empty((n_strips, pairs, LANES), np.int32)

        def pack_strips(first: int, last: int) -> None:
            rows = np.zeros(((last - first) * LANES, pairs), np.int32)
            packed = directions[first * LANES : last * LANES]
            rows[: len(packed)] = packed
            strips[first:last] = rows.reshape(last - first, LANES, pairs).transpose(0, 2, 1)

        for_blocks(pack_strips, n_strips, self.threads, self.settings.packed_strips)
        weights = np.zeros(n_strips * LANES, np.float32)
        weights[:n] = self.catalogue.weights
        index_of = np.full(self.shape[1], -1, np.int32)
        index_of[self.catalogue.item_of] = self.catalogue.order
        return Packed(strips, weights, index_of)

    def _users(self, rows: Integers, result_rows: Integers) -> Users:
        users = rows[result_rows]
        norms = self.user_norms[users]
        directions = self._directions(self.user_factors, users, norms)
        return Users(
            self.user_factors,
            users,
            result_rows,
            directions,
            np.arange(len(users)),
            norms * self.largest,
            np.empty(0, np.float32),
        )

    def _grouped(
        self, rows: Integers, result_rows: Integers, largest: int
    ) -> tuple[Users, Iterator[Groups]]:
        """Order users by direction; return them with their groups of at most `largest` users."""
        users = self._users(rows, result_rows)
        n_centres = min(
            max(len(result_rows) // self.settings.users_per_centre, 1), self.settings.max_centres
        )
        centres = find_centres(users.directions, n_centres, self.threads)
        nearest, cosine = nearest_centres(users.directions, centres, self.threads)
        order = np.argsort(nearest, kind="stable")
        users = users._replace(
            row=users.row[order],
            result_row=users.result_row[order],
            direction=order,
            scale=users.scale[order],
            cosine=cosine[order] - np.float32(self.error + ROUNDING),
        )
        bounds = np.searchsorted(nearest[order], np.arange(len(centres) + 1))
        return users, self._groups(centres, bounds, largest)

    def _groups(self, centres: Directions, bounds: Integers, largest: int) -> Iterator[Groups]:
        """Yield groups, for as many centres at a time as `self.settings.max_cells` allows."""
        n_items = len(self.catalogue.norms)
        step = max(self.settings.max_cells // n_items, 1)
        for first in range(0, len(centres), step):
            block = centres[first : first + step]
            projections = np.empty((len(block), n_items), np.float32)
            arguments = (self.catalogue, block, projections)
            for_blocks(project, n_items, self.threads, self.settings.projected_items, arguments)
            starts = [np.zeros(0, np.int64)]
            owners = [np.zeros(0, np.int64)]
            for c in range(len(block)):
                start, stop = bounds[first + c], bounds[first + c + 1]
                n_parts = -(-(stop - start) // largest)
                starts.append(start + np.arange(n_parts) * (stop - start) // max(n_parts, 1))
                owners.append(np.full(n_parts, c))
            last = bounds[min(first + step, len(centres))]
            yield Groups(
                np.concatenate([*starts, [last]]).astype(np.int64),
                np.concatenate(owners).astype(np.int64),
                projections,
            )


#: Users assigned to their nearest centres at once.
_ASSIGNED = 2048


def find_centres(directions: Directions, n_centres: int, threads: int) -> Directions:
    """Return centres of the users' directions: a few rounds of k-means on a sample."""
    n = min(len(directions), 32 * n_centres)
    sample = directions[np.linspace(0, len(directions) - 1, n).astype(np.int64)]
    centres = sample[np.linspace(0, n - 1, n_centres).astype(np.int64)]
    for _ in range(3):
        nearest, _ = nearest_centres(sample, centres, threads)
        members = sparse.csr_matrix(
            (np.ones(n, np.float32), nearest, np.arange(n + 1)), shape=(n, n_centres)
        )
        sums = members.T @ sample.view(np.int16)
        lengths = np.linalg.norm(sums, axis=1)
        moved = lengths > 1e-3 * UNIT
        centres.view(np.int16)[moved] = np.rint(sums[moved] * (UNIT / lengths[moved, None]))
    return centres


def nearest_centres(
    directions: Directions, centres: Directions, threads: int
) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
    """Return the centre nearest to each user, and the cosine between them."""
    # Without BLAS, whose threads would go on waiting for work on the same cores.
    n = len(directions)
    nearest = np.empty(n, np.int16)
    cosine = np.empty(n, np.float32)
    for_blocks(assign, n, threads, _ASSIGNED, (directions, centres, nearest, cosine))
    return nearest, cosine
