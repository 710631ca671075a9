"""Loading adjacency lists, the format of the benchmark data of NGCF and LightGCN."""

from __future__ import annotations

from array import array
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, overload

import numpy as np

from ..errors import InvalidDataError, InvalidFileError
from .interactions import Interactions
from .labels import sort_labels, text_labels, vocabulary
from .lines import BadLines, numbered_lines, read_text

if TYPE_CHECKING:
    from ..core.types import Integers, PathLike

_OTHER_SEPARATORS = (",", ";", "|", "::")


@overload
def load_adjacency(path: PathLike, /, *, on_bad_lines: str = "error") -> Interactions: ...


@overload
def load_adjacency(
    path: PathLike, second: PathLike, /, *paths: PathLike, on_bad_lines: str = "error"
) -> tuple[Interactions, ...]: ...


def load_adjacency(
    *paths: PathLike, on_bad_lines: str = "error"
) -> Interactions | tuple[Interactions, ...]:
    r"""Read files whose lines are ``user item item …``, separated by white space.

    If all ids are integers (without leading zeros), labels are int64, otherwise text. A user
    without items stays in the encoding. An item that is repeated on a line counts twice.

    Parameters
    ----------
    *paths : str or Path
        The files, for example a training and a test set.
    on_bad_lines : {"error", "skip"}
        As in `load_csv`. A line is malformed if it is a single id that contains ``,``, ``;``,
        ``|`` or ``::``, which means that the file has another separator.

    Returns
    -------
    Interactions or tuple of Interactions
        One per file. Several files share one encoding, and therefore one shape.

    Raises
    ------
    InvalidFileError
        If a file cannot be read, has no interactions or a malformed line.
    InvalidDataError
        If no path is given, or `on_bad_lines` is neither.

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
    if not paths:
        raise InvalidDataError("expected the path of at least one file")
    user_numbers, item_numbers = vocabulary(), vocabulary()
    files = [_read(Path(path), user_numbers, item_numbers, on_bad_lines) for path in paths]
    users, user_codes = sort_labels(text_labels(list(user_numbers)))
    items, item_codes = sort_labels(text_labels(list(item_numbers)))
    result = tuple(
        Interactions(
            user_codes=user_codes[file.users].astype(np.int32),
            item_codes=item_codes[file.items].astype(np.int32),
            values=np.ones(len(file.items)),
            timestamps=None,
            users=users,
            items=items,
            n_skipped=file.n_skipped,
        )
        for file in files
    )
    return result[0] if len(result) == 1 else result


class _File(NamedTuple):
    """The events of one file, their ids numbered in the order of first occurrence."""

    users: Integers
    items: Integers
    n_skipped: int


def _read(path: Path, users: dict[str, int], items: dict[str, int], on_bad_lines: str) -> _File:
    bad = BadLines(path, on_bad_lines)
    row_users, row_sizes, item_numbers = array("q"), array("q"), array("q")
    for number, line in numbered_lines(read_text(path)):
        user, *row = line.split()
        if not row and any(sep in user for sep in _OTHER_SEPARATORS):
            bad.add(number, line, "expected ids separated by spaces, found none")
            continue
        row_users.append(users[user])
        row_sizes.append(len(row))
        item_numbers.extend(map(items.__getitem__, row))
    if not item_numbers:
        raise InvalidFileError("there are no interactions: no user has an item", path)
    return _File(
        users=np.repeat(np.array(row_users), np.array(row_sizes)),
        items=np.array(item_numbers),
        n_skipped=bad.report(),
    )
