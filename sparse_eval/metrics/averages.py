"""How the values of users become one number, where that is not their mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .registry import Choice

if TYPE_CHECKING:
    from ..core.types import Floats, Integers

#: The options of metrics whose values are averaged as ratios, or as logarithms.
AVERAGE = Choice(
    "average",
    ("macro", "micro"),
    "mean over users, or the sum of their numerators / the sum of their denominators",
)
GEOMETRIC = Choice(
    "average",
    ("macro", "geometric"),
    "mean over users, or the geometric mean of their values, 0.00001 at least",
)

#: Values below it count as much in a geometric mean, as in trec_eval.
_LEAST = 1e-5

#: Averages of which there is one number for all users, a function of a ratio of sums.
OF_SUMS = frozenset(("micro", "geometric"))


def logarithms(values: Floats, n_relevant: Integers) -> tuple[Floats, Floats]:
    """Return what geometric means are made of: logarithms, and their weights of 1.

    The value of a user without relevant items, where it counts, is 0.
    """
    known = np.where(n_relevant > 0, values, 0.0)
    return np.log(np.maximum(known, _LEAST)), np.ones(len(values))
