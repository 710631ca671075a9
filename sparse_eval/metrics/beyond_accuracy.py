"""The metrics of what is recommended, relevant or not: formulas over `Lists`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from . import random_lists
from .registry import Choice, Definition

if TYPE_CHECKING:
    from scipy import sparse

    from ..core.types import Floats
    from .lists import Lists
    from .registry import Arguments

#: Steck's smoothing: the share of the history's mix that is put into the list's.
SMOOTHING = 0.01

#: The largest number of cells of a dense table of users × groups.
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


def popularity(lists: Lists) -> Floats:
    return lists.mean_of(lists.train.item_counts.astype(np.float64))


def novelty(lists: Lists) -> Floats:
    return lists.mean_of(lists.train.item_novelty)


def diversity(lists: Lists, similarity: str) -> Floats:
    n = lists.lengths
    if similarity == "vectors":
        total = _vector_cosines(lists)
    else:
        total = lists.train.cosines(lists.indptr, lists.items, lists.k)
    return 1.0 - total / (n * (n - 1) / 2)


def _vector_cosines(lists: Lists) -> Floats:
    """Sum the cosines of all pairs of a list, in linear time: (|Σ v|² − Σ |v|²) / 2."""
    assert lists.vectors is not None  # noqa: S101 - the metric is refused without them
    sums = lists.picks @ lists.vectors
    squares = lists.picks @ (lists.vectors**2).sum(axis=1)
    total: Floats = ((sums**2).sum(axis=1) - squares) / 2
    return total


def serendipity(lists: Lists, form: str) -> Floats:
    training = lists.train
    if form == "ge" and lists.candidates is not None:
        popular = lists.popular_eligible
        hit = lists.gains > 0
        is_expected = (popular[lists.rows[hit]] == lists.items[hit][:, None]).any(axis=1)
        return np.bincount(lists.rows[hit][~is_expected], minlength=lists.n_users) / lists.k
    if form == "ge":
        unexpected = training.unexpected(
            lists.users, lists.indptr, lists.items, lists.relevant, lists.k
        )
        return unexpected / lists.k
    hit = lists.gains > 0
    rows, ranks, n = lists.rows[hit], lists.ranks[hit], lists.n_items
    popularity_ranks = training.popularity_levels[lists.items[hit]]
    # How much more likely an item is recommended to this user than to any, by rank: that to any
    # is 0 for an item without training users.
    surplus = np.where(popularity_ranks > 0, np.maximum(popularity_ranks - ranks, 0), n + 1 - ranks)
    return np.bincount(rows, surplus / n, len(lists.users)) / np.maximum(lists.lengths, 1)


def calibration(lists: Lists) -> Floats:
    groups = lists.groups
    assert groups is not None  # noqa: S101 - the metric is refused without them
    history = lists.picked(*lists.train.history(lists.users))
    n_rows = max(_MIXES // max(groups.shape[1], 1), 1)  # users × groups are dense
    return np.concatenate(
        [
            _divergence(
                _mix(history[first : first + n_rows], groups),
                _mix(lists.picks[first : first + n_rows], groups),
            )
            for first in range(0, max(len(lists.users), 1), n_rows)
        ]
    )


def _divergence(history: Floats, listed: Floats) -> Floats:
    """Return the Kullback-Leibler divergence of the smoothed mix of each list, in bits."""
    mixed = (1 - SMOOTHING) * listed + SMOOTHING * history
    terms = np.where(history > 0, history * np.log2(history / mixed), 0.0)
    # Two equal mixes may differ in the last bit, and their divergence be slightly below 0.
    divergence: Floats = np.maximum(terms.sum(axis=1), 0.0)
    divergence[np.isnan(mixed).any(axis=1)] = np.nan
    return divergence


def _mix(picks: sparse.csr_matrix, groups: sparse.csr_matrix) -> Floats:
    """Return the mean shares of groups over each user's items, NaN for a user without any."""
    mix: Floats = (picks @ groups).toarray() / np.diff(picks.indptr)[:, None]
    return mix


def _upper_of_diversity(options: Arguments) -> float:
    return 2.0 if options["similarity"] == "vectors" else 1.0


METRICS = (
    Definition(
        "coverage",
        coverage,
        "distinct recommended items / N",
        "share of the catalogue that is recommended to anyone",
        over="lists",
        per_user=False,
        expected=random_lists.coverage,
    ),
    Definition(
        "user_coverage",
        user_coverage,
        "users with a list / users",
        "share of the evaluated users who get anything",
        over="lists",
        per_user=False,
        expected=random_lists.user_coverage,
    ),
    Definition(
        "gini",
        gini,
        "Σ (2i − N − 1)·c(i) / (N·Σ c), c ascending",
        "inequality of how often the N items are recommended: 0 if equally often, 1 if only one is",
        over="lists",
        per_user=False,
        higher_is_better=False,
    ),
    Definition(
        "entropy",
        entropy,
        "−Σ p(i)·log2 p(i), p = share of the recommendations",
        "how evenly items are recommended",
        over="lists",
        options=(Choice("unit", ("bits", "nats"), "logarithm to base 2 or e"),),
        per_user=False,
        upper=np.inf,
    ),
    Definition(
        "popularity",
        popularity,
        "mean training users of the listed items",
        "how popular the recommended items are",
        over="lists",
        needs=("train",),
        upper=np.inf,
        expected=random_lists.popularity,
        higher_is_better=False,
    ),
    Definition(
        "novelty",
        novelty,
        "mean of −log2(users of i / users)",
        "surprise of the listed items in bits; an item without users counts as having one",
        over="lists",
        needs=("train",),
        upper=np.inf,
        expected=random_lists.novelty,
        source="Zhou et al., 2010, PNAS 107(10), doi:10.1073/pnas.1000488107",
    ),
    Definition(
        "diversity",
        diversity,
        "1 − mean cosine of the pairs of a list",
        "how different the items of a list are",
        over="lists",
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
        upper=_upper_of_diversity,
        source="Ziegler et al., 2005, WWW, doi:10.1145/1060745.1060754",
    ),
    Definition(
        "personalization",
        personalization,
        "1 − mean over pairs of users of shared items / k",
        "how different the lists of different users are",
        over="lists",
        per_user=False,
        cutoff="required",
        expected=random_lists.personalization,
    ),
    Definition(
        "serendipity",
        serendipity,
        "relevant and not among the k most popular unseen / k",
        "share of the list that is relevant and would not have come from popularity",
        over="lists",
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
        source="Ge, Delgado-Battenfeld and Jannach, 2010, RecSys, doi:10.1145/1864708.1864761",
    ),
    Definition(
        "calibration",
        calibration,
        "Σ p(g)·log2(p(g) / q(g)), q = 0.99·list + 0.01·history",
        "bits by which the list's mix of item groups differs from the history's",
        over="lists",
        needs=("train", "item_groups"),
        upper=-math.log2(SMOOTHING),
        source="Steck, 2018, RecSys, doi:10.1145/3240323.3240372",
        higher_is_better=False,
    ),
)
