"""Cache of compiled kernels on disk, and the message that is shown while they are compiled.

numba has its own cache, with these problems, which `tests/project/test_private_parts.py` shows:

- It needs a writable folder even to read. So a container image would compile its kernels again,
  even if they were compiled while it was built.
- It checks only the file of a kernel, and misses changes of parts in other files.
- Two processes can overwrite each other's index, and the content of files is not verified.

numba has no public way to replace it, so this module and `jit` use private parts of numba.
"""

from __future__ import annotations

import os
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
from numba import config
from numba.core.compiler import CompileResult
from numba.core.runtime.nrt import rtsys

if TYPE_CHECKING:
    from collections.abc import Callable

#: The seconds of compilation after which a message explains the delay.
PATIENCE = 2.0

#: The length of the digest at the beginning of a file.
_DIGEST = sha256().digest_size

#: The kernels that this process has compiled, in order, once for each signature, and the reasons
#: why kernels could not be stored.
compiled_now: list[str] = []
not_kept: list[str] = []


@cache
def _digest() -> str:
    """Return a digest of the sources of all kernels, and of the versions of their compilers."""
    digest = sha256(f"{numba.__version__} {llvmlite.__version__} ".encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def folders(path: str) -> list[Path]:
    """Return the folders that may hold the kernels of a module.

    This is the folder in ``NUMBA_CACHE_DIR``. By default, they are the package's own
    ``__pycache__`` and a folder of the user, on Linux the one that numba uses too.
    """
    parent = Path(path).absolute().parent
    name = f"{parent.name}_{sha256(str(parent).encode()).hexdigest()[:40]}"
    if config.CACHE_DIR:  # type: ignore[attr-defined]
        return [Path(config.CACHE_DIR, name)]  # type: ignore[attr-defined]
    home = os.path.expanduser("~/.cache")  # noqa: PTH111 - unchanged if there is no home
    user = Path(os.environ.get("XDG_CACHE_HOME") or home, "numba", name)
    own = parent / "__pycache__"
    # Without a home, or with a relative XDG_CACHE_HOME, it would be in the working directory.
    return [own, user] if user.is_absolute() else [own]


def writable_folder() -> Path | None:
    """Return the first folder that can be written, or None."""
    for folder in folders(__file__):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            TemporaryFile(dir=folder).close()
            return folder
    return None


def processor() -> str:
    """Return LLVM's name of the processor that kernels are compiled for."""
    return str(config.CPU_NAME or get_host_cpu_name())  # type: ignore[attr-defined]


class KernelCache:
    """The cache of a kernel: read from any of its folders, written to the first writable one.

    numba queries the cache before it compiles a kernel, and stores the result in it. There is one
    file for each signature and processor. The name of the file consists of the name of the kernel,
    a digest of the sources, and a digest of the signature and processor. So no process overwrites
    the file of a different kernel. A file begins with a digest of its content, and is used only if
    this digest matches.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        code, version = function.__code__, f"{sys.version_info[0]}{sys.version_info[1]}"
        name = f"{Path(code.co_filename).stem}.{function.__qualname__}-{code.co_firstlineno}"
        version += getattr(sys, "abiflags", "")
        self.function = function
        self.name = f"{name.replace('<', '').replace('>', '')}.py{version}"

    @cached_property
    def current(self) -> str:
        """The beginning of the names of all files compiled from the current sources."""
        return f"{self.name}.{_digest()[:16]}"

    @cached_property
    def folders(self) -> list[Path]:
        """The folders, in the order in which they are tried."""
        return folders(self.function.__code__.co_filename)

    @property
    def cache_path(self) -> str:
        """The folder that is tried first, which numba displays."""
        return str(self.folders[0])

    def _file(self, signature: Any, codegen: Any) -> tuple[str, str]:
        """Return the file name for a signature and processor, and the key that is stored in it."""
        key = repr((signature, codegen.magic_tuple()))
        return f"{self.current}.{sha256(key.encode()).hexdigest()[:32]}.nbc", key

    @property
    def is_empty(self) -> bool:
        """Whether no folder contains the kernel, for any signature."""
        return not any(any(folder.glob(f"{self.current}.*.nbc")) for folder in self.folders)

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Return the compiled kernel for a signature, or None if numba must compile it."""
        name, key = self._file(signature, context.codegen())
        for folder in self.folders:
            try:
                content = (folder / name).read_bytes()
            except OSError:  # it does not exist, or is not readable
                continue
            if sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
                kept, data = pickle.loads(content[_DIGEST:])  # noqa: S301 - this class wrote it
                if kept == key:
                    # numba imports here all that it can compile, which takes half a second.
                    rtsys.initialize(context)
                    return CompileResult._rebuild(context, *data)  # as numba's own cache does
        _waiting.begin()
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Store a kernel that has just been compiled, and remove its other versions."""
        _waiting.end()
        compiled_now.append(self.function.__name__)
        name, key = self._file(signature, compiled.codegen)
        content = pickle.dumps((key, compiled._reduce()))
        faults = []
        for folder in self.folders:
            unfinished = folder / f"{self.name}.tmp.{uuid4().hex[:16]}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                try:
                    unfinished.write_bytes(sha256(content).digest() + content)
                    unfinished.replace(folder / name)
                finally:
                    unfinished.unlink(missing_ok=True)
            except OSError as error:
                faults.append(f"{folder}: {error.strerror or error}")
                continue
            for path in folder.glob(f"{self.name}.*nb[ci]"):
                if not path.name.startswith(self.current):
                    with suppress(OSError):
                        path.unlink()
            return
        not_kept.append("; ".join(faults))
        _warn_of_no_place()


@cache
def _warn_of_no_place() -> None:
    """Warn, once in a process, that compiled kernels cannot be stored."""
    warnings.warn(
        f"compiled kernels cannot be kept ({not_kept[-1]}), so that every process compiles them "
        "again; name a folder that can be written with the environment variable NUMBA_CACHE_DIR, "
        "or run 'sparse-eval compile' where the package's own can be, such as while an image is "
        "built",
        stacklevel=2,
    )


class _Waiting:
    """Shows a message, once in a process, if compilation takes long."""

    def __init__(self) -> None:
        self.left = PATIENCE
        self.told = False
        self.start = 0.0
        self.timer: Timer | None = None

    def begin(self) -> None:
        """Record that a kernel is about to be compiled."""
        if not self.told and self.timer is None:
            self.start = perf_counter()
            self.timer = Timer(max(self.left, 0.0), self.tell)
            self.timer.daemon = True
            self.timer.start()

    def end(self) -> None:
        """Record that a kernel has been compiled."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
            self.left -= perf_counter() - self.start

    def tell(self) -> None:
        self.told = True
        if sys.stderr is not None:  # it may be closed
            sys.stderr.write(
                "sparse_eval compiles its kernels for this processor, which takes some seconds, "
                "once; 'sparse-eval compile' does so ahead\n"
            )
            sys.stderr.flush()


_waiting = _Waiting()
