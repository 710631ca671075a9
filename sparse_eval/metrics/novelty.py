"""The metrics of how new the recommended items are, to everybody or to the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .conventions import STANDARD
from .eligible import are_in
from .measure import discount_tables
from .registry import Choice, Definition
from .statistics import FULL_LIST

if TYPE_CHECKING:
    from ..core.types import Booleans, Floats, Integers, Items
    from ..inputs.training import Training
    from .lists import Lists, RandomLists

VARGAS = "Vargas and Castells, 2011, RecSys, doi:10.1145/2043932.2043955"


def _bits(training: Training, form: str, denominator: str) -> Floats:
    """Return the surprise of each item, in bits or relative to the largest possible."""
    novelty = training.item_novelty
    if form == "bits":
        return novelty
    relative: Floats = novelty / np.log2(training.n_active)
    if denominator == "k":  # as RePlay, even if fewer than two users are in train
        relative[training.item_counts == 0] = 1.0
    return relative


def _in_history(lists: Lists, rows: Integers, items: Items) -> Booleans:
    """Return whether the users of some rows have interacted with items in train."""
    bounds, known = lists.train.history(lists.users)
    owners = np.repeat(np.arange(len(lists.users)), np.diff(bounds))
    return are_in(rows * lists.n_items + items, owners * lists.n_items + known)


def novelty(lists: Lists, form: str, unknown: str, denominator: str) -> Floats:
    n_users = len(lists.users)
    if form == "unseen":
        unseen = ~_in_history(lists, lists.rows, lists.items)
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


def expected_novelty(
    random: RandomLists, form: str, unknown: str, denominator: str
) -> Floats | None:
    if form == "unseen":
        lists = random.lists
        bounds, known = lists.train.history(lists.users)
        owners = np.repeat(np.arange(len(lists.users)), np.diff(bounds))
        eligible = lists.eligible.contain(owners, known)
        return 1 - np.bincount(owners[eligible], minlength=len(lists.users)) / random.n_unseen
    if unknown == "skip" and not random.lists.train.item_counts.all():
        return None  # a list may be of items to leave out alone, and then leaves its user out
    means = random.mean_of(_bits(random.lists.train, form, denominator))
    if denominator == "k" and random.lists.k != FULL_LIST:
        means *= np.minimum(random.depths, random.n_unseen) / random.lists.k
    return means


def _of_hits(lists: Lists, item_values: Floats) -> Floats:
    """Return the discounted mean over each list of the values of hits; others count 0."""
    if lists.train.n_active == 0:
        return np.full(len(lists.users), np.nan)
    discounts, sums = discount_tables(STANDARD, int(lists.lengths.max(initial=1)))
    hit = lists.gains > 0
    worth = item_values[lists.items[hit]] * discounts[lists.ranks[hit]]
    total = np.bincount(lists.rows[hit], worth, len(lists.users))
    return total / sums[np.maximum(lists.lengths, 1)]


def _expected_of_hits(random: RandomLists, item_values: Floats) -> Floats:
    """Return the expectation of `_of_hits`: each rank is as likely to hold each candidate."""
    if random.lists.train.n_active == 0:
        return np.full(len(random.lists.users), np.nan)
    return random.mean_of_hits(item_values[random.possible_hits[1]])


def _complements(training: Training) -> Floats:
    """Return the share of users who have not seen each item."""
    return 1 - training.item_counts / training.n_active


def _discoveries(training: Training) -> Floats:
    """Return −log2 of each item's share of the interactions."""
    counts = training.item_counts
    bits: Floats = np.log2(counts.sum() / np.maximum(counts, 1))
    return bits


METRICS = (
    Definition(
        "novelty",
        novelty,
        "mean of −log2(users of i / users)",
        "surprise of the listed items in bits; an item without users counts as having one",
        plain="How little known the recommended items are; higher if fewer users know them.",
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
        expected=expected_novelty,
        source="Zhou et al., 2010, PNAS 107(10), doi:10.1073/pnas.1000488107",
    ),
    Definition(
        "epc",
        lambda lists: _of_hits(lists, _complements(lists.train)),
        "Σ h(r)·(1 − users of i / users) / log2(r + 1) / Σ 1 / log2(r + 1)",
        "expected popularity complement: how unknown the relevant items near the top are",
        plain="How many little-known items of interest stand near the top of the list.",
        over="lists",
        needs=("train",),
        expected=lambda random: _expected_of_hits(random, _complements(random.lists.train)),
        source=VARGAS,
    ),
    Definition(
        "efd",
        lambda lists: _of_hits(lists, _discoveries(lists.train)),
        "Σ h(r)·−log2(users of i / interactions) / log2(r + 1) / Σ 1 / log2(r + 1)",
        "expected free discovery: surprise, in bits, of the relevant items near the top; an item "
        "without users counts as having one",
        plain="How surprising the items of interest near the top of the list are.",
        over="lists",
        needs=("train",),
        upper=np.inf,
        expected=lambda random: _expected_of_hits(random, _discoveries(random.lists.train)),
        source=VARGAS,
    ),
)
