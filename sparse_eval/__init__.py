"""Evaluate recommenders trained on large implicit-feedback data.

A prediction-position matrix and a validation matrix go in, one row of numbers per user comes out.
"""

from __future__ import annotations

from ast import ImportFrom as _ImportFrom
from ast import parse as _parse
from pathlib import Path as _Path

# The stub imports every public name. Here they are imported from there when they are first used. A
# job that only evaluates matrices would wait longer for pandas and implicit than for its results. A
# command handles signals before imports.
_SOURCES = {
    alias.name: node.module
    for node in _parse(_Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8")).body
    if isinstance(node, _ImportFrom)
    for alias in node.names
}

__all__ = sorted(_SOURCES)
_SOURCES["metrics"] = None  # a name for extensions, which ``dir`` does not show


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name == "__version__":
        from .core.versions import installed_version

        return installed_version()
    if name not in _SOURCES:
        raise AttributeError(f"module 'sparse_eval' has no attribute {name!r}")
    from .core.threads import thread_lock

    # Modules that import one another cannot be imported first by several threads at once.
    with thread_lock("import"):
        if _SOURCES[name] is None:
            return import_module(f"sparse_eval.{name}")
        source = import_module(f"sparse_eval.{_SOURCES[name]}")
        if hasattr(source, name):
            return getattr(source, name)
        return import_module(f"{source.__name__}.{name}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__name__", "__version__"])
