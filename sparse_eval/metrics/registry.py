"""The metrics that there are: one `Definition` each, from which every listing is made."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..errors import InvalidMetricError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    import numpy as np
    from numpy.typing import NDArray

__all__ = ["REGISTRY", "Definition", "Option", "definition", "nearest", "register"]


@dataclass(frozen=True, slots=True)
class Option:
    """A choice that a metric leaves open; the first value is the default."""

    name: str
    values: tuple[str, ...]
    description: str


@dataclass(frozen=True, slots=True)
class Definition:
    """A metric's formula and what is known about it.

    Attributes
    ----------
    name : str
        As it is written in the grammar, lower case.
    formula : callable
        ``formula(statistics, **options)`` → float64 array, one value for each user. Its values
        for users without relevant items are not used, and may be 0/0.
    text, description : str
        The formula and its meaning in a line each.
    options : tuple of Option
        What ``name(option=value)`` may choose.
    cutoff_required : bool
        Whether the metric has no meaning without ``@k``.
    upper : float
        The largest value it can take; the smallest is 0.
    averages_ties : bool
        Whether it has an expectation over random orders of tied items.
    source : str
        Where the formula comes from.
    """

    name: str
    formula: Callable[..., NDArray[np.float64]]
    text: str
    description: str
    options: tuple[Option, ...]
    cutoff_required: bool
    upper: float
    averages_ties: bool
    source: str


REGISTRY: dict[str, Definition] = {}


def register(entry: Definition) -> None:
    """Add a metric; a name is taken once."""
    if entry.name in REGISTRY:
        raise InvalidMetricError(f"a metric named {entry.name!r} is registered already")
    REGISTRY[entry.name] = entry


def definition(name: str) -> Definition:
    """Return the metric of that name, or raise `InvalidMetricError` with the nearest names."""
    try:
        return REGISTRY[name.lower()]
    except KeyError:
        raise InvalidMetricError(
            f"there is no metric {name!r}; {nearest(name.lower(), REGISTRY)}"
        ) from None


def nearest(word: str, choices: Iterable[str]) -> str:
    """Say which of `choices` was probably meant."""
    names = sorted(choices)
    close = difflib.get_close_matches(word, names, n=3)
    if close:
        return "did you mean " + " or ".join(repr(name) for name in close) + "?"
    return "expected one of " + ", ".join(names)
