"""The hyperparameters that a search tries: single values, lists, and ranges to draw from."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple, TypeAlias

import numpy as np

from ..core.arguments import check_number, check_whole
from ..errors import InvalidDataError

#: The parameters in the order of the columns and of the draws.
PARAMETERS = ("factors", "alpha", "regularization", "iterations")
_WHOLE = frozenset({"factors", "iterations"})
_MAX_WHOLE = 2**31 - 1

#: What a caller gives for one parameter.
Searched: TypeAlias = float | str | Iterable[float | str]


class Range(NamedTuple):
    """A range to draw from log-uniformly, both ends included."""

    low: float
    high: float
    whole: bool

    def __str__(self) -> str:
        return f"{self.low}:{self.high}"

    @property
    def size(self) -> float:
        """The number of different values; infinite for real numbers."""
        return self.high - self.low + 1 if self.whole else math.inf

    def quantile(self, share: float) -> float:
        """Return the number below which this share of all draws lies."""
        # A whole number stands for the interval up to the next one.
        low, high = math.log(self.low), math.log(self.high + self.whole)
        value = math.exp(low + share * (high - low))
        return min(max(math.floor(value) if self.whole else value, self.low), self.high)


Space: TypeAlias = dict[str, tuple[float, ...] | Range]


def parse_values(name: str, searched: Searched) -> tuple[float, ...] | Range:
    """Return the values to try of a parameter, or raise `InvalidDataError` that names it."""
    if isinstance(searched, str) and ":" in searched:
        ends = [_number(name, word) for word in searched.split(":")]
        if len(ends) != 2 or ends[0] >= ends[1]:
            raise InvalidDataError(
                f"{name}: expected a range LOW:HIGH with LOW below HIGH, found {searched!r}"
            )
        if ends[0] == 0:
            raise InvalidDataError(
                f"{name}: a range is drawn from log-uniformly and starts above 0, found "
                f"{searched!r}"
            )
        return Range(ends[0], ends[1], name in _WHOLE)
    if isinstance(searched, str):
        searched = searched.split(",")
    values = tuple(
        _number(name, value)
        for value in (searched if isinstance(searched, Iterable) else [searched])
    )
    if not values:
        raise InvalidDataError(f"{name}: expected at least one value, found none")
    for i, value in enumerate(values):
        if value in values[:i]:
            raise InvalidDataError(f"{name}: {value} is there twice; expected different values")
    return values


def _number(name: str, value: object) -> float:
    if isinstance(value, str):
        kind, label = (int, "whole number") if name in _WHOLE else (float, "number")
        try:
            value = kind(value)
        except ValueError:
            raise InvalidDataError(
                f"{name}: {value!r} is not a {label}; expected one, several as in 10,20,40, or a "
                "range as in 10:40"
            ) from None
    if name in _WHOLE:
        return check_whole(name, value, 1, _MAX_WHOLE)
    return check_number(name, value, 0, open_end=name == "alpha")


def grid(space: Space) -> list[dict[str, float]]:
    """Return all combinations, the last parameter changing fastest.

    Raises
    ------
    InvalidDataError
        If a parameter has a range.
    """
    axes = []
    for name, values in space.items():
        if isinstance(values, Range):
            raise InvalidDataError(
                f"{name}: {values} is a range; say with draws how many trials to draw, or list "
                "the values of a grid, separated by commas"
            )
        axes.append(values)
    return [dict(zip(space, values, strict=True)) for values in product(*axes)]


def draw(space: Space, n_draws: int, seed: int) -> list[dict[str, float]]:
    """Return random combinations, all different; those with real numbers are taken to be.

    Raises
    ------
    InvalidDataError
        If there are fewer combinations.
    """
    n_different = math.prod(
        values.size if isinstance(values, Range) else len(values) for values in space.values()
    )
    if n_draws > n_different:
        raise InvalidDataError(
            f"draws: expected a whole number from 1 to {n_different}, the number of combinations, "
            f"found {n_draws}"
        )
    random = np.random.default_rng(seed)
    drawn: dict[int | tuple[float, ...], tuple[float, ...]] = {}
    while len(drawn) < n_draws:
        combination = tuple(
            values.quantile(share)
            if isinstance(values, Range)
            else values[int(share * len(values))]
            for values, share in zip(space.values(), random.random(len(space)), strict=True)
        )
        drawn.setdefault(len(drawn) if n_different == math.inf else combination, combination)
    return [dict(zip(space, combination, strict=True)) for combination in drawn.values()]
