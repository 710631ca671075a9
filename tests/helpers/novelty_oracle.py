"""Novelty and diversity as published, in plain Python, one user at a time.

Shares no code with the package. Everything takes the user's list, cut, and what is known beside it.
A likeness is a function of two items and of the same.
"""

import math
from functools import partial
from itertools import combinations
from typing import NamedTuple


class Known(NamedTuple):
    """What is known of a user, of the items of every user, and of items.

    `groups` are the weights of groups and `vectors` the numbers of each item.
    """

    relevant: set
    history: set
    train: list
    groups: list
    vectors: list
    k: int

    @property
    def n_items(self):
        return len(self.vectors)

    @property
    def n_active(self):
        return sum(1 for items in self.train if items)

    def users_of(self, item):
        return {user for user, items in enumerate(self.train) if item in items}


def mean(values):
    return math.fsum(values) / len(values) if values else math.nan


def surprise(item, known):
    """In bits; an item without users counts as having one."""
    if known.n_active == 0:
        return math.nan
    return -math.log2(max(1, len(known.users_of(item))) / known.n_active)


def novelty(items, known, skip=False):
    """With `skip` as Evidently: items that nobody has are left out."""
    return mean([surprise(i, known) for i in items if not skip or known.users_of(i)])


def relative_novelty(items, known, skip=False):
    largest = math.log2(known.n_active) if known.n_active else math.nan
    return novelty(items, known, skip) / largest if largest else math.nan


def surprisal(items, known):
    """RePlay's Surprisal: 1 for an item without users; the sum / k even if the list is shorter."""
    popular = [item for item in items if known.users_of(item)]
    n_unknown = len(items) - len(popular)
    if not items or not popular:
        return n_unknown / known.k if items else math.nan
    largest = math.log2(known.n_active)
    if not largest:
        return math.nan
    return (n_unknown + math.fsum(surprise(i, known) for i in popular) / largest) / known.k


def epc(items, known):
    """Vargas and Castells 2011, as Elliot computes it; NaN where nobody has anything."""
    if known.n_active == 0:
        return math.nan
    return _of_hits(items, known, lambda i: 1 - len(known.users_of(i)) / known.n_active)


def efd(items, known):
    """Likewise; an item without users counts as having one."""
    total = sum(len(row) for row in known.train)
    if total == 0:
        return math.nan
    return _of_hits(items, known, lambda i: -math.log2(max(1, len(known.users_of(i))) / total))


def _of_hits(items, known, worth):
    discounts = {item: 1 / math.log2(rank + 1) for rank, item in enumerate(items, 1)}
    total = math.fsum(worth(i) * discounts[i] for i in items if i in known.relevant)
    return total / math.fsum(discounts.values()) if items else 0.0


def _cosine(a, b):
    below = math.hypot(*a) * math.hypot(*b)
    return math.fsum(x * y for x, y in zip(a, b, strict=True)) / below if below else 0.0


def cosine_of_users(i, j, known):
    mine, yours = known.users_of(i), known.users_of(j)
    below = math.sqrt(len(mine) * len(yours))
    return len(mine & yours) / below if below else 0.0


def jaccard_of_users(i, j, known):
    mine, yours = known.users_of(i), known.users_of(j)
    return len(mine & yours) / len(mine | yours) if mine | yours else 0.0


def cosine_of_groups(i, j, known):
    return _cosine(known.groups[i], known.groups[j])


def cosine_of_vectors(i, j, known):
    return _cosine(known.vectors[i], known.vectors[j])


def diversity(items, known, likeness=cosine_of_users):
    return 1 - mean([likeness(i, j, known) for i, j in combinations(items, 2)])


def categorical_diversity(items, known):
    """RePlay's, of items that may have several groups."""
    return (
        sum(any(known.groups[i][g] for i in items) for g in range(len(known.groups[0]))) / known.k
    )


def serendipity(items, known, likeness):
    """Zhang et al. 2012, as `recommenders` computes it with relevance; NaN without history."""
    if not known.history:
        return math.nan
    hits = [item for item in items if item in known.relevant]
    surprises = [1 - mean([likeness(item, i, known) for i in known.history]) for item in hits]
    return math.fsum(surprises) / max(len(items), 1)


def unexpected_hits(items, known):
    """Ge et al. 2010: hits that are not in the list of the most popular items."""
    others = [item for item in range(known.n_items) if item not in known.history]
    expected = sorted(others, key=lambda item: (-len(known.users_of(item)), item))[: known.k]
    return sum(1 for item in items if item in known.relevant and item not in expected) / known.k


def calibration(items, known):
    """Steck 2018, in bits, with his smoothing of 0.01; NaN without a list or without history."""
    if not items or not known.history:
        return math.nan

    def share(group, of):
        return mean([known.groups[i][group] / math.fsum(known.groups[i]) for i in of])

    groups = range(len(known.groups[0]))
    shares = [(share(group, known.history), share(group, items)) for group in groups]
    return math.fsum(p * math.log2(p / (0.99 * q + 0.01 * p)) for p, q in shares if p)


def rank_serendipity(items, known):
    """How much more likely hits are recommended to the user than to any, by their ranks."""
    sizes = [len(known.users_of(item)) for item in range(known.n_items)]
    levels = sorted(set(sizes) - {0}, reverse=True)

    def to_any(item):
        return 1 - levels.index(sizes[item]) / known.n_items if sizes[item] else 0.0

    surpluses = [
        max(1 - (rank - 1) / known.n_items - to_any(item), 0.0)
        for rank, item in enumerate(items, 1)
        if item in known.relevant
    ]
    return math.fsum(surpluses) / max(len(items), 1)


FORMS = {
    "popularity": lambda items, known: mean([len(known.users_of(i)) for i in items]),
    "cold_share": lambda items, known: mean([not known.users_of(i) for i in items]),
    "novelty": novelty,
    "novelty(unknown=skip)": partial(novelty, skip=True),
    "novelty(form=relative)": relative_novelty,
    "novelty(form=relative,unknown=skip)": partial(relative_novelty, skip=True),
    "novelty(denominator=k)": lambda items, known: novelty(items, known) * len(items) / known.k,
    "novelty(denominator=k,form=relative)": surprisal,
    "novelty(form=unseen)": lambda items, known: mean([i not in known.history for i in items]),
    "epc": epc,
    "efd": efd,
    "diversity": diversity,
    "diversity(similarity=jaccard)": partial(diversity, likeness=jaccard_of_users),
    "diversity(similarity=groups)": partial(diversity, likeness=cosine_of_groups),
    "diversity(similarity=vectors)": partial(diversity, likeness=cosine_of_vectors),
    "categorical_diversity": categorical_diversity,
    "calibration": calibration,
    "serendipity": unexpected_hits,
    "serendipity(form=rank)": rank_serendipity,
    "serendipity(form=cosine)": partial(serendipity, likeness=cosine_of_users),
    "serendipity(form=vectors)": partial(serendipity, likeness=cosine_of_vectors),
}
