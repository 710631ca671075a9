"""Propensities and what is weighted by them as published, in plain Python, one user at a time.

A user is a list, item -> 1-based position, and gains by item.
"""

import math

from oracle import users_of_items


def jain(train, n_items, a, b):
    """Jain, Prabhu and Varma 2016, section 4: p_l = 1 / (1 + C (N_l + B)^-A)."""
    n = sum(1 for items in train if items)
    c = (math.log(n) - 1) * (b + 1) ** a
    return [1 / (1 + c * (count + b) ** -a) for count in users_of_items(train, n_items)]


def power(train, n_items, gamma):
    """The share of the most popular item's users to the power of γ; one user at least."""
    counts = users_of_items(train, n_items)
    return [(max(count, 1) / max(counts)) ** gamma for count in counts]


def _discount(rank):
    return 1 / math.log2(rank + 1)


def fraction(name, user, k, p):
    """Numerator and denominator of psp, psrecall or psndcg of a user."""
    ranked, gains = user
    relevant = [item for item, gain in gains.items() if gain > 0]
    n = len(relevant)
    if not n:
        return 0.0, 0.0
    best = sorted(relevant, key=lambda item: p[item])[:k]
    divisor = {"psp": k, "psrecall": n, "psndcg": sum(map(_discount, range(1, min(n, k) + 1)))}

    def total(ranks):
        worths = [
            (_discount(ranks[item]) if name == "psndcg" else 1.0) / p[item]
            for item in relevant
            if ranks.get(item, math.inf) <= k
        ]
        return math.fsum(worths) / divisor[name]

    return total(ranked), total({item: rank for rank, item in enumerate(best, 1)})


def auc(kind, items, gains, unseen, k, p):
    """The weighted mean over relevant items of the share of misses below, half of those behind."""
    relevant = {item for item, gain in gains.items() if gain > 0}
    misses = (unseen | set(items)) - relevant
    if not relevant or not misses:
        return math.nan
    shown = items[:k]

    def below(item):
        if item in shown:
            return len(misses - set(shown[: shown.index(item)])) / len(misses)
        return len(misses - set(shown)) / 2 / len(misses)

    total = math.fsum(below(item) / p[item] for item in relevant)
    return total / (len(relevant) if kind == "ips" else math.fsum(1 / p[i] for i in relevant))


def weighted(name, gain, kind, user, k, p):
    """A metric of a user whose hits are weighted; NaN without relevant items.

    Yang et al. 2018: Σ c(rank) / p over the relevant items, / n (IPS) or / Σ 1 / p (SNIPS), where
    the metric is Σ c(rank) / n.
    """
    ranked, gains = user
    worth = {i: g if "linear" in gain else 1.0 for i, g in gains.items() if g > 0}
    n = len(worth)
    if not n:
        return math.nan
    best = sorted(worth.values(), reverse=True)[:k]
    idcg = sum(g * _discount(rank) for rank, g in enumerate(best, 1))

    def share(item):
        """What the item adds to the unweighted metric."""
        rank = ranked.get(item, math.inf)
        if rank > k:
            return 0.0
        return {
            "precision": 1 / k,
            "recall": 1 / n,
            "arhr": worth[item] / rank,
            "dcg": worth[item] * _discount(rank),
            "ndcg": worth[item] * _discount(rank) / idcg,
        }[name]

    total = math.fsum(n * share(item) / p[item] for item in worth)
    return total / (n if kind == "ips" else math.fsum(1 / p[item] for item in worth))
