"""The click log of MIND, the Microsoft News Dataset (Wu et al., ACL 2020)."""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from ..errors import InvalidFileError
from .interactions import Interactions
from .labels import vocabulary
from .lines import BadLines, MalformedLineError, file_in, numbered_lines, read_text, shorten

__all__ = ["NAME", "load_mind"]

NAME = "behaviors.tsv"
_FIELDS = ("impression id", "user", "time", "history", "impressions")
# Not strptime: its AM and PM depend on the locale of the process.
_TIME = re.compile(r"(\d\d?)/(\d\d?)/(\d{4}) (\d\d?):(\d\d):(\d\d) ([AP]M)", re.ASCII)


def load_mind(path: str | Path, history: bool = True, on_bad_lines: str = "error") -> Interactions:
    r"""Read MIND's ``behaviors.tsv``.

    A line is an impression: its id, the user, the time, the news that the user read before
    (the history, which may be empty), and the news shown, ``-1`` if clicked and ``-0`` if not.

    Parameters
    ----------
    path : str or Path
        The file, or the folder that holds it.
    history : bool
        Whether the histories count. A history is repeated on each line of its user: a news item
        in it counts once per user, with value 1, dated one second before the user's earliest
        impression (the file does not say when it was read).
    on_bad_lines : {"error", "skip"}
        A malformed line is an error, or is left out, counted in `Interactions.n_skipped` and
        reported in one `SkippedLinesWarning`.

    Returns
    -------
    Interactions
        Value 1 for a click, an explicit 0 for shown and not clicked, 1 for a history item; first
        the impressions in the order of the file, then the histories. Timestamps are unix
        seconds, the file's times taken as UTC.

    Raises
    ------
    InvalidFileError
        When the file cannot be read or a line is malformed. MIND's test set, whose impressions
        have no ``-1`` and ``-0``, is malformed throughout.
    InvalidDataError
        When `on_bad_lines` is something else.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> line = "1\tU1\t11/11/2019 9:05:58 AM\tN30\tN20-1 N10-0\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "behaviors.tsv").write_text(line)
    ...     load_mind(folder).to_frame()
      user item  value   timestamp
    0   U1  N20    1.0  1573463158
    1   U1  N10    0.0  1573463158
    2   U1  N30    1.0  1573463157
    """
    path = file_in(Path(path), (NAME,))
    bad = BadLines(path, on_bad_lines)
    users, news = vocabulary(), vocabulary()
    shown_ids = _Shown(news)
    line_users, line_times, line_sizes, shown = (array(kind) for kind in "iqqi")
    past_users, past_sizes, past = (array(kind) for kind in "iqi")
    histories: set[tuple[int, str]] = set()
    for number, line in numbered_lines(read_text(path)):
        try:
            user, time, read, ids = _fields(line)
            codes = list(map(shown_ids.__getitem__, ids.split()))
            read_codes: list[int] = []
            user_code = users[user]
            # The same history comes with every line of a user; splitting it once is enough.
            if history and (user_code, read) not in histories:
                read_codes = list(map(news.__getitem__, read.split()))
                histories.add((user_code, read))
        except MalformedLineError as error:
            bad.add(number, line, str(error))
            continue
        line_users.append(user_code)
        line_times.append(time)
        line_sizes.append(len(codes))
        shown.extend(codes)
        past_users.append(user_code)
        past_sizes.append(len(read_codes))
        past.extend(read_codes)
    if not line_users:
        raise InvalidFileError(
            f"there are no interactions: all {bad.count} lines are malformed", path
        )
    event_users = np.repeat(np.array(line_users), np.array(line_sizes))
    codes_of_shown = np.array(shown)
    times = np.array(line_times)
    # One event per user and history item, however often the history was repeated or has grown.
    pairs = np.sort(
        np.repeat(np.array(past_users), np.array(past_sizes)).astype(np.int64) * len(news)
        + np.array(past)
    )
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    earliest = np.full(len(users), np.iinfo(np.int64).max)
    np.minimum.at(earliest, np.array(line_users), times)
    read_users, read_news = np.divmod(pairs, max(len(news), 1))
    frame = pd.DataFrame(
        {
            "user": pd.Categorical.from_codes(
                np.concatenate([event_users, read_users]), pd.Index(list(users))
            ),
            "item": pd.Categorical.from_codes(
                np.concatenate([codes_of_shown // 2, read_news]), pd.Index(list(news))
            ),
            "value": np.concatenate([codes_of_shown % 2, np.ones(len(pairs))]),
            "timestamp": np.concatenate(
                [np.repeat(times, np.array(line_sizes)), earliest[read_users] - 1]
            ),
        }
    )
    interactions = Interactions.from_frame(frame, value="value", timestamp="timestamp")
    return replace(interactions, n_skipped=bad.report())


class _Shown(dict[str, int]):
    """Codes of shown news: twice the number of the news item, and one more if it was clicked.

    A token is taken apart only when it is met for the first time.
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


def _fields(line: str) -> tuple[str, int, str, str]:
    fields = line.split("\t")
    if len(fields) != len(_FIELDS):
        raise MalformedLineError(
            f"expected {len(_FIELDS)} fields separated by tabs ({', '.join(_FIELDS)}), "
            f"found {len(fields)}"
        )
    _, user, time, history, impressions = fields
    if not user.strip():
        raise MalformedLineError("expected a user id, found an empty field")
    if not impressions.strip():
        raise MalformedLineError("expected impressions like 'N123-1 N456-0', found none")
    return user, _unix_seconds(time), history, impressions


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
