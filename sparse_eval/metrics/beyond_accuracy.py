"""The metrics of what is recommended, relevant or not: formulas over `Lists`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..metrics import random_lists
from .registry import Choice, Definition, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .lists import Lists

    Values = NDArray[np.float64]

#: Steck's smoothing: so much of the history's mix is put into the list's.
SMOOTHING = 0.01

#: Numbers of a table of users × groups that are held at once.
_MIXES = 2_000_000


def coverage(lists: Lists) -> float:
    return np.count_nonzero(lists.item_counts > 0) / lists.n_items


def user_coverage(lists: Lists) -> float:
    return lists.n_listed / lists.n_users


def gini(lists: Lists) -> float:
    counts = np.sort(lists.item_counts)
    n, total = len(counts), int(counts.sum())
    if total == 0:
        return math.nan
    return int(((2 * np.arange(1, n + 1) - n - 1) * counts).sum()) / (n * total)


def entropy(lists: Lists, unit: str) -> float:
    counts = lists.item_counts[lists.item_counts > 0]
    if len(counts) == 0:
        return math.nan
    shares = counts / counts.sum()
    return math.fsum(-shares * (np.log(shares) if unit == "nats" else np.log2(shares)))


def personalization(lists: Lists) -> float:
    users = lists.n_listed
    pairs = users * (users - 1) // 2
    if pairs == 0:
        return math.nan
    counts = lists.item_counts
    shared = int((counts * (counts - 1) // 2).sum())
    return 1.0 - shared / (pairs * lists.k)


def popularity(lists: Lists) -> Values:
    return lists.mean_of(lists.train.item_counts.astype(np.float64))


def novelty(lists: Lists) -> Values:
    return lists.mean_of(lists.train.item_novelty)


def diversity(lists: Lists, similarity: str) -> Values:
    n = lists.lengths
    if similarity == "vectors":
        total = _vector_cosines(lists)
    else:
        total = lists.train.cosines(lists.indptr, lists.items, lists.k)
    return 1.0 - total / (n * (n - 1) / 2)


def _vector_cosines(lists: Lists) -> Values:
    """Sum the cosines of all pairs of a list, in linear time: (|Σ v|² − Σ |v|²) / 2."""
    assert lists.vectors is not None  # noqa: S101 - the metric needs them
    sums = lists.picks @ lists.vectors
    squares = lists.picks @ (lists.vectors**2).sum(axis=1)
    total: Values = ((sums**2).sum(axis=1) - squares) / 2
    return total


def serendipity(lists: Lists, form: str) -> Values:
    training = lists.train
    if form == "ge":
        unexpected = training.unexpected(
            lists.users, lists.indptr, lists.items, lists.relevant, lists.k
        )
        return unexpected / lists.k
    hit = lists.gains > 0
    rows, ranks, n = lists.rows[hit], lists.ranks[hit], lists.n_items
    popular = training.popularity_levels[lists.items[hit]]
    # chance of being recommended to this user and to any, by rank; none for an item never seen
    worth = np.where(popular > 0, np.maximum(popular - ranks, 0), n + 1 - ranks) / n
    return np.bincount(rows, worth, len(lists.users)) / np.maximum(lists.lengths, 1)


def calibration(lists: Lists) -> Values:
    history = lists.picked(*lists.train.history(lists.users))
    at_once = max(_MIXES // max(lists.groups.shape[1], 1), 1)  # users × groups are dense
    return np.concatenate(
        [
            _divergence(
                _mix(history[first : first + at_once], lists.groups),
                _mix(lists.picks[first : first + at_once], lists.groups),
            )
            for first in range(0, max(len(lists.users), 1), at_once)
        ]
    )


def _divergence(history: Values, found: Values) -> Values:
    mixed = (1 - SMOOTHING) * found + SMOOTHING * history
    terms = np.where(history > 0, history * np.log2(history / mixed), 0.0)
    # Two equal mixes may differ by a last bit, and their divergence be below 0 by as much.
    divergence: Values = np.maximum(terms.sum(axis=1), 0.0)
    divergence[np.isnan(mixed).any(axis=1)] = np.nan
    return divergence


def _mix(picks: Any, groups: Any) -> Values:
    """Return the mean shares of groups over each user's items, NaN for a user without any."""
    mix: Values = (picks @ groups).toarray() / np.diff(picks.indptr)[:, None]
    return mix


def _define(
    name: str, formula: Callable[..., Any], text: str, description: str, **facts: Any
) -> None:
    register(Definition(name, formula, text, description, over="lists", **facts))


_define(
    "coverage",
    coverage,
    "distinct recommended items / N",
    "share of the catalogue that is recommended to anyone",
    per_user=False,
    expected=random_lists.coverage,
)
_define(
    "user_coverage",
    user_coverage,
    "users with a list / users",
    "share of the evaluated users who get anything",
    per_user=False,
    expected=random_lists.user_coverage,
)
_define(
    "gini",
    gini,
    "Σ (2i − N − 1)·c(i) / (N·Σ c), c ascending",
    "inequality of how often the N items are recommended: 0 equally, 1 only one",
    per_user=False,
    higher_is_better=False,
)
_define(
    "entropy",
    entropy,
    "−Σ p(i)·log2 p(i), p = share of the recommendations",
    "how evenly items are recommended",
    options=(Choice("unit", ("bits", "nats"), "logarithm to base 2 or e"),),
    per_user=False,
    upper=np.inf,
)
_define(
    "popularity",
    popularity,
    "mean training users of the listed items",
    "how popular the recommended items are",
    needs=("train",),
    upper=np.inf,
    expected=random_lists.popularity,
    higher_is_better=False,
)
_define(
    "novelty",
    novelty,
    "mean of −log2(users of i / users)",
    "bits of surprise of the listed items; one without users counts as one user's",
    needs=("train",),
    upper=np.inf,
    expected=random_lists.novelty,
    source="Zhou et al., 2010, PNAS 107(10)",
)
_define(
    "diversity",
    diversity,
    "1 − mean cosine of the pairs of a list",
    "how different the items of a list are",
    options=(
        Choice(
            "similarity",
            ("train", "vectors"),
            "cosine of the items' users in train, or of the given item vectors",
            {"train": "train", "vectors": "item_vectors"},
        ),
    ),
    least_cutoff=2,
    expected=random_lists.diversity,
    upper=lambda options: 2.0 if options["similarity"] == "vectors" else 1.0,
    source="Ziegler et al., 2005, WWW",
)
_define(
    "personalization",
    personalization,
    "1 − mean over pairs of users of shared items / k",
    "how different the lists of different users are",
    per_user=False,
    cutoff="required",
    expected=random_lists.personalization,
)
_define(
    "serendipity",
    serendipity,
    "relevant and not among the k most popular unseen / k",
    "share of the list that is relevant and would not have come from popularity",
    options=(
        Choice(
            "form",
            ("ge", "rank"),
            "as the formula says; or mean over the list of h·max(0, (popularity rank − r) / N)",
        ),
    ),
    needs=("train",),
    cutoff="required",
    expected=random_lists.serendipity,
    source="Ge, Delgado-Battenfeld and Jannach, 2010, RecSys",
)
_define(
    "calibration",
    calibration,
    "Σ p(g)·log2(p(g) / q(g)), q = 0.99·list + 0.01·history",
    "bits by which the list's mix of item groups differs from the history's",
    needs=("train", "item_groups"),
    upper=-math.log2(SMOOTHING),
    source="Steck, 2018, RecSys",
    higher_is_better=False,
)
