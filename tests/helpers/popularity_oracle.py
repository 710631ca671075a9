"""Popularity bias and fairness as published and as libraries count it, in plain Python."""

import math
from statistics import fmean, pstdev


def tail_of_interactions(train, n_items):
    """Elliot's `Popularity.get_long_tail`, pop_ratio 0.8."""
    counts = _counts(train, n_items)
    limit = round(10 * sum(counts)) * 8
    by_popularity = sorted(range(n_items), key=lambda item: -counts[item])
    head = set()
    for item in by_popularity:
        if limit <= 0:
            break
        head.add(item)
        limit -= 100 * counts[item]
    return set(range(n_items)) - head


def tail_of_recbole(train, n_items, ratio):
    """RecBole's `TailPercentage.get_tail`."""
    counts = {item: count for item, count in enumerate(_counts(train, n_items)) if count}
    if ratio > 1:
        return {item for item, count in counts.items() if count <= ratio}
    rarest = sorted(counts, key=lambda item: (counts[item], item))
    return set(rarest[: max(int(len(rarest) * ratio), 1)])


def _counts(train, n_items):
    return [sum(1 for items in train if item in items) for item in range(n_items)]


def _evaluated(lists, relevance, train, k):
    rows = zip(lists, relevance, train, strict=True)
    users = [(row[:k], _relevant(gains), seen) for row, gains, seen in rows]
    return [user for user in users if user[1]]


def _relevant(gains):
    return {item for item, gain in gains.items() if gain > 0}


def aplt(lists, relevance, tail, k):
    return [
        math.nan
        if not _relevant(gains) or not row[:k]
        else fmean(1.0 if item in tail else 0.0 for item in row[:k])
        for row, gains in zip(lists, relevance, strict=True)
    ]


def aclt(lists, relevance, tail, k):
    return [
        float(len(tail.intersection(row[:k]))) if _relevant(gains) else math.nan
        for row, gains in zip(lists, relevance, strict=True)
    ]


def variation(lists, relevance, train, group, k, *, of_relevant):
    """Zhu et al. 2020, equation 3 of relevant items and 2 of all: of the chances in each group.

    Items that are listed though seen can be listed.
    """
    chances = []
    for name in set(group):
        above = below = 0
        for row, relevant, seen in _evaluated(lists, relevance, train, k):
            for item in range(len(group)):
                if group[item] == name and (item in relevant or not of_relevant):
                    above += item in row
                    below += item in row or item not in seen
        if not below:
            return math.nan
        chances.append(above / below)
    if len(chances) < 2 or not any(chances):
        return math.nan
    return pstdev(chances) / fmean(chances)


def exposure_gini(lists, relevance, train, n_items, k, p):
    """Of geometric weights, or of logarithmic ones without p."""
    exposure = [0.0] * n_items
    for row, _, _ in _evaluated(lists, relevance, train, k):
        for rank, item in enumerate(row, 1):
            exposure[item] += 1 / math.log2(rank + 1) if p is None else p ** (rank - 1)
    whole = math.fsum(exposure)
    if not whole:
        return math.nan
    return math.fsum(abs(a - b) for a in exposure for b in exposure) / (2 * n_items * whole)
