"""`Baselines`: the evaluations that are shown next to another one, by name."""

from __future__ import annotations

from collections import UserDict
from typing import Any, Self, TypeVar

from ..errors import InvalidDataError
from .summary import COLUMNS

Value = TypeVar("Value")


class Baselines(UserDict[str, Value]):
    """Evaluations by name, with names that fit into tables, files and terminals.

    Raises
    ------
    InvalidDataError
        From ``baselines[name] = evaluation``, if the name is empty, holds characters that cannot be
        printed, or is a column of `Evaluation.summary`.
    """

    def __setitem__(self, name: str, evaluation: Value) -> None:
        super().__setitem__(_check(name), evaluation)

    def __ior__(self, other: Any) -> Self:  # type: ignore[misc, override]
        self.update(other)  # which checks the names
        return self


def _check(name: object) -> str:
    """Return the name of a baseline, or raise `InvalidDataError`."""
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise InvalidDataError(
            f"a baseline is called {name!r}; expected a name of printable characters, without "
            "tabs, line breaks and control characters, such as 'popularity'"
        )
    if name in COLUMNS:
        raise InvalidDataError(
            f"a baseline is called {name!r}, like a column of summary(); give it another name, "
            f"such as '{name} model'"
        )
    return name
