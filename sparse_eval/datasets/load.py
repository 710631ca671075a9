"""Which loader reads a file, and `load`, which asks."""

from __future__ import annotations

from inspect import signature
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..datasets import mind, movielens
from ..errors import InvalidDataError, InvalidFileError
from .adjacency import load_adjacency
from .delimited import load_csv, load_parquet
from .lines import numbered_lines, read_text
from .mind import load_mind
from .movielens import load_movielens
from .npz import load_npz

if TYPE_CHECKING:
    from collections.abc import Callable

    from .interactions import Interactions

__all__ = ["FORMATS", "guess_format", "load"]

#: Name of each format and its loader.
FORMATS: dict[str, Callable[..., Interactions]] = {
    "adjacency": load_adjacency,
    "csv": load_csv,
    "mind": load_mind,
    "movielens": load_movielens,
    "npz": load_npz,
    "parquet": load_parquet,
}

_BY_SUFFIX = {".csv": "csv", ".npz": "npz", ".parquet": "parquet", ".tsv": "csv"}
_N_LINES = 1000


def load(path: str | Path, format: str | None = None, **options: Any) -> Interactions:  # noqa: A002
    """Read interactions from a file or folder of any of the `FORMATS`.

    Parameters
    ----------
    path : str or Path
        The file, or the folder of a MIND or MovieLens edition.
    format : str, optional
        A name of `FORMATS`; default: what `guess_format` says.
    **options
        Passed to the loader of the format.

    Returns
    -------
    Interactions

    Raises
    ------
    InvalidDataError
        When there is no such format, or the format has no such option.
    InvalidFileError
        When the format cannot be told, or the loader cannot read the file.

    Examples
    --------
    >>> load("ratings.dat")  # doctest: +SKIP
    Interactions(6,040 users × 3,706 items, 1,000,209 events, timestamps)
    """
    try:
        Path(path).exists()
    except (OSError, ValueError) as error:  # too long a name, a NUL character
        raise InvalidFileError(f"cannot be read ({error})", path) from error
    name = guess_format(path) if format is None else format
    if name not in FORMATS:
        raise InvalidDataError(f"format: expected one of {', '.join(FORMATS)}, found {format!r}")
    _check_options(name, options)
    return FORMATS[name](path, **options)


def guess_format(path: str | Path) -> str:
    """Tell the format of a file or folder from its name, or else from its first lines.

    Parameters
    ----------
    path : str or Path
        ``behaviors.tsv`` is mind; ``u.data``, ``ratings.dat`` and a ``ratings.csv`` with
        MovieLens' header are movielens, and so are the folders that hold them; ``.parquet``,
        ``.npz``, ``.csv`` and ``.tsv`` tell themselves; lines of whitespace-separated ids, of
        different lengths, are adjacency.

    Returns
    -------
    str
        A name of `FORMATS`.

    Raises
    ------
    InvalidFileError
        When the format cannot be told, or the file cannot be read.

    Examples
    --------
    >>> guess_format("train.npz")
    'npz'
    """
    path = Path(path)
    if path.is_dir():
        if (path / mind.NAME).is_file():
            return "mind"
        if any((path / name).is_file() for name in movielens.NAMES):
            return "movielens"
        raise _unknown(path, f"a folder without {mind.NAME}, {', '.join(movielens.NAMES)}")
    name = path.name.lower().removesuffix(".gz")
    if name == mind.NAME:
        return "mind"
    if name in ("u.data", "ratings.dat"):
        return "movielens"
    by_suffix = _BY_SUFFIX.get(Path(name).suffix)
    if by_suffix is not None and name != "ratings.csv":
        return by_suffix
    lines = [line for _, line in islice(numbered_lines(read_text(path)), _N_LINES)]
    if by_suffix is not None:
        return "movielens" if lines[0] == movielens.HEADER else by_suffix
    separated = any(sep in line for line in lines for sep in (",", ";", "|", "::"))
    if not separated and len({len(line.split()) for line in lines}) > 1:
        return "adjacency"
    raise _unknown(path, "a file whose name and lines do not say")


def _unknown(path: Path, what: str) -> InvalidFileError:
    return InvalidFileError(
        f"the format cannot be told of {what}; give format=, one of {', '.join(FORMATS)}", path
    )


def _check_options(name: str, options: dict[str, Any]) -> None:
    """Name the options there are; Python's own TypeError names only the wrong one."""
    known = [
        parameter.name
        for parameter in signature(FORMATS[name]).parameters.values()
        if parameter.name not in ("path", "paths")
    ]
    for option in options:
        if option not in known:
            raise InvalidDataError(
                f"the format {name} has no option {option!r}; it has {', '.join(known) or 'none'}"
            )
