"""Parts as bytes, so that one computed elsewhere, or saved, can be merged.

What is written is an archive of NumPy arrays, one of which holds all that is not an array, as JSON.
Nothing in it is a pickle, so that reading it runs nothing. A part comes back with the same bits.
"""

from __future__ import annotations

import io
import json
from dataclasses import fields, is_dataclass
from operator import index
from typing import Any

import numpy as np

from ..core.exact_sums import Moments
from ..core.saved_arrays import read_arrays
from ..errors import InvalidDataError
from ..metrics.random_baseline import Expectation, RandomSums
from .parts import (
    CandidateCounts,
    FirstRanks,
    ListSums,
    Part,
    Retrieval,
    SavedNumber,
    SeenCounts,
    Span,
    UserValues,
)

#: What parts are made of, by name.
_CLASSES: dict[str, Any] = {
    each.__name__: each
    for each in (
        CandidateCounts, Expectation, FirstRanks, ListSums, Moments, Part, RandomSums,
        Retrieval, SavedNumber, SeenCounts, Span, UserValues,
    )
}  # fmt: skip

_HEADER = "header"


def pack(value: Any) -> bytes:
    """Write a part, or several in a dict or tuple.

    Returns
    -------
    bytes
        An ``.npz`` archive of some kilobytes, and of what the users' values take if it has them.
    """
    arrays: dict[str, Any] = {}

    def encode(value: Any) -> Any:
        kind = type(value).__name__
        if isinstance(value, np.ndarray):
            if value.dtype == object:
                return {"text": value.tolist()}
            name = str(len(arrays))
            is_count = value.dtype.kind == "i" and value.min(initial=0) >= 0
            # Counts in as few bytes as the largest takes: there may be one for each item.
            dtype = np.min_scalar_type(value.max(initial=0)) if is_count else value.dtype
            arrays[name] = value.astype(dtype)
            return {"array": [name, value.dtype.str]}
        if isinstance(value, dict):
            return {"dict": [[encode(key), encode(entry)] for key, entry in value.items()]}
        if is_dataclass(value):
            return {kind: [encode(getattr(value, field.name)) for field in fields(value)]}
        if isinstance(value, tuple):
            entries = list(map(encode, value))
            return {kind: entries} if kind in _CLASSES else entries
        return value

    text = json.dumps(encode(value), default=index)
    arrays[_HEADER] = np.frombuffer(text.encode("ascii"), np.uint8)
    stream = io.BytesIO()
    np.savez(stream, allow_pickle=False, **arrays)
    return stream.getvalue()


def unpack(data: bytes) -> Any:
    """Read what `pack` wrote.

    Raises
    ------
    InvalidDataError
        If the bytes are something else, or were written by a version with another layout.
    """

    def decode(value: Any) -> Any:
        if isinstance(value, list):
            return tuple(map(decode, value))
        if not isinstance(value, dict):
            return value
        ((kind, content),) = value.items()
        if kind == "text":
            return np.array(content, object)
        if kind == "array":
            return arrays[content[0]].astype(content[1], copy=False)
        entries = decode(content)
        return dict(entries) if kind == "dict" else _CLASSES[kind](*entries)

    try:
        arrays = read_arrays(io.BytesIO(data))
        return decode(json.loads(arrays[_HEADER].tobytes()))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise InvalidDataError(
            f"the totals of an evaluation cannot be read ({type(error).__name__}: {error}); give "
            "what this version of sparse_eval wrote"
        ) from None
