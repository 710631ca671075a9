"""The command that compiles the kernels ahead: compile."""

from __future__ import annotations

from .echo import echo
from .printing import counted


def compile_ahead() -> None:
    """Compile every kernel ahead: for an image, or the cache of continuous integration.

    They are kept in the folder that NUMBA_CACHE_DIR names, or else in the package's own, or else in
    one of the user; later processes read them there, also if they cannot write.
    """
    from ..models.compile import compile_kernels

    folder, processor, n_compiled = compile_kernels()
    echo(f"compiled {counted(n_compiled, 'kernel')} for {processor}; all are in {folder}")
