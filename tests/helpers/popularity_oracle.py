"""Popularity bias and fairness as published and as libraries count it, in plain Python."""

import math
from statistics import fmean, pstdev

from oracle import gini_of, users_of_items


def tail_of_interactions(train, n_items):
    """Elliot's `Popularity.get_long_tail`, pop_ratio 0.8."""
    counts = users_of_items(train, n_items)
    limit = round(10 * sum(counts)) * 8
    tail = set(range(n_items))
    for item in sorted(tail, key=lambda item: -counts[item]):
        if limit <= 0:
            break
        tail.remove(item)
        limit -= 100 * counts[item]
    return tail


def tail_of_recbole(train, n_items, ratio):
    """RecBole's `TailPercentage.get_tail`."""
    counts = {item: count for item, count in enumerate(users_of_items(train, n_items)) if count}
    if ratio > 1:
        return {item for item, count in counts.items() if count <= ratio}
    rarest = sorted(counts, key=lambda item: (counts[item], item))
    return set(rarest[: max(int(len(rarest) * ratio), 1)])


def _users(lists, relevance, train, k):
    """Each user's list, cut, relevant items and training items."""
    for row, gains, seen in zip(lists, relevance, train, strict=True):
        yield row[:k], {item for item, gain in gains.items() if gain > 0}, seen


def aplt(case, tail, k):
    return [
        fmean(item in tail for item in row) if relevant and row else math.nan
        for row, relevant, _ in _users(*case, k)
    ]


def aclt(case, tail, k):
    return [
        float(len(tail.intersection(row))) if relevant else math.nan
        for row, relevant, _ in _users(*case, k)
    ]


def variation(case, group, k, *, of_relevant):
    """Zhu et al. 2020, equation 3 of relevant items and 2 of all: of the chances in each group.

    Items that are listed though seen can be listed.
    """
    chances = []
    for name in set(group):
        above = below = 0
        for row, relevant, seen in _users(*case, k):
            for item in range(len(group)) if relevant else ():
                if group[item] == name and (item in relevant or not of_relevant):
                    above += item in row
                    below += item in row or item not in seen
        if not below:
            return math.nan
        chances.append(above / below)
    if len(chances) < 2 or not any(chances):
        return math.nan
    return pstdev(chances) / fmean(chances)


def exposure_gini(case, n_items, k, p):
    """Of geometric weights, or of logarithmic ones without p."""
    exposure = [0.0] * n_items
    for row, relevant, _ in _users(*case, k):
        for rank, item in enumerate(row if relevant else (), 1):
            exposure[item] += 1 / math.log2(rank + 1) if p is None else p ** (rank - 1)
    return gini_of(exposure)
