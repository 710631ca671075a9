"""Load interactions from files of any supported format, with one encoding of the ids."""

from __future__ import annotations

import os
from dataclasses import replace
from inspect import signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.csr import coordinates
from ..core.files import as_input
from ..errors import InvalidDataError, InvalidFileError
from ..inputs.axes import Axis
from ..inputs.columns import role_of
from ..inputs.lines import numbered_lines, read_text
from ..inputs.npy import read_sparse
from ..inputs.rows import union_of
from ..inputs.tables import files_of, format_of_name, is_pattern, matching, naming
from ..inputs.text import SEPARATORS
from . import mind, movielens
from .adjacency import load_adjacency
from .interactions import Interactions
from .mind import load_mind
from .movielens import load_movielens
from .tables import load_csv, load_frame, load_parquet

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.types import PathLike
    from ..inputs.tables import Frame


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
        rows, columns, values, shape = coordinates(read_sparse(path))
        if not len(values):
            raise InvalidDataError("there are no interactions: the matrix is empty")
    return Interactions(
        user_codes=rows,
        item_codes=columns,
        values=values,
        timestamps=None,
        users=Axis.numbers(shape[0]),
        items=Axis.numbers(shape[1]),
    )


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
    **options: Any,
) -> Interactions:
    """Read interactions from a file, a folder or a frame.

    Parameters
    ----------
    path : str, Path or frame
        The file; the folder of a MIND or MovieLens edition; a folder of tables, or a pattern such
        as ``"logs/*.csv"``; or a frame or list of dicts, as in `Interactions.from_frame`.
    format : str, optional
        A name in `FORMATS`; default: the result of `guess_format`. A frame has none.
    **options
        Passed to the loader of the format.

    Returns
    -------
    Interactions

    Raises
    ------
    InvalidDataError
        If there is no such format, or the format has no such option.
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
    if not isinstance(path, str | os.PathLike):
        return load_frame(path, **options)
    name = guess_format(path) if format is None else format
    if name not in FORMATS:
        raise InvalidDataError(f"format: expected one of {', '.join(FORMATS)}, found {format!r}")
    for option in options:  # Python's own error names only the wrong one
        if option not in (known := signature(FORMATS[name]).parameters):
            listed = ", ".join(known)
            raise InvalidDataError(
                f"the format {name} has no option {option!r}; it has {listed}", argument=option
            )
    return FORMATS[name](path, **options)


def load_parts(
    *paths: PathLike | Frame | Interactions,
    format: str | None = None,  # noqa: A002
    **options: object,
) -> tuple[Interactions, ...]:
    r"""Read several files with one encoding of users and items.

    Parameters
    ----------
    *paths : str, Path, frame or Interactions
        For example a training and a validation file.
    format : str, optional
        A name in `FORMATS`; default: the result of `guess_format` for each file.
    **options
        Passed to the loader of the format.

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
    parts = [
        path if isinstance(path, Interactions) else load(path, format=format, **options)
        for path in paths
    ]
    if len({part.recognized.get("user") == "line number" for part in parts}) > 1:
        raise InvalidDataError(
            "lines begin with the number of their items in one of the files, and with a user in "
            "another; say what they begin with (counts=True or counts=False)"
        )
    for role in ("users", "items"):
        kinds = {getattr(part, role).is_text for part in parts}
        if len(kinds) > 1 and not all(isinstance(path, str | os.PathLike) for path in paths):
            raise InvalidDataError(
                f"{role} have text as ids in one part and numbers in another; give all parts ids "
                "of one type"
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
        ``behaviors.tsv`` is mind; ``u.data`` and ``ratings.dat`` are movielens, and so are the
        folders that hold them or a ``ratings.csv``; otherwise the suffixes ``.parquet``,
        ``.npz``, ``.csv`` and ``.tsv`` decide; a first line with usual names of
        users and items is the header of csv; lines of different numbers of whitespace-separated
        ids are adjacency.

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
    if is_pattern(path):
        return guess_format(matching(Path(path))[0])
    path = as_input(path)
    if path.is_dir():
        if (path / mind.FILE_NAME).is_file():
            return "mind"
        if any((path / name).is_file() for name in movielens.FILE_NAMES):
            return "movielens"
        return guess_format(files_of(path)[0])
    name = path.name.lower().removesuffix(".gz")
    if name == mind.FILE_NAME:
        return "mind"
    if name in ("u.data", "ratings.dat"):
        return "movielens"
    by_suffix = "npz" if name.endswith(".npz") else format_of_name(path)
    if by_suffix is not None:
        return by_suffix
    # Any encoding will do here: what decides are separators and numbers.
    lines = [line for _, line in islice(numbered_lines(read_text(path, "latin-1")), _N_LINES)]
    fields = [[field.strip('"') for field in lines[0].split(sep)] for sep in SEPARATORS]
    if any({"user", "item"} <= set(map(role_of, names)) for names in fields):
        return "csv"
    separated = any(sep in line for line in lines for sep in (",", ";", "|", "::"))
    if not separated and len({len(line.split()) for line in lines}) > 1:
        return "adjacency"
    raise InvalidFileError(
        "cannot guess the format of this file from its name or lines; give format=, one of "
        f"{', '.join(FORMATS)}",
        path,
    )
