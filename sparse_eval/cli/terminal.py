"""Output of commands on a terminal, and their end by Ctrl-C and SIGTERM.

Ids that are printed cannot control the terminal. Handlers of signals and standard error belong to
the process, so only the command line replaces them, while a command runs.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import signal
import sys
import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, cast

from ..core.messages import printable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType
    from typing import TextIO

#: The issue tracker, as pyproject.toml has it.
ISSUES = "https://github.com/sparse-eval/sparse_eval/issues"

#: The command line.
LINE: ContextVar[str] = ContextVar("LINE")

#: Whether notes about the steps of a command are left out.
QUIET: ContextVar[bool] = ContextVar("QUIET", default=False)


#: The levels of messages that begin so; others are of the level info.
_LEVELS = {"error": "error", "warning": "warning", "interrupted": "warning"}


class _JSONLines(io.TextIOBase):
    """A stream that writes each message as a JSON object in a line."""

    def __init__(self, stream: TextIO, command: str) -> None:
        self._stream, self._command, self._text = stream, command, ""
        #: Fields of the next message.
        self.fields: dict[str, str] = {}

    def write(self, text: str) -> int:
        """Write a message once its line is complete."""
        self._text += text
        if text.endswith("\n"):
            message, self._text, fields, self.fields = self._text.strip(), "", self.fields, {}
            head, _, rest = message.partition(": ")
            level = _LEVELS.get(head.lower(), "info")
            row = {
                "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "level": level,
                "message": rest if head.lower() == level else message,
                "command": self._command,
            }
            if message:
                self._stream.write(f"{json.dumps(row | fields)}\n")
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()


@contextmanager
def message_lines(words: list[str]) -> Iterator[None]:
    """Print each different warning once, in a line without its place in the source code.

    All of standard error is written as JSON lines if the command line, or else the environment,
    asks for it. This includes errors of the command line itself, so its text is searched before it
    is parsed.
    """
    given = re.findall("--log-format[ =]([a-z]+)", " ".join(words))
    stream = sys.stderr
    if [os.environ.get("SPARSE_EVAL_LOG_FORMAT"), *given][-1] == "json" and stream is not None:
        command = next(word for word in [*words, ""] if not word.startswith("-"))
        sys.stderr = cast("TextIO", _JSONLines(stream, command))
    told: set[str] = set()

    def show(message: Warning | str, *_: object, **__: object) -> None:
        # Python's own filter forgets what was shown when any code enters `catch_warnings`.
        if str(message) not in told:
            told.add(str(message))
            tell(f"warning: {message}")

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # those for developers
            warnings.simplefilter("always", UserWarning)
            warnings.simplefilter("always", RuntimeWarning)
            warnings.showwarning = show
            yield
    finally:
        sys.stderr = stream


def tell(text: str, level: str = "", **fields: str) -> None:
    """Print a message on standard error; the level and fields are for JSON lines."""
    if isinstance(sys.stderr, _JSONLines):
        sys.stderr.fields.update({"level": level} if level else {}, **fields)
    echo(text, err=True)


def echo(text: str = "", *, err: bool = False, nl: bool = True, data: bool = False) -> None:
    """Print text for people, or `data` for programs.

    Control characters are escaped, because ids may hold them. Data keep every character, unless
    they go to a terminal. If the reader has enough, as ``head -1``, the rest is not printed.
    """
    import typer

    stream = sys.stderr if err else sys.stdout
    if not data or (stream is not None and stream.isatty()):
        text = printable(text)
    try:
        typer.echo(text, err=err, nl=nl, color=True)  # or click would drop colour sequences
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def note(text: str) -> None:
    """Print a note about a step of the command on standard error, unless it is to be quiet."""
    if not QUIET.get():
        tell(text)


@contextmanager
def signals_as_interrupts() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt at SIGINT and SIGTERM, unless the process ignores the signal.

    Yields
    ------
    list of int
        The signals received so far.
    """
    received: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        received.append(number)
        raise KeyboardInterrupt

    replaced = {}
    try:
        if current_thread() is main_thread():  # only this thread may set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) not in (signal.SIG_IGN, None):
                    replaced[number] = signal.signal(number, interrupt)
        yield received
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


def bug_report(error: BaseException) -> str:
    """Return the instructions below the traceback of a bug.

    They contain versions, but no data and no path; a traceback may contain both.
    """
    from ..core.versions import library_versions

    versions = library_versions()
    own = versions.pop("sparse_eval")
    libraries = ", ".join(f"{name} {number}" for name, number in versions.items())
    return (
        f"error: {type(error).__name__} that sparse-eval did not expect: this is a bug in "
        f"it\nPlease report it: {ISSUES}\nSend the traceback above, the command, and the lines "
        "below; replace names in paths,\nids and data that are nobody else's business.\n  "
        f"sparse-eval {own}\n  {libraries}\n  {platform.platform()}"
    )
