"""The search behind exact retrieval: a catalogue in the order of its norms, users in groups.

`Search` checks its inputs and orders the candidate items; its `run` groups users of similar
direction, so many at a time, and has the kernels look for what a user needs near the centre of the
group and, for those users for whom that is no use, by falling norm. `kernels.retrieval` says why
the result is exact; `benchmarks/RETRIEVAL.md` what each step gains.
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse
from tqdm.auto import tqdm

from ..core.csr import canonical_csr
from ..core.progress import is_shown
from ..core.threads import for_blocks, thread_count
from ..errors import InvalidDataError
from ..kernels.exact import (
    HeldOut,
    Lists,
    Seen,
    count_hits,
    find_seen,
    list_plainly,
    rank_plainly,
    score_held_out,
    write_hits,
)
from ..kernels.products import ROUNDING, UNIT, cosine_error, to_directions
from ..kernels.retrieval import (
    Catalogue,
    Groups,
    Task,
    Users,
    assign,
    count_above,
    project,
    search_by_norm,
    search_groups,
)
from .factors import check_factors, read_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import ArrayLike, NDArray

    from ..inputs.relevance import Relevance

    Integers = NDArray[np.int64]

__all__ = ["Report", "Search"]

#: Users grouped at once, which bounds what is held of them beside their factors.
USERS_AT_ONCE = 1 << 16

#: Users of a group, at most and about.
GROUP = 512
USERS_PER_CENTRE = 256
MOST_CENTRES = 96

#: Users and items of one product.
TILE = 128
WIDE_TILE = 256
CHUNK = 512

#: Items that are projected on the centres at once.
PROJECTED = 4096

#: Parts of the first batch, at least, and items of a part.
PARTS = 64
PER_PART = 4

#: Products of centres and items, and places of lists, that are held at once.
_AT_ONCE = 1 << 24

#: Below this, numbers that are selected from would lose digits.
_TINY = 1e-250


@dataclass(frozen=True)
class Report:
    """What a search met.

    Attributes
    ----------
    n_pairs : int
        Users × candidate items.
    n_products : int
        Of these, how many were multiplied.
    cold_users, cold_items : int
        Users, and candidate items, whose factors are all zero. Such a user gets the items in the
        order of their ids.
    """

    n_pairs: int
    n_products: int
    cold_users: int
    cold_items: int


def _no_lists() -> Lists:
    return Lists(np.empty((0, 0), np.int32), np.empty((0, 0)), np.empty(0, np.int64), np.empty(0))


def _nothing_held_out() -> HeldOut:
    none = np.empty(0, np.int64)
    few = np.empty(0, np.int32)
    return HeldOut(np.zeros(1, np.int64), few, np.empty(0), few, few, none)


class Search:
    """Checked inputs, the catalogue in the order of its norms, and what came of them."""

    def __init__(
        self,
        user_factors: Any,
        item_factors: Any,
        seen: Any,
        items: ArrayLike | None,
        exclude: ArrayLike | None,
        num_threads: int | None,
        progress: bool | None,
    ) -> None:
        self.threads = thread_count(num_threads)
        self.progress = progress
        (self.user_factors, self.user_norms), (self.item_factors, norms) = check_factors(
            user_factors, item_factors, num_threads
        )
        self.shape = (len(self.user_factors), len(self.item_factors))
        self.seen = self._check_seen(seen)
        self.is_candidate = self._check_candidates(items, exclude)
        self.candidates = np.flatnonzero(self.is_candidate).astype(np.int32)
        self.largest = float(norms[self.candidates].max())
        if not self.largest * float(self.user_norms.max(initial=0.0)) < 8e307:
            raise InvalidDataError(
                f"factors are so large (a user's of length {self.user_norms.max():g}, an item's "
                f"of {self.largest:g}) that a score could overflow; scale them down"
            )
        self.cold_items = int((norms[self.candidates] == 0).sum())
        # float32 sorts faster, and the order among nearly equal norms is no matter.
        short = (norms[self.candidates] / (self.largest or 1.0)).astype(np.float32)
        order = np.argsort(-short)
        short = short[order]
        rows = self.candidates[order]
        self.error = cosine_error(self.user_factors.shape[1])
        self.catalogue = Catalogue(
            self.item_factors,
            self._directions(self.item_factors, rows, norms[rows]),
            short,
            short / np.float32(UNIT**2),
            short * np.float32(self.error) + np.float32(ROUNDING),
            rows,
            np.arange(len(rows), dtype=np.int32),
        )
        self.lock = Lock()  # of what the threads share
        self.counts = np.zeros(1, np.int64)
        self.cold_users = 0

    def _check_seen(self, seen: Any) -> Seen:
        if seen is None:
            starts = np.zeros(self.shape[0] + 1, np.int64)
            return Seen(read_only(starts), read_only(np.empty(0, np.int32)))
        matrix = canonical_csr(seen, "seen", sum_duplicates=True)
        if matrix.shape != self.shape:
            raise InvalidDataError(
                f"seen has shape {matrix.shape}, but there are factors of {self.shape[0]} users "
                f"and {self.shape[1]} items; give what the model's own users have seen"
            )
        return Seen(
            read_only(matrix.indptr.astype(np.int64, copy=False)),
            read_only(matrix.indices.astype(np.int32, copy=False)),
        )

    def _check_candidates(
        self, items: ArrayLike | None, exclude: ArrayLike | None
    ) -> NDArray[np.bool_]:
        n_items = self.shape[1]
        mask = np.full(n_items, items is None)
        if items is not None:
            mask[_ids(items, "items", n_items, "items")] = True
        if exclude is not None:
            mask[_ids(exclude, "exclude", n_items, "items")] = False
        if not mask.any():
            raise InvalidDataError(
                "no item is left to choose from: items= is empty, or exclude= names all of them"
                if n_items
                else "item_factors have no rows; there is no item to choose from"
            )
        return mask

    def rows_of(self, users: ArrayLike | None) -> Integers:
        """Return the rows of the users who were asked for."""
        if users is None:
            return np.arange(self.shape[0])
        return _ids(users, "users", self.shape[0], "users")

    def n_candidates(self, rows: Integers) -> Integers:
        """Return how many candidates some users have not seen."""
        before = self.seen.indptr
        if len(self.candidates) < self.shape[1]:
            counted = np.concatenate([[0], np.cumsum(self.is_candidate[self.seen.items])])
            before = counted[self.seen.indptr]
        seen = before[rows + 1] - before[rows]
        return np.asarray(len(self.candidates) - seen)

    def held_out(
        self, relevance: Relevance, overlap: Literal["error", "report"]
    ) -> tuple[HeldOut, Integers, int]:
        """Return the held-out candidates, sorted; whose they are; how many had been seen."""
        n_relevant = relevance.n_relevant
        rows = np.flatnonzero(n_relevant)
        items = relevance.items
        if len(items) > n_relevant.sum():
            items = items[relevance.gains > 0]
        indptr = np.concatenate([[0], np.cumsum(n_relevant[rows])])
        was_seen = np.empty(len(items), bool)
        self._share(find_seen, len(rows), rows, indptr, items, self.seen, was_seen)
        n_overlap = int(was_seen.sum())
        if n_overlap and overlap == "error":
            first = int(was_seen.argmax())
            user = rows[np.searchsorted(indptr, first, side="right") - 1]
            raise InvalidDataError(
                f"{n_overlap} held-out items were seen by their users, the first by user "
                f"{user} (item {items[first]}), and can be in no list; split again, or "
                'leave them without a rank with overlap="report"'
            )
        kept = self.is_candidate[items] & ~was_seen
        if not kept.all():
            before = np.concatenate([[0], np.cumsum(kept)])
            indptr, items = before[indptr], items[kept]
        else:
            items = items.copy()  # they are sorted in place
        n = len(items)
        held = HeldOut(
            indptr,
            items,
            np.empty(n),
            np.zeros(n, np.int32),
            np.zeros(n, np.int32),
            np.zeros(len(rows), np.int64),
        )
        factors = (self.user_factors, self.item_factors)
        self._share(score_held_out, len(rows), rows, *factors, held)
        return held, rows, n_overlap

    def run(self, rows: Integers, k: int, held: HeldOut | None, out: Lists | None) -> None:
        """Find the ranks of what was held out for some users, or else their lists."""
        ranks = held is not None
        held = held or _nothing_held_out()
        out = out or _no_lists()
        maxima = PARTS
        while maxima < 2 * k and maxima < len(self.candidates):
            maxima *= 2
        batch = min(PER_PART * maxima, len(self.candidates))
        task = Task(k, ranks, batch, maxima, TILE, CHUNK)
        group = max(min(GROUP, _AT_ONCE // max(batch, 1 if ranks else 8 * k)), 1)
        limits = np.empty(min(len(rows), USERS_AT_ONCE), np.float32)

        plainly, results = (rank_plainly, (held,)) if ranks else (list_plainly, (k, out))
        with _progress(len(rows), self.progress) as bar:
            for places in self._warm_blocks(rows, bar, plainly, *results):
                users, groups_of = self._grouped(rows, places, group)
                where = (users, self.catalogue, self.seen, task, held, out, limits)
                for groups in groups_of:
                    block = max(len(groups.centre) // (8 * self.threads), 1)
                    self._search(groups.start, block, bar, search_groups, groups, *where)
                chosen = np.flatnonzero(limits[: len(places)] < np.inf)
                chosen = chosen[np.argsort(limits[chosen])[::-1]]
                counted = np.zeros(len(chosen) + 1, np.int64)
                self._search(counted, WIDE_TILE, bar, search_by_norm, chosen, *where)

    def run_fully(self, rows: Integers, held: HeldOut) -> None:
        """Count all that is above every held-out item of some users."""
        held.alive[:] = np.diff(held.indptr)
        with _progress(len(rows), self.progress) as bar:
            for block in self._warm_blocks(rows, bar, rank_plainly, held):
                places = block[np.diff(held.indptr)[block] > 0]
                scale = self.user_norms[rows[places]] * self.largest
                lowest = held.scores[held.indptr[places + 1] - 1] / scale
                users = self._users(rows, places[np.argsort(lowest)])
                where = (users, self.catalogue, self.seen, self.is_candidate, CHUNK, held)
                self._search(np.arange(len(places) + 1), TILE, bar, count_above, *where)

    def hits(
        self, held: HeldOut, k: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.bool_], Integers]:
        """Return the held-out items among the first `k`, their ranks, ties, and number by row."""
        counts = np.empty(len(held.alive), np.int64)
        self._share(count_hits, len(counts), held, k, counts)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        items, ranks = np.empty((2, indptr[-1]), np.int32)
        tied = np.empty(indptr[-1], bool)
        self._share(write_hits, len(counts), held, indptr, items, ranks, tied)
        return items, ranks, tied, counts

    def report(self, n_users: int) -> Report:
        """Say what the search met."""
        return Report(
            n_users * len(self.candidates), int(self.counts[0]), self.cold_users, self.cold_items
        )

    def _share(
        self, kernel: Callable[..., None], total: int, *where: Any, block: int | None = None
    ) -> None:
        for_blocks(lambda first, last: kernel(first, last, *where), total, self.threads, block)

    def _search(
        self, starts: Integers, block: int, bar: Any, kernel: Callable[..., None], *where: Any
    ) -> None:
        """Share a kernel that counts its products; `starts` are the users before each unit."""

        def work(first: int, last: int) -> None:
            counts = np.zeros(1, np.int64)
            kernel(first, last, *where, counts)
            with self.lock:
                self.counts += counts
                bar.update(int(starts[last] - starts[first]))

        self._share(work, len(starts) - 1, block=block)

    def _warm_blocks(
        self, rows: Integers, bar: Any, plainly: Callable[..., None], *results: Any
    ) -> Iterator[Integers]:
        """Deal with users who cannot be selected from, and give the places of others in blocks."""
        norms = self.user_norms[rows]
        scale = norms * self.largest
        cold = (norms == 0.0) | (self.largest == 0.0)
        tiny = ~cold & ((scale < _TINY) | (norms < _TINY) | (self.largest < _TINY))
        self.cold_users = int((norms == 0.0).sum())
        factors = (self.user_factors, self.item_factors)
        for is_cold, chosen in ((True, np.flatnonzero(cold)), (False, np.flatnonzero(tiny))):
            where = (chosen, rows, is_cold, *factors, self.candidates, self.seen, *results)
            self._share(plainly, len(chosen), *where)
            bar.update(len(chosen))
        warm = np.flatnonzero(~cold & ~tiny)
        for start in range(0, len(warm), USERS_AT_ONCE):
            yield warm[start : start + USERS_AT_ONCE]

    def _directions(
        self, factors: NDArray[Any], rows: NDArray[Any], norms: NDArray[np.float64]
    ) -> NDArray[np.int32]:
        width = factors.shape[1]
        directions = np.empty((len(rows), width + width % 2), np.int16)
        self._share(to_directions, len(rows), factors, rows, norms, directions)
        return directions.view(np.int32)

    def _users(self, rows: Integers, places: Integers) -> Users:
        users = rows[places]
        norms = self.user_norms[users]
        directions = self._directions(self.user_factors, users, norms)
        return Users(
            self.user_factors,
            users,
            places,
            directions,
            np.arange(len(users)),
            norms * self.largest,
            np.empty(0, np.float32),
        )

    def _grouped(
        self, rows: Integers, places: Integers, most: int
    ) -> tuple[Users, Iterator[Groups]]:
        """Put users of similar direction together, and give their groups, some at a time."""
        users = self._users(rows, places)
        centres = self._find_centres(users.directions)
        nearest, cosine = self._assign(users.directions, centres)
        order = np.argsort(nearest, kind="stable")
        users = users._replace(
            row=users.row[order],
            place=users.place[order],
            direction=order,
            scale=users.scale[order],
            cosine=cosine[order] - np.float32(self.error + ROUNDING),
        )
        bounds = np.searchsorted(nearest[order], np.arange(len(centres) + 1))
        return users, self._groups(centres, bounds, most)

    def _find_centres(self, directions: NDArray[np.int32]) -> NDArray[np.int32]:
        """Find directions near which users are: a few rounds of k-means on a sample of them."""
        n_centres = min(max(len(directions) // USERS_PER_CENTRE, 1), MOST_CENTRES)
        n = min(len(directions), 32 * n_centres)
        sample = directions[np.linspace(0, len(directions) - 1, n).astype(np.int64)]
        centres = sample[np.linspace(0, n - 1, n_centres).astype(np.int64)]
        for _ in range(3):
            nearest, _ = self._assign(sample, centres)
            members = sparse.csr_matrix(
                (np.ones(n, np.float32), nearest, np.arange(n + 1)), shape=(n, n_centres)
            )
            sums = members.T @ sample.view(np.int16)
            lengths = np.linalg.norm(sums, axis=1)
            moved = lengths > 1e-3 * UNIT
            centres.view(np.int16)[moved] = np.rint(sums[moved] * (UNIT / lengths[moved, None]))
        return centres

    def _assign(
        self, directions: NDArray[np.int32], centres: NDArray[np.int32]
    ) -> tuple[NDArray[np.int16], NDArray[np.float32]]:
        # Not by the BLAS, whose threads would go on waiting for work on our cores.
        n = len(directions)
        nearest = np.empty(n, np.int16)
        cosine = np.empty(n, np.float32)
        self._share(assign, n, directions, centres, nearest, cosine, block=2048)
        return nearest, cosine

    def _groups(self, centres: NDArray[np.int32], bounds: Integers, most: int) -> Iterator[Groups]:
        n_items = len(self.catalogue.norms)
        at_once = max(_AT_ONCE // n_items, 1)
        for first in range(0, len(centres), at_once):
            some = centres[first : first + at_once]
            projections = np.empty((len(some), n_items), np.float32)
            self._share(project, n_items, self.catalogue, some, projections, block=PROJECTED)
            starts = [np.zeros(0, np.int64)]
            owners = [np.zeros(0, np.int64)]
            for c in range(len(some)):
                begin, stop = bounds[first + c], bounds[first + c + 1]
                n_parts = -(-(stop - begin) // most)
                starts.append(begin + np.arange(n_parts) * (stop - begin) // max(n_parts, 1))
                owners.append(np.full(n_parts, c))
            last = bounds[min(first + at_once, len(centres))]
            yield Groups(
                np.concatenate([*starts, [last]]).astype(np.int64),
                np.concatenate(owners).astype(np.int64),
                projections,
            )


def _progress(n_users: int, progress: bool | None) -> tqdm[Any]:
    return tqdm(total=n_users, desc="retrieve", unit=" users", disable=not is_shown(progress))


def _ids(ids: ArrayLike, name: str, n: int, of: str) -> Integers:
    try:
        array = np.asarray(ids)
    except ValueError:
        array = np.empty((0, 0))
    if array.size == 0 and array.ndim == 1:
        return np.empty(0, np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu" or isinstance(ids, np.ma.MaskedArray):
        raise InvalidDataError(
            f"{name} is an array of {array.dtype} with shape {array.shape}; expected a "
            "one-dimensional one of whole numbers"
        )
    outside = (array < 0) | (array >= n)
    if outside.any():
        at = int(outside.argmax())
        raise InvalidDataError(
            f"{name}[{at}] is {array[at]}, but there are {n} {of} (0 to {n - 1})"
        )
    return array.astype(np.int64)
