"""Interpolated precision at levels of recall, the points of the recall-precision curve."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..kernels import hits as kernels
from .registry import Choice, Definition, Number, never

if TYPE_CHECKING:
    from ..core.types import Floats, Integers
    from .statistics import Statistics

#: The levels of the eleven-point average.
LEVELS = tuple(level / 10 for level in range(11))

#: What products of levels and numbers of items may be off by in floating point.
_NEAR = 1e-9


def hits_needed(level: float, n_relevant: Integers, rounding: str) -> Integers:
    """Return how many hits have the given recall."""
    exact = level * n_relevant
    if rounding == "trec9":
        needed = np.floor(exact + 0.9)
    elif rounding == "nearest":
        needed = np.floor(exact + 0.5)
    else:
        needed = np.ceil(exact - _NEAR)
    whole: Integers = needed.astype(np.int64)
    return whole


def iprec_at_recall(s: Statistics, level: float | str, rounding: str) -> Floats:
    levels = LEVELS if isinstance(level, str) else (level,)
    total, out = np.zeros((2, len(s.hits)))
    for each in levels:
        needed = hits_needed(each, s.n_relevant, rounding)
        kernels.interpolate(*s.hits_of_list, s.k, needed, out)
        total += out
    return total / len(levels)


METRICS = (
    Definition(
        "iprec_at_recall",
        iprec_at_recall,
        "largest precision@r of ranks r where hits ≥ level·n, else 0",
        "interpolated precision at a level of recall, or its mean at 0, 0.1, …, 1",
        plain=(
            "The precision that a list still has once it has found a given share of what is of "
            "interest."
        ),
        options=(
            Number(
                "level",
                "average",
                0,
                1,
                "recall; by default the mean over eleven levels",
                closed=True,
            ),
            Choice(
                "rounding",
                ("up", "trec9", "nearest"),
                "level·n as the next whole number of hits; as ⌊level·n + 0.9⌋ in floating point "
                "(trec_eval 9); or as the nearest (trec_eval 10)",
            ),
        ),
        uses=("hits",),
        closed_form=never,
        source="Manning, Raghavan and Schütze, 2008, Introduction to Information Retrieval, 8.4",
    ),
)
