"""MovieLens ratings in the three layouts that its editions have."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidFileError
from .delimited import load_table
from .lines import file_in, numbered_lines, read_text, shorten

if TYPE_CHECKING:
    from .interactions import Interactions

__all__ = ["HEADER", "NAMES", "load_movielens"]

NAMES = ("u.data", "ratings.dat", "ratings.csv")
HEADER = "userId,movieId,rating,timestamp"
_FIELDS: dict[str, str | int] = {"user": 0, "item": 1, "value": 2, "timestamp": 3}


def load_movielens(path: str | Path, on_bad_lines: str = "error") -> Interactions:
    r"""Read MovieLens ratings.

    The layout is told from the first line: user, item, rating and time separated by tabs
    (``u.data`` of 100K), by ``::`` (``ratings.dat`` of 1M and 10M), or by commas below the header
    ``userId,movieId,rating,timestamp`` (``ratings.csv`` of the later editions).

    Parameters
    ----------
    path : str or Path
        The file, or a folder that holds one of ``u.data``, ``ratings.dat``, ``ratings.csv``.
    on_bad_lines : {"error", "skip"}
        A malformed line is an error, or is left out, counted in `Interactions.n_skipped` and
        reported in one `SkippedLinesWarning`.

    Returns
    -------
    Interactions
        Values are the ratings, timestamps unix seconds, labels int64.

    Raises
    ------
    InvalidFileError
        When the file cannot be read or a line is malformed.
    InvalidDataError
        When `on_bad_lines` is something else.

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
    path = file_in(Path(path), NAMES)
    number, first = next(numbered_lines(read_text(path)))
    if first == HEADER:
        columns: dict[str, str | int] = dict(zip(_FIELDS, HEADER.split(","), strict=True))
        return load_table(path, columns, ",", True, on_bad_lines)
    for sep in ("\t", "::"):
        if first.count(sep) == len(_FIELDS) - 1:
            return load_table(path, _FIELDS, sep, False, on_bad_lines)
    raise InvalidFileError(
        "expected MovieLens ratings: user, item, rating and timestamp separated by tabs or '::', "
        f"or the header {HEADER}; found {shorten(first)}",
        path,
        number,
    )
