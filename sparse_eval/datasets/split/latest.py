"""Splits that hold out the latest pairs of each user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arguments import check_choice, check_fraction, check_whole
from ...core.removed import removed
from ...errors import InvalidDataError
from ...inputs.cells import UNDATED
from .events import MAX_COUNT, REPEATS, Events
from .holdout import LeftOut

if TYPE_CHECKING:
    from ...core.types import Booleans, Integers
    from ..interactions import Interactions
    from .events import Repeats
    from .holdout import Holdout


@removed(threshold="interactions.filter(min_value={!r}), and split the result")
def last_n(
    interactions: Interactions,
    *,
    n: int = 1,
    fraction: float | None = None,
    test: int | None = None,
    repeats: Repeats = "drop",
) -> Holdout:
    """Hold out the n latest pairs of each user who has more than n, or a share of the pairs.

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
    fraction : float, optional
        Instead of `n` the share of each user's pairs to hold out, the latest: of m pairs
        ``round(fraction * m)``, but never all.
    test : int, optional
        At least 1: how many pairs to hold out as the test part, before the n latest of what is
        left.
    repeats : {"drop", "keep"}
        With "keep", for models that may recommend again, the time of a pair is that of its last
        event, and only that event is held out, with others of the same pairs that are not before
        the first one held out. What was before is trained on, so that held-out items may be known,
        and nothing is left out.

    Returns
    -------
    Holdout
        With 0 or n validation pairs of each user, and 0 or `test` test pairs.

    Raises
    ------
    InvalidDataError
        If there are no timestamps, `n` or `test` is out of its range, or `repeats` is unknown.

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
    >>> last_n(interactions, n=1).validation.csr.toarray()
    array([[1., 0., 0.]])
    >>> last_n(interactions, n=1, test=1).validation.csr.toarray()
    array([[0., 0., 1.]])
    """
    check_whole("n", n, 1, MAX_COUNT)
    if fraction is not None:
        check_fraction("fraction", fraction)
        if n != 1:
            raise InvalidDataError("give n= or fraction=, not both", argument="fraction")
    n_test = 0 if test is None else check_whole("test", test, 1, MAX_COUNT)
    check_choice("repeats", repeats, REPEATS)
    events = Events.of(interactions, "last_n")
    train = np.ones(len(events), bool)
    parts: list[Booleans] = []
    limit = np.full(len(events), np.iinfo(np.int64).max)
    for count, share in [(n_test, None)] * (n_test > 0) + [(n, fraction)]:
        pairs = events.in_pairs(train)
        times = np.where(pairs, events.first, UNDATED)
        if repeats == "keep":
            times = events.last_of_pairs(train)
        chosen = _latest(events, pairs, times, count, share)
        from_on = events.first_of_users(chosen, times)
        part = train & events.of_events(chosen)
        if repeats == "keep":
            part &= events.times >= from_on
        train &= ~part
        # What is not held out must not be later than what is, of the same user.
        parts.insert(0, part & (events.times <= limit) if repeats == "drop" else part)
        limit = np.minimum(limit, from_on)
    if repeats == "drop":
        train &= events.times <= limit
    parts.insert(0, train)
    n_repeated = len(events) - sum(int(np.count_nonzero(part)) for part in parts)
    return events.divide(parts, LeftOut(repeated=n_repeated))


def _latest(
    events: Events, available: Booleans, times: Integers, n: int, fraction: float | None
) -> Booleans:
    """Return the latest of each user's available pairs: `n`, or a share, but never all."""
    n_pairs = events.count(available)
    held: Any = n
    if fraction is not None:
        held = np.rint(fraction * n_pairs).astype(np.int64)
        held = np.minimum(held, np.maximum(n_pairs - 1, 0))
    n_dated = events.count(times != UNDATED)
    counts = np.where((n_pairs > held) & (n_dated >= held), held, 0)
    latest: Booleans = events.positions(times) >= events.of_users(events.sizes - counts)
    return latest
