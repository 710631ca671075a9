"""trec_eval's measures as published, in plain Python, one user at a time.

A user is a list, item -> 1-based position, and judgements, item -> gain, zeros included.
"""

import math
from fractions import Fraction

EPSILON = 1e-5

#: Measures that are not about relevant items, so that users without these have a value too.
OF_EVERYONE = ("judged", "num_ret", "num_nonrel_judged_ret", "utility")


def condensed(ranked, gains):
    """The list without what nobody has judged (Sakai, 2007)."""
    judged = sorted((rank, item) for item, rank in ranked.items() if item in gains)
    return {item: rank for rank, (_, item) in enumerate(judged, 1)}


def value(name, option, k, ranked, gains, *, left_out=True):
    """One measure of one user; NaN without a relevant item, or 0 if nobody is left out."""
    relevant = {item for item, gain in gains.items() if gain > 0}
    n = len(relevant)
    if not n and (left_out or name not in OF_EVERYONE):
        return math.nan if left_out else 0.0
    shown = sorted((rank, item) for item, rank in ranked.items() if rank <= k)
    length = min(max(ranked.values(), default=0), k)
    hits = [rank for rank, item in shown if item in relevant]
    misses = [rank for rank, item in shown if item in gains and item not in relevant]
    precision, recall = _ratio(len(hits), length), _ratio(len(hits), n)
    if name == "bpref":
        kept = 0.0
        for hit in hits:
            above = sum(1 for miss in misses if miss < hit)
            kept += 1 - min(above, n) / min(len(gains) - n, n) if above else 1
        return kept / n
    if name == "infap":
        total = 0.0
        for i, hit in enumerate(hits):
            judged = i + sum(1 for miss in misses if miss < hit)
            inferred = (i + EPSILON) / (judged + 2 * EPSILON)
            above = judged / (hit - 1) * inferred if hit > 1 else 0.0
            total += 1 / hit + (hit - 1) / hit * above
        return total / n
    if name == "set_f":
        x = float(option or 1) ** 2
        return _ratio((1 + x) * precision * recall, x * precision + recall)
    if name == "r_precision":
        first = math.ceil(Fraction(option) * n)
        return sum(1 for hit in hits if hit <= first) / first
    if name == "iprec_at_recall":
        levels = [Fraction(option)] if option else [Fraction(i, 10) for i in range(11)]
        return sum(_interpolated(hits, n, level) for level in levels) / len(levels)
    return {
        "judged": _ratio(len(hits) + len(misses), length),
        "num_nonrel_judged_ret": len(misses),
        "num_ret": length,
        "num_rel": n,
        "num_rel_ret": len(hits),
        "utility": len(hits) - (length - len(hits)),
        "set_precision": precision,
        "set_relative_precision": _ratio(len(hits), min(n, length)),
        "set_map": precision * recall,
    }[name]


def geometric(values):
    """The geometric mean of values of at least 0.00001."""
    return math.exp(sum(math.log(max(each, EPSILON)) for each in values) / len(values))


def _ratio(above, below):
    return above / below if below else 0.0


def _interpolated(hits, n, level):
    """Manning, Raghavan and Schütze 2008, 8.4: the largest precision at this recall or above."""
    found = [i / rank for i, rank in enumerate(hits, 1) if Fraction(i, n) >= level]
    return max(found, default=0.0)
