"""trec_eval's measures as published, in plain Python, one user at a time.

A user is a list, item -> 1-based position, and judgements, item -> gain, zeros included.
"""

import math
from fractions import Fraction

EPSILON = 1e-5


def condensed(ranked, gains):
    """The list without what nobody has judged (Sakai, 2007)."""
    judged = sorted((rank, item) for item, rank in ranked.items() if item in gains)
    return {item: rank for rank, (_, item) in enumerate(judged, 1)}


def value(name, option, k, ranked, gains):
    """One measure of one user; NaN without a relevant item."""
    relevant = {item for item, gain in gains.items() if gain > 0}
    n = len(relevant)
    if not n:
        return math.nan
    return of_anyone(name, option, k, ranked, gains)


def of_anyone(name, option, k, ranked, gains):
    """The same, also of a user without relevant items where it has a value."""
    relevant = {item for item, gain in gains.items() if gain > 0}
    n = len(relevant)
    shown = sorted((rank, item) for item, rank in ranked.items() if rank <= k)
    length = min(max(ranked.values(), default=0), k)
    hits = [rank for rank, item in shown if item in relevant]
    misses = [rank for rank, item in shown if item in gains and item not in relevant]
    if name == "bpref":
        bound = min(len(gains) - n, n)
        kept = 0.0
        for hit in hits:
            above = sum(1 for miss in misses if miss < hit)
            kept += 1 - min(above, n) / bound if above else 1
        return kept / n
    if name == "infap":
        total = 0.0
        for i, hit in enumerate(hits):
            judged = i + sum(1 for miss in misses if miss < hit)
            inferred = (i + EPSILON) / (judged + 2 * EPSILON)
            above = judged / (hit - 1) * inferred if hit > 1 else 0.0
            total += 1 / hit + (hit - 1) / hit * above
        return total / n
    if name == "judged":
        return (len(hits) + len(misses)) / length if length else 0.0
    if name == "num_nonrel_judged_ret":
        return len(misses)
    if name == "num_ret":
        return length
    if name == "num_rel":
        return n
    if name == "num_rel_ret":
        return len(hits)
    if name == "utility":
        return len(hits) - (length - len(hits))
    if name == "set_precision":
        return len(hits) / length if length else 0.0
    if name == "set_relative_precision":
        return len(hits) / min(n, length) if length else 0.0
    if name == "set_map":
        return len(hits) / length * len(hits) / n if length else 0.0
    if name == "set_f":
        if not hits:
            return 0.0
        x = float(option or 1) ** 2
        precision, recall = len(hits) / length, len(hits) / n
        return (1 + x) * precision * recall / (x * precision + recall)
    if name == "r_precision":
        first = math.ceil(Fraction(option) * n)
        return sum(1 for hit in hits if hit <= first) / first
    if name == "iprec_at_recall":
        levels = [Fraction(option)] if option else [Fraction(i, 10) for i in range(11)]
        return sum(_interpolated(hits, n, level) for level in levels) / len(levels)
    raise AssertionError(name)


def geometric(values):
    """The geometric mean of values of at least 0.00001."""
    logs = [math.log(max(each, 1e-5)) for each in values]
    return math.exp(sum(logs) / len(logs))


def _interpolated(hits, n, level):
    """Manning, Raghavan and Schütze 2008, 8.4: the largest precision at this recall or above."""
    found = [i / rank for i, rank in enumerate(hits, 1) if Fraction(i, n) >= level]
    return max(found, default=0.0)
