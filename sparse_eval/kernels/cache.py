"""Compiled kernels on disk: where they are kept, and what is said while they are compiled.

numba has a cache, but it asks for a writable folder even to read, so that an image whose kernels
were compiled while it was built compiles them again; and it compares the file of a kernel alone, so
that a kernel would stay as it is when a part of it in another file changes.
"""

from __future__ import annotations

import sys
import warnings
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from time import perf_counter
from typing import TYPE_CHECKING, Any

from llvmlite.binding import get_host_cpu_name
from numba.core import caching, config
from numba.misc.appdirs import AppDirs

if TYPE_CHECKING:
    from collections.abc import Callable

#: Whoever waits longer, in seconds, is told why.
PATIENCE = 2.0


@cache
def _digest() -> str:
    """Return a digest of the sources of all kernels."""
    digest = sha256()
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
    return [Path(path).parent / "__pycache__", Path(user, name)]


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


class _Place(caching.FunctionCache):
    """The cache of a kernel in one folder."""

    def __init__(self, function: Callable[..., Any], folder: Path) -> None:
        self._name = repr(function)
        self._py_func = function
        self._impl = _Files(function, folder)
        self._cache_path = str(folder)
        self._cache_file = caching.IndexDataCacheFile(
            self._cache_path, self._impl.filename_base, _digest()
        )
        self.enable()

    def signatures(self) -> list[Any]:
        """Return the types for which the folder holds the kernel, of any processor."""
        try:
            return list(self._cache_file._load_index())
        except OSError:
            return []


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
        return not any(place.signatures() for place in self.places)

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
        for place in self.places if self.enabled else []:
            try:
                place.save_overload(signature, compiled)
            except OSError:
                continue
            return
        if self.enabled:
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
        "no folder can be written to keep compiled kernels, so that every process compiles them "
        "again; name one with the environment variable NUMBA_CACHE_DIR, or run 'sparse-eval "
        "compile' where the package's own folder can be written, such as while an image is built",
        stacklevel=2,
    )


#: The kernels that this process has compiled, in order, once for each types.
compiled_now: list[str] = []


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
        sys.stderr.write(
            "sparse_eval compiles its kernels for this processor, which takes some seconds, once; "
            "'sparse-eval compile' does so ahead\n"
        )
        sys.stderr.flush()


_waiting = _Waiting()
