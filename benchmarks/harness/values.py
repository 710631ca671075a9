"""Compare values of two libraries. Everything here is plain Python, for any environment."""

import math
from typing import Any


def difference(ours: Any, theirs: Any) -> float:
    """Return the largest difference of numbers, or of numbers in lists and mappings.

    NaN and None equal only each other. Mappings are compared in the keys that both have.
    """
    if isinstance(ours, dict):
        pairs = [(ours[key], theirs[key]) for key in ours if key in theirs]
    elif isinstance(ours, list):
        if len(ours) != len(theirs):
            return math.inf
        pairs = list(zip(ours, theirs, strict=True))
    else:
        missing = [value is None or value != value for value in (ours, theirs)]
        if any(missing):
            return 0.0 if all(missing) else math.inf
        if isinstance(ours, str):
            return 0.0 if ours == theirs else math.inf
        return float(abs(ours - theirs))
    return max((difference(*pair) for pair in pairs), default=0.0)


def difference_of_metric(evaluation: Any, metric: str, theirs: Any) -> float:
    """Return the difference of a mean, or the largest of the values of users and their mean."""
    if not isinstance(theirs, list):
        return difference(evaluation[metric], theirs)
    present = [value for value in theirs if value is not None and value == value]
    mean = math.fsum(present) / len(present) if present else None
    values = evaluation.values(metric).tolist()
    return max(difference(values, theirs), difference(evaluation[metric], mean))


class Furthest:
    """The number of comparisons of each metric, and the one with the largest difference."""

    def __init__(self, unit: str) -> None:
        self.unit = unit
        self.found: dict[str, dict[str, Any]] = {}

    def add(self, metric: str, number: int, apart: float) -> None:
        start = {f"{self.unit}s": 0, "max_difference": 0.0}
        entry = self.found.setdefault(metric, start)
        entry[f"{self.unit}s"] += 1
        if apart > entry["max_difference"]:
            entry |= {"max_difference": apart, f"furthest_{self.unit}": number}
