"""The exceptions that the package raises.

Every error caused by bad input derives from `SparseEvalError`, so that one ``except`` catches them
all. It is a `ValueError`, as callers of NumPy, SciPy and pandas expect::

    ValueError
    └── SparseEvalError
        ├── InvalidDataError          values, ids, positions or shapes that cannot be evaluated
        ├── InvalidFileError          a file that cannot be read, with the line if there is one
        │   └── InvalidCheckpointError    a model file without usable factors
        ├── InvalidMetricError        an unknown metric, option or cut-off
        ├── UnsupportedModelError     a model that cannot rank items
        ├── MissingExtraError         an optional dependency that is not installed
        ├── WorkerError               workers that cannot be reached or that died of their task
        └── OutputError               a folder or file that cannot be written

A message names the place (file, line, row, column, user or option), the expected value, and a
remedy. The attributes of an error contain the same for programs. All of them can be pickled, so
that workers can return them.
"""

from __future__ import annotations

import operator
import re
from pathlib import Path
from typing import Any, SupportsIndex

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

#: The longest message about a file, and how much of each end is shown of a longer one.
_LONGEST, _SHOWN = 1_500, 500


class SparseEvalError(ValueError):
    """Base of all errors that this package raises about its input.

    An attribute is None if it does not apply, or if only the message contains it.

    Parameters
    ----------
    message : str
        The fault, its place, and what was expected.
    argument : str, optional
        The argument or option at fault, such as ``"train"``. The "the" and "matrix" of a message,
        as in "the train matrix", are left out.
    metric : object, optional
        The metric at fault, or the text that was given as one.
    path : str or Path, optional
        The file or folder at fault.
    row : int, optional
        The row of a matrix or frame, from 0 on. Lines of files are not rows, see
        `InvalidFileError`.
    column : object, optional
        The number of a matrix's column, or the name of a frame's.
    user : object, optional
        The user, as the message shows it: an id, or a row number where users have no ids.
    hint : str, optional
        The next thing to do, which ends the message.

    Attributes
    ----------
    argument : str or None
    metric : str or None
    path : Path, str (a URI) or None
    row : int or None
    column : object
    user : object
    hint : str or None
    """

    def __init__(
        self,
        message: str = "",
        *,
        argument: str | None = None,
        metric: object = None,
        path: str | Path | None = None,
        row: SupportsIndex | None = None,
        column: object = None,
        user: object = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{message}; {hint}" if hint else message)
        self.argument = argument and argument.removeprefix("the ").removesuffix(" matrix")
        self.metric = None if metric is None else str(metric)
        is_uri = isinstance(path, str) and "://" in path
        self.path = path if path is None or is_uri else Path(path)
        self.row = None if row is None else operator.index(row)
        self.column, self.user, self.hint = column, user, hint


class InvalidDataError(SparseEvalError):
    """Values, ids, positions or shapes that cannot be evaluated."""


class InvalidFileError(SparseEvalError):
    """A file that cannot be read.

    Parameters
    ----------
    message : str
        The fault, what was expected, and what to do. The place is put before it.
    path : str or Path, optional
        The file. Without it, as in an error that a worker reported as text, `message` names the
        place itself.
    line : int, optional
        The 1-based line number, if the fault has one. It is no `row`, which counts from 0 and
        counts no header.
    argument, metric, row, column, user, hint : optional
        As in `SparseEvalError`.

    Attributes
    ----------
    path : Path, str (a URI) or None
    line : int or None
    """

    def __init__(
        self,
        message: str = "",
        path: str | Path | None = None,
        line: int | None = None,
        *,
        argument: str | None = None,
        metric: object = None,
        row: SupportsIndex | None = None,
        column: object = None,
        user: object = None,
        hint: str | None = None,
    ) -> None:
        message = _in_a_line(message)
        if path is not None:
            place = shown(path) if line is None else f"{shown(path)}, line {line}"
            message = f"{place}: {message}"
        about: dict[str, Any] = {"row": row, "column": column, "user": user, "hint": hint}
        super().__init__(message, argument=argument, metric=metric, path=path, **about)
        self.line = line


def shown(path: object) -> str:
    """Return a path as one line of printable characters, and a URI without its secrets."""
    text = str(path)
    if "://" in text:  # s3://key:secret@bucket, abfs://…?sig=…
        text = re.sub("(?<=://)[^/@]*:[^/@]*@", "", text.partition("?")[0])
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def _in_a_line(message: str) -> str:
    """Return a message in one line, which a cell of thousands of characters does not fill."""
    if "\n" in message:  # in what a parser says, at its end
        message = " ".join(message.splitlines()).replace(" )", ")")
    return message if len(message) <= _LONGEST else f"{message[:_SHOWN]} … {message[-_SHOWN:]}"


class InvalidCheckpointError(InvalidFileError):
    """A model file without usable factors."""


class InvalidMetricError(SparseEvalError):
    """An unknown metric, option or cut-off."""


class UnsupportedModelError(SparseEvalError):
    """A model that cannot rank items."""


class MissingExtraError(SparseEvalError):
    """An optional dependency that is not installed."""


class WorkerError(SparseEvalError):
    """Workers that cannot be reached or that died of their task.

    Attributes
    ----------
    may_pass : bool
        Whether the same call may succeed later, as after a restart of the scheduler. False if the
        address is wrong, or the workers need another installation.
    """

    def __init__(self, message: str = "", *, may_pass: bool = True, **about: Any) -> None:
        super().__init__(message, **about)
        self.may_pass = may_pass


class OutputError(SparseEvalError):
    """A folder or file that cannot be written."""
