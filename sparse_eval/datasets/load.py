"""Load interactions from files of any supported format, with one encoding of the ids."""

from __future__ import annotations

import os
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.files import as_input
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.columns import USUAL, Usual
from ..inputs.files import find_files, naming
from ..inputs.npy import read_sparse
from ..inputs.rows import union_of
from ..inputs.tables import open_table
from .interactions import Interactions, read_interactions
from .public import MIND_FILE, MOVIELENS_FILES, load_adjacency, load_mind, load_movielens

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from ..core.types import PathLike
    from ..inputs.axes import Axis
    from ..inputs.tables import Frame


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

    Files are read block by block; only lines that Arrow would read differently are read one by one.

    Parameters
    ----------
    path : str or Path
        The file, plain, ``.gz``, ``.bz2`` or ``.zst``. Or a folder or a pattern (``"logs/*.csv"``)
        of files with the same columns; folders such as ``year=2024`` add a column.
    user, item : str or int, optional
        Columns with the ids: names, or with ``header=False`` numbers counted from 0 (0 and 1 by
        default). Columns that are not named are recognized as in `Interactions.from_frame`, and
        listed in `Interactions.recognized`.
    value : str, int or None, optional
        Column with the values, finite and >= 0. None: every line counts 1. If no column has a usual
        name and one of numbers is left over, an error names it.
    timestamp : str, int or None, optional
        Column with the times: integers in any unit, or ISO 8601 dates, which become nanoseconds
        since 1970 (UTC is assumed for dates without a time zone). The first line decides which.
        None, or no column with a usual name: no times.
    event, keep, users, items : optional
        As in `Interactions.from_frame`. With `users` or `items` that are not integers, ids are text
        even if the file has only integers.
    sep : str, optional
        The separator, taken literally; default: a tab in ``.tsv`` and ``.txt`` files, otherwise
        the most frequent of ``::``, tab, ``,``, ``;``, ``|`` in the first line.
    encoding : str, optional
        Any encoding of Python. By default UTF-8, or if that fails Latin-1, which can read
        everything.
    header : bool
        Whether the first line holds the names of the columns.
    on_bad_lines : {"error", "skip"}
        Whether a malformed line (wrong number of fields, empty id, invalid value or time) raises
        an error, or is skipped. Skipped lines are counted in `Interactions.n_skipped` and
        reported in one `SkippedLinesWarning`. A quoted field that does not end on its line is an
        error in either case, because the end of its row is unknown.

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
    if not header:
        user, item = (n if name is USUAL else name for n, name in enumerate((user, item)))
    given = {"user": user, "item": item, "value": value, "timestamp": timestamp}
    table = open_table(path, sep=sep, encoding=encoding, header=header, on_bad_lines=on_bad_lines)
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
        The file. Or a folder or a pattern (``"logs/*.parquet"``) of files with the same columns;
        folders such as ``year=2024`` add a column.
    user, item, value, timestamp, event : str or None, optional
        Names of the columns; others are recognized as in `Interactions.from_frame`.
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


def load_npz(path: PathLike) -> Interactions:
    """Read a matrix of users × items that `scipy.sparse.save_npz` wrote. Nothing is unpickled.

    Parameters
    ----------
    path : str or Path
        The file: CSR, CSC or COO, any real dtype; values finite and >= 0.

    Returns
    -------
    Interactions
        One event per stored value, explicit zeros included; users and items are range indexes.

    Raises
    ------
    InvalidFileError
        If the file cannot be read, is damaged, holds something else (pickled objects included),
        or has a value that is negative or not finite.

    See Also
    --------
    scipy.sparse.save_npz : Write such a file.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from scipy import sparse
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "train.npz"
    ...     sparse.save_npz(path, sparse.csr_matrix([[0, 2], [1, 0]]))
    ...     load_npz(path)
    Interactions(2 users × 2 items, 2 events)
    """
    path = as_input(path)
    with naming(path):
        interactions = Interactions._of_matrix(read_sparse(path))
        if not len(interactions):
            raise InvalidDataError("there are no interactions: the matrix is empty")
    return interactions


#: The loader of each format, by the format's name.
FORMATS: dict[str, Callable[..., Interactions]] = {
    "adjacency": load_adjacency,
    "arrow": load_parquet,
    "csv": load_csv,
    "json": load_parquet,
    "mind": load_mind,
    "movielens": load_movielens,
    "npz": load_npz,
    "parquet": load_parquet,
}

_N_LINES = 1000


def load(
    path: PathLike | Frame,
    *,
    format: str | None = None,  # noqa: A002
    user: Hashable = USUAL,
    item: Hashable = USUAL,
    value: Hashable = USUAL,
    timestamp: Hashable = USUAL,
    event: Hashable = None,
    keep: Sequence[object] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    on_bad_lines: str = "error",
    counts: bool | None = None,
    history: bool = True,
) -> Interactions:
    """Read interactions from a file, a folder or a frame.

    Parameters
    ----------
    path : str, Path or frame
        The file; the folder of a MIND or MovieLens edition; a folder of tables, or a pattern such
        as ``"logs/*.csv"``; or a frame or list of dicts, as in `Interactions.from_frame`.
    format : str, optional
        A name in `FORMATS`; default: the result of `guess_format`. A frame has none.
    user, item, value, timestamp, event, keep : optional
        Columns of tables, as in `Interactions.from_frame`.
    sep, encoding, header, on_bad_lines : optional
        How text is read, as in `load_csv`.
    counts : bool, optional
        As in `load_adjacency`.
    history : bool
        As in `load_mind`.

    Returns
    -------
    Interactions

    Raises
    ------
    InvalidDataError
        If there is no such format, or an option is given that the loader of the format lacks.
    InvalidFileError
        If the format cannot be guessed, or the loader cannot read the file.

    See Also
    --------
    load_parts : Read several files with one encoding.
    sparse_eval.Interactions.from_frame : Encode a pandas frame.

    Examples
    --------
    >>> load("ratings.dat")  # doctest: +SKIP
    Interactions(6,040 users × 3,706 items, 1,000,209 events, timestamps)
    >>> load("events.csv", event="event", keep=["transaction"])  # doctest: +SKIP
    Interactions(11,719 users × 12,025 items, 22,457 events, timestamps,
    2,733,644 events dropped by keep, 'visitorid' as user, 'itemid' as item)
    """
    options = _given(locals())
    name = options.pop("format", None)
    if not isinstance(path, str | os.PathLike):
        return load_frame(path, **options)
    name = guess_format(path) if name is None else name
    if name not in FORMATS:
        raise InvalidDataError(f"format: expected one of {', '.join(FORMATS)}, found {name!r}")
    for option in options:  # Python's own error names only the wrong one
        if option not in (known := signature(FORMATS[name]).parameters):
            listed = ", ".join(known)
            raise InvalidDataError(
                f"the format {name} has no option {option!r}; it has {listed}", argument=option
            )
    return FORMATS[name](path, **options)


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of `load` that are not its defaults."""
    _, *options = signature(load).parameters.items()
    return {n: arguments[n] for n, option in options if arguments[n] is not option.default}


def load_parts(
    *paths: PathLike | Frame | Interactions,
    format: str | None = None,  # noqa: A002
    user: Hashable = USUAL,
    item: Hashable = USUAL,
    value: Hashable = USUAL,
    timestamp: Hashable = USUAL,
    event: Hashable = None,
    keep: Sequence[object] | None = None,
    sep: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    on_bad_lines: str = "error",
    counts: bool | None = None,
    history: bool = True,
) -> tuple[Interactions, ...]:
    r"""Read several files with one encoding of users and items.

    Parameters
    ----------
    *paths : str, Path, frame or Interactions
        For example a training and a validation file.
    format : str, optional
        A name in `FORMATS`; default: the result of `guess_format` for each file.
    user, item, value, timestamp, event, keep : optional
    sep, encoding, header, on_bad_lines, counts, history : optional
        As in `load`.

    Returns
    -------
    tuple of Interactions
        One per file, all of one shape. Ids that are integers in one file and text in another
        become text in all of them. Files without labels (``.npz``) are matched by row and
        column; smaller matrices are padded.

    Raises
    ------
    SparseEvalError
        As in `load`.

    See Also
    --------
    load : Read one file or folder.
    sparse_eval.Holdout.load : Read a split that was saved.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     train, test = Path(folder) / "train.csv", Path(folder) / "test.csv"
    ...     _ = train.write_text("user,item\n1,7\n2,5\n"), test.write_text("user,item\n1,x\n")
    ...     load_parts(train, test)
    (Interactions(2 users × 3 items, 2 events), Interactions(2 users × 3 items, 1 events))
    """
    options = _given(locals())
    parts = [path if isinstance(path, Interactions) else load(path, **options) for path in paths]
    if len({part.recognized.get("user") == "line number" for part in parts}) > 1:
        raise InvalidDataError(
            "lines start with the number of items in one file and with a user in another. Set "
            "counts=True or counts=False for both"
        )
    for role in ("users", "items"):
        kinds = {getattr(part, role).is_text for part in parts}
        if len(kinds) > 1 and not all(isinstance(path, str | os.PathLike) for path in paths):
            raise InvalidDataError(
                f"{role} have text as ids in one part and numbers in another; use ids of one type "
                "for all parts"
            )
    user_codes, users = union_of([part.users for part in parts])
    item_codes, items = union_of([part.items for part in parts])
    return tuple(
        replace(
            part,
            user_codes=rows[part.user_codes],
            item_codes=columns[part.item_codes],
            users=users,
            items=items,
        )
        for part, rows, columns in zip(parts, user_codes, item_codes, strict=True)
    )


def guess_format(path: PathLike) -> str:
    """Guess the format of a file or folder from its name, or otherwise from its first lines.

    Parameters
    ----------
    path : str or Path
        ``behaviors.tsv`` is mind. ``u.data`` and ``ratings.dat`` are movielens, and so are folders
        that contain them or a ``ratings.csv``. Otherwise the suffixes ``.parquet``, ``.npz``,
        ``.csv`` and ``.tsv`` decide. A first line with usual names of users and items is the header
        of csv. Lines with different numbers of whitespace-separated ids are adjacency.

    Returns
    -------
    str
        A name in `FORMATS`.

    Raises
    ------
    InvalidFileError
        If the format cannot be guessed, or the file cannot be read.

    See Also
    --------
    load : Read a file or folder in the format that is guessed.

    Examples
    --------
    >>> guess_format("train.npz")
    'npz'
    """
    folder = as_input(path)
    if (folder / MIND_FILE).is_file():
        return "mind"
    if any((folder / name).is_file() for name in MOVIELENS_FILES):
        return "movielens"
    path = Path(find_files(path)[0][0].path)
    name = path.name.lower().removesuffix(".gz")
    if name == MIND_FILE:
        return "mind"
    if name in ("u.data", "ratings.dat"):
        return "movielens"
    by_suffix = "npz" if name.endswith(".npz") else find_files(path)[0][0].format
    if by_suffix is not None:
        return "csv" if by_suffix == "tsv" else by_suffix
    raise InvalidFileError(
        "cannot guess the format of this file from its name or lines; pass format=, one of "
        f"{', '.join(FORMATS)}",
        path,
    )
