"""Whether something that was read from JSON is what it should be."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Each", "misfit"]


class Each(NamedTuple):
    """Shape of a list, or of a mapping, all of whose values have the same shape."""

    of: type[list[Any]] | type[dict[str, Any]]
    shape: Any


def misfit(value: Any, shape: Any, place: str = "it") -> str | None:
    """Say where a value does not have a shape; None if it has.

    Parameters
    ----------
    value : object
        As `json` reads it.
    shape : type, tuple of types, `Each`, or dict of str to shape
        A dict says which keys there must be, and of what shape; there may be others. A bool is
        no int here, and an int is a float.
    place : str
        What the value is called.

    Returns
    -------
    str or None
        Such as ``metrics / ndcg@5 / mean``.
    """
    if isinstance(shape, Each):
        if not isinstance(value, shape.of):
            return place
        inside = value.items() if isinstance(value, dict) else enumerate(value)
        return _first(misfit(part, shape.shape, f"{place} / {key}") for key, part in inside)
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return place
        return _first(
            misfit(value.get(key), of, key if place == "it" else f"{place} / {key}")
            for key, of in shape.items()
        )
    kinds = shape if isinstance(shape, tuple) else (shape,)
    if isinstance(value, bool):
        return None if bool in kinds else place
    if isinstance(value, int) and float in kinds:
        return None
    return None if isinstance(value, kinds) else place


def _first(found: Any) -> str | None:
    return next((place for place in found if place is not None), None)
