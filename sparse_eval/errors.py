"""The errors of this package.

Every error that bad input causes derives from `SparseEvalError`, so one ``except`` catches them
all; it is a `ValueError` too, because that is what callers of NumPy, SciPy and pandas expect::

    ValueError
    └── SparseEvalError
        ├── InvalidDataError          values, ids, positions or shapes that cannot be evaluated
        ├── InvalidFileError          a file that cannot be read, with its line where there is one
        │   └── InvalidCheckpointError    a model file without usable factors
        ├── InvalidMetricError        an unknown metric, option or cut-off
        ├── UnsupportedModelError     a model that cannot be recommended with
        ├── MissingExtraError         an optional dependency that is not installed
        ├── WorkerError               workers that cannot be reached, or do not survive their task
        └── OutputError               a folder or file that cannot be written

A message names the place (file, line, row, column, user, option), says what was expected there
and what to do about it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

__all__ = [
    "InvalidCheckpointError",
    "InvalidDataError",
    "InvalidFileError",
    "InvalidMetricError",
    "MissingExtraError",
    "OutputError",
    "SparseEvalError",
    "UnsupportedModelError",
    "WorkerError",
]


class SparseEvalError(ValueError):
    """Base of every error that this package raises about its input."""


class InvalidDataError(SparseEvalError):
    """Values, ids, positions or shapes that cannot be evaluated."""


class InvalidFileError(SparseEvalError):
    """A file that cannot be read.

    Parameters
    ----------
    message : str
        What is wrong, what was expected, what to do.
    path : str or Path
        The file. It is put before the message.
    line : int, optional
        1-based line number, where the fault has one.
    """

    def __init__(self, message: str, path: str | Path, line: int | None = None) -> None:
        self.path = Path(path)
        self.line = line
        self._message = message
        place = str(path) if line is None else f"{path}, line {line}"
        super().__init__(f"{place}: {message}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Say how it is made anew in the process that a worker's error is told to."""
        return type(self), (self._message, self.path, self.line)


class InvalidCheckpointError(InvalidFileError):
    """A model file without usable factors."""


class InvalidMetricError(SparseEvalError):
    """An unknown metric, option or cut-off."""


class UnsupportedModelError(SparseEvalError):
    """A model that cannot be recommended with."""


class MissingExtraError(SparseEvalError):
    """An optional dependency that is not installed."""


class WorkerError(SparseEvalError):
    """Workers that cannot be reached, or do not survive their task."""


class OutputError(SparseEvalError):
    """A folder or file that cannot be written."""
