"""Propensities and what is weighted by them as published, in plain Python, one user at a time."""

import math


def jain(train, n_items, a, b):
    """Jain, Prabhu and Varma 2016, section 4: p_l = 1 / (1 + C (N_l + B)^-A)."""
    n = sum(1 for items in train if items)
    c = (math.log(n) - 1) * (b + 1) ** a
    counts = [sum(1 for items in train if item in items) for item in range(n_items)]
    return [1 / (1 + c * (count + b) ** -a) for count in counts]


def power(train, n_items, gamma):
    """The share of the most popular item's users to the power of γ; one user at least."""
    counts = [sum(1 for items in train if item in items) for item in range(n_items)]
    return [(max(count, 1) / max(counts)) ** gamma for count in counts]


def fraction(name, user, k, p):
    """Numerator and denominator of psp, psrecall or psndcg of a user."""
    ranked, gains = user
    relevant = [item for item, gain in gains.items() if gain > 0]
    n = len(relevant)
    if not n:
        return 0.0, 0.0
    ranks = {item: ranked[item] for item in relevant if ranked.get(item, math.inf) <= k}
    best = sorted(relevant, key=lambda item: p[item])[:k]
    ideal = {item: rank for rank, item in enumerate(best, 1)}
    divisor = {
        "psp": k,
        "psrecall": n,
        "psndcg": sum(1 / math.log2(rank + 1) for rank in range(1, min(n, k) + 1)),
    }[name]

    def total(ranks):
        discounts = {
            item: 1 / math.log2(rank + 1) if name == "psndcg" else 1.0
            for item, rank in ranks.items()
        }
        return math.fsum(discount / p[item] for item, discount in discounts.items()) / divisor

    return total(ranks), total(ideal)


def auc(kind, user, candidates, length, k, p):
    """The weighted mean over relevant items of the share of misses below, half of those behind."""
    ranked, gains = user
    relevant = {item for item, gain in gains.items() if gain > 0}
    if not relevant:
        return math.nan
    length = min(length, k)
    hits = {item: rank for item, rank in ranked.items() if item in relevant and rank <= k}
    n_misses = len(candidates | relevant) - len(relevant)
    n_listed = length - len(hits)

    def above(item):
        if item not in hits:
            return n_listed + (n_misses - n_listed) / 2
        return hits[item] - sum(rank <= hits[item] for rank in hits.values())

    if not n_misses:
        return math.nan
    total = math.fsum((1 - above(item) / n_misses) / p[item] for item in relevant)
    return total / (len(relevant) if kind == "ips" else math.fsum(1 / p[i] for i in relevant))


def weighted(name, gain, kind, user, k, p):
    """A metric of a user whose hits are weighted; NaN without relevant items.

    Yang et al. 2018: Σ c(rank) / p over the relevant items, / n (IPS) or / Σ 1 / p (SNIPS), where
    the metric is Σ c(rank) / n.
    """
    ranked, gains = user
    relevant = {item: gain for item, gain in gains.items() if gain > 0}
    n = len(relevant)
    if not n:
        return math.nan
    worth = {item: g if gain == "linear" else 1.0 for item, g in relevant.items()}
    best = sorted(worth.values(), reverse=True)
    idcg = sum(g / math.log2(rank + 1) for rank, g in enumerate(best, 1) if rank <= k)

    def share(item):
        """What the item adds to the unweighted metric."""
        rank = ranked.get(item, math.inf)
        if rank > k:
            return 0.0
        return {
            "precision": 1 / k,
            "recall": 1 / n,
            "arhr": worth[item] / rank,
            "dcg": worth[item] / math.log2(rank + 1),
            "ndcg": worth[item] / math.log2(rank + 1) / idcg,
        }[name]

    total = math.fsum(n * share(item) / p[item] for item in relevant)
    return total / (n if kind == "ips" else math.fsum(1 / p[item] for item in relevant))
