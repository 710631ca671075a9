"""Splits by time: the latest pairs of each user, one or two cuts, and windows in a row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.arguments import check_choice, check_fraction, check_whole, show_spelling
from ...errors import InvalidDataError
from ...inputs.column_values import UNDATED
from .events import MAX_COUNT, REPEATS, SortedEvents
from .holdout import PARTS, LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...core.types import Booleans
    from ..interactions import Interactions
    from ..times import Clock, Duration, Time
    from .events import Repeats
    from .holdout import Holdout


@show_spelling
def last_n(
    interactions: Interactions,
    *,
    n: int = 1,
    fraction: float | None = None,
    test: int | None = None,
    repeats: Repeats = "drop",
) -> Holdout:
    """Hold out the n latest pairs of each user who has more than n, or a share of the pairs.

    With ``n=1`` this is the usual leave-one-out protocol [1]_. With ``test=1`` too, the latest pair
    of each user is for the test, and the one before it for validation [2]_.

    The time of a pair is the time of its first event. No event of a user's training data is later
    than the first held-out event: later events of other pairs are left out, and counted in
    ``left_out.repeated``.

    Parameters
    ----------
    interactions : Interactions
        With timestamps; among pairs at the same time, the higher item code is later. Undated pairs
        are the earliest, and never held out.
    n : int
        At least 1.
    fraction : float, optional
        Instead of `n` the share of each user's pairs to hold out, the latest: of m pairs
        ``round(fraction * m)``, but never all.
    test : int, optional
        At least 1: the number of latest pairs to hold out as the test part. The n latest of the
        remaining pairs are then for validation.
    repeats : {"drop", "keep"}
        With "keep", for models that may recommend again, the time of a pair is the time of its last
        event. Only that event is held out, with other events of the same pairs that are not before
        the first held-out one. Earlier events are trained on, so held-out items may be known, and
        nothing is left out.

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
            raise InvalidDataError("pass n= or fraction=, not both", argument="fraction")
    n_test = 0 if test is None else check_whole("test", test, 1, MAX_COUNT)
    check_choice("repeats", repeats, REPEATS)
    events = SortedEvents.of(interactions, "last_n")
    keep = repeats == "keep"
    train = np.ones(len(events), bool)
    parts: list[Booleans] = []
    limit = np.full(len(events), np.iinfo(np.int64).max)
    times = events.first
    positions = times if keep else events.positions(times)
    for count, share in [(n_test, None)] * (n_test > 0) + [(n, fraction)]:
        pairs = events.in_pairs(train)
        sizes = events.count(pairs)
        held: Any = count
        if share is not None:
            held = np.minimum(np.rint(share * sizes).astype(np.int64), np.maximum(sizes - 1, 0))
        end = sizes
        if keep:
            times = events.last_of_pairs(train)
            positions, end = events.positions(times), events.sizes
        n_dated = events.count(pairs & (times != UNDATED))
        counts = np.where((sizes > held) & (n_dated >= held), held, 0)
        chosen = pairs & (positions >= events.of_users(end - counts))
        from_on = events.first_of_users(chosen, times)
        part = train & events.of_events(chosen)
        if keep:
            part &= events.times >= from_on
        train &= ~part
        # No remaining event of a user may be later than a held-out one.
        parts.insert(0, part if keep else part & (events.times <= limit))
        limit = np.minimum(limit, from_on)
    if not keep:
        train &= events.times <= limit
    parts.insert(0, train)
    n_repeated = len(events) - sum(int(np.count_nonzero(part)) for part in parts)
    return events.divide(parts, LeftOut(repeated=n_repeated))


@show_spelling
def temporal(
    interactions: Interactions,
    *,
    at: Time | None = None,
    fraction: float | None = None,
    test: Time | float | None = None,
    gap: Duration | None = None,
    repeats: Repeats = "drop",
) -> Holdout:
    """Hold out the events at or after one point in time, or two.

    All events before the cut are trained on, and no others. A user who first appears after the cut
    has an empty row in training: see `Holdout.unknown` and `Holdout.known`.

    Parameters
    ----------
    interactions : Interactions
        With timestamps. Undated events are before every cut.
    at : str, datetime.date, datetime.datetime, numpy.datetime64, pandas.Timestamp or int, optional
        The cut: a date such as ``"2019-11-14"`` (its first moment) or ``"2019-11-14T09:30+01:00"``,
        UTC if it has no time zone; or a whole number in the unit of the timestamps. If that unit is
        unknown (`Interactions.time_unit`), a date needs timestamps that are all from 1995 to 2032
        in one of seconds, milli-, micro- and nanoseconds. Their size identifies the unit.
    fraction : float, optional
        Between 0 and 1, both excluded: the share of the dated pairs whose first event is at or
        after the cut. It is rounded to whole pairs, at least one (more, if several have the time of
        the cut). If neither option is given, 0.2.
    test : as `at`, or float, optional
        Where the test part begins and the validation part ends. With `at`, a later point in time;
        otherwise a fraction of the dated pairs, as `fraction`, which is then the share before it.
    gap : str, datetime.timedelta, pandas.Timedelta, numpy.timedelta64 or int, optional
        Events within this duration before a cut are in no part: ``"1D"`` or ``"12h"``, or, if the
        timestamps are numbers, a whole number in their unit. It represents the time between
        training a model and using it.
    repeats : {"drop", "keep"}
        How to treat held-out events of a pair that training (for the test, training or validation)
        has too, even as an explicit zero. "drop" leaves them out and counts them in
        ``left_out.repeated``. "keep" holds them out as well, for models that may recommend again.
        Evaluate these with ``filter_seen=False``, or seen items are not recommended and count as
        missed.

    Returns
    -------
    Holdout
        With at least one pair in each part, of any users. Its `cut` is the first one.

    Raises
    ------
    InvalidDataError
        If there are no timestamps, or a date or duration is given and their unit is not known. If
        the timestamps are dates, and a duration is a whole number. If `at` and `fraction` are both
        given, or an option is out of its range. If a part would be empty.

    See Also
    --------
    rolling : Hold out one period after the other.
    last_n : Hold out the latest pairs of every user.

    References
    ----------
    .. [1] Z. Meng et al., "Exploring data splitting strategies for the evaluation of
       recommendation models", RecSys 2020. doi:10.1145/3383313.3418479
    .. [2] Y. Ji et al., "A critical study on data leakage in recommender system offline
       evaluation", ACM Transactions on Information Systems 41(3), 2023. doi:10.1145/3569930

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=100, n_items=200, n_interactions=1500)
    >>> temporal(clicks, at="2019-11-30", gap="1D")
    Holdout(100 users × 200 items, 1,087 train + 363 validation pairs; cut at 2019-11-30;
    validation not in train: 0 users, 2 items, 2 pairs; left out: 50 events outside)

    Three parts, as `tune` takes them:

    >>> holdout = temporal(clicks, at="2019-11-27", test="2019-12-01").known()
    >>> holdout
    Holdout(100 users × 200 items, 989 train + 208 validation + 296 test pairs; cut at 2019-11-27;
    left out: 7 unknown pairs)
    >>> result = se.tune(holdout, "ndcg@10", space={"factors": [4, 8], "iterations": 3})
    >>> model = se.train_als(holdout.for_test().train, **result.best)
    """
    check_choice("repeats", repeats, REPEATS)
    events = SortedEvents.of(interactions, "temporal")
    given_test = test if at is not None else None  # otherwise it is a fraction
    clock = events.clock(at=at, gap=gap, test=given_test)
    length = 0 if gap is None else clock.duration("gap", gap, 0)
    cuts = _cuts(events, clock, at, fraction, test)
    if at is not None and test is not None:
        cuts.append(clock.time("test", test))
        if cuts[1] <= cuts[0]:
            raise InvalidDataError(
                f"test: expected a time after the first cut, {clock.text(cuts[0])}, found "
                f"{clock.text(cuts[1])}",
                argument="test",
            )
    ends = [*(cut - length for cut in cuts[1:]), None]
    held_out = [events.from_on(cut, end) for cut, end in zip(cuts, ends, strict=True)]
    parts, left_out = _without_repeats(events, events.before(cuts[0] - length), held_out, repeats)
    _check_not_empty(events, clock, cuts, parts, left_out)
    times = [(clock.date(max(cut - length, UNDATED + 1)), clock.date(cut)) for cut in cuts]
    return events.divide(parts, left_out, times)


@show_spelling
def rolling(
    interactions: Interactions,
    *,
    window: Duration,
    step: Duration | None = None,
    at: Time | None = None,
    fraction: float | None = None,
    train_window: Duration | None = None,
    gap: Duration | None = None,
    repeats: Repeats = "drop",
) -> Iterator[Holdout]:
    """Hold out one period of time after the other, and train on the events before each.

    Parameters
    ----------
    interactions : Interactions
        With timestamps. Undated events are before every cut.
    window : str, datetime.timedelta, pandas.Timedelta, numpy.timedelta64 or int
        How long each validation period is, above 0, as `gap` of `temporal`.
    step : as `window`, optional
        The time from the start of one period to the next; default: `window`, so periods follow each
        other without a gap or overlap.
    at, fraction
        Where the first validation period begins, as in `temporal`. The last period contains the
        last event, and may reach beyond it.
    train_window : as `window`, optional
        How far back training goes, as a sliding window; default: to the first event, so training
        grows. Undated events are always trained on.
    gap, repeats
        As in `temporal`. A pair is known if it is in the training data of its period.

    Returns
    -------
    iterator of Holdout
        One for each period, created one at a time. A part is empty if nothing new happened in the
        period, or nothing at all in the training window.

    Raises
    ------
    InvalidDataError
        As in `temporal`; at the call, not in the iteration.

    See Also
    --------
    temporal : Hold out everything after one point in time.

    References
    ----------
    .. [1] P. G. Campos, F. Díez and I. Cantador, "Time-aware recommender systems: a comprehensive
       survey and analysis of existing evaluation protocols", User Modeling and User-Adapted
       Interaction 24, 2014. doi:10.1007/s11257-012-9136-x

    Examples
    --------
    >>> import sparse_eval as se
    >>> clicks = se.datasets.synthetic(n_users=100, n_items=200, n_interactions=1500)
    >>> for holdout in rolling(clicks, at="2019-11-25", window="4D", train_window="14D"):
    ...     print(holdout.cut, holdout.train.nnz, holdout.validation.nnz)
    2019-11-25T00:00:00 770 201
    2019-11-29T00:00:00 738 225
    2019-12-03T00:00:00 762 188
    """
    check_choice("repeats", repeats, REPEATS)
    events = SortedEvents.of(interactions, "rolling")
    clock = events.clock(at=at, window=window, step=step, train_window=train_window, gap=gap)
    width = clock.duration("window", window, 1)
    stride = width if step is None else clock.duration("step", step, 1)
    reach = None if train_window is None else clock.duration("train_window", train_window, 1)
    length = 0 if gap is None else clock.duration("gap", gap, 0)
    first = _cuts(events, clock, at, fraction)[0]
    whole = [events.before(first - length), events.from_on(first)]
    _check_not_empty(events, clock, [first], whole, LeftOut())

    def hold_out(start: int) -> Holdout:
        end = start - length
        train = events.before(end, None if reach is None else end - reach)
        held_out = [events.from_on(start, start + width)]
        parts, left_out = _without_repeats(events, train, held_out, repeats)
        times = [(clock.date(max(end, UNDATED + 1)), clock.date(start))]
        return events.divide(parts, left_out, times)

    return (hold_out(start) for start in range(first, int(events.times.max()) + 1, stride))


def _cuts(
    events: SortedEvents, clock: Clock, at: Time | None, fraction: float | None, test: object = None
) -> list[int]:
    """Return the cut `at`, or the cuts that leave the given shares of dated pairs after them."""
    if at is not None:
        if fraction is not None:
            raise InvalidDataError(
                "fraction: cannot be combined with at=; pass one of them", argument="fraction"
            )
        return [clock.time("at", at)]
    shares = {"fraction": 0.2 if fraction is None else fraction}
    if test is not None:
        shares["test"] = test  # type: ignore[assignment]  # checked here
    for name, share in shares.items():
        check_fraction(name, share)
    if sum(shares.values()) >= 1:
        raise InvalidDataError(
            f"fraction: {fraction} for validation and {test} for the test leave nothing to train "
            "on",
            argument="fraction",
        )
    dated = events.first[events.first != UNDATED]
    if not len(dated):
        raise InvalidDataError("the first event of every pair has no date; pass at=", argument="at")
    cuts: list[int] = []
    count = 0
    for share in reversed(shares.values()):
        count = min(count + max(1, round(share * len(dated))), len(dated))
        cuts.insert(0, int(np.partition(dated, len(dated) - count)[len(dated) - count]))
    return cuts


def _without_repeats(
    events: SortedEvents, train: Booleans, held_out: Sequence[Booleans], repeats: Repeats
) -> tuple[list[Booleans], LeftOut]:
    """Return the parts, the held-out ones without pairs of the parts before them."""
    parts = [train]
    known = np.zeros(len(events.starts), bool)
    n_repeated = 0
    for chosen in held_out:
        if repeats == "keep":
            parts.append(chosen)
            continue
        known |= events.in_pairs(parts[-1])
        repeated = chosen & events.of_events(known)
        n_repeated += int(np.count_nonzero(repeated))
        parts.append(chosen & ~repeated)
    n_inside = n_repeated + sum(int(np.count_nonzero(part)) for part in parts)
    return parts, LeftOut(repeated=n_repeated, outside=len(events) - n_inside)


def _check_not_empty(
    events: SortedEvents,
    clock: Clock,
    cuts: Sequence[int],
    parts: Sequence[Booleans],
    left_out: LeftOut,
) -> None:
    for name, part in zip(PARTS, parts, strict=False):  # there may be no test part
        if not part.any():
            dated = events.times[events.times != UNDATED]
            span = f"{clock.text(int(dated.min()))} to {clock.text(int(dated.max()))}"
            where = " and ".join(map(clock.text, cuts))
            raise InvalidDataError(
                f"the cut {where} leaves {name} empty; events with a date are from {span}, and "
                f"{left_out.repeated:,} later events repeat known pairs; choose another"
            )
