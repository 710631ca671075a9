"""Splits that hold out the latest pairs of each user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...core.arguments import check_whole
from ..times import UNDATED
from .events import Events
from .holdout import LeftOut
from .pairs import MAX_COUNT, order_within

if TYPE_CHECKING:
    from ...core.types import Integers
    from ..interactions import Interactions
    from .holdout import Holdout


def last_n(interactions: Interactions, *, n: int = 1, test: int | None = None) -> Holdout:
    """Hold out the n latest pairs of each user who has more than n.

    With ``n=1`` this is the usual leave-one-out protocol [1]_; with ``test=1`` too, the latest
    pair of each user is for the test, and the one before it for validation [2]_.

    The time of a pair is that of its first event. No event of a user's training data is later
    than the first one that is held out: later events of other pairs are left out, and counted in
    ``left_out.repeated``.

    Parameters
    ----------
    interactions : Interactions
        With timestamps; among pairs at the same time, that with the higher item code is later.
        Undated pairs are the earliest, and never held out.
    n : int
        At least 1.
    test : int, optional
        At least 1: how many pairs to hold out as the test part, before the n latest of what is
        left.

    Returns
    -------
    Holdout
        With 0 or n validation pairs of each user, and 0 or `test` test pairs.

    Raises
    ------
    InvalidDataError
        If there are no timestamps, or `n` or `test` is out of its range.

    See Also
    --------
    leave_k_out : Hold out random pairs, which needs no timestamps.
    temporal : Hold out what came after one point in time; here, training data of some users may
        be later than validation data of others.

    References
    ----------
    .. [1] X. He et al., "Neural collaborative filtering", WWW 2017.
       doi:10.1145/3038912.3052569
    .. [2] W.-C. Kang and J. McAuley, "Self-attentive sequential recommendation", ICDM 2018.
       doi:10.1109/ICDM.2018.00035

    Examples
    --------
    >>> import pandas as pd
    >>> from sparse_eval.datasets import Interactions
    >>> frame = pd.DataFrame({"user": [1, 1, 1], "item": [5, 6, 7], "at": [30, 10, 20]})
    >>> interactions = Interactions.from_frame(frame, timestamp="at")
    >>> last_n(interactions, n=1).validation.toarray()
    array([[1., 0., 0.]])
    >>> last_n(interactions, n=1, test=1).validation.toarray()
    array([[0., 0., 1.]])
    """
    check_whole("n", n, 1, MAX_COUNT)
    n_test = 0 if test is None else check_whole("test", test, 1, MAX_COUNT)
    events = Events.of(interactions, "last_n")
    users, first = events.users, events.first
    sizes = np.bincount(users, minlength=interactions.n_users)
    dated = np.bincount(users[first != UNDATED], minlength=interactions.n_users)
    tested = np.where((sizes > n_test) & (dated >= n_test), n_test, 0)
    validated = np.where((sizes - tested > n) & (dated - tested >= n), n, 0)

    from_end = sizes[users] - 1 - order_within(users, first)
    in_test = from_end < tested[users]
    held_out = from_end < (tested + validated)[users]
    # What is not held out must not be later than what is, of the same user.
    limit = _first_of_users(users[held_out], first[held_out], interactions.n_users)
    test_limit = _first_of_users(users[in_test], first[in_test], interactions.n_users)
    of_event, times = interactions.user_codes, events.times
    in_test, held_out = in_test[events.pairs], held_out[events.pairs]
    parts = [
        ~held_out & (times <= limit[of_event]),
        held_out & ~in_test & (times <= test_limit[of_event]),
    ]
    if test is not None:
        parts.append(in_test)
    n_repeated = len(events) - sum(int(np.count_nonzero(part)) for part in parts)
    return events.divide(parts, LeftOut(repeated=n_repeated))


def _first_of_users(users: Integers, times: Integers, n_users: int) -> Integers:
    """Return the earliest time of each user, the largest int64 for a user without any."""
    earliest = np.full(n_users, np.iinfo(np.int64).max)
    np.minimum.at(earliest, users, times)
    return earliest
