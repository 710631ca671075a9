"""Load interactions from paths and frames of any supported format."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.arguments import show_spelling
from ..core.atomic_files import as_input
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.columns import USUAL
from ..inputs.formats import CsvOptions
from ..inputs.input_files import find_files, is_uri, naming
from ..inputs.npy import read_sparse
from ..inputs.tables import open_table
from .interactions import Interactions, check_duplicates, read_interactions
from .public import MIND_FILE, MOVIELENS_FILES, load_adjacency, load_mind, load_movielens

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from ..core.types import PathLike
    from ..inputs.axes import Axis
    from ..inputs.tables import Frame
    from .interactions import Duplicates

_COLUMNS = {"user", "item", "value", "timestamp", "event", "events", "users", "items"}
_TABLES = ("parquet", "json", "arrow", "csv", "tsv")

#: The options of each format, next to `duplicates`.
_OPTIONS: dict[str, set[str]] = {
    "frame": _COLUMNS,
    **dict.fromkeys(_TABLES, {"format"} | _COLUMNS),
    **dict.fromkeys(
        ("csv", "tsv"), {"format", "sep", "encoding", "header", "on_bad_lines"} | _COLUMNS
    ),
    "adjacency": {"format", "counts", "encoding"},
    "mind": {"format", "on_bad_lines"},
    "movielens": {"format", "on_bad_lines"},
    "npz": {"format"},
}
_FORMATS = sorted(_OPTIONS.keys() - {"frame"})


@show_spelling
def load(
    source: PathLike | Frame | Sequence[PathLike | Frame],
    *,
    format: str | None = None,  # noqa: A002
    user: Hashable = USUAL,
    item: Hashable = USUAL,
    value: Hashable = USUAL,
    timestamp: Hashable = USUAL,
    event: Hashable = None,
    events: Mapping[Any, float] | Sequence[object] | None = None,
    users: Axis | Sequence[Hashable] | None = None,
    items: Axis | Sequence[Hashable] | None = None,
    duplicates: Duplicates = "keep",
    sep: str | None = None,
    encoding: str | None = None,
    header: bool = True,
    on_bad_lines: str = "error",
    counts: bool | None = None,
) -> Interactions:
    r"""Read interactions from a file, a folder, a frame, or a list of these.

    Ids of text files are int64 if all of them are integers without leading zeros. Otherwise they
    are text, read verbatim: ``NA`` is an id like any other.

    Parameters
    ----------
    source : str, Path, frame, list of dict, or list of paths and frames
        A file; a folder of tables, or a pattern such as ``"logs/*.csv"``, where folders such as
        ``year=2024`` add a column; a URI of these, such as ``"s3://bucket/logs"``; the folder of a
        MIND or MovieLens edition; a frame, as in `Interactions.from_frame`. The tables in a list
        are read as one, in order.
    format : {"csv", "tsv", "parquet", "json", "arrow", "mind", "movielens", "adjacency", "npz"}
        By default, the name decides. ``behaviors.tsv`` is mind, ``u.data`` and ``ratings.dat`` are
        movielens, and so are folders that contain them or a ``ratings.csv``. Suffixes are
        ``.csv``, ``.tsv`` (also followed by ``.gz``, ``.bz2`` or ``.zst``), ``.parquet``,
        ``.json``, ``.jsonl``, ``.ndjson``, ``.arrow``, ``.ipc``, ``.feather`` and ``.npz``.
    user, item, value, timestamp, event, events, users, items : optional
        Columns of tables, types of events, and labels, as in `Interactions.from_frame`. With
        ``header=False``, columns are numbers counted from 0, by default 0 and 1.
    duplicates : {"keep", "drop", "error"}
        As in `Interactions.from_frame`.
    sep : str, optional
        CSV: the separator, one character; by default a tab for "tsv" and a comma for "csv".
    encoding : str, optional
        CSV and adjacency: any encoding of Python; by default UTF-8.
    header : bool
        CSV: whether the first line has the names of the columns.
    on_bad_lines : {"error", "skip"}
        CSV, MIND and MovieLens: whether a line with a wrong number of fields raises an error, or is
        skipped. Skipped lines are counted in `Interactions.n_skipped` and reported in one
        `SkippedLinesWarning`. Any other fault raises an error.
    counts : bool, optional
        As in `load_adjacency`.

    Returns
    -------
    Interactions
        In the order of the rows. A matrix (``.npz``) has one event per stored value, explicit zeros
        included, and range indexes as labels.

    Raises
    ------
    InvalidDataError
        If there is no such format, or an option is given that the format does not use.
    InvalidFileError
        If the name does not show the format, or the file is damaged or has another format. If a
        column does not exist or is not recognized, or a row is invalid.

    Warns
    -----
    GuessWarning
        If ratings are 0, as in `Interactions.from_frame`.

    See Also
    --------
    sparse_eval.Interactions.from_frame : The same for a frame.
    sparse_eval.Holdout.from_frames : Read data that are split already.
    load_mind : Its ``history=`` leaves out the click history.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     days = [Path(folder) / f"{day}.csv" for day in ("monday", "tuesday")]
    ...     _ = days[0].write_text("user,item,clicks\nanna,7,3\nbob,5,1\n")
    ...     _ = days[1].write_text("user,item,clicks\nanna,5,2\n")
    ...     load(days, value="clicks").to_frame()
       user  item  value
    0  anna     7    3.0
    1   bob     5    1.0
    2  anna     5    2.0
    >>> load("events.csv", event="event", events=["transaction"])  # doctest: +SKIP
    Interactions(11,719 users × 12,025 items, 22,457 events, timestamps,
    2,733,644 events dropped by events, 'visitorid' as user, 'itemid' as item)
    """
    columns = {"user": user, "item": item, "value": value, "timestamp": timestamp}
    others = {
        "event": event,
        "events": events,
        "users": users,
        "items": items,
        "format": format,
        "sep": sep,
        "encoding": encoding,
        "header": None if header is True else header,
        "on_bad_lines": None if on_bad_lines == "error" else on_bad_lines,
        "counts": counts,
    }
    given = [name for name, column in columns.items() if column is not USUAL]
    given += [name for name, other in others.items() if other is not None]
    is_list = isinstance(source, list | tuple) and not all(isinstance(x, Mapping) for x in source)
    path: Any = source
    sources: list[Any] = list(path) if is_list else [path]
    formats = [_format_of(one, format) for one in sources]
    _check_options(given, formats)
    if is_list and not {"frame", *_TABLES}.issuperset(formats):
        raise InvalidDataError(
            "a list is read as one table, and must contain only frames and paths of tables; pass "
            "train and validation data of other formats to Holdout.from_frames"
        )
    if formats[0] == "adjacency":
        result = load_adjacency(path, counts=counts, encoding=encoding)
    elif formats[0] == "mind":
        result = load_mind(path, on_bad_lines=on_bad_lines)
    elif formats[0] == "movielens":
        result = load_movielens(path, on_bad_lines=on_bad_lines)
    elif formats[0] == "npz":
        result = _load_npz(as_input(path))
    else:
        if not header:
            columns["user"] = 0 if user is USUAL else user
            columns["item"] = 1 if item is USUAL else item
        return read_interactions(
            open_table(source, format, CsvOptions(sep, encoding, header, on_bad_lines)),
            columns,
            event=event,
            events=events,
            users=users,
            items=items,
            duplicates=duplicates,
        )
    return check_duplicates(result, duplicates)


def _load_npz(path: Path) -> Interactions:
    """Read a matrix of users × items that `scipy.sparse.save_npz` wrote. Nothing is unpickled."""
    with naming(path):
        interactions = Interactions._of_matrix(read_sparse(path))
        if not len(interactions):
            raise InvalidDataError("there are no interactions: the matrix is empty")
    return interactions


def _check_options(given: Sequence[str], formats: Sequence[str]) -> None:
    """Raise if an option is given that none of the formats uses."""
    used = set().union(*(_OPTIONS[name] for name in formats))
    for name in given:
        if name not in used:
            of = "a frame" if formats[0] == "frame" else f"the format {formats[0]}"
            raise InvalidDataError(
                f"{name}: {of} does not use this option; leave it out", argument=name
            )


def _format_of(source: Any, given: str | None) -> str:
    """Return the format of a path, by its name unless it is given, and "frame" for a frame."""
    if given is not None and given not in _FORMATS:
        raise InvalidDataError(
            f"format: expected one of {', '.join(_FORMATS)}, found {given!r}", argument="format"
        )
    if not isinstance(source, str | Path):
        return "frame"
    if given is not None:
        return given
    if not is_uri(source):
        folder = as_input(source)
        if (folder / MIND_FILE).is_file():
            return "mind"
        if any((folder / name).is_file() for name in MOVIELENS_FILES):
            return "movielens"
    file = find_files(source)[0][0]
    name = Path(file.path).name.lower()
    if name.removesuffix(".gz") in ("u.data", "ratings.dat"):
        return "movielens"
    found = "mind" if name == MIND_FILE else "npz" if name.endswith(".npz") else file.format
    if found is None:
        raise InvalidFileError(
            "the name does not show the format. Pass format=, one of " + ", ".join(_FORMATS),
            file.where,
            argument="format",
        )
    return found
