"""Loading MovieLens ratings, in the three layouts of its editions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ..core.files import as_input
from ..errors import InvalidFileError
from ..inputs.lines import TextFile, find_file, read_text, shorten
from ..inputs.tables import TextTable
from .interactions import read_interactions

if TYPE_CHECKING:
    from ..core.types import PathLike
    from .interactions import Interactions

FILE_NAMES = ("u.data", "ratings.dat", "ratings.csv")
_HEADER = "userId,movieId,rating,timestamp"
_COLUMNS = {"user": 0, "item": 1, "value": 2, "timestamp": 3}


def load_movielens(path: PathLike, *, on_bad_lines: str = "error") -> Interactions:
    r"""Read MovieLens ratings.

    The first line decides the layout: user, item, rating and time separated by tabs
    (``u.data`` of 100K), by ``::`` (``ratings.dat`` of 1M and 10M), or by commas below the header
    ``userId,movieId,rating,timestamp`` (``ratings.csv`` of the later editions).

    Parameters
    ----------
    path : str or Path
        The file, or a folder that holds one of ``u.data``, ``ratings.dat``, ``ratings.csv``.
    on_bad_lines : {"error", "skip"}
        As in `load_csv`.

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
    path = find_file(as_input(path), FILE_NAMES)
    number, first = TextFile(path).first_line()
    has_header = first == _HEADER
    for sep in ("\t", "::", ","):
        if has_header if sep == "," else first.count(sep) == len(_COLUMNS) - 1:
            table = TextTable(
                path, sep=sep, header=has_header, on_bad_lines=on_bad_lines, guess=False
            )
            names = first.split(sep) if has_header else _COLUMNS.values()
            given = dict(zip(_COLUMNS, names, strict=True))
            return replace(read_interactions(table, given), time_unit="s")
    read_text(path)  # raises an error if it is no text
    raise InvalidFileError(
        "expected MovieLens ratings: user, item, rating and timestamp separated by tabs or '::', "
        f"or the header {_HEADER}; found {shorten(first)}",
        path,
        number,
    )
