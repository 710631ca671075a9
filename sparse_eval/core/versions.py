"""The version of this package."""

from functools import lru_cache
from importlib.metadata import version

__all__ = ["installed_version"]


@lru_cache(maxsize=1)
def installed_version() -> str:
    """Return the version that is installed; reading it takes milliseconds, and tasks are many."""
    return version("sparse_eval")
