"""How metrics among candidates are called, and when candidates are a sample."""

from __future__ import annotations

import re

#: What is said of sampled metrics.
WARNING = (
    "metrics among sampled candidates are not those of the whole catalogue, and can rank models "
    "in another order (Krichene and Rendle, 2020); compare them with none but numbers of the same "
    "candidates, rank all items by leaving candidates= out, or estimate that with "
    "candidates.corrected('unbiased')"
)


def name_among(name: str, kind: str | None, corrected: str | None = None) -> str:
    """Return a metric's name as people read it: ``hit_rate@10 (1+99)`` among candidates.

    `kind` is None where these are all items.
    """
    if kind is None:
        return name
    return f"{name} ({kind}{f', {corrected}' if corrected else ''})"


def is_sampled(kind: str) -> bool:
    """Return whether candidates are known to be a sample of the catalogue."""
    # So they are called: relevant items, and so many negatives beside them.
    return re.match(r"(1|n)\+[0-9]+", kind) is not None
