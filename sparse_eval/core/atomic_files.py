"""Paths, JSON files, locks, and atomic writing: an interruption leaves no partial file.

A file that replaces another one keeps its permissions. A new file gets the system's default
permissions.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import stat
import tempfile
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidDataError, InvalidFileError, OutputError, shown
from .arrays import describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from .types import JSONValue, PathLike


#: The system's error numbers for a path where no file exists; for a pattern, Windows has its own.
_NOTHING = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EINVAL)


def as_path(path: object) -> Path:
    """Return `path` as a Path, or raise `InvalidDataError` if it cannot be the path of a file."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidDataError(f"the path is {describe(path)}; expected text, or a pathlib.Path")
    if path == "":  # such as an unset variable; pathlib would take it for the current folder
        raise InvalidDataError('the path is empty; name a file, or a folder, as "."')
    if "\0" in os.fspath(path):
        raise InvalidDataError("the path contains a null character, which no path can")
    return Path(path)


def as_input(path: object) -> Path:
    """Return the path of an input file or folder; readers report a path that does not exist.

    Raises
    ------
    InvalidDataError
        As from `as_path`.
    InvalidFileError
        If it is a pipe or a device: files are inspected before they are read, and a pipe would
        lose the inspected bytes. Or if the system cannot look up the path, for example because a
        name is too long.
    """
    checked = as_path(path)
    try:
        mode = checked.stat().st_mode
    except OSError as error:
        if error.errno in _NOTHING:
            return checked
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", checked) from None
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise InvalidFileError(
            "is a pipe or a device, which can be read only once; write its content to a file and "
            "pass that",
            checked,
        )
    return checked


@contextmanager
def replacing(path: PathLike) -> Iterator[Path]:
    """Yield a temporary file's path next to `path`, and move it there if the block succeeds.

    The temporary file is removed on any error or interruption.

    Raises `OutputError` if the file cannot be written or moved.

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
    with _replacing() as temporary_for:
        yield temporary_for(as_path(path))


@contextmanager
def replacing_npz(path: PathLike) -> Iterator[Path]:
    """Do the same as `replacing` for a file whose name ends in ``.npz``, as NumPy requires."""
    target = as_path(path)
    is_named = target.name.endswith(".npz")
    with replacing(target if is_named else target.with_name(f"{target.name}.npz")) as temporary:
        yield temporary


@contextmanager
def replacing_together(folder: Path, last: str) -> Iterator[Callable[[str], Path]]:
    """Yield a function that returns a temporary file for a file name in a folder.

    If the block succeeds, all files are moved to their places in succession, the one named `last`
    at the end. So if the disk is full, the previous files stay together. An interruption between
    two moves is raised after the last one. Only a process that is killed at that moment leaves
    temporary files, with the names of `temporary_beside`.
    """
    with _replacing() as temporary_for:
        temporary_for(folder / last)
        yield lambda name: temporary_for(folder / name)


@contextmanager
def _replacing() -> Iterator[Callable[[Path], Path]]:
    """Yield a function that returns a temporary file for a path, and move the files at the end.

    The first file that was requested is moved last.
    """
    token = secrets.token_hex(8)
    temporaries: dict[Path, Path] = {}
    latest, is_written = Path(), False

    def temporary_for(path: Path) -> Path:
        nonlocal latest
        latest = _target_of(path)
        if latest not in temporaries:
            # The name is recorded before the file is created, so that the file is removed after an
            # interruption at any time, even between two bytecodes.
            temporaries[latest] = temporary_beside(latest, token)
            # Other users must not read a private file while it is written; the owner must be able
            # to write it.
            mode = _permissions(latest, 0o666) & 0o666 | 0o600
            os.close(os.open(temporaries[latest], os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        return temporaries[latest]

    def move() -> None:
        nonlocal latest
        for latest, temporary in reversed(temporaries.items()):
            if temporary.exists():
                temporary.chmod(_permissions(latest, stat.S_IMODE(temporary.stat().st_mode)))
                temporary.replace(latest)

    try:
        yield temporary_for
        is_written = True
        move()
    except OSError as error:
        raise _cannot_write(latest, error) from error
    except KeyboardInterrupt:
        if is_written:
            move()
        raise
    finally:
        for temporary in temporaries.values():
            with suppress(OSError):  # it does not exist, or an error was raised already
                temporary.unlink()


def _permissions(path: Path, of_new: int) -> int:
    """Return the permissions of a file, or those of a new one if it does not exist."""
    return stat.S_IMODE(path.stat().st_mode) & 0o777 if path.exists() else of_new


def temporary_beside(target: Path, token: str) -> Path:
    """Return the path of a target's temporary file; files that are moved together share a token.

    The path is absolute, because pandas and pyarrow interpret ``~`` and ``http:`` at the beginning.
    Its name, which begins with the target name, is shortened to fit into 255 bytes.
    """
    # The exporter of Prometheus reads every name that ends so, hidden ones too.
    suffix = ".tmp" if target.suffix == ".prom" else target.suffix[:16]
    return target.parent.absolute() / f".{target.stem[:40]}.{token}{suffix}"


def _target_of(path: PathLike) -> Path:
    """Return the file to replace, which need not exist, or raise `OutputError`."""
    target = as_path(path)
    try:
        if target.is_symlink():
            target = Path(os.path.realpath(target))  # the file is replaced, not the link to it
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    except OSError as error:
        raise _cannot_write(target, error) from error
    if not stat.S_ISREG(mode):
        kind = "a folder" if stat.S_ISDIR(mode) else "no regular file"
        raise OutputError(f"{shown(target)}: cannot be written: it is {kind}", path=target)
    return target


def _cannot_write(target: Path, error: OSError) -> OutputError:
    return OutputError(
        f"{shown(target)}: cannot be written: {error.strerror or error}", path=target
    )


def make_folder(path: PathLike) -> Path:
    """Create a folder if needed and return it, or raise `OutputError` if it is not writable."""
    folder = as_path(path)
    if folder.parts[:1] == ("~",) and not Path("~").exists():
        raise OutputError(
            f"{shown(folder)}: only shells expand ~; write the full path", path=folder
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise OutputError(
            f"{shown(folder)}: cannot be used as an output folder: {error.strerror or error}",
            path=folder,
        ) from error
    return folder


def make_folder_of(path: PathLike) -> Path:
    """Return the path of an output file and create its folder, or raise `OutputError`."""
    file = as_path(path)
    make_folder(file.parent)
    _target_of(file)
    return file


def read_json(path: Path, keys: Iterable[str], foreign: str) -> dict[str, JSONValue]:
    """Return the object in a JSON file.

    Raises `InvalidFileError`, with the message `foreign` if the file holds anything else or the
    object lacks one of `keys`.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InvalidFileError(f"cannot be read: {error.strerror or error}", path) from None
    except (ValueError, RecursionError):  # not JSON, or not UTF-8
        content = None
    if not isinstance(content, dict) or not content.keys() >= {*keys}:
        raise InvalidFileError(foreign, path)
    return content


@contextmanager
def locked(file: BinaryIO) -> Iterator[None]:
    """Wait until no other process has locked an open file, and lock it if the system can."""
    from filelock import lock_descriptor, unlock_descriptor

    with suppress(OSError):  # a file system without locks
        lock_descriptor(file.fileno())
    try:
        yield
    finally:  # closing would not be enough if this process was forked meanwhile
        with suppress(OSError):
            unlock_descriptor(file.fileno())


@contextmanager
def locked_folder(folder: Path) -> Iterator[None]:
    """Lock an existing folder against other processes by a file in it, if the system can.

    Raises `OutputError` if another process holds the lock.
    """
    from filelock import FileLock, Timeout

    # A soft lock would outlive a process that is killed.
    lock = FileLock(folder / ".lock", blocking=False, fallback_to_soft=False)
    with ExitStack() as stack:
        try:
            stack.enter_context(lock)
        except Timeout as error:
            raise OutputError(
                f"{shown(folder)}: another process writes to this folder; wait until it has "
                "ended, or choose another folder",
                path=folder,
            ) from error
        except OSError:  # a file system without locks
            pass
        yield
