"""`Baselines`: the evaluations that are shown next to another one, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import TypeVar

from ..errors import InvalidDataError
from .summary import COLUMNS

Value = TypeVar("Value")


class Baselines(MutableMapping[str, Value]):
    """Evaluations by name, with names that fit into tables, files and terminals.

    Parameters
    ----------
    known : mapping of str to Evaluation
        Baselines whose names were checked when they were given.

    Raises
    ------
    InvalidDataError
        From ``baselines[name] = evaluation``, if the name is empty, holds characters that cannot be
        printed, or is a column of `Evaluation.summary`.
    """

    def __init__(self, known: Mapping[str, Value] | None = None) -> None:
        self._evaluations = dict(known or {})

    def __setitem__(self, name: str, evaluation: Value) -> None:
        self._evaluations[_check(name)] = evaluation

    def __getitem__(self, name: str) -> Value:
        return self._evaluations[name]

    def __delitem__(self, name: str) -> None:
        del self._evaluations[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._evaluations)

    def __len__(self) -> int:
        return len(self._evaluations)

    def __repr__(self) -> str:
        return repr(self._evaluations)


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
