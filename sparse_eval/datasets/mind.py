"""Loading the click log of MIND, the Microsoft News Dataset."""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from ..core.files import as_input
from ..errors import InvalidFileError
from ..inputs.cells import UNDATED
from ..inputs.lines import (
    BadLines,
    MalformedLineError,
    find_file,
    numbered_lines,
    read_text,
    shorten,
)
from ..inputs.rows import vocabulary
from .interactions import Interactions

if TYPE_CHECKING:
    from ..core.types import PathLike

FILE_NAME = "behaviors.tsv"
_FIELDS = ("impression id", "user", "time", "history", "impressions")
# Not strptime: its AM and PM depend on the locale of the process.
_TIME = re.compile(r"(\d\d?)/(\d\d?)/(\d{4}) (\d\d?):(\d\d):(\d\d) ([AP]M)", re.ASCII)


def load_mind(path: PathLike, *, history: bool = True, on_bad_lines: str = "error") -> Interactions:
    r"""Read MIND's ``behaviors.tsv``.

    A line is an impression: its id, the user, the time, the news that the user read before
    (the history, which may be empty), and the news shown, with ``-1`` if clicked and ``-0`` if
    not.

    Parameters
    ----------
    path : str or Path
        The file, or the folder that holds it.
    history : bool
        Whether to include the histories. A history is repeated on each line of its user; each
        news item in it counts once per user, with value 1, and is undated (`datasets.UNDATED`):
        the file does not say when it was read, only that it was before the first impression.
        Every split by time trains on it.
    on_bad_lines : {"error", "skip"}
        As in `load_csv`.

    Returns
    -------
    Interactions
        Value 1 for a click, an explicit 0 for shown and not clicked, 1 for a history item; first
        the impressions in the order of the file, then the histories. Timestamps are unix
        seconds (``time_unit="s"``); the file's times are assumed to be UTC.

    Raises
    ------
    InvalidFileError
        If the file cannot be read or a line is malformed. All lines of MIND's test set are
        malformed, because its impressions have no ``-1`` and ``-0``.
    InvalidDataError
        If `on_bad_lines` is neither.

    See Also
    --------
    load : Read a file or folder of any format.
    sparse_eval.split.temporal : Split by time.

    References
    ----------
    .. [1] F. Wu et al., "MIND: A large-scale dataset for news recommendation", ACL 2020.
       doi:10.18653/v1/2020.acl-main.331

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> line = "1\tU1\t11/11/2019 9:05:58 AM\tN30\tN20-1 N10-0\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "behaviors.tsv").write_text(line)
    ...     interactions = load_mind(folder)
    >>> interactions
    Interactions(1 users × 3 items, 3 events, timestamps, 1 undated)
    >>> interactions.to_frame()
      user item  value            timestamp
    0   U1  N20    1.0           1573463158
    1   U1  N10    0.0           1573463158
    2   U1  N30    1.0 -9223372036854775808
    """
    path = find_file(as_input(path), (FILE_NAME,))
    bad = BadLines(path, on_bad_lines)
    log = _Log(history)
    for number, line in numbered_lines(read_text(path)):
        try:
            log.add(line)
        except MalformedLineError as error:
            bad.add(number, line, str(error))
    if not log.line_users:
        raise InvalidFileError(
            f"there are no interactions: all {bad.count} lines are malformed", path
        )
    interactions = Interactions.from_frame(log.frame(), value="value", timestamp="timestamp")
    return replace(interactions, n_skipped=bad.report(), time_unit="s")


class _Log:
    """The well-formed lines of a file, with users and news numbered by first occurrence."""

    def __init__(self, history: bool) -> None:
        self.history = history
        self.users, self.news = vocabulary(), vocabulary()
        self.line_users, self.line_times = array("i"), array("q")
        self.shown_sizes, self.shown = array("q"), array("i")
        self.read_sizes, self.read = array("q"), array("i")
        self._shown_codes = _ShownCodes(self.news)
        self._histories: set[tuple[int, str]] = set()

    def add(self, line: str) -> None:
        """Add a line, or raise `MalformedLineError`."""
        fields = line.split("\t")
        if len(fields) != len(_FIELDS):
            raise MalformedLineError(
                f"expected {len(_FIELDS)} fields separated by tabs ({', '.join(_FIELDS)}), found "
                f"{len(fields)}"
            )
        _, user, written, history, impressions = fields
        if not (user.strip() and impressions.strip()):
            raise MalformedLineError("expected a user id and impressions like 'N123-1 N456-0'")
        time = _unix_seconds(written)
        shown = list(map(self._shown_codes.__getitem__, impressions.split()))
        user_code = self.users[user]
        read: list[int] = []
        # Every line of a user repeats the same history; splitting it once is enough.
        if self.history and (user_code, history) not in self._histories:
            read = list(map(self.news.__getitem__, history.split()))
            self._histories.add((user_code, history))
        self.line_users.append(user_code)
        self.line_times.append(time)
        self.shown_sizes.append(len(shown))
        self.shown.extend(shown)
        self.read_sizes.append(len(read))
        self.read.extend(read)

    def frame(self) -> pd.DataFrame:
        """Return the impressions, followed by one event per user and news item read before."""
        n_news = len(self.news)
        line_users, line_times = np.array(self.line_users), np.array(self.line_times)
        shown_sizes, shown = np.array(self.shown_sizes), np.array(self.shown)
        # However often a history is repeated, and however it grows, a pair counts once.
        read_lines = np.repeat(line_users, np.array(self.read_sizes))
        pairs = np.sort(read_lines.astype(np.int64) * n_news + np.array(self.read))
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]
        read_users, read_news = np.divmod(pairs, max(n_news, 1))
        return pd.DataFrame(
            {
                "user": pd.Categorical.from_codes(
                    np.concatenate([np.repeat(line_users, shown_sizes), read_users]),
                    pd.Index(list(self.users)),
                ),
                "item": pd.Categorical.from_codes(
                    np.concatenate([shown // 2, read_news]), pd.Index(list(self.news))
                ),
                "value": np.concatenate([shown % 2, np.ones(len(pairs))]),
                "timestamp": np.concatenate(
                    [np.repeat(line_times, shown_sizes), np.full(len(pairs), UNDATED)]
                ),
            }
        )


class _ShownCodes(dict[str, int]):
    """Codes of shown news: twice the number of the news item, plus 1 if it was clicked.

    A token is parsed only when it is looked up for the first time.
    """

    def __init__(self, news: dict[str, int]) -> None:
        super().__init__()
        self.news = news

    def __missing__(self, token: str) -> int:
        label, _, clicked = token.rpartition("-")
        if not label or clicked not in ("0", "1"):
            raise MalformedLineError(
                "expected impressions like 'N123-1 N456-0' (1: clicked, 0: not), found "
                f"{shorten(token)}"
            )
        code = self[token] = 2 * self.news[label] + int(clicked)
        return code


def _unix_seconds(text: str) -> int:
    match = _TIME.fullmatch(text)
    if match is not None and 1 <= int(match[4]) <= 12:
        month, day, year, hour, minute, second = map(int, match.groups()[:6])
        hour = hour % 12 + (12 if match[7] == "PM" else 0)
        try:
            return int(datetime(year, month, day, hour, minute, second, tzinfo=UTC).timestamp())
        except ValueError:
            pass
    raise MalformedLineError(f"expected a time like '11/11/2019 9:05:58 AM', found {shorten(text)}")
