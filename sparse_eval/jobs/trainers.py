"""How the models of a cross-validation are trained, and by what they are known again."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from functools import partial
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..core.formatting import escaped
from ..core.mistaken import describe
from ..errors import InvalidDataError
from .search_space import PARAMETERS, read_number
from .train import train_als

if TYPE_CHECKING:
    from ..core.types import CSRMatrix, JSONValue

#: What a caller gives for one model.
TrainerLike: TypeAlias = "Mapping[str, float] | Callable[[CSRMatrix, int], Any]"

_EXPECTED = (
    "expected the parameters of train_als, as {'factors': 64}, or a function of train and seed "
    "that returns a trained model, as lambda train, seed: se.baselines.ease(train)"
)


class Trainer(NamedTuple):
    """How a model is trained.

    Attributes
    ----------
    given : mapping or callable
        Parameters of `train_als`, or a function of the training matrix and the seed.
    identity : dict
        What it is known by, ready for JSON.
    """

    given: Any
    identity: dict[str, JSONValue]

    def train(self, train: CSRMatrix, seed: int) -> Any:
        """Return a model that was trained on a matrix, as `evaluate_model` takes it."""
        if isinstance(self.given, Mapping):
            return train_als(train, **self.given, seed=seed, progress=False)
        return self.given(train, seed)


def read_trainers(models: Mapping[str, TrainerLike]) -> dict[str, Trainer]:
    """Return how each model is trained, or raise `InvalidDataError` if that is not clear."""
    if not isinstance(models, Mapping) or not models:
        raise InvalidDataError(
            f"models is {describe(models)}; expected models by name, as "
            '{"als64": {"factors": 64}, "als128": {"factors": 128}}'
        )
    trainers = {escaped(name): _read(escaped(name), given) for name, given in models.items()}
    if len(trainers) < len(models):
        raise InvalidDataError(f"models: two have the same name: {', '.join(map(str, models))}")
    return trainers


def _read(name: str, given: object) -> Trainer:
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in PARAMETERS]
        if unknown:
            raise InvalidDataError(
                f"models: {name} has {unknown[0]!r}; expected parameters of train_als, "
                f"{', '.join(PARAMETERS)} (seeds= says with which seeds)"
            )
        parameters: dict[str, JSONValue] = {key: read_number(key, x) for key, x in given.items()}
        return Trainer(parameters, {"train_als": parameters})
    if not callable(given):
        raise InvalidDataError(f"models: {name} is {describe(given)}; {_EXPECTED}")
    return Trainer(given, {"function": _name(given), "code": _digest(given)})


def _name(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    if not hasattr(function, "__qualname__"):
        function = type(function)
    return f"{function.__module__}.{function.__qualname__}"


def _digest(function: Any) -> str:
    """Return 16 hexadecimal digits that change with what a function is written as.

    That is its code, and the plain values that it refers to, such as numbers; not what the
    functions do that it calls.
    """
    return hashlib.sha256("\n".join(_describe(function)).encode()).hexdigest()[:16]


def _describe(value: Any) -> list[str]:
    """Return what a function is written as, in words."""
    if isinstance(value, partial):
        parts = [value.func, *value.args, *value.keywords, *value.keywords.values()]
        return [word for part in parts for word in _describe(part)]
    if isinstance(value, CodeType):
        inner = [word for const in value.co_consts for word in _describe(const)]
        return [value.co_code.hex(), *value.co_names, *value.co_varnames, *inner]
    if not isinstance(value, FunctionType):
        return [_plain(value)]
    variables = inspect.getclosurevars(value)
    named = {**variables.globals, **variables.nonlocals, **(value.__kwdefaults__ or {})}
    plain = [_plain(one) for one in (*sorted(named.items()), *(value.__defaults__ or ()))]
    return [*_describe(value.__code__), *plain]


def _plain(value: object) -> str:
    """Return a plain value as text, and of anything else its type."""
    if isinstance(value, str | bytes | int | float | np.number | None):
        return repr(value)
    if isinstance(value, tuple | list):
        return f"[{', '.join(map(_plain, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{key!r}: {_plain(one)}' for key, one in value.items())}}}"
    return f"{type(value).__module__}.{type(value).__qualname__}"
