"""Rank a catalogue of items for each user, exactly: top-k lists and ranks of held-out items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..core.arguments import check_whole
from ..core.warning import warn
from ..errors import InvalidDataError
from ..inputs.candidates import Candidates, mark_seen
from ..inputs.rankings import Rankings
from ..kernels.structures import Lists
from .candidates import CandidateSearch
from .search import Search

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..core.types import AnyArray, CSRMatrix, Floats, Integers, Items, SparseInput
    from ..inputs.relevance import Relevance
    from .search import Report


def open_search(
    user_factors: AnyArray,
    item_factors: AnyArray,
    seen: SparseInput | None,
    candidates: ArrayLike | Candidates | None,
    exclude: ArrayLike | None,
    num_threads: int | None,
    progress: bool | None,
) -> Search:
    """Return the search of the whole catalogue, of some items, or of each user's candidates."""
    options = (exclude, num_threads, progress)
    if isinstance(candidates, Candidates):
        shape = len(user_factors), len(item_factors)
        candidates = _checked(candidates, shape)
        if not candidates.for_all:
            return CandidateSearch(user_factors, item_factors, seen, candidates, *options)
        candidates = candidates.items
    return Search(user_factors, item_factors, seen, candidates, *options)


def _checked(candidates: Candidates, shape: tuple[int, int]) -> Candidates:
    """Return candidates, or raise if they are not of these users and items."""
    n_users, n_items = shape
    if candidates.shape[1] > n_items or (not candidates.for_all and candidates.shape[0] < n_users):
        raise InvalidDataError(
            f"candidates has shape {candidates.shape}, but there are factors of {n_users} users "
            f"and {n_items} items; give a row for each user, and none but these items"
        )
    return candidates.within(n_items)


class TopK(NamedTuple):
    """Each user's best items.

    Attributes
    ----------
    ids : ndarray of int32, shape (n_lists, k)
        The best item first; -1 after the end of a shorter list.
    scores : ndarray of float64, shape (n_lists, k)
        Their scores; minus infinity after the end.
    """

    ids: Items
    scores: Floats

    @property
    def lengths(self) -> Integers:
        """The number of items in each list."""
        return np.asarray((self.ids >= 0).sum(axis=1, dtype=np.int64))


def top_k(
    user_factors: AnyArray,
    item_factors: AnyArray,
    k: int,
    *,
    seen: SparseInput | None = None,
    user_rows: ArrayLike | None = None,
    candidates: ArrayLike | Candidates | None = None,
    exclude: ArrayLike | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> TopK:
    """Find each user's `k` best items, exactly; see `sparse_eval.top_k`."""
    search = open_search(
        user_factors, item_factors, seen, candidates, exclude, num_threads, progress
    )
    return _lists(search, k, user_rows)[0]


def held_out_ranks(
    user_factors: AnyArray,
    item_factors: AnyArray,
    held_out: Relevance | SparseInput,
    k: int,
    *,
    seen: SparseInput | None = None,
    candidates: ArrayLike | Candidates | None = None,
    exclude: ArrayLike | None = None,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the ranks of held-out items up to `k`; see `sparse_eval.held_out_ranks`."""
    search = open_search(
        user_factors, item_factors, seen, candidates, exclude, num_threads, progress
    )
    ranks, n_overlap, *_ = _ranks(search, held_out, check_whole("k", k, 1), overlap)
    _warn_of_overlap(n_overlap)
    return ranks


def full_ranks(
    user_factors: AnyArray,
    item_factors: AnyArray,
    held_out: Relevance | SparseInput,
    *,
    seen: SparseInput | None = None,
    candidates: ArrayLike | Candidates | None = None,
    exclude: ArrayLike | None = None,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the rank of every held-out item; see `sparse_eval.full_ranks`."""
    search = open_search(
        user_factors, item_factors, seen, candidates, exclude, num_threads, progress
    )
    ranks, n_overlap, *_ = _ranks(search, held_out, None, overlap)
    _warn_of_overlap(n_overlap)
    return ranks


def find_lists(
    user_factors: AnyArray,
    item_factors: AnyArray,
    k: int,
    seen: SparseInput | None = None,
    user_rows: ArrayLike | None = None,
    *,
    candidates: Candidates | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> tuple[TopK, Floats, Report]:
    """Return the lists of `top_k`, the best score left out of each list, and a report."""
    search = open_search(user_factors, item_factors, seen, candidates, None, num_threads, progress)
    lists, left_out = _lists(search, k, user_rows)
    return lists, left_out, search.report(len(lists.ids))


def find_ranks(
    user_factors: AnyArray,
    item_factors: AnyArray,
    held_out: Relevance | SparseInput,
    k: int,
    seen: SparseInput | None = None,
    *,
    candidates: Candidates | None = None,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> tuple[Rankings, int, int, Report]:
    """Return the ranks of `held_out_ranks`, without a warning, and statistics.

    These are the number of held-out items that their users have seen, the number of ranked items
    whose score another candidate shares, and a report.
    """
    search = open_search(user_factors, item_factors, seen, candidates, None, num_threads, progress)
    return _ranks(search, held_out, k, overlap)


def count_seen(relevance: Relevance, seen: CSRMatrix) -> int:
    """Return the number of relevant items that their users have seen; `seen` is canonical."""
    was_seen = mark_seen(relevance.indptr, relevance.items, seen.indptr, seen.indices)
    return int(np.count_nonzero(was_seen & (relevance.gains > 0)))


def empty_results(n: int, k: int) -> Lists:
    """Return `n` empty lists with room for `k` items each."""
    return Lists(
        np.full((n, k), -1, np.int32), np.full((n, k), -np.inf), np.zeros(n, np.int64), np.zeros(n)
    )


def _lists(search: Search, k: int, user_rows: ArrayLike | None) -> tuple[TopK, Floats]:
    """Return each user's list, and the best score that it left out."""
    k = min(check_whole("k", k, 1), len(search.candidates))
    rows = search.check_rows(user_rows)
    out = empty_results(len(rows), k)
    search.run(rows, k, None, out)
    return TopK(out.items, out.scores), out.dropped


def _ranks(
    search: Search,
    held_out: Relevance | SparseInput,
    k: int | None,
    overlap: Literal["error", "report"],
) -> tuple[Rankings, int, int, Report]:
    """Return what `find_ranks` does; the ranks of all held-out items if `k` is None."""
    if not isinstance(overlap, str) or overlap not in ("error", "report"):
        raise InvalidDataError(f"overlap is {overlap!r}; expected 'error' or 'report'")
    prepared, rows, n_overlap = search.prepare_held_out(held_out, overlap)
    n_items = len(search.candidates)
    most = n_items if k is None else min(k, n_items)
    if k is None:
        search.run_fully(rows, prepared)
    else:
        search.run(rows, most, prepared, None)
    hits = search.hits(prepared, most)
    counts, lengths = np.zeros((2, search.shape[0]), np.int64)
    counts[rows] = hits.counts
    lengths[rows] = np.minimum(search.n_candidates(rows), most)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    ranking = Rankings(search.shape, indptr, hits.items, hits.ranks, lengths)
    return ranking, n_overlap, int(hits.tied.sum()), search.report(len(rows))


def _warn_of_overlap(n_overlap: int) -> None:
    if n_overlap:
        warn(
            f"{n_overlap} held-out items were seen by their users; they have no rank",
        )
