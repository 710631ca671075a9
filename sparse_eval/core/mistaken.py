"""Errors about inputs of the wrong type: a description of the input, and what to use instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import InvalidDataError

#: The largest number of column names in a message.
_MOST_COLUMNS = 8

#: The expected input where a matrix is needed, for error messages.
SPARSE = "a scipy sparse matrix, such as scipy.sparse.csr_matrix(x) of a dense array"


def is_frame(values: object) -> bool:
    """Return whether a value is a frame of pandas, polars, Arrow, Dask, Spark or similar."""
    return hasattr(type(values), "columns")


def describe(values: Any) -> str:
    """Describe a value in a few words: its type, and its columns or dtype and shape."""
    if type(values) is np.ndarray:
        return f"an array of {values.dtype} with shape {values.shape}"
    name = type(values).__name__
    kind = f"an {name}" if name[0].lower() in "aeio" else f"a {name}"
    if is_frame(values):
        names = column_names(values)
        more = ", …" if len(names) > _MOST_COLUMNS else ""
        return f"{kind} with the columns {', '.join(names[:_MOST_COLUMNS])}{more}"
    return f"{kind} with shape {values.shape}" if hasattr(values, "tocsr") else kind


def mistaken(values: Any, name: str, expected: str) -> InvalidDataError:
    """Return the error about an input called `name` that is not what was `expected`."""
    hint = None
    if is_frame(values):
        hint = "Rankings.from_frame, Relevance.from_frame and Interactions.from_frame take frames"
    elif callable(getattr(values, "matrix", None)):
        hint = "give its .matrix()"
    elif name == "the position matrix":
        hint = (
            "Rankings.from_topk(x) takes item ids, best first, and Rankings.from_scores(x) scores"
        )
    message = f"{name} is {describe(values)}; expected {expected}"
    return InvalidDataError(message, argument=name, hint=hint)


def column_names(frame: Any) -> list[str]:
    """Return the column names of a frame, without reading a row."""
    if hasattr(frame, "collect_schema"):  # polars warns if .columns has to be computed
        return list(map(str, frame.collect_schema().names()))
    if not hasattr(frame, "columns"):
        return list(map(str, getattr(getattr(frame, "schema", None), "names", ())))
    return list(map(str, getattr(frame, "column_names", frame.columns)))
