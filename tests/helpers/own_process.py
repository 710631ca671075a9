"""Run tests in a process of their own, independent of what else the test process has loaded.

Ctrl-C is such a case: a library that is loaded beside the tests may handle it, and its finalizers
may run while it is raised.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec

_ROOT = Path(__file__).parents[2]
_CHILD = "SPARSE_EVAL_TESTS_IN_OWN_PROCESS"

#: The names of the decorated tests of each module.
_NAMES: dict[str, list[str]] = defaultdict(list)

P = ParamSpec("P")


def own_process(test: Callable[P, None]) -> Callable[P, None]:
    """Run a test in a child process, together with the other decorated ones of its module."""
    file = test.__code__.co_filename
    _NAMES[file].append(test.__name__)

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        if _CHILD in os.environ:
            test(*args, **kwargs)
            return
        current = os.environ["PYTEST_CURRENT_TEST"].removesuffix(" (call)")
        printed = _run_module(file)
        assert f"\nPASSED {current}\n" in printed, printed

    return run


@functools.cache
def _run_module(file: str) -> str:
    """Run the decorated tests of a module, and return what pytest prints about them."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-rA", "--no-header", "-p", "no:cacheprovider"),
            *(f"{file}::{name}" for name in _NAMES[file]),
        ],
        cwd=_ROOT,
        env=os.environ | {_CHILD: "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{done.stdout}\n{done.stderr}\n"
