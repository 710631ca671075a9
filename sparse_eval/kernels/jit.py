"""Decorators that compile the functions of the package with numba."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numba import config, njit

from .cache import KernelCache

if TYPE_CHECKING:
    from numpy.typing import NDArray

    #: An array that a kernel reads or writes. numba determines its dtype when the kernel is called.
    Array = NDArray[Any]

F = TypeVar("F", bound=Callable[..., Any])


#: Whether ``NUMBA_DISABLE_JIT`` asks for kernels that run as plain Python.
INTERPRETED: bool = bool(config.DISABLE_JIT)  # type: ignore[attr-defined]

#: numba's type annotations lack some of the options used here.
_njit: Any = njit

#: Kernels are only called from Python and from one another, so they need no C wrapper. numba does
#: not document these switches, nor `_nrt`, and has no others.
_KERNEL = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_PART = {"error_model": "numpy", "no_cfunc_wrapper": True, "no_cpython_wrapper": True}


def kernel(function: F) -> F:
    """Compile `function` on its first call, releasing the interpreter's lock, and cache it on disk.

    Types are inferred at the first call, because explicit signatures cost import time and do not
    accept read-only arrays. ``parallel`` is off, because threads over blocks of users are as fast,
    and reentrant. ``fastmath`` is off, because it would make sums irreproducible.

    A kernel does not allocate memory: its caller passes the work arrays. So numba need not count
    references. This counting took half of the time to compile a function with many arrays. It took
    a tenth of the time to run a function that calls another one for each user.
    """
    return _compile(function, _nrt=False)


def allocating_kernel(function: F) -> F:
    """Compile `function` as `kernel` does, but count references so that it may allocate memory."""
    return _compile(function)


def _compile(function: F, **options: bool) -> F:
    if INTERPRETED:  # compiled kernels do not warn about floating-point events
        return np.errstate(all="ignore")(function)
    compiled = _njit(**_KERNEL, **options)(function)
    compiled._cache = KernelCache(function)  # `cache=True` takes only numba's own
    return cast("F", compiled)


def is_ready(function: Callable[..., Any]) -> bool:
    """Return whether a kernel is already compiled, in this process or in the cache."""
    if INTERPRETED:
        return True
    compiled: Any = function
    return bool(compiled.overloads) or not compiled._cache.is_empty


def part(function: F) -> F:
    """Compile `function` as a part of the kernels that call it; it allocates no memory either.

    It is typed and lowered once, and linked into each kernel, where the compiler may inline it. If
    numba inlined the parts, before types are known, their compilation took twice as long.
    """
    return cast("F", _njit(_nrt=False, **_PART)(function))
