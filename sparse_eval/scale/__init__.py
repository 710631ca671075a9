"""Engines for more users than one process can evaluate: one module for each.

`sparse_eval.scale.dask` and `sparse_eval.scale.spark` are imported when they are first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import dask, spark

__all__ = ["dask", "spark"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'sparse_eval.scale' has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")
