"""Writing files so that an interrupted run leaves no half of one."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidDataError, MissingExtraError, OutputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pandas as pd

__all__ = ["make_folder", "need_pyarrow", "replacing", "write_parquet"]


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `path`, and move it there when the block ends well.

    Raises
    ------
    OutputError
        If the file cannot be written or moved. The temporary file is removed on any error.
    """
    target = Path(path)
    if target.is_symlink():
        target = target.resolve()  # the file is replaced, not the link to it
    if target.exists() and not target.is_file():
        raise OutputError(f"{target}: cannot be written: it is no regular file")
    try:
        handle, name = tempfile.mkstemp(
            dir=target.parent, prefix=f".{target.stem}.", suffix=target.suffix
        )
        os.close(handle)
    except (OSError, ValueError) as error:  # ValueError: a path with a NUL character
        reason = getattr(error, "strerror", None) or error
        raise OutputError(f"{target}: cannot be written: {reason}") from error
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o666 & ~_umask())
        temporary.replace(target)
    except OSError as error:
        raise OutputError(f"{target}: cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)


def make_folder(path: str | Path) -> Path:
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
    """Write a table of users as Parquet, with its index or without.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    InvalidDataError
        If the users' labels are of types that Parquet has no common one for.
    """
    need_pyarrow()
    from pyarrow import ArrowException

    try:
        table.to_parquet(path, index=index)
    except ArrowException as error:
        raise InvalidDataError(
            f"the labels of the users do not fit into one Parquet column ({error}); write CSV"
        ) from error


def _umask() -> int:
    """Return the mask that an ordinary file of this process gets; mkstemp ignores it."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
