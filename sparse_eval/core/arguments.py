"""Checks of single arguments: numbers, choices, and argument names of other libraries."""

from __future__ import annotations

import math
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import numpy as np

from ..errors import InvalidDataError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

P = ParamSpec("P")
Result = TypeVar("Result")

_LENGTH = {
    "metrics": "the cut-off with the metric: 'ndcg@{!r}'",
    "k": "k={!r}",
    "n": "n={!r}",
}
_AT = {"at": "at={!r}"}
_PROTOCOL = {"metrics": "se.Protocol(metrics, filter_seen={!r}) as metrics"}

#: Arguments of other libraries, and former ones of this package. For each, arguments of this
#: package, and what to give if a function has this argument; {0!r} is the value.
SPELLINGS = {
    **dict.fromkeys(("K", "N", "topk", "k"), _LENGTH),
    "cutoff": _LENGTH | _AT,
    **dict.fromkeys(("cut", "split_at"), _AT),
    "time": {"timestamp": "timestamp={!r}", **_AT},
    **dict.fromkeys(("filter_already_liked_items", "filter_seen", "exclude_seen"), _PROTOCOL),
    "user_col": {"user": "user={!r}"},
    "item_col": {"item": "item={!r}"},
    "value_col": {"value": "value={!r}"},
    "timestamp_col": {"timestamp": "timestamp={!r}"},
    "metric": {"metrics": "metrics={!r}"},
    "gain": {"metrics": "the gain with the metric: 'ndcg(gain={})@10'"},
    "segments": {"by": "it as by=", "metrics": "it to ev.by(segments)"},
    "exclude": {"train": "it as train="},
    "factors": {"space": "space={{'factors': {!r}}}"},
    "threshold": {
        "validation": "se.Relevance.from_csr(matrix, threshold={0!r}) or from_frame as validation",
        "interactions": "interactions.filter(min_value={0!r}) as interactions",
    },
    "random_state": {"seed": "seed={!r}"},
    "test_size": {"fraction": "fraction={!r}"},
    "n_splits": {"k": "k={!r}", "splits": "splits={!r}"},
    "n_jobs": {"num_threads": "num_threads={!r}"},
    "test": {"space": "a Holdout as train: se.Holdout(train, validation, users, items, test=test)"},
    "n_factors": {"factors": "factors={!r}"},
    "alpha": {"level": "level=, which is 1 − alpha"},
    "curves": {"left_out": "the table to pandas, as in table['ndcg@10'].plot()"},
    "item_names": {"left_out": "it to Evaluation.explain, which shows the list of a user"},
    "items": {"item_data": "it as item_data="},
    "seen": {"train": "it as train="},
    "keep": {"checkpoints": "checkpoints={!r}"},
    "history": {"left_out": "the folder of `sparse-eval night` as nights="},
    "how": {"evaluations": "nothing, and check left_out: the users that all have are compared"},
    "table": {"about": "only a folder, for Parquet; ev.per_user.to_csv(path) writes CSV"},
}


def check_whole(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """Return `value` as an int, or raise `InvalidDataError` if it is not an integer in the range.

    Parameters
    ----------
    name : str
        How the error message refers to the argument.
    value : object
        An int or a NumPy integer.
    least, most : int, optional
        The range, both ends included. `most` needs `least`.
    """
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        number = int(value)
        if (least is None or number >= least) and (most is None or number <= most):
            return number
    if most is not None:
        expected = f" from {least} to {most}"
    else:
        expected = "" if least is None else f" of at least {least}"
    raise InvalidDataError(
        f"{name}: expected a whole number{expected}, found {value!r}", argument=name
    )


def check_bytes(name: str, value: object) -> int:
    """Return a number of bytes, given as 2000000000, "2GB" or "1.5 GiB", or raise."""
    if not isinstance(value, str):
        return check_whole(name, value)
    units = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
    units |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
    digits = value.rstrip("kmgtibKMGTIB ")
    try:
        return int(float(digits) * units[value[len(digits) :].strip().lower()])
    except (KeyError, ValueError, OverflowError):
        raise InvalidDataError(
            f"{name}: expected a number of bytes, such as 2000000000, '2GB' or '500MB', found "
            f"{value!r}",
            argument=name,
        ) from None


def check_number(name: str, value: object, least: float, *, open_end: bool = False) -> float:
    """Return `value` as a float, or raise `InvalidDataError` if it is not in the range.

    Parameters
    ----------
    name : str
        How the error message refers to the argument.
    value : object
        A finite Python or NumPy number.
    least : float
        The lower end of the range.
    open_end : bool
        Whether `least` itself is excluded.
    """
    if (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and not (isinstance(value, int) and value.bit_length() > 1000)  # too large for a float
        and math.isfinite(value)
        and (value > least if open_end else value >= least)
    ):
        return float(value)
    limit = f"above {least:g}" if open_end else f"of at least {least:g}"
    raise InvalidDataError(
        f"{name}: expected a finite number {limit}, found {value!r}", argument=name
    )


def check_fraction(name: str, value: object) -> float:
    """Return `value` as a float, or raise `InvalidDataError` unless it is between 0 and 1."""
    if isinstance(value, float | np.floating) and 0 < value < 1:
        return float(value)
    raise InvalidDataError(
        f"{name}: expected a number between 0 and 1, both excluded, found {value!r}", argument=name
    )


def check_flag(name: str, value: object) -> bool:
    """Return `value` as a bool, or raise `InvalidDataError` if it is neither True nor False."""
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise InvalidDataError(f"{name} is {value!r}; expected True or False", argument=name)


def check_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Return `value`, or raise `InvalidDataError` if it is not one of the allowed words.

    Parameters
    ----------
    name : str
        How the error message refers to the argument.
    value : object
        A string.
    choices : sequence of str
        The allowed words, at least two.
    """
    if isinstance(value, str) and value in choices:
        return value
    *words, last = map(repr, choices)
    raise InvalidDataError(
        f"{name} is {value!r}; expected {', '.join(words)} or {last}", argument=name
    )


def show_spelling(function: Callable[P, Result]) -> Callable[P, Result]:
    """Make a function raise a `TypeError` that shows our spelling of another library's argument."""
    own = function.__annotations__.keys()

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Result:
        for name in (SPELLINGS.keys() & kwargs.keys()) - own:
            if fitting := [text for ours, text in SPELLINGS[name].items() if ours in own]:
                given = fitting[0].format(kwargs[name])
                called = function.__qualname__.removesuffix(".__init__")
                raise TypeError(f"{called}() has no argument {name}; give {given}")
        return function(*args, **kwargs)

    return call
