"""Decorators that compile the functions of the package with numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

from numba import config, njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: An array that a kernel reads or writes. numba determines its dtype when the kernel is called.
    Array = NDArray[Any]

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile `function` on its first call, releasing the interpreter's lock, and cache it on disk.

    Types are inferred at the first call, because explicit signatures cost import time and refuse
    read-only arrays. ``parallel`` is off, because threads over blocks of users are as fast and
    reentrant. ``fastmath`` is off, because sums would not be reproducible.
    """
    try:
        return cast(F, njit(cache=True, nogil=True, error_model="numpy")(function))
    except RuntimeError:
        # numba looks for a writable cache folder while decorating, and raises if there is none: a
        # read-only installation without a home directory compiles in each process.
        return cast(F, njit(nogil=True, error_model="numpy")(function))


def compiled(plain: F, intrinsic: Any) -> F:
    """Return the intrinsic that kernels call or, if compilation is disabled, its plain form."""
    interpreted = config.DISABLE_JIT  # type: ignore[attr-defined]
    return plain if interpreted else cast(F, intrinsic)


def inlined(function: F) -> F:
    """Inline `function` into each kernel that calls it.

    A call would count the references of each array passed, atomically, which took a tenth of the
    time of the sweep.
    """
    return cast(F, njit(inline="always", error_model="numpy")(function))
