"""Rank a catalogue of items for each user, exactly: top-k lists and ranks of held-out items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..core.arguments import check_choice, check_whole
from ..inputs.candidates import mark_seen
from ..inputs.rankings import Rankings
from ..kernels.structures import Lists

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, Floats, Integers, Items, SparseInput
    from ..inputs.relevance import Relevance
    from .ranker import Ranker, Report


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


def find_lists(ranker: Ranker, k: int, rows: Integers | None = None) -> tuple[TopK, Floats, Report]:
    """Return the list of each user in `rows`, the best score that it left out, and a report."""
    k = min(check_whole("k", k, 1), ranker.longest)
    rows = np.arange(ranker.shape[0]) if rows is None else rows
    out = empty_results(len(rows), k)
    ranker.run(rows, k, None, out)
    return TopK(out.items, out.scores), out.dropped, ranker.report(len(rows))


def find_ranks(
    ranker: Ranker,
    held_out: Relevance | SparseInput,
    k: int | None,
    overlap: Literal["error", "report"] = "error",
) -> tuple[Rankings, int, int, Report]:
    """Return the ranks of held-out items up to `k`, or all if it is None, and statistics.

    There is no warning. The statistics are the number of held-out items that their users have seen,
    the number of ranked items whose score another candidate shares, and a report.
    """
    check_choice("overlap", overlap, ("error", "report"))
    prepared, rows, n_overlap = ranker.prepare_held_out(held_out, overlap)
    most = ranker.longest if k is None else min(k, ranker.longest)
    if k is None:
        ranker.run_fully(rows, prepared)
    else:
        ranker.run(rows, most, prepared, None)
    sizes = np.diff(prepared.indptr)
    place = np.arange(len(prepared.items)) - np.repeat(prepared.indptr[:-1], sizes)
    is_hit = (prepared.above < most) & (place < np.repeat(prepared.alive, sizes))
    before = np.concatenate([[0], np.cumsum(is_hit)])
    counts, lengths = np.zeros((2, ranker.shape[0]), np.int64)
    counts[rows] = np.diff(before[prepared.indptr])
    lengths[rows] = np.minimum(ranker.n_candidates(rows), most)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    ranks = prepared.above[is_hit] + np.int32(1)
    ranking = Rankings(ranker.shape, indptr, prepared.items[is_hit], ranks, lengths)
    n_tied = np.count_nonzero(prepared.tied[is_hit] > 0)
    return ranking, n_overlap, int(n_tied), ranker.report(len(rows))


def count_seen(relevance: Relevance, seen: CSRMatrix) -> int:
    """Return the number of relevant items that their users have seen; `seen` is canonical."""
    was_seen = mark_seen(relevance.indptr, relevance.items, seen.indptr, seen.indices)
    return int(np.count_nonzero(was_seen & (relevance.gains > 0)))


def empty_results(n: int, k: int) -> Lists:
    """Return `n` empty lists with room for `k` items each."""
    return Lists(
        np.full((n, k), -1, np.int32), np.full((n, k), -np.inf), np.zeros(n, np.int64), np.zeros(n)
    )
