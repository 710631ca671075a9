"""Loading public data sets in their own formats: adjacency lists, MIND, MovieLens."""

from __future__ import annotations

import re
from array import array
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from ..core.files import as_input
from ..core.messages import warn
from ..errors import InvalidFileError
from ..inputs.cells import UNDATED
from ..inputs.columns import GuessWarning
from ..inputs.rows import encode_texts, vocabulary
from ..inputs.tables import TextTable
from ..inputs.text import BadLines, MalformedLineError, TextFile, numbered_lines, read_text, shorten
from .interactions import Interactions, read_interactions

if TYPE_CHECKING:
    from ..core.types import PathLike

_MANY = 10  # lines that do not begin with the number of their items, when most others do
_OTHER_SEPARATORS = (",", ";", "|", "::")


def load_adjacency(
    path: PathLike,
    *,
    counts: bool | None = None,
    encoding: str | None = None,
    on_bad_lines: str = "error",
) -> Interactions:
    r"""Read a file whose lines are ``user item item …``, separated by white space.

    A line may begin with the number of its items instead of a user, as in CiteULike's files. Then
    the first line is user 0, the second user 1, and so on.

    If all ids are integers (without leading zeros), labels are int64, otherwise text. A user
    without items stays in the encoding. An item that is repeated on a line counts twice.

    Parameters
    ----------
    path : str or Path
        The file.
    counts : bool, optional
        Whether lines begin with the number of their items. By default they do if the first number
        of every line counts the others, and some number occurs twice (users do not);
        `Interactions.recognized` then has ``{"user": "line number"}``.
    encoding : str, optional
        As in `load`.
    on_bad_lines : {"error", "skip"}
        As in `load`. A line is malformed if it is a single id that contains ``,``, ``;``, ``|``
        or ``::``. Then the file has a different separator. It is also malformed if it does not have
        the number of items that it begins with.

    Returns
    -------
    Interactions

    Raises
    ------
    InvalidFileError
        If the file cannot be read, has no interactions or a malformed line.
    InvalidDataError
        If `on_bad_lines` is neither.

    Warns
    -----
    GuessWarning
        If every line begins with the number of its items but no number occurs twice, or if nearly
        every line does. The number was then read as a user. If the file is not UTF-8 and `encoding`
        is not given.

    See Also
    --------
    sparse_eval.Holdout.from_frames : Read a training and a test set with one encoding.

    References
    ----------
    .. [1] X. Wang et al., "Neural graph collaborative filtering", SIGIR 2019.
       doi:10.1145/3331184.3331267
    .. [2] X. He et al., "LightGCN: Simplifying and powering graph convolution network for
       recommendation", SIGIR 2020. doi:10.1145/3397271.3401063

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.txt"
    ...     _ = path.write_text("0 10 20\n1 20\n")
    ...     load_adjacency(path)
    Interactions(2 users × 2 items, 3 events)
    """
    path = as_input(path)
    text = read_text(path, encoding, guess=True)
    counted = _begins_with_counts(text, path) if counts is None else counts
    bad = BadLines(path, on_bad_lines)
    users, items = vocabulary(), vocabulary()
    row_users, row_sizes, numbers = array("q"), array("q"), array("q")
    for number, line in numbered_lines(text):
        first, *row = line.split()
        if not row and any(sep in first for sep in _OTHER_SEPARATORS):
            bad.add(number, line, "expected ids separated by spaces, found none")
            continue
        if counted and first != str(len(row)):
            bad.add(number, line, f"expected the number of the {len(row)} items, found {first!r}")
            continue
        row_users.append(users[str(number - 1) if counted else first])
        row_sizes.append(len(row))
        numbers.extend(map(items.__getitem__, row))
    if not numbers:
        raise InvalidFileError("there are no interactions: no user has an item", path)
    user_codes, user_labels = encode_texts(list(users), numbers=True)
    item_codes, item_labels = encode_texts(list(items), numbers=True)
    user_labels.written = item_labels.written = True
    return Interactions(
        user_codes=np.repeat(user_codes[np.array(row_users)], np.array(row_sizes)),
        item_codes=item_codes[np.array(numbers)],
        values=np.ones(len(numbers)),
        timestamps=None,
        users=user_labels,
        items=item_labels,
        n_skipped=bad.report(),
        recognized={"user": "line number"} if counted else {},
    )


def _begins_with_counts(text: bytes, path: PathLike) -> bool:
    """Return whether the lines of a file begin with counts, and warn if they may."""
    counts: list[str] = []
    others: list[int] = []
    for number, line in numbered_lines(text):
        first, *row = line.split()
        if first == str(len(row)):
            counts.append(first)
        else:
            others.append(number)
        if len(others) == _MANY:
            return False
    repeated = len(set(counts)) < len(counts)
    if repeated and not others:
        return True
    doubt = "" if others else "but no number occurs twice, so it could also be a user id"
    if repeated and len(counts) > _MANY * len(others):
        doubt = f"except line {others[0]} and {len(others) - 1} others"
    if doubt:
        warn(
            f"{path}: each line starts with the number of its items, {doubt}. It was read as a "
            "user. Set counts=True (number of items) or counts=False (user)",
            GuessWarning,
        )
    return False


MIND_FILE = "behaviors.tsv"
_MIND_FIELDS = ("impression id", "user", "time", "history", "impressions")
# Not strptime: its AM and PM depend on the locale of the process.
_TIME = re.compile(r"(\d\d?)/(\d\d?)/(\d{4}) (\d\d?):(\d\d):(\d\d) ([AP]M)", re.ASCII)


def load_mind(path: PathLike, *, history: bool = True, on_bad_lines: str = "error") -> Interactions:
    r"""Read MIND's ``behaviors.tsv``.

    A line is an impression: its id, the user, the time, the news that the user read before (the
    history, maybe empty), and the news shown. Shown news end in ``-1`` if clicked and ``-0`` if
    not.

    Parameters
    ----------
    path : str or Path
        The file, or the folder that holds it.
    history : bool
        Whether to include the histories. A history is repeated on each line of its user; each news
        item in it counts once per user, with value 1. It is undated (`datasets.UNDATED`): the file
        only implies that it was read before the first impression. Every split by time trains on it.
    on_bad_lines : {"error", "skip"}
        As in `load`.

    Returns
    -------
    Interactions
        Value 1 for a click, an explicit 0 for shown and not clicked, 1 for a history item. The
        impressions come first, in the order of the file, then the histories. Timestamps are unix
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
    path = as_input(path)
    path = path / MIND_FILE if path.is_dir() else path
    bad = BadLines(path, on_bad_lines)
    users, news = vocabulary(), vocabulary()
    shown: dict[str, int] = {}
    event_users, event_codes, event_times = array("i"), array("q"), array("q")
    read, histories = array("q"), set()
    for number, line in numbered_lines(read_text(path)):
        try:
            user, time, past, tokens = _impression(line)
            codes = [shown.get(token) or _shown(token, shown, news) for token in tokens]
        except MalformedLineError as error:
            bad.add(number, line, error)
            continue
        code = users[user]
        event_users.extend([code] * len(codes))
        event_codes.extend(codes)
        event_times.extend([time] * len(codes))
        # Every line of a user repeats the same history; splitting it once is enough.
        if history and (code, past) not in histories:
            histories.add((code, past))
            read.extend(code << 32 | news[item] for item in past.split())
    if not event_users:
        raise InvalidFileError(
            f"there are no interactions: all {bad.count} lines are malformed", path
        )
    # However often a history is repeated, and however it grows, a pair counts once.
    pairs = np.unique(np.array(read))
    shown_codes = np.array(event_codes) - 1
    user_codes, user_labels = encode_texts(list(users))
    item_codes, item_labels = encode_texts(list(news))
    return Interactions(
        user_codes=user_codes[np.concatenate([np.array(event_users), pairs >> 32])],
        item_codes=item_codes[np.concatenate([shown_codes // 2, pairs & (2**32 - 1)])],
        values=np.concatenate([shown_codes % 2, np.ones(len(pairs))]),
        timestamps=np.concatenate([np.array(event_times), np.full(len(pairs), UNDATED)]),
        users=user_labels,
        items=item_labels,
        n_skipped=bad.report(),
        time_unit="s",
    )._without_unused_labels()


def _impression(line: str) -> tuple[str, int, str, list[str]]:
    """Return the user, the time, the history and the news shown, or raise an error."""
    fields = line.split("\t")
    if len(fields) != len(_MIND_FIELDS):
        raise MalformedLineError(
            f"expected {len(_MIND_FIELDS)} fields separated by tabs ({', '.join(_MIND_FIELDS)}), "
            f"found {len(fields)}"
        )
    _, user, written, past, impressions = fields
    if not (user.strip() and impressions.strip()):
        raise MalformedLineError("expected a user id and impressions like 'N123-1 N456-0'")
    return user, _unix_seconds(written), past, impressions.split()


def _shown(token: str, codes: dict[str, int], news: dict[str, int]) -> int:
    """Return twice the number of the news item, plus 1, plus 1 more if it was clicked."""
    label, _, clicked = token.rpartition("-")
    if not label or clicked not in ("0", "1"):
        raise MalformedLineError(
            "expected impressions like 'N123-1 N456-0' (1: clicked, 0: not), found "
            f"{shorten(token)}"
        )
    code = codes[token] = 2 * news[label] + int(clicked) + 1
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


MOVIELENS_FILES = ("u.data", "ratings.dat", "ratings.csv")
_MOVIELENS_HEADER = "userId,movieId,rating,timestamp"
_MOVIELENS_ROLES = ("user", "item", "value", "timestamp")


def load_movielens(path: PathLike, *, on_bad_lines: str = "error") -> Interactions:
    r"""Read MovieLens ratings.

    The first line decides the layout of user, item, rating and time. They are separated by tabs
    (``u.data`` of 100K), by ``::`` (``ratings.dat`` of 1M and 10M), or by commas below the header
    ``userId,movieId,rating,timestamp`` (``ratings.csv`` of the later editions).

    Parameters
    ----------
    path : str or Path
        The file, or a folder that holds one of ``u.data``, ``ratings.dat``, ``ratings.csv``.
    on_bad_lines : {"error", "skip"}
        As in `load`.

    Returns
    -------
    Interactions
        Values are the ratings, timestamps are unix seconds (``time_unit="s"``), labels are int64.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, has another layout, or a line is malformed.
    InvalidDataError
        If `on_bad_lines` is neither.

    See Also
    --------
    load : Read a file or folder of any format.

    References
    ----------
    .. [1] F. M. Harper and J. A. Konstan, "The MovieLens datasets: History and context",
       ACM Transactions on Interactive Intelligent Systems 5(4), 2015. doi:10.1145/2827872

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = (Path(folder) / "ratings.dat").write_text("1::1193::5::978300760\n")
    ...     load_movielens(folder).to_frame()
       user  item  value  timestamp
    0     1  1193    5.0  978300760
    """
    path = as_input(path)
    if path.is_dir():
        files = [path / name for name in MOVIELENS_FILES if (path / name).is_file()]
        if len(files) != 1:
            listed = ", ".join(file.name for file in files) or "none of them"
            raise InvalidFileError(
                f"expected one of {', '.join(MOVIELENS_FILES)} in this folder, found {listed}", path
            )
        path = files[0]
    number, first = TextFile(path).first_line()
    sep = next((sep for sep in ("\t", "::") if sep in first), ",")
    has_header = first == _MOVIELENS_HEADER
    table = TextTable(path, sep=sep, header=has_header, on_bad_lines=on_bad_lines)
    if len(table.names) != len(_MOVIELENS_ROLES) or (sep == ",") != has_header:
        raise InvalidFileError(
            "expected MovieLens ratings: user, item, rating and timestamp separated by tabs or "
            f"'::', or the header {_MOVIELENS_HEADER}; found {shorten(first)}",
            path,
            number,
        )
    given = dict(zip(_MOVIELENS_ROLES, table.names, strict=True))
    return replace(read_interactions(table, given), time_unit="s")
