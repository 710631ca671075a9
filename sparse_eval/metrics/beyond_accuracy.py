"""The metrics of recommended items, relevant or not: formulas over `Lists`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from ..core import elementary
from ..core.csr import are_in
from ..inputs.eligible import eligible_items
from .aligned import row_sums
from .conventions import STANDARD
from .measure import discount_tables
from .random_baseline import chances_of_first
from .registry import Choice, metric
from .user_statistics import FULL_LIST

if TYPE_CHECKING:
    from scipy import sparse

    from ..core.types import Floats, Integers, Items
    from ..inputs.training import Training
    from .aligned import Lists, RandomLists

VARGAS = "Vargas and Castells, 2011, RecSys, doi:10.1145/2043932.2043955"

#: Steck's smoothing: the share of the history's mix that is added to the list's mix.
SMOOTHING = 0.01

#: The largest number of cells of a dense table of users × groups.
_MIXES = 2_000_000


def _expected_coverage(random: RandomLists) -> float:
    certain = random.share >= 1.0  # the list holds every unseen item
    chance_of_none = elementary.log1p(-np.where(certain, 0.0, random.share))
    missed = elementary.exp(random.over_users(chance_of_none))
    missed[random.over_users(certain.astype(np.float64)) > 0.5] = 0.0
    return float(1.0 - missed.mean())


@metric("coverage", over="lists", per_user=False, expected=_expected_coverage)
def coverage(lists: Lists) -> float:
    """share of the catalogue that is recommended to anyone

    distinct recommended items / N

    The share of the catalogue that is recommended to at least one user.
    """
    return np.count_nonzero(lists.item_counts > 0) / lists.n_items


@metric(
    "user_coverage",
    over="lists",
    per_user=False,
    expected=lambda random: (np.minimum(random.depths, random.n_unseen) > 0).mean(),
)
def user_coverage(lists: Lists) -> float:
    """share of the evaluated users who get anything

    users with a list / users

    The share of users who get any recommendations at all.
    """
    return lists.n_listed / lists.n_users


@metric("gini", over="lists", per_user=False, higher_is_better=False)
def gini(lists: Lists) -> float:
    """inequality of how often the N items are recommended: 0 if equally often, 1 if only one is

    Σ (2i − N − 1)·c(i) / (N·Σ c), c ascending

    How unequally recommendations are spread over the items: 0 if all are recommended equally often,
    near 1 if a few get all.
    """
    counts = np.sort(lists.item_counts)
    n, total = len(counts), int(counts.sum())
    if total == 0:
        return math.nan
    return int(((2 * np.arange(1, n + 1) - n - 1) * counts).sum()) / (n * total)


@metric(
    "entropy",
    over="lists",
    options=(Choice("unit", ("bits", "nats"), "logarithm to base 2 or e"),),
    per_user=False,
    upper=np.inf,
)
def entropy(lists: Lists, unit: str) -> float:
    """how evenly items are recommended

    −Σ p(i)·log2 p(i), p = share of the recommendations

    How evenly recommendations are spread over the items; higher if more items get a share.
    """
    counts = lists.item_counts[lists.item_counts > 0]
    if len(counts) == 0:
        return math.nan
    shares = counts / counts.sum()
    logarithm = elementary.log if unit == "nats" else elementary.log2
    return math.fsum(-shares * logarithm(shares))


@metric(
    "popularity",
    over="lists",
    needs=("train",),
    upper=np.inf,
    expected=lambda random: random.mean_of(random.lists.train.item_counts.astype(np.float64)),
    higher_is_better=False,
)
def popularity(lists: Lists) -> Floats:
    """how popular the recommended items are

    mean training users of the listed items

    How many users know the recommended items on average; lower if less popular items are
    recommended.
    """
    return lists.mean_of(lists.train.item_counts.astype(np.float64))


@metric(
    "cold_share",
    over="lists",
    needs=("train",),
    expected=lambda random: random.mean_of(_is_cold(random.lists.train)),
)
def cold_share(lists: Lists) -> Floats:
    """share of the listed items that nobody has in train

    items of the list without training users / list length

    Such items are new, or nobody had found them before the end of training.
    """
    return lists.mean_of(_is_cold(lists.train))


def _is_cold(training: Training) -> Floats:
    return np.asarray(training.item_counts == 0, np.float64)


def _expected_diversity(random: RandomLists, similarity: str) -> Floats | None:
    if similarity == "vectors":
        vectors = random.lists.vectors
        squared_sums = (random.sum_unseen(vectors) ** 2).sum(axis=1)
        squares = random.sum_unseen((vectors**2).sum(axis=1))
    elif similarity == "groups":
        groups = random.lists.group_vectors.tocsc()
        columns = (groups[:, [group]].toarray().ravel() for group in range(groups.shape[1]))
        squared_sums = sum(random.sum_unseen(column) ** 2 for column in columns)
        squares = random.sum_unseen(np.ones(groups.shape[0]))
    else:  # for items' users, this would compare every pair of items that a user has seen
        return None
    cosines = squared_sums - squares  # of ordered pairs
    n = random.n_unseen
    values: Floats = 1.0 - cosines / (n * (n - 1))
    return values


def _vector_cosines(lists: Lists, vectors: Floats | sparse.csr_matrix) -> Floats:
    """Sum the cosines of all pairs of a list, in linear time: (|Σ v|² − Σ |v|²) / 2."""
    sums = lists.picks @ vectors
    squares = lists.picks @ row_sums(vectors, power=2)
    total: Floats = (row_sums(sums, power=2) - squares) / 2
    return total


@metric(
    "diversity",
    over="lists",
    options=(
        Choice(
            "similarity",
            ("train", "jaccard", "vectors", "groups"),
            "cosine of the items' users in train, their Jaccard index, or the cosine of the "
            "given item vectors or of the items' groups",
            {
                "train": "train",
                "jaccard": "train",
                "vectors": "item_vectors",
                "groups": "item_groups",
            },
        ),
    ),
    least_cutoff=2,
    expected=_expected_diversity,
    upper=lambda o: 2.0 if o["similarity"] == "vectors" else 1.0,
    source="Ziegler et al., 2005, WWW, doi:10.1145/1060745.1060754",
)
def diversity(lists: Lists, similarity: str) -> Floats:
    """how different the items of a list are

    1 − mean cosine of the pairs of a list

    How different from each other the items of one list are; near 0 if they are all similar.
    """
    n = lists.lengths
    if similarity == "vectors":
        total = _vector_cosines(lists, lists.vectors)
    elif similarity == "groups":
        total = _vector_cosines(lists, lists.group_vectors)
    else:
        lists_of_all = (lists.indptr, lists.items, lists.k)
        total = lists.train.similarities(*lists_of_all, jaccard=similarity == "jaccard")
    return 1.0 - total / (n * (n - 1) / 2)


def _expected_categorical_diversity(random: RandomLists) -> Floats:
    """Add up the probability of each group to be in the list."""
    lists, n = random.lists, random.n_unseen
    depths = np.minimum(random.depths, n)

    def chances(n_members: Integers, users: Integers) -> Floats:
        # A group may have more members than the user has unseen items.
        return chances_of_first(np.minimum(n_members, n[users]), n[users], depths[users])[0]

    # Most groups have the same number of eligible items for every user, so few values differ.
    common, apart = lists.eligible.count_members(lists.group_members)
    sizes, n_groups = np.unique(common, return_counts=True)
    _, first, like = np.unique(
        np.stack((n, depths)), axis=1, return_index=True, return_inverse=True
    )
    cells = np.repeat(first, len(sizes)), np.tile(sizes, len(first))
    of_size = chances(cells[1], cells[0]).reshape(len(first), len(sizes))
    total: Floats = (of_size * n_groups).sum(axis=1)[like]
    users = np.repeat(np.arange(len(n)), np.diff(apart.indptr))
    usual = common[apart.indices]
    total += np.bincount(users, chances(usual + apart.data, users) - chances(usual, users), len(n))
    return total / lists.k


@metric(
    "categorical_diversity",
    over="lists",
    needs=("item_groups",),
    cutoff="required",
    upper=np.inf,
    expected=_expected_categorical_diversity,
    source="RePlay, CategoricalDiversity, sb-ai-lab.github.io/RePlay",
)
def categorical_diversity(lists: Lists) -> Floats:
    """how many groups of items are in the list

    distinct item groups of the list / k

    How many kinds of items one list contains, relative to its length.
    """
    n_groups: Integers = np.diff((lists.picks @ lists.group_members).indptr)
    return n_groups / lists.k


def _expected_personalization(random: RandomLists) -> float:
    users = int(np.count_nonzero(random.share))
    if users < 2:
        return float("nan")
    counts = random.over_users(random.share)
    shared = (counts**2 - random.over_users(random.share**2)).sum() / 2
    return float(1.0 - shared / (users * (users - 1) / 2 * random.lists.k))


@metric(
    "personalization",
    over="lists",
    per_user=False,
    cutoff="required",
    expected=_expected_personalization,
)
def personalization(lists: Lists) -> float:
    """how different the lists of different users are

    1 − mean over pairs of users of shared items / k

    How different the lists of two users are: 0 if all get the same items, 1 if no two share any.
    """
    users = lists.n_listed
    pairs = users * (users - 1) // 2
    if pairs == 0:
        return math.nan
    counts = lists.item_counts
    shared = int((counts * (counts - 1) // 2).sum())
    return 1.0 - shared / (pairs * lists.k)


def _where_known(lists: Lists, values: Floats) -> Floats:
    """Return the values of users, NaN for users without history."""
    return np.where(np.diff(lists.train.history(lists.users)[0]) > 0, values, np.nan)


def _levels(lists: Lists, items: Items) -> Integers:
    """Return the popularity rank of items, N + 1 without training users.

    The surplus over an item's rank in the list measures how much more likely the item is
    recommended to this user than to users in general. An item without training users would be
    recommended to nobody.
    """
    levels = lists.train.popularity_levels[items]
    return np.where(levels > 0, levels, lists.n_items + 1)


def _likeness_to_history(lists: Lists, rows: Integers, items: Items, form: str) -> Floats:
    """Return the mean cosine of items with the history of their users, NaN without history."""
    if form == "cosine":
        return lists.train.cosines_with_history(lists.users, rows, items)
    history = lists.picked(*lists.train.history(lists.users))
    sizes = np.diff(history.indptr)[rows]
    sums = (history @ lists.vectors)[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        means: Floats = (sums * lists.vectors[items]).sum(axis=1) / sizes
    return means


def _expected_serendipity(random: RandomLists, form: str) -> Floats:
    lists = random.lists
    rows, items = random.possible_hits
    if form == "ge":
        popular = lists.eligible.first(lists.train.by_popularity, lists.k)
        users = np.repeat(np.arange(len(lists.users)), popular.shape[1])
        expected = (users * lists.n_items + popular.ravel())[popular.ravel() >= 0]
        unexpected = rows[~are_in(rows * lists.n_items + items, np.sort(expected))]
        return np.bincount(unexpected, minlength=len(lists.users)) * random.share / lists.k
    if form == "rank":
        depths = np.minimum(random.depths, random.n_unseen)[rows]
        levels = _levels(lists, items)
        last = np.minimum(depths, levels - 1)  # at lower ranks the surplus is 0
        sums = last * levels - last * (last + 1) // 2
        return random.mean_of_hits(sums / (depths * lists.n_items))
    surprise = 1 - _likeness_to_history(lists, rows, items, form)
    return _where_known(lists, random.mean_of_hits(surprise))


@metric(
    "serendipity",
    over="lists",
    options=(
        Choice(
            "form",
            ("ge", "rank", "cosine", "vectors"),
            "as the formula says; mean over the list of h·max(0, (popularity rank − r) / N); "
            "or of h·(1 − mean cosine with the items of the history), of the items' users in "
            "train or of item vectors",
            {"vectors": "item_vectors"},
        ),
    ),
    needs=("train",),
    cutoff="required",
    expected=_expected_serendipity,
    upper=lambda o: 2.0 if o["form"] == "vectors" else 1.0,
    source="Ge, Delgado-Battenfeld and Jannach, 2010, RecSys, doi:10.1145/1864708.1864761; "
    "form=cosine: Zhang, Ó Séaghdha, Quercia and Jambor, 2012, WSDM, "
    "doi:10.1145/2124295.2124300",
)
def serendipity(lists: Lists, form: str) -> Floats:
    """share of the list that is relevant and would not have come from popularity

    relevant and not among the k most popular unseen / k

    The share of the list that is of interest and that a list of the most popular items would not
    have shown.
    """
    training = lists.train
    hit = lists.gains > 0
    rows, items = lists.rows[hit], lists.items[hit]
    if form == "ge":
        owners, places = np.unique(rows, return_inverse=True)
        users = lists.users[owners]
        own = eligible_items(lists.n_items, training.seen(users), lists.candidates, users)
        popular = own.first(training.by_popularity, lists.k)[places]
        unexpected = rows[~(popular == items[:, None]).any(axis=1)]
        return np.bincount(unexpected, minlength=lists.n_users) / lists.k
    if form == "rank":
        surplus = np.maximum(_levels(lists, items) - lists.ranks[hit], 0) / lists.n_items
        return np.bincount(rows, surplus, len(lists.users)) / np.maximum(lists.lengths, 1)
    surprise = 1 - _likeness_to_history(lists, rows, items, form)
    total = np.bincount(rows, surprise, len(lists.users))
    return _where_known(lists, total / np.maximum(lists.lengths, 1))


def _divergence(history: Floats, listed: Floats) -> Floats:
    """Return the Kullback-Leibler divergence of the smoothed mix of each list, in bits."""
    mixed = (1 - SMOOTHING) * listed + SMOOTHING * history
    terms, has = np.zeros_like(history), history > 0
    terms[has] = history[has] * elementary.log2(history[has] / mixed[has])
    # Two equal mixes may differ in the last bit, and their divergence may be slightly below 0.
    divergence: Floats = np.maximum(terms.sum(axis=1), 0.0)
    divergence[np.isnan(mixed).any(axis=1)] = np.nan
    return divergence


def _mix(picks: sparse.csr_matrix, groups: sparse.csr_matrix) -> Floats:
    """Return the mean shares of groups over each user's items, NaN for a user without items."""
    mix: Floats = (picks @ groups).toarray() / np.diff(picks.indptr)[:, None]
    return mix


@metric(
    "calibration",
    over="lists",
    needs=("train", "item_groups"),
    upper=-math.log2(SMOOTHING),
    source="Steck, 2018, RecSys, doi:10.1145/3240323.3240372",
    higher_is_better=False,
)
def calibration(lists: Lists) -> Floats:
    """bits by which the list's mix of item groups differs from the history's

    Σ p(g)·log2(p(g) / q(g)), q = 0.99·list + 0.01·history

    How far the mix of kinds in a list is from the user's choices so far; 0 if it is the same.
    """
    groups = lists.groups
    history = lists.picked(*lists.train.history(lists.users))
    n_rows = max(_MIXES // max(groups.shape[1], 1), 1)  # users × groups is dense
    return np.concatenate(
        [
            _divergence(
                _mix(history[first : first + n_rows], groups),
                _mix(lists.picks[first : first + n_rows], groups),
            )
            for first in range(0, max(len(lists.users), 1), n_rows)
        ]
    )


def _bits(training: Training, form: str, denominator: str) -> Floats:
    """Return the surprise of each item, in bits or relative to the largest possible."""
    novelty = training.item_novelty
    if form == "bits":
        return novelty
    relative: Floats = novelty / elementary.log2(training.n_active)
    if denominator == "k":  # as in RePlay, even with fewer than two users in train
        relative[training.item_counts == 0] = 1.0
    return relative


def _expected_novelty(
    random: RandomLists, form: str, unknown: str, denominator: str
) -> Floats | None:
    if form == "unseen":
        lists = random.lists
        bounds, known = lists.train.history(lists.users)
        owners = np.repeat(np.arange(len(lists.users)), np.diff(bounds))
        eligible = lists.eligible.contain(owners, known)
        return 1 - np.bincount(owners[eligible], minlength=len(lists.users)) / random.n_unseen
    if unknown == "skip" and not random.lists.train.item_counts.all():
        return None  # a list may contain only skipped items; then its user is left out
    means = random.mean_of(_bits(random.lists.train, form, denominator))
    if denominator == "k" and random.lists.k != FULL_LIST:
        means *= np.minimum(random.depths, random.n_unseen) / random.lists.k
    return means


@metric(
    "novelty",
    over="lists",
    options=(
        Choice(
            "form",
            ("bits", "relative", "unseen"),
            "as the formula says; / log2(users), so that it is 1 for an item of one user; or "
            "the share of the list that the user has not interacted with in train",
        ),
        Choice(
            "unknown",
            ("one", "skip"),
            "an item without users counts as having one, or is left out of the mean",
        ),
        Choice(
            "denominator",
            ("length", "k"),
            "divide by the length of the list, or by k even if the list is shorter; "
            "form=unseen is always a share of the list",
        ),
    ),
    needs=("train",),
    upper=lambda o: np.inf if o["form"] == "bits" else 1.0,
    expected=_expected_novelty,
    source="Zhou et al., 2010, PNAS 107(10), doi:10.1073/pnas.1000488107",
)
def novelty(lists: Lists, form: str, unknown: str, denominator: str) -> Floats:
    """surprise of the listed items in bits; an item without users counts as having one

    mean of −log2(users of i / users)

    How little known the recommended items are; higher if fewer users know them.
    """
    n_users = len(lists.users)
    if form == "unseen":
        bounds, interacted = lists.train.history(lists.users)
        owners = np.repeat(np.arange(n_users), np.diff(bounds))
        history = owners * lists.n_items + interacted
        unseen = ~are_in(lists.rows * lists.n_items + lists.items, history)
        return np.bincount(lists.rows, unseen, n_users) / lists.lengths
    values = _bits(lists.train, form, denominator)
    rows, items = lists.rows, lists.items
    if unknown == "skip":
        known = lists.train.item_counts[items] > 0
        rows, items = rows[known], items[known]
    total = np.bincount(rows, values[items], n_users)
    n: Integers = np.bincount(rows, minlength=n_users)
    if denominator == "k" and lists.k != FULL_LIST:
        n = np.where(n > 0, lists.k, 0)
    return total / n


def _expected_of_hits(random: RandomLists, item_values: Floats) -> Floats:
    """Return the expectation of `_of_hits`: each rank holds each candidate with equal chance."""
    if random.lists.train.n_active == 0:
        return np.full(len(random.lists.users), np.nan)
    return random.mean_of_hits(item_values[random.possible_hits[1]])


def _complements(training: Training) -> Floats:
    """Return the share of users who have not seen each item."""
    return 1 - training.item_counts / training.n_active


def _of_hits(lists: Lists, item_values: Floats) -> Floats:
    """Return the discounted mean over each list of the values of hits; other items count 0."""
    if lists.train.n_active == 0:
        return np.full(len(lists.users), np.nan)
    discounts, sums = discount_tables(STANDARD, int(lists.lengths.max(initial=1)))
    hit = lists.gains > 0
    worth = item_values[lists.items[hit]] * discounts[lists.ranks[hit]]
    total = np.bincount(lists.rows[hit], worth, len(lists.users))
    return total / sums[np.maximum(lists.lengths, 1)]


@metric(
    "epc",
    over="lists",
    needs=("train",),
    expected=lambda random: _expected_of_hits(random, _complements(random.lists.train)),
    source=VARGAS,
)
def epc(lists: Lists) -> Floats:
    """expected popularity complement: how unknown the relevant items near the top are

    Σ h(r)·(1 − users of i / users) / log2(r + 1) / Σ 1 / log2(r + 1)

    How many little-known items of interest are near the top of the list.
    """
    return _of_hits(lists, _complements(lists.train))


def _discoveries(training: Training) -> Floats:
    """Return −log2 of each item's share of the interactions."""
    counts = training.item_counts
    return elementary.log2(counts.sum() / np.maximum(counts, 1))


@metric(
    "efd",
    over="lists",
    needs=("train",),
    upper=np.inf,
    expected=lambda random: _expected_of_hits(random, _discoveries(random.lists.train)),
    source=VARGAS,
)
def efd(lists: Lists) -> Floats:
    """expected free discovery: surprise, in bits, of the relevant items near the top; an item
    without users counts as having one

    Σ h(r)·−log2(users of i / interactions) / log2(r + 1) / Σ 1 / log2(r + 1)

    How surprising the items of interest near the top of the list are.
    """
    return _of_hits(lists, _discoveries(lists.train))
