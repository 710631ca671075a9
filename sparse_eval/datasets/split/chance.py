"""Splits that ignore times: random shares, k random pairs, folds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.arguments import check_fraction, check_whole
from ...core.removed import removed
from .events import MAX_COUNT, Events, hashes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .events import Divisible
    from .holdout import Holdout


@removed(threshold="interactions.filter(min_value={!r}), and split the result")
def random(
    interactions: Divisible,
    *,
    fraction: float = 0.2,
    seed: int = 0,
    min_interactions: int = 2,
) -> Holdout:
    """Hold out a random fraction of each user's pairs.

    Parameters
    ----------
    interactions : Interactions, frame, path, or scipy sparse matrix or array
        Of shape (n_users, n_items), with finite values >= 0. A frame or path is read as in
        `datasets.load`.
    fraction : float
        Between 0 and 1, both excluded: of n pairs ``round(fraction * n)`` are held out (halves
        are rounded to even), but never all.
    seed : int
        At least 0. The same seed gives the same split to the last bit.
    min_interactions : int
        At least 1. Users with fewer pairs keep all of them in training.

    Returns
    -------
    Holdout
        Labelled if `interactions` is.

    Raises
    ------
    InvalidDataError
        If an option is out of its range, or a value is negative or not finite.

    See Also
    --------
    leave_k_out : Hold out the same number of pairs of every user.
    temporal : Hold out what came after a point in time, as in production, with a comparison of
        strategies among its references.

    Examples
    --------
    >>> from scipy import sparse
    >>> random(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 0]]), fraction=0.5)
    Holdout(2 users × 4 items, 3 train + 2 validation pairs;
    validation not in train: 0 users, 1 items, 1 pairs)
    """
    check_fraction("fraction", fraction)
    check_whole("min_interactions", min_interactions, 1)
    events = Events.of(interactions)
    sizes = events.sizes
    counts = np.minimum(np.rint(fraction * sizes).astype(np.int64), sizes - 1)
    counts[sizes < min_interactions] = 0
    return events.hold_out(events.random_order(seed) < events.of_users(counts))


@removed(threshold="interactions.filter(min_value={!r}), and split the result")
def leave_k_out(interactions: Divisible, *, k: int = 1, seed: int = 0) -> Holdout:
    """Hold out k random pairs of each user who has more than k.

    Parameters
    ----------
    interactions : Interactions, frame, path, or scipy sparse matrix or array
        As in `random`.
    k : int
        At least 1.
    seed : int
        At least 0, as in `random`.

    Returns
    -------
    Holdout
        With 0 or k validation pairs of each user.

    Raises
    ------
    InvalidDataError
        As in `random`.

    See Also
    --------
    last_n : Hold out the latest pairs instead.

    References
    ----------
    .. [1] S. Rendle et al., "BPR: Bayesian personalized ranking from implicit feedback",
       UAI 2009. arXiv:1205.2618

    Examples
    --------
    >>> from scipy import sparse
    >>> leave_k_out(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 0]]), k=1)
    Holdout(2 users × 4 items, 4 train + 1 validation pairs;
    validation not in train: 0 users, 1 items, 1 pairs)
    """
    check_whole("k", k, 1, MAX_COUNT)
    events = Events.of(interactions)
    counts = np.where(events.sizes > k, k, 0)
    return events.hold_out(events.random_order(seed) < events.of_users(counts))


@removed(threshold="interactions.filter(min_value={!r}), and split the result")
def k_fold(interactions: Divisible, *, k: int = 5, seed: int = 0) -> Iterator[Holdout]:
    """Divide the pairs of each user into k folds, and hold out one fold after the other.

    Each pair is held out in exactly one fold, except the only pair of a user, which stays in
    training. The folds of a user differ by at most one pair.

    Parameters
    ----------
    interactions : Interactions, frame, path, or scipy sparse matrix or array
        Of shape (n_users, n_items), as in `random`.
    k : int
        At least 2.
    seed : int
        At least 0. The same seed gives the same folds.

    Returns
    -------
    iterator of Holdout
        k of them, created one at a time.

    Raises
    ------
    InvalidDataError
        As in `random`; at the call, not in the iteration.

    See Also
    --------
    random : Hold out one fraction only.

    Examples
    --------
    >>> from scipy import sparse
    >>> folds = k_fold(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 1]]), k=2)
    >>> [fold.validation.nnz for fold in folds]
    [3, 3]
    """
    check_whole("k", k, 2, MAX_COUNT)
    events = Events.of(interactions)
    order = events.random_order(seed)
    # Each user starts at another fold; otherwise the first folds would get all odd pairs.
    starts = hashes(seed, np.arange(events.shape[0])) % np.uint64(k)
    folds = (order + events.of_users(starts.astype(np.int64))) % k
    folds[events.of_users(events.sizes) < 2] = -1
    return (events.hold_out(folds == fold) for fold in range(k))
