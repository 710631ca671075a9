"""Exact retrieval: every user's best items, or the ranks of held-out ones."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ..core.arguments import check_whole
from ..core.threads import for_blocks
from ..errors import InvalidDataError
from ..inputs.rankings import Rankings
from ..inputs.relevance import Relevance
from ..kernels.exact import Lists, Seen, find_seen
from .factors import read_only
from .search import Search

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .search import Report

__all__ = [
    "TopK",
    "count_seen",
    "find_lists",
    "find_ranks",
    "full_ranks",
    "held_out_ranks",
    "top_k",
]


class TopK(NamedTuple):
    """Lists of items.

    Attributes
    ----------
    ids : ndarray of int32, shape (n_lists, k)
        The best item first; -1 behind the end of a list that is shorter.
    scores : ndarray of float64, shape (n_lists, k)
        Their scores; minus infinity behind the end.
    """

    ids: NDArray[np.int32]
    scores: NDArray[np.float64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of items in each list."""
        return np.asarray((self.ids >= 0).sum(axis=1, dtype=np.int64))


def top_k(
    user_factors: NDArray[Any],
    item_factors: NDArray[Any],
    k: int,
    seen: Any = None,
    users: ArrayLike | None = None,
    items: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    *,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> TopK:
    """Find each user's `k` best items, exactly.

    The score of a user and an item is the dot product of their stored factors, accumulated in
    float64 in the order of the factors. The larger score comes first; of equal ones the lower id.

    Parameters
    ----------
    user_factors : ndarray of float16, float32 or float64, shape (n_users, f)
        Biases are columns of the factors, as in implicit's BPR and LMF.
    item_factors : ndarray of float16, float32 or float64, shape (n_items, f)
        It need not have the dtype of `user_factors`.
    k : int
        List length, at least 1. No list is longer than there are candidates.
    seen : scipy sparse matrix or array, shape (n_users, n_items), optional
        Items to leave out of each user's list: every stored entry, an explicit zero too.
    users : array_like of int, shape (n_lists,), optional
        Rows of `user_factors`, in any order; all by default.
    items : array_like of int, optional
        The candidates: rows of `item_factors`; all by default.
    exclude : array_like of int, optional
        Items that nobody gets.
    num_threads : int, optional
        One for each core by default. The result does not depend on it.
    progress : bool, optional
        Show a progress bar; by default on a terminal only.

    Returns
    -------
    TopK
        ``ids`` and ``scores``, one row for each user, with at most `k` columns.

    Raises
    ------
    InvalidDataError
        If factors are not finite (the row is named), of different widths or so large that a score
        could overflow; if `seen` is of other users or items; if an id is out of range; or if no
        item is left to choose from.

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
    lists, _, _ = find_lists(
        user_factors,
        item_factors,
        k,
        seen,
        users,
        items,
        exclude,
        num_threads=num_threads,
        progress=progress,
    )
    return lists


def held_out_ranks(
    user_factors: NDArray[Any],
    item_factors: NDArray[Any],
    held_out: Any,
    k: int,
    seen: Any = None,
    items: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    *,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the ranks of held-out items that are among a user's `k` best, exactly.

    Accuracy metrics at `k`, or less, need no more than this, and it costs a fraction of the lists:
    most held-out items are known to be out of reach when a few popular items have been scored.

    Parameters
    ----------
    user_factors, item_factors, seen, items, exclude, num_threads, progress
        As in `top_k`; so is the ranking.
    held_out : Relevance, or scipy sparse matrix or array, shape (n_users, n_items)
        Held-out is what is stored and above 0. A smaller matrix is padded.
    k : int
        At least 1.
    overlap : {"error", "report"}
        What to do about held-out items that their user has seen, which no list can hold: raise an
        error, or warn and give them no rank.

    Returns
    -------
    Rankings
        The held-out items among the first `k`, with their positions, and each user's list length.
        A user without held-out items has no list. `evaluate` makes of it, to the last bit, what it
        makes of the lists of `top_k`.

    Raises
    ------
    InvalidDataError
        As from `top_k`; if `held_out` has more users or items than the factors; or if a held-out
        item was seen and `overlap` is "error".

    Warns
    -----
    UserWarning
        If a held-out item was seen and `overlap` is "report".

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
    ranks, n_overlap, _, _ = find_ranks(
        user_factors,
        item_factors,
        held_out,
        check_whole("k", k, 1),
        seen,
        items,
        exclude,
        overlap=overlap,
        num_threads=num_threads,
        progress=progress,
    )
    _warn_of_overlap(n_overlap)
    return ranks


def full_ranks(
    user_factors: NDArray[Any],
    item_factors: NDArray[Any],
    held_out: Any,
    seen: Any = None,
    items: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    *,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> Rankings:
    """Find the rank of every held-out item among all that the user has not seen, exactly.

    For metrics of the whole ranking: auc, mean_rank, percentile_rank. Scores are computed block by
    block; a matrix of users × items never exists.

    Parameters
    ----------
    user_factors, item_factors, held_out, seen, items, exclude, overlap, num_threads, progress
        As in `held_out_ranks`.

    Returns
    -------
    Rankings
        Every held-out candidate with its position; a list is as long as there are candidates.

    Raises
    ------
    InvalidDataError
        As from `held_out_ranks`.

    Warns
    -----
    UserWarning
        As from `held_out_ranks`.

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
    ranks, n_overlap, _, _ = find_ranks(
        user_factors,
        item_factors,
        held_out,
        None,
        seen,
        items,
        exclude,
        overlap=overlap,
        num_threads=num_threads,
        progress=progress,
    )
    _warn_of_overlap(n_overlap)
    return ranks


def find_lists(
    user_factors: Any,
    item_factors: Any,
    k: int,
    seen: Any = None,
    users: ArrayLike | None = None,
    items: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    *,
    num_threads: int | None = None,
    progress: bool | None = None,
) -> tuple[TopK, NDArray[np.float64], Report]:
    """Do what `top_k` does; return the best score that each list left out, and a report too."""
    search = Search(user_factors, item_factors, seen, items, exclude, num_threads, progress)
    k = min(check_whole("k", k, 1), len(search.candidates))
    rows = search.rows_of(users)
    n = len(rows)
    out = Lists(
        np.full((n, k), -1, np.int32), np.full((n, k), -np.inf), np.zeros(n, np.int64), np.zeros(n)
    )
    search.run(rows, k, None, out)
    return TopK(out.items, out.scores), out.dropped, search.report(n)


def find_ranks(
    user_factors: Any,
    item_factors: Any,
    held_out: Any,
    k: int | None,
    seen: Any = None,
    items: ArrayLike | None = None,
    exclude: ArrayLike | None = None,
    *,
    overlap: Literal["error", "report"] = "error",
    num_threads: int | None = None,
    progress: bool | None = None,
) -> tuple[Rankings, int, int, Report]:
    """Do what `held_out_ranks` does, or `full_ranks` without a `k`.

    Returns the ranks; how many held-out items were seen; how many of those with a rank share their
    score with another candidate; and a report.
    """
    if not isinstance(overlap, str) or overlap not in ("error", "report"):
        raise InvalidDataError(f"overlap is {overlap!r}; expected 'error' or 'report'")
    search = Search(user_factors, item_factors, seen, items, exclude, num_threads, progress)
    relevance = held_out if isinstance(held_out, Relevance) else Relevance.from_csr(held_out)
    if any(of > than for of, than in zip(relevance.shape, search.shape, strict=True)):
        raise InvalidDataError(
            f"held_out has shape {relevance.shape}, but there are factors of {search.shape[0]} "
            f"users and {search.shape[1]} items; give those of the same split"
        )
    held, rows, n_overlap = search.held_out(relevance, overlap)
    n_items = len(search.candidates)
    if k is None:
        search.run_fully(rows, held)
    else:
        k = min(k, n_items)
        search.run(rows, k, held, None)
    items, ranks, tied, counts = search.hits(held, n_items if k is None else k)
    per_user = np.zeros(search.shape[0], np.int64)
    per_user[rows] = counts
    lengths = np.zeros(search.shape[0], np.int64)
    lengths[rows] = search.n_candidates(rows)
    if k is not None:
        np.minimum(lengths, k, out=lengths)
    indptr = np.concatenate([[0], np.cumsum(per_user)])
    ranking = Rankings(search.shape, indptr, items, ranks, lengths)
    return ranking, n_overlap, int(tied.sum()), search.report(len(rows))


def count_seen(relevance: Relevance, seen: Any) -> int:
    """Count the relevant items that their users have seen; `seen` is a canonical CSR matrix."""
    relevant = relevance.gains > 0
    owners = np.repeat(np.arange(relevance.shape[0]), np.diff(relevance.indptr))[relevant]
    items = relevance.items[relevant]
    was_seen = np.empty(len(items), bool)
    entries = np.arange(len(items) + 1)
    before = Seen(read_only(seen.indptr.astype(np.int64)), read_only(seen.indices))
    for_blocks(lambda a, b: find_seen(a, b, owners, entries, items, before, was_seen), len(items))
    return int(was_seen.sum())


def _warn_of_overlap(n_overlap: int) -> None:
    if n_overlap:
        warnings.warn(
            f"{n_overlap} held-out items were seen by their users; they have no rank",
            stacklevel=3,
        )
