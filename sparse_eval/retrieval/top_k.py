"""Rank a catalogue of items for each user, exactly: top-k lists and ranks of held-out items."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from ..core.arguments import check_whole
from ..core.threads import for_blocks
from ..errors import InvalidDataError
from ..inputs.rankings import Rankings
from ..kernels.exact import find_seen
from ..kernels.structures import Lists, Seen
from .factors import read_only
from .search import Search

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..core.types import AnyArray, Booleans, CSRMatrix, Floats, Integers, Items, SparseInput
    from ..inputs.relevance import Relevance
    from .search import Report


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
    candidates: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> TopK:
    """Find each user's `k` best items, exactly.

    The score of a user and an item is the dot product of their stored factors, accumulated in
    float64 in the order of the factors. Items are ordered by descending score; of equal scores
    the lower id comes first.

    Parameters
    ----------
    user_factors : ndarray of float16, float32 or float64, shape (n_users, f)
        Biases are columns of the factors, as in implicit's BPR and LMF. A tensor of another
        library, in memory that the CPU can read, is taken as it is, without a copy.
    item_factors : ndarray of float16, float32 or float64, shape (n_items, f)
        The dtype may differ from that of `user_factors`.
    k : int
        List length, at least 1. No list is longer than the number of candidates.
    seen : scipy sparse matrix or array, shape (n_users, n_items), optional
        Items to leave out of each user's list: every stored entry, explicit zeros included.
    user_rows : array_like of int, shape (n_lists,), optional
        Rows of `user_factors`, in any order; all by default.
    candidates : array_like of int, optional
        Rows of `item_factors` to choose from; all by default.
    exclude : array_like of int, optional
        Items to leave out of every list.
    num_threads : int, optional
        The number of threads; one per core by default. The result does not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    TopK
        ``ids`` and ``scores``, one row per user, with at most `k` columns.

    Raises
    ------
    InvalidDataError
        If factors are not finite (the row is named), differ in width, are so large that a score
        could overflow, or are tensors that want gradients or are on a GPU; if the shape of `seen`
        is not ``(n_users, n_items)``; if an id is out of range; or if no item is left to choose
        from.

    See Also
    --------
    held_out_ranks : Ranks of held-out items, at a fraction of the cost.

    Notes
    -----
    Items are searched in the order of their norms, and users of similar direction share their
    bounds, so most pairs are never scored; see [1]_ for the idea.

    References
    ----------
    .. [1] C. Teflioudi, R. Gemulla and O. Mykytiuk, "LEMP: Fast Retrieval of Large Entries in a
       Matrix Product", Proceedings of SIGMOD, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> users = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> items = np.array([[0.9, 0.1], [0.2, 0.9], [0.5, 0.5]])
    >>> ids, scores = se.top_k(users, items, k=2)
    >>> ids
    array([[0, 2],
           [1, 2]], dtype=int32)
    >>> se.top_k(users, items, k=2, exclude=[2]).ids
    array([[0, 1],
           [1, 0]], dtype=int32)
    """
    search = Search(user_factors, item_factors, seen, candidates, exclude, num_threads, progress)
    return _lists(search, k, user_rows)[0]


def held_out_ranks(
    user_factors: AnyArray,
    item_factors: AnyArray,
    held_out: Relevance | SparseInput,
    k: int,
    *,
    seen: SparseInput | None = None,
    candidates: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the ranks of the held-out items that are among a user's `k` best, exactly.

    Accuracy metrics with a cut-off of at most `k` need no more, and the ranks cost a fraction of
    the lists: most held-out items are out of reach as soon as a few popular items are scored.

    Parameters
    ----------
    user_factors, item_factors, seen, candidates, exclude, num_threads, progress
        As in `top_k`, and so is the order of the items.
    held_out : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        Every stored entry above 0 is a held-out item. A smaller matrix is padded.
    k : int
        The largest rank to find, at least 1.
    overlap : {"error", "report"}
        What to do about held-out items that their user has seen, which no list can hold: raise an
        error, or warn and leave them without a rank.

    Returns
    -------
    Rankings
        The held-out items among the first `k`, with their positions, and each user's list length.
        Users without held-out items have no list. `evaluate` returns the same values, to the last
        bit, as for the lists of `top_k`.

    Raises
    ------
    InvalidDataError
        As from `top_k`; if `held_out` has more users or items than the factors; or if a held-out
        item was seen and `overlap` is "error".

    Warns
    -----
    UserWarning
        If a held-out item was seen and `overlap` is "report".

    See Also
    --------
    full_ranks : Ranks of all held-out items, for metrics of the whole ranking.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> users = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> items = np.array([[0.9, 0.1], [0.2, 0.9], [0.5, 0.5]])
    >>> held_out = csr_matrix([[0, 0, 1], [1, 0, 0]])
    >>> ranks = se.held_out_ranks(users, items, held_out, k=2)
    >>> ranks.to_positions().toarray()
    array([[0, 0, 2],
           [0, 0, 0]], dtype=int32)
    >>> se.evaluate(ranks, held_out, "recall@2")["recall@2"]
    0.5
    """
    search = Search(user_factors, item_factors, seen, candidates, exclude, num_threads, progress)
    ranks, n_overlap, *_ = _ranks(search, held_out, check_whole("k", k, 1), overlap)
    _warn_of_overlap(n_overlap)
    return ranks


def full_ranks(
    user_factors: AnyArray,
    item_factors: AnyArray,
    held_out: Relevance | SparseInput,
    *,
    seen: SparseInput | None = None,
    candidates: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the rank of every held-out item among all unseen candidates, exactly.

    For metrics of the whole ranking: auc, mean_rank, percentile_rank. Scores are computed block by
    block; a matrix of users × items never exists.

    Parameters
    ----------
    user_factors, item_factors, held_out, seen, candidates, exclude, overlap, num_threads, progress
        As in `held_out_ranks`.

    Returns
    -------
    Rankings
        Every held-out candidate with its position; the length of a user's list is the number of
        unseen candidates.

    Raises
    ------
    InvalidDataError
        As from `held_out_ranks`.

    Warns
    -----
    UserWarning
        As from `held_out_ranks`.

    See Also
    --------
    held_out_ranks : Ranks up to `k` only, which is faster.

    Examples
    --------
    >>> import numpy as np
    >>> import sparse_eval as se
    >>> from scipy.sparse import csr_matrix
    >>> users = np.array([[1.0, 0.0], [0.6, 0.8]])
    >>> items = np.array([[0.9, 0.1], [0.2, 0.9], [0.5, 0.5]])
    >>> held_out = csr_matrix([[0, 0, 1], [1, 0, 0]])
    >>> ranks = se.full_ranks(users, items, held_out)
    >>> se.evaluate(ranks, held_out, ["mean_rank", "auc"]).mean()
    {'mean_rank': 2.5, 'auc': 0.25}
    """
    search = Search(user_factors, item_factors, seen, candidates, exclude, num_threads, progress)
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
    num_threads: int | None = None,
    progress: bool | None = None,
) -> tuple[TopK, Floats, Report]:
    """Return the lists of `top_k`, the best score left out of each list, and a report."""
    search = Search(user_factors, item_factors, seen, num_threads=num_threads, progress=progress)
    lists, left_out = _lists(search, k, user_rows)
    return lists, left_out, search.report(len(lists.ids))


def find_ranks(
    user_factors: AnyArray,
    item_factors: AnyArray,
    held_out: Relevance | SparseInput,
    k: int,
    seen: SparseInput | None = None,
    *,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> tuple[Rankings, int, int, Report]:
    """Return the ranks of `held_out_ranks`, without a warning, and statistics.

    These are the number of held-out items that their users have seen, the number of ranked items
    whose score another candidate shares, and a report.
    """
    search = Search(user_factors, item_factors, seen, num_threads=num_threads, progress=progress)
    return _ranks(search, held_out, k, overlap)


def count_seen(relevance: Relevance, seen: CSRMatrix) -> int:
    """Return the number of relevant items that their users have seen; `seen` is canonical."""
    was_seen = mark_seen(relevance.indptr, relevance.items, seen.indptr, seen.indices)
    return int(np.count_nonzero(was_seen & (relevance.gains > 0)))


def mark_seen(indptr: Integers, items: Items, seen_indptr: Integers, seen_items: Items) -> Booleans:
    """Return which items of a CSR are in the same row of another, whose rows ascend."""
    was_seen = np.empty(len(items), bool)
    users = np.arange(len(indptr) - 1)
    rows = read_only(indptr), read_only(items)
    seen = Seen(read_only(seen_indptr.astype(np.int64, copy=False)), read_only(seen_items))
    for_blocks(lambda a, b: find_seen(a, b, users, *rows, seen, was_seen), len(users))
    return was_seen


def _lists(search: Search, k: int, user_rows: ArrayLike | None) -> tuple[TopK, Floats]:
    """Return each user's list, and the best score that it left out."""
    k = min(check_whole("k", k, 1), len(search.candidates))
    rows = search.check_rows(user_rows)
    n = len(rows)
    out = Lists(
        np.full((n, k), -1, np.int32), np.full((n, k), -np.inf), np.zeros(n, np.int64), np.zeros(n)
    )
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
        warnings.warn(
            f"{n_overlap} held-out items were seen by their users; they have no rank",
            stacklevel=3,
        )
