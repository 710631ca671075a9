"""A split that holds out users whole, whom a model has to serve without training on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ...core.arguments import check_choice, check_fraction
from ...core.removed import removed
from ...errors import InvalidDataError
from ...inputs.cells import UNDATED
from .events import Events, hashes
from .holdout import LeftOut

if TYPE_CHECKING:
    from ...core.types import Booleans, Integers
    from .events import Divisible
    from .holdout import Holdout

#: Which pairs of a held-out user are given to the model.
Order = Literal["random", "time"]


@removed(threshold="interactions.filter(min_value={!r}), and split the result")
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

    The model is trained on all pairs of the other users. Of each held-out user it is then given a
    part (`Holdout.fold_in`), from which it recommends, and the rest of the user's pairs is what is
    evaluated. Also known as strong generalization [1]_. `evaluate_model` folds the users in by
    itself, see `fold_in` there.

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
        The share of the users to hold out as the test part, beside `fraction` for validation.
    order : {"random", "time"}
        Whether the pairs that the model is given are drawn at random, or are the user's earliest.
        By time, a pair counts with its first event, and events of a pair that the model is given
        which are later than the first one held out are in no part
        (``left_out.repeated``). Undated pairs are the earliest.
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
        If an option is out of its range, a value is negative or not finite, there are no
        timestamps to go by, or there are not enough users with two pairs.

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
                "train on"
            )
    check_choice("order", order, get_args(Order))
    events = Events.of(interactions, "users" if order == "time" else None)
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
        # What the model is given must not be later than what is held out, of the same user.
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
    parts = np.zeros(len(eligible), np.int64)
    first = 0
    for part, share in enumerate(shares, start=1):
        if share is None:
            continue
        last = first + max(1, round(share * len(drawn)))
        parts[drawn[first:last]] = part
        first = last
    if first > len(drawn) or not (parts == 0).any():
        raise InvalidDataError(
            f"{len(drawn)} of {len(eligible)} users have two items to divide (with dates, where "
            "they are divided by time), too few to hold some out and train on others"
        )
    return parts
