"""The hyperparameters of ALS that a search tries, as distributions of Optuna."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..core.arguments import check_number, check_whole
from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from optuna.distributions import BaseDistribution

#: The defaults of the parameters, in the order of the columns.
PARAMETERS: dict[str, float] = {
    "factors": 64,
    "alpha": 40.0,
    "regularization": 0.1,
    "iterations": 15,
}
_WHOLE = frozenset({"factors", "iterations"})
_MAX_WHOLE = 2**31 - 1

#: What a caller gives for one parameter.
Searched: TypeAlias = "float | str | Iterable[float | str] | BaseDistribution"


def read_number(name: str, value: object) -> float:
    """Return a value of a parameter, or raise `InvalidDataError` that names it."""
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


def read_space(space: Mapping[str, Searched]) -> dict[str, BaseDistribution]:
    """Return what to try of each parameter, or raise `InvalidDataError` that names it."""
    for name in space:
        if name not in PARAMETERS:
            raise InvalidDataError(f"space has {name!r}; expected {', '.join(PARAMETERS)}")
    return {
        name: read_distribution(name, space.get(name, default))
        for name, default in PARAMETERS.items()
    }


def read_distribution(name: str, searched: Searched) -> BaseDistribution:
    """Return what to try of a parameter, or raise `InvalidDataError` that names it."""
    from optuna.distributions import (
        BaseDistribution,
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    kind = IntDistribution if name in _WHOLE else FloatDistribution
    if isinstance(searched, str) and ":" in searched:
        ends: Any = [read_number(name, word) for word in searched.split(":")]
        if len(ends) != 2 or not 0 < ends[0] < ends[1]:
            raise InvalidDataError(
                f"{name}: expected a range LOW:HIGH, log-uniform, with LOW above 0 and below HIGH, "
                f"or a distribution of Optuna, found {searched!r}"
            )
        return kind(low=ends[0], high=ends[1], log=True)
    if isinstance(searched, BaseDistribution) and not isinstance(searched, CategoricalDistribution):
        return searched
    given: Any = searched
    if isinstance(searched, CategoricalDistribution):
        given = searched.choices
    elif isinstance(searched, str):
        given = searched.split(",")
    elif not isinstance(searched, Iterable):
        given = [searched]
    return CategoricalDistribution([*dict.fromkeys(read_number(name, value) for value in given)])


def read_grid(
    space: Mapping[str, BaseDistribution], n_trials: int | None, seed: int
) -> list[dict[str, float]]:
    """Return all combinations, the last parameter changing fastest, or so many at random.

    More of the same seed begin with those that fewer are.

    Raises
    ------
    InvalidDataError
        If a parameter has a range, or there are fewer combinations.
    """
    axes: list[Any] = []
    for name, values in space.items():
        if not hasattr(values, "choices"):
            raise InvalidDataError(
                f"{name} is a range; say with n_trials how many trials to run, or list "
                "the values of a grid"
            )
        axes.append(values.choices)
    grid = [dict(zip(space, values, strict=True)) for values in product(*axes)]
    if n_trials is None:
        return grid
    check_whole("n_trials", n_trials, 1, len(grid))
    return [grid[i] for i in np.random.default_rng(seed).permutation(len(grid))[:n_trials]]
