"""Loading tables: frames, text, Parquet, Arrow IPC and JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidFileError
from ..inputs.columns import USUAL, Usual
from ..inputs.tables import TextTable, is_pattern, open_table
from .interactions import Interactions, read_interactions

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from ..core.types import PathLike
    from ..inputs.axes import Axis
    from ..inputs.tables import Table


#: The loader of frames, next to the loaders of files.
load_frame = Interactions.from_frame


def load_csv(
    path: PathLike,
    *,
    user: str | int | Usual = USUAL,
    item: str | int | Usual = USUAL,
    value: str | int | Usual | None = USUAL,
    timestamp: str | int | Usual | None = USUAL,
    event: str | int | None = None,
    keep: Sequence[object] | None = None,
    users: Axis | Sequence[Hashable] | None = None,
    items: Axis | Sequence[Hashable] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    on_bad_lines: str = "error",
) -> Interactions:
    r"""Read a text file of values separated by commas, tabs or anything else.

    If all ids are integers (without leading zeros), labels are int64, otherwise text, read
    verbatim: ``NA`` is an id like any other. Fields may be quoted with ``"``, but not across
    lines. Blank lines are ignored.

    Files are read block by block; only lines that Arrow would read in another way are read one by
    one.

    Parameters
    ----------
    path : str or Path
        The file, plain, ``.gz``, ``.bz2`` or ``.zst``; or a folder or a pattern (``"logs/*.csv"``)
        of files with the same columns, to which folders such as ``year=2024`` add one.
    user, item : str or int, optional
        Columns with the ids: names, or with ``header=False`` numbers counted from 0 (0 and 1 by
        default). Columns that are not named are recognized as in `Interactions.from_frame`, and
        said in `Interactions.recognized`.
    value : str, int or None, optional
        Column with the values, finite and >= 0. None: every line counts 1. If no column has a usual
        name and one of numbers is left over, an error names it.
    timestamp : str, int or None, optional
        Column with the times: integers in any unit, or ISO 8601 dates, which become nanoseconds
        since 1970 (UTC is assumed for dates without a time zone). The first line decides which.
        None, or no column with a usual name: no times.
    event, keep, users, items : optional
        As in `Interactions.from_frame`. With `users` or `items` that are not integers, ids are
        text even if all of those in the file are integers.
    sep : str, optional
        The separator, taken literally; default: a tab in ``.tsv`` and ``.txt`` files, otherwise
        the most frequent of ``::``, tab, ``,``, ``;``, ``|`` in the first line.
    encoding : str, optional
        The encoding, by any name that Python knows; default: UTF-8, or Latin-1, which can read
        everything, where that fails.
    header : bool
        Whether the first line holds the names of the columns.
    on_bad_lines : {"error", "skip"}
        Whether a malformed line (wrong number of fields, empty id, invalid value or time) raises
        an error, or is skipped. Skipped lines are counted in `Interactions.n_skipped` and
        reported in one `SkippedLinesWarning`. A quoted field that its line does not end is an error
        in either case: nothing tells where its row ends.

    Returns
    -------
    Interactions
        In the order of the lines.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, a column does not exist or cannot be told, or a line is
        malformed.
    InvalidDataError
        If an option is invalid.

    Warns
    -----
    GuessWarning
        If the file is no UTF-8 and `encoding` is not given; or if ratings are 0, as in
        `Interactions.from_frame`.

    See Also
    --------
    load : Read a file of any format.
    load_parquet : Read a Parquet file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "clicks.csv"
    ...     _ = path.write_text("user,item,clicks\nanna,7,3\nbob,5,1\n")
    ...     load_csv(path, value="clicks").to_frame()
       user  item  value
    0  anna     7    3.0
    1   bob     5    1.0
    """
    given: dict[str, Hashable] = {
        "user": user, "item": item, "value": value, "timestamp": timestamp
    }  # fmt: skip
    if not header:
        numbers = {"user": 0, "item": 1}
        given = {
            role: numbers.get(role, name) if name is USUAL else name for role, name in given.items()
        }
    is_file = not (Path(path).is_dir() or is_pattern(path))
    open_text: Callable[..., Table] = TextTable if is_file else open_table
    table = open_text(path, sep=sep, encoding=encoding, header=header, on_bad_lines=on_bad_lines)
    return read_interactions(table, given, event=event, keep=keep, users=users, items=items)


def load_parquet(
    path: PathLike,
    *,
    user: str | Usual = USUAL,
    item: str | Usual = USUAL,
    value: str | Usual | None = USUAL,
    timestamp: str | Usual | None = USUAL,
    event: str | None = None,
    keep: Sequence[object] | None = None,
    users: Axis | Sequence[Hashable] | None = None,
    items: Axis | Sequence[Hashable] | None = None,
) -> Interactions:
    """Read the needed columns of Parquet, Arrow IPC (Feather) or JSON lines.

    Parameters
    ----------
    path : str or Path
        The file; or a folder or a pattern (``"logs/*.parquet"``) of files with the same columns,
        to which folders such as ``year=2024`` add one.
    user, item, value, timestamp, event : str or None, optional
        Names of the columns, as in `Interactions.from_frame`, which recognizes those that are not
        named.
    keep, users, items : optional
        As in `Interactions.from_frame`.

    Returns
    -------
    Interactions
        In the order of the rows.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, a column does not exist or cannot be told, or a row is invalid.
    InvalidDataError
        If an option is invalid.

    Warns
    -----
    GuessWarning
        If ratings are 0, as in `Interactions.from_frame`.

    See Also
    --------
    load : Read a file or folder of any format.
    sparse_eval.Interactions.from_frame : The same for a frame.

    Examples
    --------
    >>> load_parquet("clicks.parquet", value="clicks")  # doctest: +SKIP
    Interactions(50,000 users × 51,277 items, 1,500,000 events)
    """
    given = {"user": user, "item": item, "value": value, "timestamp": timestamp}
    table = open_table(path)
    if table.is_text:
        raise InvalidFileError("expected Parquet, Arrow IPC or JSON lines, found text", path)
    return read_interactions(table, given, event=event, keep=keep, users=users, items=items)
