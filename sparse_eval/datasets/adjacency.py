"""Adjacency lists, as the benchmark data of NGCF and LightGCN come."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import pandas as pd

from ..errors import InvalidDataError, InvalidFileError
from .interactions import Interactions
from .labels import sort_labels, text_labels, vocabulary
from .lines import BadLines, numbered_lines, read_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["load_adjacency"]

_OTHER_SEPARATORS = (",", ";", "|", "::")


@overload
def load_adjacency(path: str | Path, /, *, on_bad_lines: str = "error") -> Interactions: ...


@overload
def load_adjacency(
    path: str | Path, second: str | Path, /, *paths: str | Path, on_bad_lines: str = "error"
) -> tuple[Interactions, ...]: ...


def load_adjacency(
    *paths: str | Path, on_bad_lines: str = "error"
) -> Interactions | tuple[Interactions, ...]:
    r"""Read files whose lines are ``user item item …``, separated by white space.

    Ids that are all integers (without leading zeros) become int64 labels, otherwise all of them
    are text. A user without items keeps a place in the encoding. An item that is there twice
    counts twice.

    Parameters
    ----------
    *paths : str or Path
        The files, for example a training and a test set.
    on_bad_lines : {"error", "skip"}
        A malformed line (a single id with ``,``, ``;``, ``|`` or ``::`` in it: the file is
        separated by something else) is an error, or is left out, counted in
        `Interactions.n_skipped` and reported in one `SkippedLinesWarning`.

    Returns
    -------
    Interactions or tuple of Interactions
        One per file. Those of several files share one encoding, and so one shape.

    Raises
    ------
    InvalidFileError
        When a file cannot be read, has no interactions or a malformed line.
    InvalidDataError
        When no path is given, or `on_bad_lines` is something else.

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
    users, items = vocabulary(), vocabulary()
    files = [_read(Path(path), users, items, on_bad_lines) for path in paths]
    user_labels, item_labels = text_labels(list(users)), text_labels(list(items))
    user_index, _ = sort_labels(user_labels)
    item_index, _ = sort_labels(item_labels)
    result = tuple(
        file.interactions(user_labels, item_labels, user_index, item_index) for file in files
    )
    return result[0] if len(result) == 1 else result


@dataclass(frozen=True)
class _File:
    """The codes of one file, in the order in which the ids were met."""

    user_codes: NDArray[np.int64]
    item_codes: NDArray[np.int64]
    n_skipped: int

    def interactions(
        self,
        user_labels: pd.Index[Any],
        item_labels: pd.Index[Any],
        users: pd.Index[Any],
        items: pd.Index[Any],
    ) -> Interactions:
        frame = pd.DataFrame(
            {
                "user": pd.Categorical.from_codes(self.user_codes, user_labels),
                "item": pd.Categorical.from_codes(self.item_codes, item_labels),
            }
        )
        interactions = Interactions.from_frame(frame, users=users, items=items)
        return replace(interactions, n_skipped=self.n_skipped)


def _read(path: Path, users: dict[str, int], items: dict[str, int], on_bad_lines: str) -> _File:
    bad = BadLines(path, on_bad_lines)
    user_codes, sizes, item_codes = array("q"), array("q"), array("q")
    for number, line in numbered_lines(read_text(path)):
        user, *row = line.split()
        if not row and any(sep in user for sep in _OTHER_SEPARATORS):
            bad.add(number, line, "expected ids separated by spaces, found none")
            continue
        user_codes.append(users[user])
        sizes.append(len(row))
        item_codes.extend(map(items.__getitem__, row))
    if not item_codes:
        raise InvalidFileError("there are no interactions: no user has an item", path)
    return _File(
        user_codes=np.repeat(np.array(user_codes), np.array(sizes)),
        item_codes=np.array(item_codes),
        n_skipped=bad.report(),
    )
