"""Error messages in the words of the command line: ``--draws`` instead of ``draws``."""

from __future__ import annotations

import re

from ..errors import InvalidDataError, InvalidFileError, InvalidMetricError

#: Options of the command line by their names in Python.
_OPTIONS = {
    name: f"--{name}"
    for name in (
        "alpha", "at", "convention", "counts", "draws", "encoding", "event", "factors", "fraction",
        "gap", "item", "iterations", "keep", "level", "monitor", "n", "out", "patience",
        "regularization", "seed", "sep", "timestamp", "user", "value", "watch",
    )
} | {
    "client": "--scheduler",
    "header": "--no-header",
    "history": "--no-history",
    "how": "--users",
    "k": "--n",
    "metrics": "--metric",
    "min_item_interactions": "--min-item-interactions",
    "min_user_interactions": "--min-user-interactions",
    "min_value": "--min-value",
    "n_items": "--items",
    "n_users": "--users",
    "on_bad_lines": "--skip-bad-lines",
    "test": "--test-at",
}  # fmt: skip

_NAME = "|".join(_OPTIONS)

#: How messages spell options: "draws: expected", "monitor is", "with draws"; "train=", "how='x'",
#: but not "users=holdout.users", nor in a path; "no option 'history'; it has".
_SUBJECT = re.compile(rf"^({_NAME})(?=: | is | follows )|(?<=with )(draws)(?= )")
_KEYWORD = re.compile(rf"(?<![\w/.-])({_NAME}|train)=(?:(['\"])(\w+)\2|False|(None))?(?![\w/.-])")
_UNKNOWN = re.compile(rf"option '({_NAME})'(; it has .*)?")
_SPLIT = re.compile(r"\bsplit\.(random|leave_k_out|last_n|temporal)\b")


def message_of(error: Exception) -> str:
    """Return the message of an error in one line, with options named as on the command line."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    text = " ".join(str(error).splitlines())
    if not isinstance(error, InvalidDataError | InvalidFileError | InvalidMetricError):
        return text
    path = str(error.path) if isinstance(error, InvalidFileError) else ""
    text = text.removeprefix(path)  # its words are no options
    text = _SUBJECT.sub(lambda match: _OPTIONS[match[1] or match[2]], text)
    text = _KEYWORD.sub(_as_option, text)
    text = _UNKNOWN.sub(lambda match: f"option {_OPTIONS[match[1]]}", text)
    text = _SPLIT.sub(lambda match: f"--method {match[1].replace('_', '-')}", text)
    return path + text


def _as_option(match: re.Match[str]) -> str:
    option, value = _OPTIONS.get(match[1], f"--{match[1]}"), match[3]
    if match[4]:  # "value=None": a column with no name is none
        return f'{option} ""'
    # "on_bad_lines='skip'" is a flag here.
    return option if value is None or value == "skip" else f"{option} {value}"
