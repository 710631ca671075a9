"""Intent-aware metrics as published, in plain Python, one user at a time.

Shares no code with the package. `groups` has the groups of every item; `relevant` the items that
are relevant to the user, whose groups are the intents.
"""

import math
from collections import Counter
from statistics import fmean


def _intents(relevant, groups):
    return {group for item in relevant for group in groups[item]}


def gains(items, relevant, groups, alpha):
    """Clarke et al. 2008: G[r] = Σ over groups of J(r, g)·(1 − α)^(relevant ones of g above r)."""
    above = Counter()
    found = []
    for item in items:
        mine = groups[item] if item in relevant else set()
        found.append(math.fsum((1 - alpha) ** above[group] for group in mine))
        above.update(mine)
    return found


def alpha_dcg(items, relevant, groups, alpha):
    pairs = enumerate(gains(items, relevant, groups, alpha), 1)
    return math.fsum(gain / math.log2(rank + 1) for rank, gain in pairs)


def greedy(relevant, groups, alpha, k):
    """At every rank what adds most, the higher id of equal ones, as ndeval."""
    left, chosen = set(relevant), []
    while left and len(chosen) < k:
        best = max(left, key=lambda i: (gains([*chosen, i], relevant, groups, alpha)[-1], i))
        chosen.append(best)
        left.remove(best)
    return chosen


def alpha_ndcg(items, relevant, groups, alpha, k):
    ideal = alpha_dcg(greedy(relevant, groups, alpha, k), relevant, groups, alpha)
    return alpha_dcg(items[:k], relevant, groups, alpha) / ideal


def err_ia(items, relevant, groups, alpha, k):
    """As ndeval: relative to a list with every intent at every rank."""
    n_intents = len(_intents(relevant, groups))
    found = gains(items[:k], relevant, groups, alpha)
    largest = math.fsum((1 - alpha) ** (rank - 1) / rank for rank in range(1, k + 1))
    return math.fsum(g / rank for rank, g in enumerate(found, 1)) / (n_intents * largest)


def map_ia(items, relevant, groups):
    """Agrawal et al. 2009: the mean of average precision over the intents."""
    values = []
    for intent in _intents(relevant, groups):
        wanted = {item for item in relevant if intent in groups[item]}
        ranks = [rank for rank, item in enumerate(items, 1) if item in wanted]
        values.append(math.fsum(n / rank for n, rank in enumerate(ranks, 1)) / len(wanted))
    return fmean(values)
