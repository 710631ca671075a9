"""A synthetic click log of MIND's shape, for demonstrations, tests and benchmarks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from ..core.arguments import check_whole
from .interactions import Interactions

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["synthetic"]

_PER_USER = 30
_FAVOURITES = 3
_LOYALTY = 0.8  # share of a user's clicks that go to favourite topics
_LEADERS = 10  # added to each Zipf rank: without it the first items would be everybody's
_START = 1_573_257_600  # 2019-11-09, about when MIND was recorded
_SECONDS = 4 * 7 * 24 * 3600
_ROUNDS = 12


def synthetic(
    n_users: int = 50_000,
    n_items: int = 51_277,
    n_interactions: int | None = None,
    n_topics: int = 64,
    seed: int = 0,
) -> Interactions:
    """Draw clicks of users with favourite topics on items of Zipf popularity.

    Each item belongs to one topic, each user has three favourite topics; four of five clicks go
    to these, in proportion to the popularity of the items there, and the others to all items. So
    there is something to learn beyond popularity. How active the users are is log-normal; each
    has at least one click.

    Parameters
    ----------
    n_users, n_items : int
        At least 1; the defaults are the size of MIND-small.
    n_interactions : int, optional
        From `n_users` to ``n_users * n_items``; default: 30 per user, fewer where there are few
        items.
    n_topics : int
        At least 1; no more topics than items are used.
    seed : int
        At least 0. The same seed gives the same bits.

    Returns
    -------
    Interactions
        Distinct pairs with value 1, in the order of their timestamps (unix seconds, over four
        weeks). Labels are ``U1``, ``U2``, … and ``N1``, ``N2``, …; all items have one, clicked
        or not.

    Raises
    ------
    InvalidDataError
        When a size is impossible.

    Examples
    --------
    >>> synthetic(n_users=100, n_items=200, n_interactions=1500)
    Interactions(100 users × 200 items, 1,500 events, timestamps)
    """
    for name, value, least in (
        ("n_users", n_users, 1),
        ("n_items", n_items, 1),
        ("n_topics", n_topics, 1),
        ("seed", seed, 0),
    ):
        check_whole(name, value, least)
    if n_interactions is None:
        n_interactions = n_users * max(1, min(_PER_USER, n_items // 4))
    check_whole("n_interactions", n_interactions, n_users, n_users * n_items)

    rng = np.random.default_rng(seed)
    popularity = 1.0 / (np.arange(n_items) + _LEADERS)
    rng.shuffle(popularity)
    topics = rng.integers(min(n_topics, n_items), size=n_items)
    favourites = topics[_draw(rng, np.cumsum(popularity), n_users * _FAVOURITES)]
    taste = _Taste(popularity, topics, favourites.reshape(n_users, _FAVOURITES))
    pairs = _distinct_pairs(rng, taste, _activity(rng, n_users, n_items, n_interactions))
    rng.shuffle(pairs)
    timestamps = np.sort(rng.integers(_START, _START + _SECONDS, size=n_interactions))
    return Interactions(
        user_codes=(pairs // n_items).astype(np.int32),
        item_codes=(pairs % n_items).astype(np.int32),
        values=np.ones(n_interactions),
        timestamps=timestamps.astype(np.int64),
        users=_labels("U", n_users),
        items=_labels("N", n_items),
    )


class _Taste:
    """Where the clicks of a user go."""

    def __init__(
        self,
        popularity: NDArray[np.float64],
        topics: NDArray[np.int64],
        favourites: NDArray[np.int64],
    ) -> None:
        self.n_users, self.n_items = len(favourites), len(popularity)
        self._everything = np.cumsum(popularity)
        # Items sorted by topic, so that one search draws within any topic.
        self._order = np.argsort(topics, kind="stable")
        self._sums = np.concatenate([[0.0], np.cumsum(popularity[self._order])])
        self._bounds = np.searchsorted(topics[self._order], np.arange(topics.max() + 2))
        self._favourites = favourites

    def draw(self, rng: np.random.Generator, users: NDArray[np.int64]) -> NDArray[np.int64]:
        """Draw one item for each of the users."""
        items = _draw(rng, self._everything, len(users))
        loyal = np.flatnonzero(rng.random(len(users)) < _LOYALTY)
        favourite = rng.integers(_FAVOURITES, size=len(loyal))
        topic = self._favourites[users[loyal], favourite]
        first, last = self._bounds[topic], self._bounds[topic + 1]
        low, high = self._sums[first], self._sums[last]
        places = np.searchsorted(self._sums, low + rng.random(len(loyal)) * (high - low), "right")
        # Rounding may reach the next topic's first item.
        items[loyal] = self._order[np.clip(places - 1, first, last - 1)]
        return items


def _draw(rng: np.random.Generator, sums: NDArray[np.float64], size: int) -> NDArray[np.int64]:
    """Draw places in proportion to weights, given their running sums."""
    places = np.searchsorted(sums, rng.random(size) * sums[-1], "right")
    result: NDArray[np.int64] = np.minimum(places, len(sums) - 1)
    return result


def _labels(prefix: str, size: int) -> pd.Index[Any]:
    return pd.Index(sorted(f"{prefix}{number}" for number in range(1, size + 1)))


def _activity(
    rng: np.random.Generator, n_users: int, n_items: int, total: int
) -> NDArray[np.int64]:
    """Share out `total` clicks log-normally, from 1 to `n_items` for each user."""
    weights = rng.lognormal(sigma=1.0, size=n_users)
    counts = np.ones(n_users, dtype=np.int64)
    while (left := total - counts.sum()) > 0:
        open_ = np.flatnonzero(counts < n_items)
        share = np.floor(weights[open_] / weights[open_].sum() * left).astype(np.int64)
        if not share.any():  # fewer clicks left than users: one each to the most active
            share[np.argsort(-weights[open_], kind="stable")[:left]] = 1
        counts[open_] = np.minimum(counts[open_] + share, n_items)
    return counts


def _distinct_pairs(
    rng: np.random.Generator, taste: _Taste, counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Draw `counts` distinct items for each user; a pair is user * n_items + item."""
    n_items = taste.n_items
    pairs = np.empty(0, dtype=np.int64)
    missing = counts
    for _ in range(_ROUNDS):
        users = np.repeat(np.arange(taste.n_users), missing)
        pairs = np.sort(np.concatenate([pairs, users * n_items + taste.draw(rng, users)]))
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]  # many times faster than numpy.unique
        missing = counts - np.bincount(pairs // n_items, minlength=taste.n_users)
        if not missing.any():
            return pairs
    # A few users want nearly all that they like: the rest at random from what they have not met.
    bounds = np.searchsorted(pairs, np.arange(taste.n_users + 1) * n_items)
    rest = [pairs]
    for user in np.flatnonzero(missing):
        unmet = np.ones(n_items, dtype=bool)
        unmet[pairs[bounds[user] : bounds[user + 1]] - user * n_items] = False
        rest.append(
            user * n_items + rng.choice(np.flatnonzero(unmet), missing[user], replace=False)
        )
    return np.concatenate(rest)
