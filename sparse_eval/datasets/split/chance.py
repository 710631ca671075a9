"""Random splits: shares of pairs, k pairs, folds, and whole users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ...core.arguments import check_choice, check_fraction, check_whole, show_spelling
from ...errors import InvalidDataError
from ...inputs.column_values import UNDATED
from .events import MAX_COUNT, SortedEvents, hashes
from .holdout import LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...core.types import Booleans, Integers
    from .events import Divisible
    from .holdout import Holdout


#: Which pairs of a held-out user are given to the model.
Order = Literal["random", "time"]


@show_spelling
def random(
    interactions: Divisible, *, fraction: float = 0.2, seed: int = 0, min_interactions: int = 2
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
    events = SortedEvents.of(interactions)
    sizes = events.sizes
    counts = np.minimum(np.rint(fraction * sizes).astype(np.int64), sizes - 1)
    counts[sizes < min_interactions] = 0
    return events.hold_out(events.random_order(seed) < events.of_users(counts))


@show_spelling
def leave_k_out(interactions: Divisible, *, n: int = 1, seed: int = 0) -> Holdout:
    """Hold out n random pairs of each user who has more than n.

    Parameters
    ----------
    interactions : Interactions, frame, path, or scipy sparse matrix or array
        As in `random`.
    n : int
        At least 1.
    seed : int
        At least 0, as in `random`.

    Returns
    -------
    Holdout
        With 0 or n validation pairs of each user.

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
    >>> leave_k_out(sparse.csr_matrix([[1, 1, 1, 1], [0, 1, 0, 0]]), n=1)
    Holdout(2 users × 4 items, 4 train + 1 validation pairs;
    validation not in train: 0 users, 1 items, 1 pairs)
    """
    check_whole("n", n, 1, MAX_COUNT)
    events = SortedEvents.of(interactions)
    counts = np.where(events.sizes > n, n, 0)
    return events.hold_out(events.random_order(seed) < events.of_users(counts))


@show_spelling
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
    events = SortedEvents.of(interactions)
    order = events.random_order(seed)
    # Each user starts at another fold; otherwise the first folds would get all odd pairs.
    starts = hashes(seed, np.arange(events.shape[0])) % np.uint64(k)
    folds = (order + events.of_users(starts.astype(np.int64))) % k
    folds[events.of_users(events.sizes) < 2] = -1
    return (events.hold_out(folds == fold) for fold in range(k))


@show_spelling
def users(
    interactions: Divisible,
    *,
    fraction: float = 0.2,
    fold_in: float = 0.8,
    test: float | None = None,
    order: Order = "random",
    seed: int = 0,
) -> Holdout:
    """Hold out a random share of the users, to evaluate a model on users that it never saw.

    The model is trained on all pairs of the other users. For each held-out user it then gets some
    of the pairs (`Holdout.fold_in`) to recommend from; the user's other pairs are for evaluation.
    Also known as strong generalization [1]_. `evaluate_model` folds the users in by itself, see
    `fold_in` there.

    Parameters
    ----------
    interactions : Interactions, frame, path, or scipy sparse matrix or array
        Of shape (n_users, n_items), with finite values >= 0; with timestamps for ``order="time"``.
    fraction : float
        Between 0 and 1, both excluded: of n users with at least two pairs ``round(fraction * n)``
        are held out, at least one. Users with one pair are trained on, since nothing would be left
        to evaluate.
    fold_in : float
        Between 0 and 1, both excluded: of n pairs of a held-out user ``round(fold_in * n)`` are
        given to the model, at least one and never all. Protocols in use are 0.8 [1]_ and, as a
        harder one, 0.5.
    test : float, optional
        The share of the users to hold out as the test part, in addition to `fraction` for
        validation.
    order : {"random", "time"}
        Whether the model gets a user's pairs at random, or the earliest. By time, a pair counts
        with its first event. Events of the model's pairs that are later than the first held-out one
        are in no part (``left_out.repeated``). Undated pairs are the earliest.
    seed : int
        At least 0. The same seed gives the same split to the last bit.

    Returns
    -------
    Holdout
        Whose parts have a row for every user: held-out users have empty rows in `train`, and all
        others in `fold_in` and `validation`.

    Raises
    ------
    InvalidDataError
        If an option is out of its range, or a value is negative or not finite. If there are no
        timestamps for ``order="time"``, or too few users with two pairs.

    See Also
    --------
    random : Hold out pairs of users who are trained on.
    sparse_eval.fold_in : Find the factors of new users.

    References
    ----------
    .. [1] D. Liang et al., "Variational autoencoders for collaborative filtering", WWW 2018.
       doi:10.1145/3178876.3186150
    .. [2] B. M. Marlin, "Collaborative filtering: a machine learning perspective", Master's
       thesis, University of Toronto, 2004, where weak and strong generalization come from.

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=100, n_items=200, n_interactions=1500)
    >>> holdout = se.split.users(clicks, fraction=0.2, fold_in=0.5)
    >>> holdout
    Holdout(100 users × 200 items, 1,163 train + 171 validation pairs;
    20 users not in train, 166 pairs to fold in;
    validation not in train: 0 users, 3 items, 4 pairs)
    >>> model = se.train_als(holdout.train, factors=8)
    >>> ev = se.evaluate_model(model, holdout, "ndcg@10")
    >>> ev.n_users
    20
    """
    check_fraction("fraction", fraction)
    check_fraction("fold_in", fold_in)
    if test is not None:
        check_fraction("test", test)
        if fraction + test >= 1:
            raise InvalidDataError(
                f"fraction: {fraction} for validation and {test} for the test leave nobody to "
                "train on",
                argument="fraction",
            )
    check_choice("order", order, get_args(Order))
    events = SortedEvents.of(interactions, "users" if order == "time" else None)
    sizes = events.sizes
    # Of n pairs the model is given at least one, and never all.
    counts = np.maximum(np.minimum(np.rint(fold_in * sizes).astype(np.int64), sizes - 1), 1)
    eligible = sizes > 1
    if order == "time":
        eligible &= events.count(events.first != UNDATED) >= sizes - counts
        positions = events.positions(events.first)
    else:
        positions = events.random_order(seed)
    drawn = events.of_users(_draw_users(eligible, (fraction, test), seed))
    is_given = positions < events.of_users(counts)
    parts = [drawn == 0, (drawn == 1) & ~is_given, (drawn == 2) & ~is_given]
    given = events.of_events((drawn > 0) & is_given)
    n_late = 0
    if order == "time":
        # No event that the model gets may be later than a held-out one of the same user.
        late = given & (events.times > events.first_of_users(~is_given, events.first))
        n_late, given = int(np.count_nonzero(late)), given & ~late
    return events.divide(
        [events.of_events(part) for part in parts[: 2 if test is None else 3]],
        LeftOut(repeated=n_late),
        fold_in=given,
    )


def _draw_users(eligible: Booleans, shares: tuple[float, float | None], seed: int) -> Integers:
    """Return for each user 0 for training, 1 for validation, or 2 for the test."""
    candidates = np.flatnonzero(eligible)
    drawn = candidates[np.argsort(hashes(seed, candidates), kind="stable")]
    counts = [max(1, round(share * len(drawn))) for share in shares if share is not None]
    numbers = np.repeat(np.arange(1, len(counts) + 1), counts)
    parts = np.zeros(len(eligible), np.int64)
    parts[drawn[: len(numbers)]] = numbers[: len(drawn)]
    if len(numbers) > len(drawn) or not (parts == 0).any():
        raise InvalidDataError(
            f"{len(drawn)} of {len(eligible)} users have two items to divide (with dates, where "
            "they are divided by time), too few to hold some out and train on others"
        )
    return parts
