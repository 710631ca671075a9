"""Error messages in the words of the command line: ``--seed`` instead of ``seed``."""

from __future__ import annotations

import errno
import platform
import re
from contextvars import ContextVar

from ..core.versions import library_versions
from ..errors import InvalidDataError, InvalidFileError, InvalidMetricError, shown

#: Errors of a full disk.
FULL = (errno.ENOSPC, errno.EFBIG, getattr(errno, "EDQUOT", errno.ENOSPC))

#: The issue tracker, as pyproject.toml has it.
ISSUES = "https://github.com/sparse-eval/sparse_eval/issues"

#: The options of the current command by their names in Python.
FLAGS: ContextVar[dict[str, str]] = ContextVar("FLAGS")

#: How messages spell arguments: "seed: expected", "monitor is"; "train=", "how='x'". Not included
#: are "users=holdout.users", and "keep='values'", which only evaluations have. Also calls that name
#: columns, "scan(…, user=…, item=…)".
_SUBJECT = re.compile(
    r"^(\w+)(?=: | is | follows | cannot be combined | covers | gives | has no | has ids | names )"
    r"|(?<=with )(n_trials)(?= )"
)
_KEYWORD = re.compile(
    r"(?<![\w/.-])(?!keep=['\"])(\w+)=(?:(['\"])(\w+)\2|False|(None))?(?![\w/-]|\.\S)"
)
_SCAN = re.compile(r"(?:(?:R\w+\.)?scan|se\.datasets\.load)\(…, ([^)]*)\)")
_SPLIT = re.compile(r"\bsplit\.(random|leave_k_out|last_n|temporal|users)\b")
_ITEM_DATA = re.compile(r"items=se\.ItemData\((?:(propensity)|(\w+))=…\)")


def lacks_memory(error: BaseException) -> bool:
    """Return whether there was too little memory, as for a library that is loaded when needed."""
    texts = {
        ImportError: "failed to map segment from shared object",  # the text of Linux's loader
        RuntimeError: "can't start new thread",
    }
    return isinstance(error, MemoryError) or any(
        isinstance(error, kind) and text in str(error) for kind, text in texts.items()
    )


def message_of(error: BaseException) -> str:
    """Return the message of an error in one line, with options named as on the command line."""
    if lacks_memory(error):
        if isinstance(error, RuntimeError):
            return "not enough memory to start a thread, or too many processes of this user"
        return "not enough memory"
    if isinstance(error, UnicodeEncodeError):  # of a system whose output is no UTF-8
        missing = ascii(error.object[error.start])
        return f"the output's encoding lacks {missing}; set PYTHONIOENCODING=utf-8"
    if isinstance(error, OSError) and error.filename is None and error.errno in FULL:
        return f"standard output, or a temporary file, cannot be written: {error.strerror}"
    text = " ".join(str(error).splitlines())
    if not isinstance(error, InvalidDataError | InvalidFileError | InvalidMetricError):
        return text
    path = shown(error.path) if isinstance(error, InvalidFileError) else ""
    text = text.removeprefix(path)  # its words are no options
    flags = FLAGS.get({})

    def as_option(match: re.Match[str]) -> str:
        flag = flags.get(match[1])
        if flag is None:
            return match[0]
        if match[4]:  # "value=None": a column with no name is none
            return f'{flag} ""'
        # "on_bad_lines='skip'" is a flag here, and so are others.
        return flag if match[3] in (None, "skip", "keep") else f"{flag} {match[3]}"

    text = _SCAN.sub(lambda match: match[1].replace("=…", "="), text)
    text = _ITEM_DATA.sub(lambda match: f"--{match[1] or f'item-{match[2]}'}", text)
    text = _SUBJECT.sub(lambda match: flags.get(match[1] or match[2], match[0]), text)
    text = _KEYWORD.sub(as_option, text)
    text = _SPLIT.sub(lambda match: f"--method {match[1].replace('_', '-')}", text)
    return path + text


def bug_report(error: BaseException) -> str:
    """Return the instructions below the traceback of a bug.

    They contain versions, but no data and no path; a traceback may contain both.
    """
    versions = library_versions()
    own = versions.pop("sparse_eval")
    libraries = ", ".join(f"{name} {number}" for name, number in versions.items())
    return (
        f"error: {type(error).__name__} that sparse-eval did not expect: this is a bug in "
        f"it\nPlease report it: {ISSUES}\nSend the traceback above, the command, and the lines "
        "below; replace names in paths,\nids and data that are nobody else's business.\n  "
        f"sparse-eval {own}\n  {libraries}\n  {platform.platform()}"
    )
