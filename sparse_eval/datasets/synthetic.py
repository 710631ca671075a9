"""Synthetic clicks with the size and shape of MIND, for demonstrations, tests and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core import elementary
from ..core.arguments import check_whole
from ..inputs.axes import Axis
from .interactions import Interactions

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import Floats, Integers

_PER_USER = 30
_FAVOURITES = 3
_LOYALTY = 0.8  # share of a user's clicks that go to favourite topics
_LEADERS = 10  # added to each Zipf rank: without it everybody would click the first items
_START = 1_573_257_600  # 2019-11-09, about when MIND was recorded
_SECONDS = 4 * 7 * 24 * 3600
_ROUNDS = 12


def synthetic(
    n_users: int = 50_000,
    n_items: int = 51_277,
    *,
    n_interactions: int | None = None,
    n_topics: int = 64,
    seed: int = 0,
) -> Interactions:
    """Draw clicks of users with favourite topics on items whose popularity follows Zipf's law.

    Each item belongs to one topic, and each user has three favourite topics. Four of five clicks go
    to items of these topics and the others to all items, in proportion to popularity. So there is
    something to learn beyond popularity. The number of clicks per user is log-normal and at least
    1.

    Parameters
    ----------
    n_users, n_items : int
        Numbers of users and items, at least 1; the defaults are the size of MIND-small.
    n_interactions : int, optional
        From `n_users` to ``n_users * n_items``; default: 30 per user, fewer if there are fewer
        than 120 items.
    n_topics : int
        At least 1; no more topics than items are used.
    seed : int
        At least 0. The same seed gives the same clicks to the last bit.

    Returns
    -------
    Interactions
        Distinct pairs with value 1, in the order of their timestamps (unix seconds, over four
        weeks from 2019-11-09). Labels are ``U1``, ``U2``, … and ``N1``, ``N2``, …, including
        items without clicks.

    Raises
    ------
    InvalidDataError
        If a size is out of range.

    See Also
    --------
    load : Read interactions from files.

    Examples
    --------
    >>> synthetic(n_users=100, n_items=200, n_interactions=1500)
    Interactions(100 users × 200 items, 1,500 events, timestamps)
    """
    check_whole("n_users", n_users, 1)
    check_whole("n_items", n_items, 1)
    check_whole("n_topics", n_topics, 1)
    check_whole("seed", seed, 0)
    if n_interactions is None:
        n_interactions = n_users * max(1, min(_PER_USER, n_items // 4))
    check_whole("n_interactions", n_interactions, n_users, n_users * n_items)

    rng = np.random.default_rng(seed)
    popularity = 1.0 / (np.arange(n_items) + _LEADERS)
    rng.shuffle(popularity)
    topics = rng.integers(min(n_topics, n_items), size=n_items)
    favourites = topics[_draw(rng, np.cumsum(popularity), n_users * _FAVOURITES)]
    draw = _taste(rng, popularity, topics, favourites.reshape(n_users, _FAVOURITES))
    pairs = _distinct_pairs(rng, draw, _activity(rng, n_users, n_items, n_interactions), n_items)
    rng.shuffle(pairs)
    timestamps = np.sort(rng.integers(_START, _START + _SECONDS, size=n_interactions))
    return Interactions(
        user_codes=(pairs // n_items).astype(np.int32),
        item_codes=(pairs % n_items).astype(np.int32),
        values=np.ones(n_interactions),
        timestamps=timestamps.astype(np.int64),
        users=_labels("U", n_users),
        items=_labels("N", n_items),
        time_unit="s",
    )


def _taste(
    rng: np.random.Generator, popularity: Floats, topics: Integers, favourites: Integers
) -> Callable[[Integers], Integers]:
    """Return a function that draws one item for each of some users, who may be repeated."""
    everything = np.cumsum(popularity)
    # Items sorted by topic, so that one search draws within any topic.
    order = np.argsort(topics, kind="stable")
    sums = np.concatenate([[0.0], np.cumsum(popularity[order])])
    bounds = np.searchsorted(topics[order], np.arange(topics.max() + 2))

    def draw(users: Integers) -> Integers:
        items = _draw(rng, everything, len(users))
        loyal = np.flatnonzero(rng.random(len(users)) < _LOYALTY)
        topic = favourites[users[loyal], rng.integers(_FAVOURITES, size=len(loyal))]
        first, last = bounds[topic], bounds[topic + 1]
        targets = sums[first] + rng.random(len(loyal)) * (sums[last] - sums[first])
        drawn = np.searchsorted(sums, targets, "right") - 1
        # Rounding may reach the first item of the next topic.
        items[loyal] = order[np.clip(drawn, first, last - 1)]
        return items

    return draw


def _draw(rng: np.random.Generator, sums: Floats, size: int) -> Integers:
    """Draw indices in proportion to weights, given the cumulative sums of the weights."""
    indices = np.searchsorted(sums, rng.random(size) * sums[-1], "right")
    return np.asarray(np.minimum(indices, len(sums) - 1))


def _labels(prefix: str, size: int) -> Axis:
    return Axis.unchecked(sorted(f"{prefix}{number}" for number in range(1, size + 1)))


def _activity(rng: np.random.Generator, n_users: int, n_items: int, total: int) -> Integers:
    """Distribute `total` clicks log-normally, from 1 to `n_items` for each user."""
    weights = elementary.exp(rng.standard_normal(n_users))
    counts = np.ones(n_users, dtype=np.int64)
    while (left := total - counts.sum()) > 0:
        open_ = np.flatnonzero(counts < n_items)
        share = np.floor(weights[open_] / weights[open_].sum() * left).astype(np.int64)
        if not share.any():  # fewer clicks than users are left: one each for the most active
            share[np.argsort(-weights[open_], kind="stable")[:left]] = 1
        counts[open_] = np.minimum(counts[open_] + share, n_items)
    return counts


def _distinct_pairs(
    rng: np.random.Generator, draw: Callable[[Integers], Integers], counts: Integers, n_items: int
) -> Integers:
    """Draw `counts` distinct items for each user; a pair is user * n_items + item."""
    pairs = np.empty(0, dtype=np.int64)
    missing = counts
    for _ in range(_ROUNDS):
        users = np.repeat(np.arange(len(counts)), missing)
        pairs = np.sort(np.concatenate([pairs, users * n_items + draw(users)]))
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # many times faster than numpy.unique
        missing = counts - np.bincount(pairs // n_items, minlength=len(counts))
        if not missing.any():
            return pairs
    # A few users need nearly all items that they like: draw the rest from the other items.
    bounds = np.searchsorted(pairs, np.arange(len(counts) + 1) * n_items)
    rest = [pairs]
    for user in np.flatnonzero(missing):
        unclicked = np.ones(n_items, dtype=bool)
        unclicked[pairs[bounds[user] : bounds[user + 1]] - user * n_items] = False
        rest.append(
            user * n_items + rng.choice(np.flatnonzero(unclicked), missing[user], replace=False)
        )
    return np.concatenate(rest)
