"""The installed versions of this package and of the libraries it computes with."""

from functools import lru_cache
from importlib.metadata import version
from platform import python_version

#: The version of the numbers. Increase it with every change that affects a number of an evaluation.
#: A job that was started with a different version does not continue.
NUMBERS_VERSION = 1

_LIBRARIES = ("sparse_eval", "numpy", "scipy", "numba", "pandas", "implicit")


@lru_cache(maxsize=1)
def installed_version() -> str:
    """Return the installed version of this package.

    It is cached, because reading it takes milliseconds and every task of a cluster needs it.
    """
    return version("sparse_eval")


def library_versions() -> dict[str, str]:
    """Return the versions of Python, this package and the libraries that affect results."""
    return {"python": python_version()} | {name: version(name) for name in _LIBRARIES}
