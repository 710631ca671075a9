"""Loading adjacency lists, the format of the benchmark data of NGCF and LightGCN."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from ..core.files import as_input
from ..core.warning import warn
from ..errors import InvalidFileError
from ..inputs.columns import GuessWarning
from ..inputs.lines import BadLines, numbered_lines, read_text
from ..inputs.rows import encode_texts, vocabulary
from .interactions import Interactions

if TYPE_CHECKING:
    from ..core.types import Integers, PathLike

_MANY = 10  # lines that do not begin with the number of their items, when most others do
_OTHER_SEPARATORS = (",", ";", "|", "::")


@overload
def load_adjacency(
    path: PathLike,
    /,
    *,
    counts: bool | None = None,
    encoding: str | None = None,
    on_bad_lines: str = "error",
) -> Interactions: ...


@overload
def load_adjacency(
    path: PathLike,
    second: PathLike,
    /,
    *paths: PathLike,
    counts: bool | None = None,
    encoding: str | None = None,
    on_bad_lines: str = "error",
) -> tuple[Interactions, ...]: ...


def load_adjacency(
    *paths: PathLike,
    counts: bool | None = None,
    encoding: str | None = None,
    on_bad_lines: str = "error",
) -> Interactions | tuple[Interactions, ...]:
    r"""Read files whose lines are ``user item item …``, separated by white space.

    A line may begin with the number of its items instead of a user, as in CiteULike's files; then
    the first line is user 0, the second user 1, and so on.

    If all ids are integers (without leading zeros), labels are int64, otherwise text. A user
    without items stays in the encoding. An item that is repeated on a line counts twice.

    Parameters
    ----------
    *paths : str or Path
        The files, for example a training and a test set.
    counts : bool, optional
        Whether lines begin with the number of their items. By default they do if the first number
        of every line is the number of the others, and is there twice (users are not);
        `Interactions.recognized` then has ``{"user": "line number"}``.
    encoding : str, optional
        As in `load_csv`.
    on_bad_lines : {"error", "skip"}
        As in `load_csv`. A line is malformed if it is a single id that contains ``,``, ``;``,
        ``|`` or ``::``, which means that the file has another separator, or if it does not have
        as many items as it says.

    Returns
    -------
    Interactions or tuple of Interactions
        One per file. Several files share one encoding, and therefore one shape.

    Raises
    ------
    InvalidFileError
        If a file cannot be read, has no interactions or a malformed line; or if lines of one file
        begin with counts, those of another with users, and `counts` is not given.
    InvalidDataError
        If `on_bad_lines` is neither.

    Warns
    -----
    GuessWarning
        If every line begins with the number of its items but none is there twice, or if nearly
        every line does, so that it was taken for a user; or if a file is no UTF-8 and `encoding`
        is not given.

    See Also
    --------
    load_parts : Read several files of any format with one encoding.

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
    ...     train, test = Path(folder) / "train.txt", Path(folder) / "test.txt"
    ...     _ = train.write_text("0 10 20\n1 20\n"), test.write_text("0 30\n1\n")
    ...     load_adjacency(train, test)
    (Interactions(2 users × 3 items, 3 events), Interactions(2 users × 3 items, 1 events))
    """
    texts = [read_text(as_input(path), encoding, guess=True) for path in paths]
    counted = counts
    if counted is None:
        verdicts = [_begins_with_counts(*pair) for pair in zip(texts, paths, strict=True)]
        if True in verdicts and False in verdicts:
            raise InvalidFileError(
                "lines begin with the number of their items, but not those of "
                f"{paths[verdicts.index(False)]}; say what they begin with (counts=True or "
                "counts=False)",
                paths[verdicts.index(True)],
            )
        if verdicts.count(None) == len(verdicts):
            _warn_of_counts(paths[0], "but none is there twice")
        counted = True in verdicts
    user_numbers, item_numbers = vocabulary(), vocabulary()
    files = [
        _read(text, counted, user_numbers, item_numbers, BadLines(Path(path), on_bad_lines))
        for path, text in zip(paths, texts, strict=True)
    ]
    user_codes, users = encode_texts(list(user_numbers), numbers=True)
    item_codes, items = encode_texts(list(item_numbers), numbers=True)
    result = tuple(
        Interactions(
            user_codes=user_codes[rows],
            item_codes=item_codes[columns],
            values=np.ones(len(columns)),
            timestamps=None,
            users=users,
            items=items,
            n_skipped=n_skipped,
            recognized={"user": "line number"} if counted else {},
        )
        for rows, columns, n_skipped in files
    )
    return result[0] if len(result) == 1 else result


def _begins_with_counts(text: bytes, path: PathLike) -> bool | None:
    """Return whether the lines of a file begin with counts, None if it may be users as well."""
    n_counts, repeated = 0, False
    seen: set[str] = set()
    others: list[int] = []
    for number, line in numbered_lines(text):
        first, *row = line.split()
        if first == str(len(row)):
            n_counts += 1
            repeated = repeated or first in seen
            seen.add(first)
            continue
        others.append(number)
        if len(others) == _MANY:
            return False
    if others:
        if repeated and n_counts > _MANY * len(others):
            _warn_of_counts(path, f"except for line {others[0]} and {len(others) - 1} others")
        return False
    return True if repeated else None


def _warn_of_counts(path: PathLike, doubt: str) -> None:
    warn(
        f"{path}: lines begin with the number of their items, {doubt}; it was taken for a user; "
        "say which it is with counts=True or counts=False",
        GuessWarning,
    )


def _read(
    text: bytes, counted: bool, users: dict[str, int], items: dict[str, int], bad: BadLines
) -> tuple[Integers, Integers, int]:
    """Return the users and items of the events, numbered as they come, and the bad lines."""
    row_users, row_sizes, item_numbers = array("q"), array("q"), array("q")
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
        item_numbers.extend(map(items.__getitem__, row))
    if not item_numbers:
        raise InvalidFileError("there are no interactions: no user has an item", bad.path)
    rows = np.repeat(np.array(row_users), np.array(row_sizes))
    return rows, np.array(item_numbers), bad.report()
