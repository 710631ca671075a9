"""The metrics as their definitions read, one user at a time, in plain and slow Python.

Shares no code with the package: what both get wrong in the same way would go unseen.
"""

from __future__ import annotations

import math
from itertools import groupby, permutations, product

Ranked = dict[int, int]  # item -> 1-based position
Gains = dict[int, float]  # item -> gain, explicit zeros included

#: Every metric and option, as (name, options); the first entry of the options is the default.
METRICS = [
    ("cg", {}),
    *[
        (name, {"gain": gain})
        for name in ("dcg", "idcg", "ndcg")
        for gain in ("linear", "exp", "binary")
    ],
    ("precision", {}),
    ("recall", {"denominator": "relevant"}),
    ("recall", {"denominator": "min"}),
    ("hit_rate", {}),
    ("f1", {}),
    ("mrr", {}),
    ("arhr", {"gain": "binary"}),
    ("arhr", {"gain": "linear"}),
    *[("map", {"normalizer": of}) for of in ("relevant", "min", "hits", "none")],
]  # fmt: skip

NEEDS_CUTOFF = {"precision", "f1"}


def spelling(name: str, options: dict[str, str], k: int | None) -> str:
    inside = ",".join(f"{option}={value}" for option, value in options.items())
    return name + (f"({inside})" if inside else "") + (f"@{k}" if k is not None else "")


def value(name: str, options: dict[str, str], k: int | None, ranked: Ranked, gains: Gains) -> float:
    """One metric of one user; NaN without a relevant item."""
    relevant = {item: gain for item, gain in gains.items() if gain > 0}
    n = len(relevant)
    if n == 0:
        return math.nan
    depth = math.inf if k is None else k
    shown = sorted((position, item) for item, position in ranked.items() if position <= depth)
    hits = [(rank, relevant[item]) for rank, item in shown if item in relevant]

    if name == "cg":
        return sum(gain for _, gain in hits)
    if name == "dcg":
        return _dcg(hits, options["gain"])
    if name == "idcg":
        return _idcg(relevant, depth, options["gain"])
    if name == "ndcg":
        return _dcg(hits, options["gain"]) / _idcg(relevant, depth, options["gain"])
    if name == "precision":
        return len(hits) / depth
    if name == "recall":
        return len(hits) / (n if options["denominator"] == "relevant" else min(n, depth))
    if name == "hit_rate":
        return 1.0 if hits else 0.0
    if name == "f1":
        if not hits:
            return 0.0
        precision, recall = len(hits) / depth, len(hits) / n
        return 2 * precision * recall / (precision + recall)
    if name == "mrr":
        return 1 / hits[0][0] if hits else 0.0
    if name == "arhr":
        return sum((gain if options["gain"] == "linear" else 1) / rank for rank, gain in hits)
    if name == "map":
        total = sum((i + 1) / rank for i, (rank, _) in enumerate(hits))
        divisor = {"relevant": n, "min": min(n, depth), "hits": len(hits) or 1, "none": 1}
        return total / divisor[options["normalizer"]]
    raise AssertionError(name)


def expected_over_ties(
    name: str, options: dict[str, str], k: int | None, scores: list[float], gains: Gains
) -> float:
    """The mean of a metric over every order that the scores allow."""
    by_score = sorted(range(len(scores)), key=lambda item: -scores[item])
    groups = [list(group) for _, group in groupby(by_score, key=lambda item: scores[item])]
    values = []
    for orders in product(*(permutations(group) for group in groups)):
        items = [item for order in orders for item in order]
        values.append(value(name, options, k, {item: r for r, item in enumerate(items, 1)}, gains))
    return math.fsum(values) / len(values)


def _gain(gain: float, kind: str) -> float:
    return {"linear": gain, "exp": 2**gain - 1, "binary": 1.0}[kind]


def _dcg(hits: list[tuple[int, float]], kind: str) -> float:
    return sum(_gain(gain, kind) / math.log(rank + 1, 2) for rank, gain in hits)


def _idcg(relevant: Gains, depth: float, kind: str) -> float:
    best = sorted(relevant.values(), reverse=True)
    return _dcg([(rank, gain) for rank, gain in enumerate(best, 1) if rank <= depth], kind)
