"""The one way in which this package compiles a function."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from numba import config, njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: What a kernel reads or writes; numba settles the dtype when it is called.
    Array = NDArray[Any]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on its first call, without the interpreter's lock, cached on disk.

    Lazily typed: explicit signatures cost import time and refuse read-only arrays. No
    ``parallel``, because a thread pool over blocks of users is as fast and safe to enter twice.
    No ``fastmath``, because sums would no longer be reproducible.
    """
    try:
        return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:
        # numba looks for a writable cache folder while decorating and raises without one: a
        # read-only installation with no home then compiles in each process.
        return cast(F, njit(nogil=True, error_model="numpy")(function))


def compiled(plain: F, intrinsic: Any) -> F:
    """Return what kernels call: an intrinsic or, where nothing is compiled, its meaning."""
    interpreted = config.DISABLE_JIT  # type: ignore[attr-defined]
    return plain if interpreted else cast(F, intrinsic)


def inlined(function: F) -> F:
    """Put `function` into each kernel of its file that calls it.

    A call would count the references of every array that it passes, atomically: a tenth of the
    time of the sweep.
    """
    return cast(F, njit(inline="always", error_model="numpy")(function))
