"""Compiled kernels on disk: where they are kept, and what is said while they are compiled.

numba has a cache, but it asks for a writable folder even to read, so that an image whose kernels
were compiled while it was built compiles them again; it compares the file of a kernel alone, so
that a kernel would stay as it is when a part of it in another file changes; and it has an index
that two processes can write over one another's, and believes whatever its files hold.
"""

from __future__ import annotations

import pickle
import sys
import warnings
from contextlib import suppress
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from time import perf_counter
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import llvmlite
import numba
from llvmlite.binding import get_host_cpu_name
from numba.core import caching, config
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

if TYPE_CHECKING:
    from collections.abc import Callable

#: Whoever waits longer, in seconds, is told why.
PATIENCE = 2.0


@cache
def _digest() -> str:
    """Return a digest of the sources of all kernels, and of what compiles them."""
    digest = sha256(f"{numba.__version__} {llvmlite.__version__} ".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def folders(path: str) -> list[Path]:
    """Return the folders that may hold the kernels of a module.

    The one that the user names with ``NUMBA_CACHE_DIR``, or else the package's own ``__pycache__``
    and a folder of the user.
    """
    name = caching._CacheLocator.get_suitable_cache_subpath(path)
    if config.CACHE_DIR:  # type: ignore[attr-defined]
        return [Path(config.CACHE_DIR, name)]  # type: ignore[attr-defined]
    user = AppDirs(appname="numba", appauthor=False).user_cache_dir
    own = Path(path).parent / "__pycache__"
    # Without a home, or with a relative XDG_CACHE_HOME, it would be wherever the process is.
    return [own, Path(user, name)] if Path(user).is_absolute() else [own]


def writable_folder() -> Path | None:
    """Return the first folder that can be written, or None."""
    for folder in folders(__file__):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
        except OSError:
            continue
        return folder
    return None


def processor() -> str:
    """Return LLVM's name of the processor that kernels are compiled for."""
    return str(config.CPU_NAME or get_host_cpu_name())  # type: ignore[attr-defined]


class _Locator:
    """What numba asks about a place: `caching._CacheLocator` without the test of writing."""

    def __init__(self, folder: Path, line: int) -> None:
        self.folder = folder
        self.line = line

    def get_cache_path(self) -> str:
        return str(self.folder)

    def get_source_stamp(self) -> str:
        return _digest()

    def get_disambiguator(self) -> str:
        return str(self.line)

    def ensure_cache_path(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)


class _Files(caching.CompileResultCacheImpl):
    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        line = function.__code__.co_firstlineno
        self._lineno = line
        self._locator = _Locator(folder, line)
        name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self._filename_base = self.get_filename_base(name, getattr(sys, "abiflags", ""))


class _Store:
    """The kept forms of a kernel in one folder, a file for each types and processor.

    Its name begins with what the kernel is called, then says what it was compiled from, and then
    for what, so that no process writes over the file of something else. What a file holds counts
    only if it is whole: the digest at its beginning says so.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.folder = folder
        self.name = name
        self.current = f"{name}.{_digest()[:16]}"

    def path(self, key: object) -> Path:
        return self.folder / f"{self.current}.{sha256(repr(key).encode()).hexdigest()[:32]}.nbc"

    def load(self, key: object) -> Any:
        """Return what was saved, or None if there is nothing, or it is damaged."""
        try:
            content = self.path(key).read_bytes()
        except FileNotFoundError:
            return None
        size = sha256().digest_size
        if sha256(content[size:]).digest() != content[:size]:
            return None
        kept, data = pickle.loads(content[size:])  # noqa: S301 - this class wrote it
        return data if kept == repr(key) else None

    def save(self, key: object, data: object) -> None:
        """Write a file, and remove those of other versions of the kernel."""
        content = dumps((repr(key), data))
        unfinished = self.folder / f"{self.name}.tmp.{uuid4().hex[:16]}"
        try:
            unfinished.write_bytes(sha256(content).digest() + content)
            unfinished.replace(self.path(key))
        finally:
            unfinished.unlink(missing_ok=True)
        for path in self.folder.glob(f"{self.name}.*nb[ci]"):
            if not path.name.startswith(self.current):
                with suppress(OSError):
                    path.unlink()

    def has_some(self) -> bool:
        """Return whether there is something, for any types and processor."""
        return any(self.folder.glob(f"{self.current}.*.nbc"))

    def flush(self) -> None:
        """Remove all files."""
        for path in self.folder.glob(f"{self.name}.*nb[ci]"):
            path.unlink(missing_ok=True)


class _Place(caching.FunctionCache):
    """The cache of a kernel in one folder."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._name = repr(function)
        self._py_func = function
        self._impl = _Files(function, folder)
        self._cache_path = str(folder)
        self.store = _Store(folder, self._impl.filename_base)
        self._cache_file: Any = self.store  # where numba looks for it
        self.enable()


class KernelCache(caching._Cache):
    """The cache of a kernel: read from any of its folders, written to the first that can be.

    numba asks it before it compiles, and hands over what it has compiled.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.enabled = True

    @cached_property
    def places(self) -> list[_Place]:
        """The folders, in the order in which they are tried."""
        path = self.function.__code__.co_filename
        return [_Place(self.function, folder) for folder in folders(path)]

    @property
    def cache_path(self) -> str:
        """The folder that is tried first."""
        return str(self.places[0].cache_path)

    @property
    def is_empty(self) -> bool:
        """Whether no folder holds the kernel, for any types."""
        return not any(place.store.has_some() for place in self.places)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled kernel for a signature, or None: it is compiled next."""
        for place in self.places if self.enabled else []:
            try:
                found = place.load_overload(signature, context)
            except OSError:  # a folder that may not be read
                continue
            if found is not None:
                return found
        _waiting.begin()
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Keep a kernel that has just been compiled."""
        _waiting.end()
        compiled_now.append(self.function.__name__)
        if not self.enabled:
            return
        faults = []
        for place in self.places:
            try:
                place.save_overload(signature, compiled)
            except OSError as error:
                faults.append(f"{place.cache_path}: {error.strerror or error}")
                continue
            return
        not_kept.append("; ".join(faults))
        _warn_of_no_place()

    def enable(self) -> None:
        """Read and write from now on."""
        self.enabled = True

    def disable(self) -> None:
        """Neither read nor write from now on."""
        self.enabled = False

    def flush(self) -> None:
        """Forget what is kept."""
        for place in self.places:
            place.flush()


@cache
def _warn_of_no_place() -> None:
    """Warn, once in a process, that what is compiled cannot be kept."""
    warnings.warn(
        f"compiled kernels cannot be kept ({not_kept[-1]}), so that every process compiles them "
        "again; name a folder that can be written with the environment variable NUMBA_CACHE_DIR, "
        "or run 'sparse-eval compile' where the package's own can be, such as while an image is "
        "built",
        stacklevel=2,
    )


#: The kernels that this process has compiled, in order, once for each types, and why each of those
#: that could not be kept could not.
compiled_now: list[str] = []
not_kept: list[str] = []


class _Waiting:
    """Tells whoever waits for compilations why, once in a process."""

    def __init__(self) -> None:
        self.waited = 0.0
        self.told = False
        self.timer: Timer | None = None
        self.start = 0.0

    def begin(self) -> None:
        """Note that a kernel is about to be compiled."""
        if self.told or self.timer is not None:
            return
        self.start = perf_counter()
        self.timer = Timer(max(PATIENCE - self.waited, 0.0), self.tell)
        self.timer.daemon = True
        self.timer.start()

    def end(self) -> None:
        """Note that a kernel has been compiled."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.waited += perf_counter() - self.start

    def tell(self) -> None:
        self.told = True
        if sys.stderr is None:  # it was closed
            return
        sys.stderr.write(
            "sparse_eval compiles its kernels for this processor, which takes some seconds, once; "
            "'sparse-eval compile' does so ahead\n"
        )
        sys.stderr.flush()


_waiting = _Waiting()
