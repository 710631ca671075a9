"""Input files: paths, patterns, folders and URIs, the format of a file, and errors that name it."""

from __future__ import annotations

import os
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from glob import glob
from itertools import takewhile
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.atomic_files import as_input
from ..errors import InvalidDataError, InvalidFileError, shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from ..core.types import Integers, PathLike

#: The format of a table by the suffix of its file; ``.gz``, ``.bz2`` or ``.zst`` may follow.
SUFFIXES = {
    "csv": "csv", "tsv": "tsv", "parquet": "parquet", "pq": "parquet", "json": "json",
    "jsonl": "json", "ndjson": "json", "arrow": "arrow", "ipc": "arrow", "feather": "arrow",
}  # fmt: skip

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
_WILD = re.compile(r"[*?[]")

_NO_TABLE = "contains no table (.csv, .parquet, .jsonl, …)"


@dataclass(frozen=True)
class File:
    """A file of this machine, or of a store that a URI names.

    Attributes
    ----------
    path : str
        The path in `system`.
    system : pyarrow.fs.FileSystem or None
        None for this machine.
    where : Path or str
        What messages call it: a path, or the URI.
    """

    path: str
    system: Any = field(hash=False)
    where: Any

    def open(self) -> Any:
        """Open it for random access; Arrow's own functions misread ``~`` in local paths."""
        import pyarrow as pa

        if self.system is None:
            return pa.OSFile(os.fsencode(self.path), "rb")
        return self.system.open_input_file(self.path)

    def stream(self) -> Any:
        """Open it to be read from its start to its end, decompressed."""
        import pyarrow as pa

        return pa.input_stream(self.open(), compression=self.compression)

    @property
    def format(self) -> str | None:
        """The format of a table by the name of the file, None if it is another one."""
        suffix = re.search(r"\.(\w+)(\.gz|\.bz2|\.zst)?$", self.path.lower())
        return SUFFIXES.get(suffix[1]) if suffix else None

    @property
    def compression(self) -> str | None:
        """How it is compressed, by its name."""
        packed = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}
        return packed.get(Path(self.path).suffix.lower())

    def exists(self) -> bool:
        """Return whether a file of this machine still exists; others are assumed to."""
        return self.system is not None or Path(self.path).exists()


def is_uri(path: object) -> bool:
    """Return whether text names a file by a URI, such as ``s3://bucket/events``."""
    return isinstance(path, str) and _URI.match(path) is not None


def find_files(path: PathLike) -> tuple[list[File], str]:
    """Return the file at a path or URI, or all tables of a folder or pattern in order of names.

    Names that begin with ``.`` or ``_`` are left out, as every writer of such folders expects.

    Returns
    -------
    list of File
    str
        The folder whose subfolders may have columns in their names (``year=2024``).

    Raises
    ------
    InvalidDataError
        If `path` is no path.
    InvalidFileError
        If there is no such file, or no table in the folder.
    """
    if is_uri(path):
        return _find_remote(str(path))
    if _WILD.search(str(path)) and not Path(path).exists():
        paths = map(Path, sorted(glob(str(path), recursive=True)))  # noqa: PTH207 - of any folder
        found = [one for one in paths if not one.is_dir()]  # a broken link is an error
        base = Path(*takewhile(lambda part: not _WILD.search(part), Path(path).parts))
        nothing = "no file matches this pattern"
    else:
        base = as_input(path)
        if not base.is_dir():
            return [File(str(base), None, base)], str(base.parent)
        found = []
        for place, folders, names in os.walk(base, followlinks=True):
            folder = Path(place).resolve()  # a link to a folder above would have no end
            folders[:] = [
                one for one in folders if not folder.is_relative_to(Path(place, one).resolve())
            ]
            found += [Path(place, one) for one in names if File(one, None, one).format is not None]
        found, nothing = sorted(found), _NO_TABLE
    visible = [file for file in found if not _is_hidden(file.relative_to(base))]
    if not visible:
        raise InvalidFileError(nothing, path)
    return [File(str(file), None, file) for file in visible], str(base)


def _is_hidden(path: PurePath) -> bool:
    return any(part[0] in "._" for part in path.parts)


def _find_remote(uri: str) -> tuple[list[File], str]:
    """Return the files that a URI names: one, or all tables below it."""
    import pyarrow as pa
    from pyarrow import fs

    try:
        system, base = fs.FileSystem.from_uri(uri)
    except pa.ArrowException as error:
        reason = str(error).replace(uri, shown(uri))
        raise InvalidFileError(f"cannot be opened ({reason})", uri) from None
    with naming(uri):
        info = system.get_file_info(base)
        if info.type == fs.FileType.NotFound:
            raise FileNotFoundError
        if info.type == fs.FileType.File:
            return [File(base, system, uri)], str(Path(base).parent)
        below = system.get_file_info(fs.FileSelector(base, recursive=True))
    root = shown(uri).rstrip("/")
    found = []
    for one in sorted(below, key=lambda one: one.path):
        name = one.path[len(base) :].lstrip("/")
        file = File(one.path, system, f"{root}/{name}")
        if one.is_file and not _is_hidden(PurePosixPath(name)) and file.format is not None:
            found.append(file)
    if not found:
        raise InvalidFileError(_NO_TABLE, uri)
    return found, base


def one_format(files: list[File], given: str | None) -> str:
    """Return the format of tables, by their names or as it is given.

    Raises `InvalidFileError` if a name has no suffix of a table, or another one than the first
    file.
    """
    if given is not None:
        return given
    first = files[0].format
    for file in files:
        if file.format is None:
            raise InvalidFileError(
                "the name has no suffix of a table (.parquet, .csv, .tsv, .jsonl, .arrow, …); "
                "rename the file, or pass format=",
                file.where,
                argument="format",
            )
        if file.format != first:
            raise InvalidFileError(
                f"is {file.format}, but {Path(files[0].path).name} is {first}. All files of a "
                "table must have one format",
                file.where,
            )
    assert first is not None  # noqa: S101 - there is a file
    return first


@contextmanager
def naming(where: Any) -> Iterator[None]:
    """Name the file in errors about its content; `where` is a path, a URI or None."""
    try:
        yield
    except (InvalidFileError, MemoryError):
        raise
    except InvalidDataError as error:
        if where is None:
            raise
        about = {name: getattr(error, name) for name in ("argument", "row", "column", "user")}
        raise InvalidFileError(str(error), where, **about) from error
    except FileNotFoundError as error:
        raise InvalidFileError("there is no such file", where) from error
    except Exception as error:
        from pyarrow import ArrowException  # only now, as many files are read without Arrow

        # IndexError: damaged codes may point past the last text.
        damaged = (ArrowException, EOFError, IndexError, OSError, UnicodeDecodeError)
        if not isinstance(error, damaged):
            raise
        message = f"cannot be read ({error})"
        if where is None:
            raise InvalidDataError(f"the table {message}") from error
        raise InvalidFileError(message, where) from error


def in_arrow(data: bytes) -> Any:
    """Return a stream of a copy of `data` in the memory of Arrow.

    A thread of Arrow that frees a Python object at the end of the process aborts the process.
    """
    import pyarrow as pa

    copy = pa.BufferOutputStream()
    copy.write(data)
    return pa.BufferReader(copy.getvalue())


def shorten(text: str, width: int = 80) -> str:
    """Return the repr of a text, truncated to about `width` characters."""
    return repr(text) if len(text) <= width else f"{text[:width]!r}..."


def check_lines(
    wrong: Any, message: str, path: Path, lines: pa.Array, numbers: Integers | None = None
) -> None:
    """Raise an error about the first wrong line, which `message` precedes.

    `numbers` are the numbers of the lines in the file, from 0 on.
    """
    found = np.flatnonzero(wrong)
    if len(found):
        line = int(found[0])
        number = line if numbers is None else int(numbers[line])
        raise InvalidFileError(f"{message} {shorten(lines[line].as_py())}", path, number + 1)


def read_lines(path: PathLike, encoding: str = "utf-8-sig") -> pa.Array:
    """Return the lines of a text file, blank ones too.

    Raises `InvalidFileError` if the file cannot be read or is blank, or is not text in the
    encoding.
    """
    import pyarrow as pa

    path = as_input(path)
    with naming(path):
        text = File(str(path), None, path).stream().read().decode(encoding)
        if not text.strip():
            raise InvalidFileError("the file is empty", path)
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return pa.array(text.removesuffix("\n").split("\n"), pa.large_string())
