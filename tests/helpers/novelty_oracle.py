"""Novelty and diversity as published, in plain Python, one user at a time.

Shares no code with the package. Everything takes the user's list, cut, and what it needs beside:
`train` has the items of every user, and a likeness is a function of two items.
"""

import math
from itertools import combinations


def mean(values):
    return math.fsum(values) / len(values) if values else math.nan


def users_of(item, train):
    return {user for user, items in enumerate(train) if item in items}


def n_active(train):
    return sum(1 for items in train if items)


def surprise(item, train):
    """In bits; an item without users counts as having one."""
    if n_active(train) == 0:
        return math.nan
    return -math.log2(max(1, len(users_of(item, train))) / n_active(train))


def novelty(items, train, *, skip=False):
    """With `skip` as Evidently: items that nobody has are left out."""
    return mean([surprise(i, train) for i in items if not skip or users_of(i, train)])


def relative_novelty(items, train, *, skip=False):
    largest = math.log2(n_active(train)) if n_active(train) else math.nan
    return novelty(items, train, skip=skip) / largest if largest else math.nan


def surprisal(items, train, k):
    """RePlay's Surprisal: 1 for an item without users; the sum / k even if the list is shorter."""
    known = [item for item in items if users_of(item, train)]
    n_unknown = len(items) - len(known)
    if not items or not known:
        return n_unknown / k if items else math.nan
    largest = math.log2(n_active(train))
    if not largest:
        return math.nan
    return (n_unknown + math.fsum(surprise(i, train) for i in known) / largest) / k


def unseen(items, history):
    """RePlay's Novelty."""
    return mean([float(item not in history) for item in items])


def epc(items, relevant, train):
    """Vargas and Castells 2011, as Elliot computes it; NaN where nobody has anything."""
    if n_active(train) == 0:
        return math.nan
    return _of_hits(items, relevant, lambda i: 1 - len(users_of(i, train)) / n_active(train))


def efd(items, relevant, train):
    """Likewise; an item without users counts as having one."""
    total = sum(len(row) for row in train)
    if total == 0:
        return math.nan
    return _of_hits(items, relevant, lambda i: -math.log2(max(1, len(users_of(i, train))) / total))


def _of_hits(items, relevant, worth):
    discounts = [1 / math.log2(rank + 1) for rank in range(1, len(items) + 1)]
    pairs = zip(items, discounts, strict=True)
    total = math.fsum(worth(item) * discount for item, discount in pairs if item in relevant)
    return total / math.fsum(discounts) if discounts else 0.0


def cosine(a, b):
    below = math.hypot(*a) * math.hypot(*b)
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / below if below else 0.0


def cosine_of_users(i, j, train):
    mine, yours = users_of(i, train), users_of(j, train)
    below = math.sqrt(len(mine) * len(yours))
    return len(mine & yours) / below if below else 0.0


def jaccard_of_users(i, j, train):
    mine, yours = users_of(i, train), users_of(j, train)
    return len(mine & yours) / len(mine | yours) if mine | yours else 0.0


def diversity(items, likeness):
    return 1 - mean([likeness(i, j) for i, j in combinations(items, 2)])


def categorical_diversity(items, groups, k):
    """RePlay's, of items that may have several groups."""
    return len({group for item in items for group, weight in groups[item].items() if weight}) / k


def serendipity(items, relevant, history, likeness):
    """Zhang et al. 2012, as `recommenders` computes it with relevance; NaN without history."""
    if not history:
        return math.nan
    if not items:
        return 0.0
    hits = [item for item in items if item in relevant]
    return sum(1 - mean([likeness(item, i) for i in history]) for item in hits) / len(items)


def unexpected_hits(items, relevant, history, train, n_items, k):
    """Ge et al. 2010: hits that are not in the list of the most popular items."""
    others = [item for item in range(n_items) if item not in history]
    expected = sorted(others, key=lambda item: (-len(users_of(item, train)), item))[:k]
    return sum(1 for item in items if item in relevant and item not in expected) / k


def calibration(items, history, groups):
    """Steck 2018, in bits, with his smoothing of 0.01; NaN without a list or without history."""

    def share(label, of):
        return mean([groups[i].get(label, 0.0) / math.fsum(groups[i].values()) for i in of])

    if not items or not history:
        return math.nan
    labels = {label for i in history for label, weight in groups[i].items() if weight}
    shares = [(share(label, history), share(label, items)) for label in labels]
    return math.fsum(p * math.log2(p / (0.99 * q + 0.01 * p)) for p, q in shares)


def rank_serendipity(items, relevant, train, n_items):
    """How much more likely hits are recommended to the user than to any, by their ranks."""
    sizes = {item: len(users_of(item, train)) for item in range(n_items)}
    levels = sorted(set(sizes.values()) - {0}, reverse=True)

    def to_any(item):
        return 1 - levels.index(sizes[item]) / n_items if sizes[item] else 0.0

    surpluses = [
        max(1 - (rank - 1) / n_items - to_any(item), 0.0)
        for rank, item in enumerate(items, 1)
        if item in relevant
    ]
    return math.fsum(surpluses) / len(items) if items else 0.0
