"""Writing files atomically, so that an interrupted run leaves no partial or temporary file."""

from __future__ import annotations

import os
import secrets
import stat
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidDataError, InvalidFileError, MissingExtraError, OutputError
from .mistaken import describe

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

    from .types import PathLike


def as_path(path: object) -> Path:
    """Return `path` as a Path, or raise `InvalidDataError` if it is none."""
    if isinstance(path, str | os.PathLike):
        return Path(path)
    raise InvalidDataError(f"the path is {describe(path)}; expected text, or a pathlib.Path")


def check_repeatable(path: Path) -> None:
    """Raise `InvalidFileError` for a pipe or a device: what was read of it cannot be read again."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):  # said when it is opened
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InvalidFileError(
            "is no regular file, and has to be read more than once; write what it gives to a file "
            "first",
            path,
        )


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Yield the path of a temporary file beside `path`, and move it there if the block succeeds.

    The temporary file is removed on any error or interruption.

    Raises
    ------
    OutputError
        If the file cannot be written or moved.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "numbers.txt") as temporary:
    ...         _ = temporary.write_text("1 2 3")
    ...     [file.name for file in Path(folder).iterdir()]
    ['numbers.txt']
    """
    target = as_path(path)
    try:
        if target.is_symlink():
            target = target.resolve()  # the file is replaced, not the link to it
        is_regular = stat.S_ISREG(target.stat().st_mode)
    except FileNotFoundError:
        is_regular = True
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        raise _cannot_write(target, error) from error
    if not is_regular:
        raise OutputError(f"{target}: cannot be written: it is no regular file")
    temporary = target.parent / f".{target.stem}.{secrets.token_hex(8)}{target.suffix}"
    try:
        # Created in here, under a name that is known before: an interruption at any time, even
        # between two bytecodes, finds it and removes it.
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        yield temporary
        temporary.replace(target)
    except OSError as error:
        raise _cannot_write(target, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def _cannot_write(target: Path, error: OSError | ValueError) -> OutputError:
    reason = getattr(error, "strerror", None) or error
    return OutputError(f"{target}: cannot be written: {reason}")


def make_folder(path: PathLike) -> Path:
    """Return `path` as a folder that exists and can be written to, or raise `OutputError`."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            f"{folder}: cannot be used as an output folder: {error.strerror or error}"
        ) from error
    return folder


def need_pyarrow() -> None:
    """Raise `MissingExtraError` if pyarrow is not installed."""
    try:
        import pyarrow as pa  # noqa: F401
    except ImportError:
        raise MissingExtraError(
            'Parquet needs pyarrow: pip install "sparse_eval[parquet]"; CSV needs nothing'
        ) from None


def write_parquet(table: pd.DataFrame, path: Path, index: bool) -> None:
    """Write a table of users as Parquet, with or without its index.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    InvalidDataError
        If the users' labels have no common Parquet type.
    """
    need_pyarrow()
    from pyarrow import ArrowException

    try:
        table.to_parquet(path, index=index)
    except ArrowException as error:
        raise InvalidDataError(
            f"the labels of the users do not fit into one Parquet column ({error}); write CSV"
        ) from error
